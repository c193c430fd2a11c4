import { useMemo, useRef, useState } from "preact/hooks";
import { changed, go, hrefOf, Link, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { describeFlag, type Flag, loadFlags, quoteVariant } from "../flags/flag";
import { FlagSwitch } from "../flags/switch";
import { FlagTabs } from "../flags/tabs";
import { useKeys } from "../keys";
import { FlagSnippet } from "../settings/flag-snippet";
import { pluralize } from "../time/format";
import { keptParams } from "../time/range";
import { useAnnouncement } from "../ui/announcement";
import { ListSearch } from "../ui/row-parts";
import { rowProps, useRows } from "../ui/rows";
import { Segments } from "../ui/segments";
import { Empty, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { useRowWindow, WindowedRows } from "../ui/window";

type Show = "all" | "on" | "off" | "archived";
const SHOWS: Show[] = ["all", "on", "off", "archived"];

const NONE: ReadonlyMap<string, Flag> = new Map();

export function FlagsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("flags:write");
  const words = address.query.get("q") ?? "";
  const show = SHOWS.find((it) => it === address.query.get("show")) ?? "all";
  const isArchive = show === "archived";
  const loaded = useLoaded(`flags ${project.id} ${isArchive}`, (signal) =>
    loadFlags(project, isArchive, signal),
  );
  // A switched flag stays listed until the filter changes: rows must not move under the pointer.
  const filter = `${project.id} ${show} ${words}`;
  const current = useRef(filter);
  current.current = filter;
  const [switched, setSwitched] = useState({ filter, flags: NONE });
  const flags = useMemo(
    () =>
      visibleFlags(
        loaded.data ?? [],
        switched.filter === filter ? switched.flags : NONE,
        (it) => isShown(it, show) && matchesWords(it, words),
      ),
    [loaded.data, switched, filter, show, words],
  );
  const keys = useMemo(() => flags.map((it) => it.key), [flags]);
  const hrefOfFlag = (key: string) => hrefOf("flag", { ...keptParams(address), key });
  const near = useRowWindow(flags.length, 48);
  const rows = useRows(keys, (key) => go(hrefOfFlag(key)), near.reveal);
  const create = hrefOf("flag", { ...keptParams(address), new: 1 });
  useKeys(canWrite ? { c: () => go(create) } : {});
  useAnnouncement(
    `${show} ${words}`,
    loaded.data && !loaded.loading ? pluralize(flags.length, "flag") : null,
  );
  const replace = (flag: Flag) => {
    loaded.set((all) => all.map((it) => (it.id === flag.id ? flag : it)));
    setSwitched((was) => {
      const before = was.filter === current.current ? was.flags : NONE;
      return { filter: current.current, flags: new Map(before).set(flag.id, flag) };
    });
  };

  return (
    <>
      <div class="page-head">
        <FlagTabs page="flags" />
        {canWrite && (
          <button type="button" class="primary" onClick={() => go(create)} title="New flag (c)">
            New flag
          </button>
        )}
      </div>
      <div class="page-head">
        <Segments
          name="State"
          values={SHOWS}
          chosen={show}
          text={(it) => it.charAt(0).toUpperCase() + it.slice(1)}
          onChoose={(it) => go(changed(address, { show: it === "all" ? null : it }))}
        />
        <ListSearch label="Search flags" hint="Search keys and names" />
      </div>
      <Pending of={loaded} rows={7} />
      {loaded.data && flags.length === 0 && <NoFlags any={loaded.data.length > 0} show={show} />}
      {flags.length > 0 && (
        <div class="table-scroll">
          <table class="table" aria-rowcount={flags.length + 1}>
            <colgroup>
              <col style={{ width: "56px" }} />
              <col />
              <col class="wide" style={{ width: "46%" }} />
              <col class="wide" style={{ width: "80px" }} />
              <col style={{ width: "112px" }} />
            </colgroup>
            <thead>
              <tr>
                <th>
                  <span class="hidden">State</span>
                </th>
                <th>Flag</th>
                <th class="wide">Serves</th>
                <th class="wide">Type</th>
                <th class="number">Changed</th>
              </tr>
            </thead>
            <WindowedRows items={flags} rows={near}>
              {(it, index) => (
                <tr key={it.id} {...rowProps(rows, index)}>
                  <td>
                    <FlagSwitch flag={it} onChange={replace} />
                  </td>
                  <td>
                    <Link class="title" href={hrefOfFlag(it.key)}>
                      <bdi>{it.name}</bdi>
                    </Link>
                    <small>
                      <code>{it.key}</code>
                    </small>
                  </td>
                  <td class="quiet wide" title={`When on: ${describeFlag(it)}`}>
                    {it.enabled ? describeFlag(it) : `everyone gets ${quoteVariant(it.offVariant)}`}
                  </td>
                  <td class="quiet wide">{it.type}</td>
                  <td class="number quiet">
                    <RelativeTime at={it.updatedAt} />
                  </td>
                </tr>
              )}
            </WindowedRows>
          </table>
        </div>
      )}
    </>
  );
}

/**
 * Returns the flags that match and those that were switched here, each at its latest known version.
 */
function visibleFlags(
  flags: readonly Flag[],
  switched: ReadonlyMap<string, Flag>,
  matches: (flag: Flag) => boolean,
): Flag[] {
  return flags
    .filter((it) => switched.has(it.id) || matches(it))
    .map((it) => {
      const known = switched.get(it.id);
      return known && known.version > it.version ? known : it;
    });
}

function isShown(flag: Flag, show: Show): boolean {
  if (show === "archived") return Boolean(flag.archivedAt);
  return show === "all" || flag.enabled === (show === "on");
}

function matchesWords(flag: Flag, words: string): boolean {
  const text = `${flag.key} ${flag.name} ${flag.description}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function NoFlags({ any, show }: { any: boolean; show: Show }) {
  if (any || show !== "all") {
    return (
      <Empty title="No flags match">
        <p class="quiet">Change the search or the state.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No flags yet">
      <p>
        Turn features on for everyone, for some users, or for a percentage. Create a flag, then
        evaluate it in your application:
      </p>
      <FlagSnippet />
    </Empty>
  );
}
