/** Who the key acts for, and what it may do: what it may not do is not offered. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { counted, refusalOf, type Schemas } from "./api/client";

export type CallerTold = Schemas["Caller"];
export type Scope = CallerTold["scopes"][number];
export type Project = Schemas["Project"];

export interface Here {
  caller: CallerTold;
  /** The project that the page is about. */
  project: Project;
}

export const HereContext = createContext<Here | null>(null);

export function useCurrentProject(): Here {
  const here = useContext(HereContext);
  if (!here) throw new Error("this is only shown to callers");
  return here;
}

/** Returns who another key than that of the tab acts for. */
export async function callerOf(key: string, signal: AbortSignal): Promise<CallerTold> {
  const headers = { "x-api-key": key };
  const response = await counted(new Request("/v0/me", { headers, signal }));
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw refusalOf(response.status, body);
  return body as CallerTold;
}

export function useCan(): (scope: Scope) => boolean {
  const { caller } = useCurrentProject();
  return (scope) => caller.scopes.includes(scope);
}
