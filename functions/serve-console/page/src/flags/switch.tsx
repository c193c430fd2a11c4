/** Switches a flag: off at once and with a way back; on in production only after it was said what that does. */

import { useState } from "preact/hooks";
import { useCan, useHere } from "../caller";
import { Confirm } from "../ui/confirm";
import { tell, tellRefusal } from "../ui/toast";
import { doesInWords, type Flag, patchFlag } from "./flag";

interface SwitchProps {
  flag: Flag;
  onChange: (flag: Flag) => void;
}

export function FlagSwitch({ flag, onChange }: SwitchProps) {
  const { project } = useHere();
  const mayWrite = useCan()("flags:write");
  const [asking, ask] = useState(false);
  if (!mayWrite || flag.archivedAt) {
    const state = flag.archivedAt ? "archived" : flag.enabled ? "on" : "off";
    return <span class={`status ${state}`}>{state}</span>;
  }
  const put = async (enabled: boolean) => {
    ask(false);
    try {
      onChange(await patchFlag(project, flag.key, { enabled }));
      tell(`${flag.key} is ${enabled ? "on" : "off"}.`, async () => {
        onChange(await patchFlag(project, flag.key, { enabled: !enabled }));
      });
    } catch (error) {
      tellRefusal(error);
    }
  };
  const isProduction = /prod/i.test(`${project.slug} ${project.name}`);
  const name = `${flag.enabled ? "Switch off" : "Switch on"} ${flag.key}`;
  return (
    <>
      <button
        type="button"
        role="switch"
        class="switch"
        aria-checked={flag.enabled}
        aria-label={flag.key}
        title={flag.enabled ? name : `${name}: ${doesInWords(flag)}`}
        onClick={() => (!flag.enabled && isProduction ? ask(true) : void put(!flag.enabled))}
      />
      {asking && (
        <Confirm
          title={`${name} in ${project.name}?`}
          action="Switch on"
          onClose={() => ask(false)}
          onConfirm={() => void put(true)}
        >
          <p>It will serve {doesInWords(flag)}. Everywhere within five seconds.</p>
        </Confirm>
      )}
    </>
  );
}
