import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { type CallerTold, callerOf } from "../caller";
import { decideOffer, openWithKey, signOutReason } from "../session";
import { Confirm } from "../ui/confirm";
import { showToast } from "../ui/toast";

const FORM = /^wm_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/;

/** Asks for a key, which stays in this tab alone. */
export function SignIn() {
  return (
    <main class="sign-in" id="content">
      <KeyForm action="Open">
        <h1>Waymark</h1>
      </KeyForm>
    </main>
  );
}

interface KeyOfferProps {
  offered: string;
  /** The caller of the key in use. */
  current: CallerTold | undefined;
}

/** Asks whether the key of a link replaces that in use. A key of the same user replaces it at once. */
export function KeyOffer({ offered, current }: KeyOfferProps) {
  const { data, error } = useLoaded(`offer ${offered}`, (signal) => callerOf(offered, signal));
  const isSame = data && data.user === current?.user && data.organization === current.organization;
  useEffect(() => {
    if (isSame) decideOffer(true);
    if (!error) return;
    decideOffer(false);
    showToast(`The API key of the link was rejected: ${error.message} You keep your key.`);
  }, [isSame, error]);
  if (!data || !current || isSame) return null;
  return (
    <Confirm
      title="Switch to another API key?"
      action="Switch key"
      cancel="Keep your key"
      onClose={() => decideOffer(false)}
      onConfirm={() => decideOffer(true)}
    >
      <p>
        A link brought the API key of another user. If you switch, this tab shows and saves data of
        their organization. If you do not trust the link, keep your key.
      </p>
      <table class="pairs">
        <tbody>
          {Object.entries({ "In use": current, "From the link": data }).map(([name, caller]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <bdi>{caller.user ?? "A user"}</bdi> of <bdi>{caller.organization}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Confirm>
  );
}

/** The field for a key, below what is said first. */
export function KeyForm({ action, children }: { action: string; children: ComponentChildren }) {
  const [text, set] = useState("");
  const [wrong, setWrong] = useState(false);
  const isKey = FORM.test(text.trim());
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isKey) openWithKey(text.trim());
        else setWrong(true);
      }}
    >
      {children}
      {signOutReason() && <p class="fault">{signOutReason()}</p>}
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        placeholder="wm_…"
        value={text}
        aria-describedby="key-help"
        aria-invalid={wrong && !isKey}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {wrong && !isKey && (
        <p class="fault" role="alert">
          This is no API key: a key begins with wm_ and has 69 characters.
        </p>
      )}
      <p class="quiet" id="key-help">
        It is kept for as long as this tab is open. <code>waymark console</code> makes one for eight
        hours and opens this page with it.
      </p>
      <button type="submit" class="primary">
        {action}
      </button>
    </form>
  );
}
