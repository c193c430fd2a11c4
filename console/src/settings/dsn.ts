/** The DSN of a project: what SDKs report its errors under. */

import { api, type Schemas, unwrapResponse } from "../api/client";
import { useLoaded } from "../api/loaded";
import { type Project, useCurrentProject } from "../caller";

/** The most of a page, and all that a caller is told of. */
const MOST_PROJECTS = 100;

type Halves = Pick<Schemas["ListedProject"], "ingestId" | "publicKey">;

/** The DSN, for whoever reaches the API at `origin`. */
export function dsnOf(origin: string, { ingestId, publicKey }: Halves): string {
  return `${origin.replace("://", `://${publicKey}@`)}/${ingestId}`;
}

async function loadDsn(project: Project, signal: AbortSignal): Promise<string | null> {
  const params = { query: { limit: MOST_PROJECTS } };
  const { items } = await unwrapResponse(api.GET("/v0/projects", { params, signal }));
  const listed = items.find((it) => it.id === project.id);
  return listed ? dsnOf(location.origin, listed) : null;
}

/** The DSN of the project that is shown; `null` where it was deleted meanwhile. */
export function useDsn() {
  const { project } = useCurrentProject();
  return useLoaded(`dsn ${project.id}`, (signal) => loadDsn(project, signal));
}
