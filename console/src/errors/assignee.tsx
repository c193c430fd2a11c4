/** The user who handles an error. */

import { useState } from "preact/hooks";
import { api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { Combobox, matchesText, type Option } from "../ui/combobox";
import { Picker } from "../ui/picker";
import { showToast, useAction } from "../ui/toast";
import { patchError } from "./load";

interface AssigneeProps {
  error: Schemas["Error"];
  canWrite: boolean;
  reload: () => void;
}

export function Assignee({ error, canWrite, reload }: AssigneeProps) {
  const { project } = useCurrentProject();
  const { assignee } = error;
  const [, run] = useAction();
  const put = async (user: string | null) => {
    await patchError(project, error.errorId, { assignee: user });
    reload();
  };
  const assign = async (user: string | null) => {
    await put(user);
    showToast(user ? `Assigned to ${user}.` : "Not assigned.", () => put(assignee));
  };
  if (!canWrite) return assignee ? <span class="quiet"> · Assigned to {assignee}</span> : null;
  return (
    <Picker text={assignee ? `Assigned to ${assignee}` : "Assign"}>
      {(close) => (
        <MemberPicker
          assignee={assignee}
          onChoose={(it) => void run(() => assign(it))}
          onClose={close}
        />
      )}
    </Picker>
  );
}

interface MemberPickerProps {
  assignee: string | null;
  onChoose: (user: string | null) => void;
  onClose: () => void;
}

interface Choice extends Option {
  user: string | null;
}

function MemberPicker({ assignee, onChoose, onClose }: MemberPickerProps) {
  const { caller } = useCurrentProject();
  const canList = useCan()("members:read");
  const [text, setText] = useState("");
  const members = useLoaded(canList ? `members of ${caller.organization}` : null, (signal) =>
    api.GET("/v0/members", { params: { query: { limit: 100 } }, signal }),
  );
  const others = (members.data?.items ?? []).map((it) => it.email);
  const users = [...new Set([caller.user ?? [], ...others].flat())];
  const typed = text.trim();
  const choices: Choice[] = users
    .filter((it) => matchesText(it, typed))
    .map((it) => ({ key: it, label: it, hint: it === caller.user ? "you" : undefined, user: it }));
  if (assignee && !typed) choices.push({ key: "", label: "Remove the assignee", user: null });
  return (
    <Combobox
      label="Assign to"
      placeholder="Assign to …"
      options={choices}
      text={text}
      onText={setText}
      onClose={onClose}
      onChoose={(it) => {
        onClose();
        onChoose(it.user);
      }}
      empty="No member matches."
    />
  );
}
