import { useState } from "preact/hooks";
import { openWithKey, whyForgotten } from "../session";

const FORM = /^wm_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/;

/** Asks for a key, which stays in this tab alone. */
export function SignIn() {
  const [text, set] = useState("");
  const [wrong, setWrong] = useState(false);
  const isKey = FORM.test(text.trim());
  return (
    <main class="sign-in" id="content">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isKey) openWithKey(text.trim());
          else setWrong(true);
        }}
      >
        <h1>Waymark</h1>
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
          It is kept for as long as this tab is open. <code>waymark console</code> makes one for
          eight hours and opens this page with it.
        </p>
        <button type="submit" class="primary">
          Open
        </button>
      </form>
    </main>
  );
}
