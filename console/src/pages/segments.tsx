import { useLoaded } from "../api/loaded";
import { useCurrentProject } from "../caller";
import { describeConditions } from "../flags/conditions-editor";
import { KeyedList } from "../flags/keyed-list";
import { loadSegments, type Segment } from "../segments/segment";
import { Code, Empty } from "../ui/states";

const NONE: Segment[] = [];

export function SegmentsPage() {
  const { project } = useCurrentProject();
  const loaded = useLoaded(`segments ${project.id}`, (signal) => loadSegments(project, signal));
  return (
    <KeyedList
      noun="segment"
      loaded={loaded}
      items={loaded.data ?? NONE}
      columns={[
        [],
        [
          [
            "Conditions",
            "quiet wide of-half",
            (it) => {
              const text = describeConditions(it.conditions);
              return <bdi title={text}>{text}</bdi>;
            },
          ],
        ],
      ]}
      empty={
        <Empty title="No segments yet">
          <p>
            A segment is a named group of users, such as “Staff” or “Beta testers”. Use it in flag
            rules; edits apply to all of them. Create a segment, or use the API:
          </p>
          <Code
            text={`curl ${location.origin}/v0/project/${project.slug}/segments \\\n  -H "x-api-key: $KEY" -H 'content-type: application/json' \\\n  -d '{"key": "staff", "name": "Staff", "conditions": [\n    {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}]}'`}
          />
        </Empty>
      }
    />
  );
}
