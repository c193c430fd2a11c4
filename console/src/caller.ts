/** The user of the key or session, and its scopes. Controls that it cannot use are hidden. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { apiErrorOf, fetchWithRetries, type Schemas } from "./api/client";

export type CallerInfo = Schemas["Caller"];
export type Scope = CallerInfo["scopes"][number];
export type Project = Schemas["Project"];

export interface CurrentCaller {
  caller: CallerInfo;
  /** Loads the caller again, such as after a change of the projects. */
  reload: () => void;
}

/** The caller, also on pages without a project. */
export const CallerContext = createContext<CurrentCaller | null>(null);

export function useCaller(): CurrentCaller {
  const current = useContext(CallerContext);
  if (!current) throw new Error("no caller is loaded");
  return current;
}

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
  const { caller } = useCaller();
  return (scope) => caller.scopes.includes(scope);
}
