import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { useLoaded } from "../api/loaded";
import { type CallerInfo, callerOf } from "../caller";
import { decideOffer, isSession, openWithKey, session } from "../session";
import { useStore } from "../store";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Field, FormError, useForm } from "../ui/form";
import { Pairs } from "../ui/layout";
import { ErrorMessage, SkeletonRows } from "../ui/states";
import { showToast } from "../ui/toast";

const FORM = /^wm_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/;

/** The sign-in page. A key stays in this tab; a session is shared by all tabs of the browser. */
export function SignIn() {
  return (
    <main class="sign-in" id="content">
      <SignInForm>
        <h1>Sign in to Waymark</h1>
      </SignInForm>
    </main>
  );
}

interface SignInFormProps {
  /** `true` to show the field for a key first. */
  preferKey?: boolean;
  /** `false` if `children` say why the user signs in again. */
  hasReason?: boolean;
  children: ComponentChildren;
}

/** The ways to sign in that the deployment offers, below `children`. */
export function SignInForm({ preferKey = false, hasReason = true, children }: SignInFormProps) {
  const [withKey, setWithKey] = useState(preferKey);
  const { notice } = useStore(session);
  const { data, error } = useLoaded("sign-in options", (signal) =>
    api.GET("/v0/sign-in", { signal }),
  );
  if (withKey || (data && !data.email && !data.oidc)) {
    const hasOthers = data ? data.email || data.oidc : error && error.status !== 404;
    return (
      <div class="sign-in-ways">
        <KeyForm>{children}</KeyForm>
        {hasOthers && (
          <Button class="link" onClick={() => setWithKey(false)}>
            Sign in without a key
          </Button>
        )}
      </div>
    );
  }
  return (
    <div class="sign-in-ways">
      {children}
      {hasReason && notice && (
        <p class="field-error" role="alert">
          {notice}
        </p>
      )}
      {!data && !error && <SkeletonRows rows={2} />}
      {data?.oidc && (
        <a class="button" href="/v0/sign-in/oidc">
          Continue with single sign-on
        </a>
      )}
      {(data?.email || error) && <EmailForm isPrimary={!data?.oidc} />}
      {(data || error) && (
        <Button class="link" onClick={() => setWithKey(true)}>
          Use an API key
        </Button>
      )}
    </div>
  );
}

/** Requests an email with a sign-in link. The response does not say whether the address is known. */
export function EmailForm({ isPrimary = true }: { isPrimary?: boolean }) {
  const [email, setEmail] = useState("");
  const [sentTo, setSentTo] = useState<string | null>(null);
  const send = async (to: string) => {
    await api.POST("/v0/sign-in", { body: { email: to } });
    if (sentTo === to) showToast(`Requested another link for ${to}.`);
    setSentTo(to);
  };
  const form = useForm(() => send(sentTo ?? email.trim()));
  if (sentTo) {
    return (
      <div class="key-form" role="status">
        <p>
          <b>Check your email.</b>
        </p>
        <p>
          If <bdi>{sentTo}</bdi> belongs to a member, a link arrives within a minute. Open it in
          this browser within 10 minutes. In another browser, also enter the code from the email.
        </p>
        {form.error && <ErrorMessage error={form.error} />}
        <div class="form-row">
          <Button disabled={form.busy} onClick={() => void form.submit()}>
            Send again
          </Button>
          <Button class="link" onClick={() => setSentTo(null)}>
            Use another address
          </Button>
        </div>
      </div>
    );
  }
  return (
    <form class="key-form" {...form.props}>
      <Field
        label="Email address"
        id="sign-in-email"
        at="/email"
        form={form}
        type="email"
        autocomplete="email"
        placeholder="you@example.com"
        value={email}
        onInput={setEmail}
      />
      <FormError form={form} />
      <button type="submit" class={isPrimary ? "primary" : ""} disabled={form.busy}>
        Email me a link
      </button>
    </form>
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
  const noun = isSession() ? "session" : "key";
  const { data, error } = useLoaded(`offer ${offered}`, (signal) => callerOf(offered, signal));
  const isSame = data && data.user === current?.user && data.organization === current.organization;
  useEffect(() => {
    if (isSame) decideOffer(true);
    if (!error) return;
    decideOffer(false);
    showToast(`The API rejected the link’s key: ${error.message} You keep your ${noun}.`);
  }, [isSame, error]);
  if (!data || !current || isSame) return null;
  return (
    <Confirm
      title="Switch to another API key?"
      action="Switch key"
      cancel={`Keep your ${noun}`}
      onClose={() => decideOffer(false)}
      onConfirm={() => decideOffer(true)}
    >
      <p>
        A link contains another user’s API key. If you switch, this tab reads and changes their
        organization’s data. If you don’t trust the link, keep your {noun}.
      </p>
      <Pairs
        rows={Object.entries({ "In use": current, "From the link": data }).map(([name, caller]) => [
          name,
          <>
            <bdi>{caller.user ?? "A user"}</bdi> of <bdi>{caller.organization}</bdi>
          </>,
        ])}
      />
    </Confirm>
  );
}

/** The field for a key, below `children`. */
function KeyForm({ children }: { children: ComponentChildren }) {
  const { notice } = useStore(session);
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
      {notice && <p class="field-error">{notice}</p>}
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
