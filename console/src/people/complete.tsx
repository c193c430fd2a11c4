/**
 * Completes a sign-in with the token of a link. Nothing is sent before the user presses the button:
 * programs that open the links of emails do not use them up.
 */

import { useState } from "preact/hooks";
import { go, hrefOf } from "../address";
import { ApiError, api } from "../api/client";
import type { CallerInfo } from "../caller";
import { dropSignInToken, switchSession } from "../session";
import { Button } from "../ui/button";
import { useForm } from "../ui/form";
import { errorProps, FieldError } from "../ui/states";
import { showToast } from "../ui/toast";
import { EmailForm } from "./sign-in";

interface CompleteSignInProps {
  token: string;
  /** The caller that the tab has already. */
  current: CallerInfo | undefined;
}

export function CompleteSignIn({ token, current }: CompleteSignInProps) {
  const [needsCode, setNeedsCode] = useState(false);
  const [code, setCode] = useState("");
  const form = useForm(async () => {
    const body = { token, ...(needsCode && { code: code.replace(/\s/g, "") }) };
    try {
      const caller = await api.POST("/v0/sign-in/complete", { body });
      go(hrefOf(""), "replace");
      dropSignInToken();
      switchSession(caller);
      showToast(`Signed in to ${caller.organization}.`);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "code_required")) throw error;
      setNeedsCode(true);
    }
  });
  const { busy, error: failure } = form;
  const cancel = () => {
    go(hrefOf(""), "replace");
    dropSignInToken();
  };

  if (failure?.code === "invalid_token") {
    return (
      <main class="sign-in" id="content">
        <div class="sign-in-ways">
          <h1>This link no longer works</h1>
          <p role="alert">
            Links work once and expire: sign-in links after 10 minutes, invitations after 7 days.
            Request a new link, or ask an admin for a new invitation.
          </p>
          <EmailForm />
          <Button class="link" onClick={cancel}>
            {current ? "Back to the console" : "Other ways to sign in"}
          </Button>
        </div>
      </main>
    );
  }
  const wrongCode = failure?.code === "invalid_code";
  return (
    <main class="sign-in" id="content">
      <form class="key-form" {...form.props}>
        <h1>Sign in to Waymark</h1>
        {current && (
          <p>
            This tab is signed in as <bdi>{current.email ?? current.user ?? "a key"}</bdi> of{" "}
            <bdi>{current.organization}</bdi>. The link replaces that.
          </p>
        )}
        {needsCode ? (
          <>
            <p id="code-help">
              This isn’t the browser that requested the link. Enter the 6-digit code from the email.
            </p>
            <label for="sign-in-code">Code</label>
            <input
              id="sign-in-code"
              class="code-field"
              inputMode="numeric"
              autocomplete="one-time-code"
              maxLength={7}
              value={code}
              aria-describedby="code-help"
              {...(wrongCode ? { "aria-invalid": true } : errorProps(failure, "/code"))}
              ref={(it) => {
                if (it && !code && document.activeElement === document.body) it.focus();
              }}
              onInput={(event) => setCode(event.currentTarget.value)}
            />
            <FieldError error={failure} at="/code" />
          </>
        ) : (
          <p>Only continue if you requested this link or expect an invitation.</p>
        )}
        {failure && failure.violations.length === 0 && (
          <p class="field-error" role="alert">
            {failure.message}
          </p>
        )}
        <div class="form-row">
          <button type="submit" class="primary" disabled={busy}>
            {busy ? "Signing in…" : "Sign in"}
          </button>
          <Button class="link" onClick={cancel}>
            Cancel
          </Button>
        </div>
      </form>
    </main>
  );
}
