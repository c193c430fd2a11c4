/** The DSN of a project, with which SDKs report its errors. */

import { api, type Schemas, unwrapResponse } from "../api/client";
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
  const { items } = await unwrapResponse(api.GET("/v0/projects", { params, signal }));
  const listed = items.find((it) => it.id === project.id);
  return listed ? dsnOf(location.origin, listed) : null;
}

/** Loads the DSN of the current project; `null` if the project has been deleted. */
export function useDsn() {
  const { project } = useCurrentProject();
  return useLoaded(`dsn ${project.id}`, (signal) => loadDsn(project, signal));
}
