import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { openWithKey, whyForgotten } from "../session";

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
      {whyForgotten() && <p class="fault">{whyForgotten()}</p>}
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
