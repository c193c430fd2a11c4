/** The DSN of a project, with which SDKs report its errors. */

import { ApiError, type Schemas } from "../api/client";
import { useCurrentProject } from "../caller";
import { useProjects } from "../people/project-choice";

type DsnParts = Pick<Schemas["ListedProject"], "ingestId" | "publicKey">;

/** Returns the DSN with the API at `origin`. */
export function dsnOf(origin: string, { ingestId, publicKey }: DsnParts): string {
  return `${origin.replace("://", `://${publicKey}@`)}/${ingestId}`;
}

/** Loads the DSN of the current project; `null` if the project has been deleted. */
export function useDsn() {
  const { project } = useCurrentProject();
  const { data, error, reload } = useProjects();
  const listed = data?.items.find((it) => it.id === project.id);
  const dsn = listed ? dsnOf(location.origin, listed) : null;
  return { data: data && dsn, error, reload };
}

/** Sends an event to a DSN, as an SDK would. */
export async function sendTestEvent(dsn: string): Promise<void> {
  const { origin, username, pathname } = new URL(dsn);
  const response = await fetch(`${origin}/api${pathname}/store/`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-sentry-auth": `Sentry sentry_version=7, sentry_key=${username}`,
    },
    body: JSON.stringify({
      event_id: crypto.randomUUID().replaceAll("-", ""),
      timestamp: Date.now() / 1000,
      platform: "javascript",
      level: "error",
      environment: "test",
      exception: { values: [{ type: "TestError", value: "Test event from the console" }] },
    }),
  });
  if (!response.ok) {
    const { detail } = (await response.json().catch(() => ({}))) as { detail?: string };
    throw new ApiError(
      response.status,
      "rejected",
      detail ?? `The API returned ${response.status}.`,
    );
  }
}
