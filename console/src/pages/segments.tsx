import { go, hrefOf, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { describeConditions } from "../flags/conditions-editor";
import { FlagTabs, KeyedTitle } from "../flags/tabs";
import { useKeys } from "../keys";
import { loadSegments, type Segment } from "../segments/segment";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { Code, Empty, Pending } from "../ui/states";
import { Table, useList } from "../ui/table";
import { RelativeTime } from "../ui/time";

const NONE: Segment[] = [];

export function SegmentsPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("flags:write");
  const loaded = useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal));
  const segments = loaded.data ?? NONE;
  const hrefOfSegment = (key: string) => hrefOf("segment", { ...keptParams(address), key });
  const list = useList(
    segments,
    (it) => it.key,
    (key) => go(hrefOfSegment(key)),
  );
  const create = hrefOf("segment", { ...keptParams(address), new: 1 });
  useKeys(canWrite ? { c: () => go(create) } : {});
  return (
    <>
      <div class="page-head">
        <FlagTabs page="segments" />
        {canWrite && (
          <Button class="primary" onClick={() => go(create)} title="New segment (c)">
            New segment
          </Button>
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
      <Table
        list={list}
        columns={[
          ["Segment", "", (it) => <KeyedTitle item={it} href={hrefOfSegment(it.key)} />],
          [
            "Conditions",
            "quiet wide of-half",
            (it) => {
              const text = describeConditions(it.conditions);
              return <bdi title={text}>{text}</bdi>;
            },
          ],
          ["Changed", "number quiet of-time", (it) => <RelativeTime at={it.updatedAt} />],
        ]}
      />
    </>
  );
}
