import { useMemo } from "preact/hooks";
import { go, hrefOf, Link, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { describeConditions } from "../flags/conditions-editor";
import { FlagTabs } from "../flags/tabs";
import { useKeys } from "../keys";
import { loadSegments } from "../segments/segment";
import { keptParams } from "../time/range";
import { rowProps, useRows } from "../ui/rows";
import { Code, Empty, Pending } from "../ui/states";
import { RelativeTime } from "../ui/time";

export function SegmentsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("flags:write");
  const loaded = useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal));
  const segments = loaded.data ?? [];
  const keys = useMemo(() => segments.map((it) => it.key), [loaded.data]);
  const hrefOfSegment = (key: string) => hrefOf("segment", { ...keptParams(address), key });
  const rows = useRows(keys, (key) => go(hrefOfSegment(key)));
  const create = hrefOf("segment", { ...keptParams(address), new: 1 });
  useKeys(canWrite ? { c: () => go(create) } : {});
  return (
    <>
      <div class="page-head">
        <FlagTabs page="segments" />
        {canWrite && (
          <button type="button" class="primary" onClick={() => go(create)} title="New segment (c)">
            New segment
          </button>
        )}
      </div>
      <Pending of={loaded} rows={5} />
      {loaded.data && segments.length === 0 && (
        <Empty title="No segments yet">
          <p>
            A segment is a named group of users, such as “Staff” or “Beta testers”. Use it in flag
            rules; edits apply to all of them. Create a segment, or use the API:
          </p>
          <Code
            text={`curl ${location.origin}/v0/project/${project.slug}/segments \\\n  -H "x-api-key: $KEY" -H 'content-type: application/json' \\\n  -d '{"key": "staff", "name": "Staff", "conditions": [\n    {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]}'`}
          />
        </Empty>
      )}
      {segments.length > 0 && (
        <div class="table-scroll">
          <table class="table">
            <colgroup>
              <col />
              <col class="wide" style={{ width: "52%" }} />
              <col style={{ width: "112px" }} />
            </colgroup>
            <thead>
              <tr>
                <th>Segment</th>
                <th class="wide">Conditions</th>
                <th class="number">Changed</th>
              </tr>
            </thead>
            <tbody>
              {segments.map((it, index) => (
                <tr key={it.id} {...rowProps(rows, index)}>
                  <td>
                    <Link class="title" href={hrefOfSegment(it.key)}>
                      <bdi>{it.name}</bdi>
                    </Link>
                    <small>
                      <code>{it.key}</code>
                    </small>
                  </td>
                  <td class="quiet wide" title={describeConditions(it.conditions)}>
                    <bdi>{describeConditions(it.conditions)}</bdi>
                  </td>
                  <td class="number quiet">
                    <RelativeTime at={it.updatedAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
