/** Roles of members, from the least to the most that they can do. */

import type { Schemas } from "../api/client";
import type { CallerInfo, Scope } from "../caller";

export type Role = Schemas["Role"];

interface RoleText {
  role: Role;
  name: string;
  description: string;
}

export const ROLES: RoleText[] = [
  { role: "viewer", name: "Viewer", description: "Reads everything in their projects." },
  {
    role: "member",
    name: "Member",
    description: "Also changes flags, insights, markers and errors.",
  },
  {
    role: "admin",
    name: "Admin",
    description: "Also manages members, API keys and projects, and reads the audit log.",
  },
  { role: "owner", name: "Owner", description: "Also manages owners." },
];

const rankOf = (role: Role | null | undefined) => ROLES.findIndex((it) => it.role === role);

export function roleName(role: Role): string {
  return ROLES[rankOf(role)]?.name ?? role;
}

/** Returns the roles that a caller can give: up to its own. A key of the command has no role. */
export function grantable(caller: CallerInfo): RoleText[] {
  const own = caller.role ? rankOf(caller.role) : rankOf("owner");
  return ROLES.filter((_, rank) => rank <= own);
}

/** Returns `true` for roles of all projects: admins and owners. */
export function hasAllProjects(role: Role): boolean {
  return rankOf(role) >= rankOf("admin");
}

interface ScopeArea {
  name: string;
  scopes: Scope[];
}

/** All scopes, by area, as the forms show them. */
export const SCOPE_AREAS: ScopeArea[] = [
  { name: "Errors", scopes: ["errors:read", "errors:write"] },
  { name: "Flags", scopes: ["flags:read", "flags:write", "flags:evaluate"] },
  { name: "Insights", scopes: ["insights:read", "insights:write"] },
  { name: "Markers", scopes: ["markers:read", "markers:write"] },
  { name: "Notifications", scopes: ["notifications:read", "notifications:write"] },
  { name: "Source maps", scopes: ["source-maps:write"] },
  { name: "Members", scopes: ["members:read", "members:write"] },
  { name: "API keys", scopes: ["keys:write"] },
  { name: "Projects", scopes: ["projects:write"] },
  { name: "Audit log", scopes: ["audit:read"] },
];

/** Returns the part of a scope after its area: `read` of `errors:read`. */
export const accessOf = (scope: Scope) => scope.split(":")[1] ?? scope;
