/** Actions of buttons: errors show as toasts. */

import { useState } from "preact/hooks";
import { showErrorToast } from "./toast";

/** Returns whether an action is running, and a function that runs one. */
export function useAction() {
  const [busy, setBusy] = useState(false);
  const run = async (action: () => Promise<unknown>) => {
    setBusy(true);
    await action().catch(showErrorToast);
    setBusy(false);
  };
  return [busy, run] as const;
}
