/** The pages of the settings, as tabs. */

import { useEffect, useRef } from "preact/hooks";
import { hrefOf, Link, useAddress } from "../address";
import { type CallerInfo, type Scope, useCaller } from "../caller";
import { own } from "../own";
import { keptParams } from "../time/range";

/** Pages that show the organization, not a project. */
export const ORGANIZATION_PAGES: readonly string[] = ["members", "keys", "projects", "audit"];

/** The scope that opens a page; `null` for all callers. */
const TABS: { page: string; name: string; scope: Scope | null }[] = [
  { page: "settings", name: "General", scope: null },
  { page: "members", name: "Members", scope: "members:read" },
  { page: "keys", name: "API keys", scope: "keys:write" },
  { page: "projects", name: "Projects", scope: "projects:write" },
  { page: "source-maps", name: "Source maps", scope: "errors:read" },
  { page: "audit", name: "Audit log", scope: "audit:read" },
];

const SCOPES = Object.fromEntries(TABS.map((it) => [it.page, it.scope]));

/** Returns the scope that a page of the settings needs. */
export function scopeOf(page: string): Scope | null {
  return own(SCOPES, page) ?? null;
}

export function canOpen(caller: CallerInfo, scope: Scope | null): boolean {
  return scope === null || caller.scopes.includes(scope);
}

/** Returns the pages of the settings that the caller can open. */
export function settingPages(caller: CallerInfo) {
  return TABS.filter((it) => canOpen(caller, it.scope));
}

export function SettingsTabs({ page }: { page: string }) {
  const address = useAddress();
  const { caller } = useCaller();
  const tabs = useRef<HTMLElement>(null);
  // On a phone, the current tab can be outside the window.
  useEffect(() => {
    tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [page]);
  return (
    <nav ref={tabs} class="setting-tabs" aria-label="Settings">
      {settingPages(caller).map((it) => (
        <Link
          key={it.page}
          href={hrefOf(it.page, keptParams(address))}
          aria-current={it.page === page ? "page" : undefined}
        >
          {it.name}
        </Link>
      ))}
    </nav>
  );
}
