/** The user of the key, and its scopes. Controls that the key cannot use are hidden. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { apiErrorOf, fetchWithRetries, type Schemas } from "./api/client";

export type CallerInfo = Schemas["Caller"];
export type Scope = CallerInfo["scopes"][number];
export type Project = Schemas["Project"];

export interface CurrentProject {
  caller: CallerInfo;
  /** The project that the page shows. */
  project: Project;
}

export const CurrentProjectContext = createContext<CurrentProject | null>(null);

export function useCurrentProject(): CurrentProject {
  const current = useContext(CurrentProjectContext);
  if (!current) throw new Error("no caller is loaded");
  return current;
}

/** Returns the caller of a key other than the tab's own. */
export async function callerOf(key: string, signal: AbortSignal): Promise<CallerInfo> {
  const headers = { "x-api-key": key };
  const response = await fetchWithRetries(new Request("/v0/me", { headers, signal }));
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw apiErrorOf(response, body);
  return body as CallerInfo;
}

export function useCan(): (scope: Scope) => boolean {
  const { caller } = useCurrentProject();
  return (scope) => caller.scopes.includes(scope);
}
