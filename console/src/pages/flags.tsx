import { useMemo, useRef, useState } from "preact/hooks";
import { changed, go, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useCurrentProject } from "../caller";
import { describeFlag, type Flag, loadFlags, quoteVariant } from "../flags/flag";
import { KeyedList } from "../flags/keyed-list";
import { FlagSwitch } from "../flags/switch";
import { FlagSnippet } from "../settings/flag-snippet";
import { capitalize, pluralize } from "../time/format";
import { useAnnouncement } from "../ui/announcement";
import { Segments } from "../ui/button";
import { matchesText } from "../ui/combobox";
import { ListSearch } from "../ui/row-parts";
import { Empty } from "../ui/states";

type Show = "all" | "on" | "off" | "archived";
const SHOWS: Show[] = ["all", "on", "off", "archived"];

const NONE: ReadonlyMap<string, Flag> = new Map();

export function FlagsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
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
        (it) => isShown(it, show) && matchesText(`${it.key} ${it.name} ${it.description}`, words),
      ),
    [loaded.data, switched, filter, show, words],
  );
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
    <KeyedList
      noun="flag"
      loaded={loaded}
      items={flags}
      columns={[
        [
          [
            <span class="hidden">State</span>,
            "of-switch",
            (it) => <FlagSwitch flag={it} onChange={replace} />,
          ],
        ],
        [
          [
            "Serves",
            "quiet wide of-half",
            (it) => (
              <span title={`When on: ${describeFlag(it)}`}>
                {it.enabled ? describeFlag(it) : `everyone gets ${quoteVariant(it.offVariant)}`}
              </span>
            ),
          ],
          ["Type", "quiet medium of-count", (it) => it.type],
        ],
      ]}
      empty={<NoFlags any={Boolean(loaded.data?.length)} show={show} />}
    >
      <div class="page-head">
        <Segments
          name="State"
          values={SHOWS}
          chosen={show}
          text={capitalize}
          onChoose={(it) => go(changed(address, { show: it === "all" ? null : it }))}
        />
        <ListSearch label="Search flags" hint="Search keys and names" />
      </div>
    </KeyedList>
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
