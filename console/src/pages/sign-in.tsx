import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../api/loaded";
import { type CallerInfo, callerOf } from "../caller";
import { decideOffer, openWithKey, signOutReason } from "../session";
import { Confirm } from "../ui/confirm";
import { showToast } from "../ui/toast";

const FORM = /^wm_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/;

/** The sign-in page. The key stays in this tab. */
export function SignIn() {
  return (
    <main class="sign-in" id="content">
      <KeyForm>
        <h1>Waymark</h1>
      </KeyForm>
    </main>
  );
}

interface KeyOfferProps {
  offered: string;
  /** The caller of the key in use. */
  current: CallerInfo | undefined;
}

/**
 * Asks whether the key of a link replaces the current one. A key of the same user replaces it
 * immediately.
 */
export function KeyOffer({ offered, current }: KeyOfferProps) {
  const { data, error } = useLoaded(`offer ${offered}`, (signal) => callerOf(offered, signal));
  const isSame = data && data.user === current?.user && data.organization === current.organization;
  useEffect(() => {
    if (isSame) decideOffer(true);
    if (!error) return;
    decideOffer(false);
    showToast(`The API rejected the link’s key: ${error.message} You keep your key.`);
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
        A link contains another user’s API key. If you switch, this tab reads and changes their
        organization’s data. If you don’t trust the link, keep your key.
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

/** The field for a key, below `children`. */
export function KeyForm({ children }: { children: ComponentChildren }) {
  const [text, set] = useState("");
  const [isInvalid, setInvalid] = useState(false);
  const isKey = FORM.test(text.trim());
  return (
    <form
      class="key-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isKey) openWithKey(text.trim());
        else setInvalid(true);
      }}
    >
      {children}
      {signOutReason() && <p class="field-error">{signOutReason()}</p>}
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        placeholder="wm_…"
        value={text}
        aria-describedby="key-help"
        aria-invalid={isInvalid && !isKey}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {isInvalid && !isKey && (
        <p class="field-error" role="alert">
          That isn’t an API key. Keys start with wm_ and are 69 characters long.
        </p>
      )}
      <p class="quiet" id="key-help">
        Stored until you close this tab. No key? Run <code>waymark console</code> for an 8-hour key,
        or ask your admin.
      </p>
      <button type="submit" class="primary">
        Sign in
      </button>
    </form>
  );
}
