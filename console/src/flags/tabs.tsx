/** Tabs of the two lists: flags and segments. */

import { hrefOf, Link, useAddress } from "../address";
import { keptParams } from "../time/range";

const TABS = [
  { page: "flags", name: "Flags" },
  { page: "segments", name: "Segments" },
] as const;

export function FlagTabs({ page }: { page: (typeof TABS)[number]["page"] }) {
  const address = useAddress();
  return (
    <h1 class="tabs">
      {TABS.map((it) => (
        <Link
          key={it.page}
          href={hrefOf(it.page, keptParams(address))}
          aria-current={it.page === page ? "page" : undefined}
        >
          {it.name}
        </Link>
      ))}
    </h1>
  );
}

/** The name of a flag or segment, above its key. */
export function KeyedTitle({ item, href }: { item: { key: string; name: string }; href: string }) {
  return (
    <>
      <Link class="title" href={href}>
        <bdi>{item.name}</bdi>
      </Link>
      <small>
        <code>{item.key}</code>
      </small>
    </>
  );
}
