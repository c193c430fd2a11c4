/** Turns a flag on or off, with undo. Turning it on in production needs a confirmation. */

import { useState } from "preact/hooks";
import { useIsMounted } from "../address";
import { useCan, useCurrentProject } from "../caller";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { useIsSettled } from "../ui/settled";
import { showToast, useAction } from "../ui/toast";
import { describeFlag, type Flag, patchIfUnchanged, quoteVariant, stateOf } from "./flag";
import { createUndo } from "./undo";

interface SwitchProps {
  flag: Flag;
  onChange: (flag: Flag) => void;
}

interface Confirmation {
  /** The version that the user sees and confirms. */
  flag: Flag;
  enabled: boolean;
  /** `true` if another change came first. */
  isConflict: boolean;
}

export function FlagSwitch({ flag, onChange }: SwitchProps) {
  const { project } = useCurrentProject();
  const mayWrite = useCan()("flags:write");
  const [confirming, setConfirming] = useState<Confirmation | null>(null);
  const [busy, run] = useAction();
  const isMounted = useIsMounted();
  const isSettled = useIsSettled(flag.enabled);
  if (!mayWrite || flag.archivedAt) {
    return <span class={`status ${stateOf(flag)}`}>{stateOf(flag)}</span>;
  }
  const save = async (known: Flag, enabled: boolean) => {
    setConfirming(null);
    const { flag: latest, isDone } = await patchIfUnchanged(project, known, { enabled });
    onChange(latest);
    const state = latest.enabled ? "on" : "off";
    if (isDone) {
      const undo = createUndo(project, latest, { enabled: !enabled }, onChange);
      showToast(`${flag.key} is ${state}.`, undo);
    } else if (latest.enabled === enabled || latest.archivedAt || !isMounted.current) {
      showToast(`Another user changed ${flag.key}. It is ${state}.`);
    } else setConfirming({ flag: latest, enabled, isConflict: true });
  };
  const turn = (event: MouseEvent) => {
    // Ignores the second click of a double click, also after the first has been applied.
    if (busy || !isSettled || event.detail > 1) return;
    const enabled = !flag.enabled;
    if (enabled && project.production) setConfirming({ flag, enabled, isConflict: false });
    else void run(() => save(flag, enabled));
  };
  const action = confirming?.enabled ? "Turn on" : "Turn off";
  const name = `${flag.enabled ? "Turn off" : "Turn on"} ${flag.key}`;
  return (
    <>
      <Button
        role="switch"
        class="switch"
        aria-checked={flag.enabled}
        aria-label={flag.key}
        aria-busy={busy}
        title={flag.enabled ? name : `${name}: ${describeFlag(flag)}`}
        onClick={turn}
      />
      {confirming && (
        <Confirm
          key={confirming.flag.version}
          title={`${action} ${flag.key} in ${project.name}?`}
          action={action}
          onClose={() => setConfirming(null)}
          onConfirm={() => void run(() => save(confirming.flag, confirming.enabled))}
        >
          {confirming.isConflict && (
            <p>
              Not changed: another user changed the flag. It is now version{" "}
              {confirming.flag.version}.
            </p>
          )}
          <p>
            When {confirming.enabled ? "on" : "off"}:{" "}
            {confirming.enabled
              ? describeFlag(confirming.flag)
              : `everyone gets ${quoteVariant(confirming.flag.offVariant)}`}
            . Takes effect everywhere within 5 seconds.
          </p>
        </Confirm>
      )}
    </>
  );
}
