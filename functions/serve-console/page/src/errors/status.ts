/** Changes the status of errors at once, with the way back. */

import { inTurn } from "../api/client";
import type { Project } from "../caller";
import { counted } from "../time/format";
import { tell, tellRefusal } from "../ui/toast";
import type { Status } from "./filters";
import { setStatus } from "./load";

const DONE: Record<Status, string> = { resolved: "Resolved", ignored: "Ignored", open: "Reopened" };

export interface HasStatus {
  errorId: string;
  status: Status;
}

export async function changeStatus(
  project: Project,
  errors: readonly HasStatus[],
  status: Status,
  done: () => void,
): Promise<void> {
  const changed = errors.filter((it) => it.status !== status);
  if (!changed.length) return;
  try {
    await inTurn(changed, 4, (it) => setStatus(project, it.errorId, status));
    tell(`${DONE[status]} ${counted(changed.length, "error")}.`, async () => {
      await inTurn(changed, 4, (it) => setStatus(project, it.errorId, it.status));
      done();
    });
  } catch (error) {
    tellRefusal(error);
  }
  done();
}
