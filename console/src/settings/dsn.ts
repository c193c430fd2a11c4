/** The DSN of a project, with which SDKs report its errors. */

import { ApiError, api, type Schemas } from "../api/client";
import { useLoaded } from "../api/loaded";
import { type Project, useCurrentProject } from "../caller";

/** Maximum projects of a caller, which is one page. */
const MAX_PROJECTS = 100;

type DsnParts = Pick<Schemas["ListedProject"], "ingestId" | "publicKey">;

/** Returns the DSN with the API at `origin`. */
export function dsnOf(origin: string, { ingestId, publicKey }: DsnParts): string {
  return `${origin.replace("://", `://${publicKey}@`)}/${ingestId}`;
}

async function loadDsn(project: Project, signal: AbortSignal): Promise<string | null> {
  const params = { query: { limit: MAX_PROJECTS } };
  const { items } = await api.GET("/v0/projects", { params, signal });
  const listed = items.find((it) => it.id === project.id);
  return listed ? dsnOf(location.origin, listed) : null;
}

/** Loads the DSN of the current project; `null` if the project has been deleted. */
export function useDsn() {
  const { project } = useCurrentProject();
  return useLoaded(`dsn ${project.id}`, (signal) => loadDsn(project, signal));
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
