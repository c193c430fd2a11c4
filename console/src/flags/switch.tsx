/** Switches a flag: off at once and with a way back; on in production only after it was said what that does. */

import { useState } from "preact/hooks";
import { useShown } from "../address";
import { useCan, useCurrentProject } from "../caller";
import { Confirm } from "../ui/confirm";
import { showErrorToast, showToast } from "../ui/toast";
import { doesInWords, type Flag, patchAsKnown } from "./flag";
import { undoOf } from "./undo";

interface SwitchProps {
  flag: Flag;
  onChange: (flag: Flag) => void;
}

interface Asked {
  /** What the question is about, which the answer is sent for. */
  flag: Flag;
  enabled: boolean;
  /** Whether somebody else changed it since it was switched. */
  isAgain: boolean;
}

export function FlagSwitch({ flag, onChange }: SwitchProps) {
  const { project } = useCurrentProject();
  const mayWrite = useCan()("flags:write");
  const [asked, ask] = useState<Asked | null>(null);
  const [busy, setBusy] = useState(false);
  const isShown = useShown();
  if (!mayWrite || flag.archivedAt) {
    const state = flag.archivedAt ? "archived" : flag.enabled ? "on" : "off";
    return <span class={`status ${state}`}>{state}</span>;
  }
  const put = async (known: Flag, enabled: boolean) => {
    ask(null);
    setBusy(true);
    try {
      const { flag: now, isDone } = await patchAsKnown(project, known, { enabled });
      onChange(now);
      const state = now.enabled ? "on" : "off";
      if (isDone) {
        const undo = undoOf(project, now, { enabled: !enabled }, onChange);
        showToast(`${flag.key} is ${state}.`, undo);
      } else if (now.enabled === enabled || now.archivedAt || !isShown.current) {
        showToast(`Somebody changed ${flag.key} in the meantime. It is ${state}.`);
      } else ask({ flag: now, enabled, isAgain: true });
    } catch (error) {
      showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const isProduction = /prod/i.test(`${project.slug} ${project.name}`);
  const turn = (event: MouseEvent) => {
    // The second click of a double click means the same, also where the first was answered by then.
    if (busy || event.detail > 1) return;
    const enabled = !flag.enabled;
    if (enabled && isProduction) ask({ flag, enabled, isAgain: false });
    else void put(flag, enabled);
  };
  const action = asked?.enabled ? "Switch on" : "Switch off";
  const name = `${flag.enabled ? "Switch off" : "Switch on"} ${flag.key}`;
  return (
    <>
      <button
        type="button"
        role="switch"
        class="switch"
        aria-checked={flag.enabled}
        aria-label={flag.key}
        aria-busy={busy}
        title={flag.enabled ? name : `${name}: ${doesInWords(flag)}`}
        onClick={turn}
      />
      {asked && (
        <Confirm
          key={asked.flag.version}
          title={`${action} ${flag.key} in ${project.name}?`}
          action={action}
          onClose={() => ask(null)}
          onConfirm={() => void put(asked.flag, asked.enabled)}
        >
          {asked.isAgain && (
            <p>
              Somebody changed the flag in the meantime, so nothing was switched. It is version{" "}
              {asked.flag.version} now.
            </p>
          )}
          <p>
            It will serve{" "}
            {asked.enabled
              ? doesInWords(asked.flag)
              : (asked.flag.offVariant ?? "the application’s own default")}
            . Everywhere within five seconds.
          </p>
        </Confirm>
      )}
    </>
  );
}
