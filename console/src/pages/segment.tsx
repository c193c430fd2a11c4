import { useState } from "preact/hooks";
import { hrefOf, Link, useAddress } from "../address";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import {
  Conditions,
  describeCondition,
  describeConditions,
  isComplete,
  NEW_CONDITION,
} from "../flags/conditions-editor";
import {
  EditorHead,
  EditorPage,
  type EditorProps,
  KeyAndName,
  type Kind,
  SaveBar,
  useEditor,
} from "../flags/editor";
import { type Flag, loadFlags, stateOf } from "../flags/flag";
import {
  createSegment,
  deleteSegment,
  flagsUsing,
  loadSegment,
  patchSegment,
  type Segment,
  type SegmentDraft,
} from "../segments/segment";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { Confirm, Dialog } from "../ui/confirm";
import { Block, Part } from "../ui/layout";
import { RowTitle } from "../ui/row-parts";
import { ErrorMessage, FieldError } from "../ui/states";
import { useAction } from "../ui/toast";

const NEW_SEGMENT: SegmentDraft = { key: "", name: "", conditions: [NEW_CONDITION] };

function draftOf({ key, name, conditions }: Segment): SegmentDraft {
  return structuredClone({ key, name, conditions });
}

const KIND: Kind<Segment, SegmentDraft> = {
  page: "segment",
  newDraft: NEW_SEGMENT,
  draftOf,
  load: loadSegment,
  create: createSegment,
  remove: deleteSegment,
  patch: (project, saved, { name, conditions }) =>
    patchSegment(project, saved, { name, conditions }),
  created: ({ key }) => `Created ${key}. You can now use it in flag rules.`,
  changed: ({ version }) =>
    `Saved as version ${version}. Takes effect everywhere within 5 seconds.`,
};

export function SegmentPage() {
  return <EditorPage page="segment" load={loadSegment} Editor={Editor} />;
}

function Editor(props: EditorProps<Segment>) {
  const { saved: segment } = props;
  const { project } = useCurrentProject();
  const canWrite = useCan()("flags:write");
  const editing = useEditor(KIND, props);
  const { draft, set, error } = editing;
  const [deleting, setDeleting] = useState(false);
  const flags = useLoaded(segment && `flags ${project.id} true`, (signal) =>
    loadFlags(project, true, signal),
  );
  const usedBy = segment && flags.data ? flagsUsing(segment.key, flags.data) : null;

  const [, run] = useAction();
  return (
    <>
      <EditorHead item={segment} noun="segment">
        {canWrite && (
          <Button
            class="danger"
            onClick={() => {
              flags.reload();
              setDeleting(true);
            }}
          >
            Delete
          </Button>
        )}
      </EditorHead>
      <div class="editor">
        {!canWrite ? (
          segment && (
            <Part title="Users who match all of these">
              <ul>
                {segment.conditions.map((it, index) => (
                  <li key={index}>
                    <bdi>{describeCondition(it)}</bdi>
                  </li>
                ))}
              </ul>
            </Part>
          )
        ) : (
          <form {...editing.form}>
            <div class="form part">
              <KeyAndName
                editing={editing}
                placeholders={["beta-testers", "Beta testers"]}
                onChange={set}
              />
            </div>
            <Part title="Users who match all of these">
              <FieldError error={error} at="/conditions" />
              <Conditions
                conditions={draft.conditions}
                segments={null}
                pointer="/conditions"
                error={error}
                onChange={(conditions) => set({ conditions })}
              />
            </Part>
            <SaveBar editing={editing}>
              {draft.conditions.length > 0 && draft.conditions.every(isComplete) && (
                <span class="quiet small">
                  Users whose <bdi>{describeConditions(draft.conditions)}</bdi>
                </span>
              )}
            </SaveBar>
          </form>
        )}
        {segment && (
          <aside>
            {usedBy && <UsedBy flags={usedBy} />}
            {flags.error && <ErrorMessage small error={flags.error} retry={flags.reload} />}
          </aside>
        )}
      </div>
      {deleting && segment && usedBy && usedBy.length > 0 && (
        <Dialog title={`Can’t delete ${segment.key}`} onClose={() => setDeleting(false)}>
          <p>Used by {usedBy.map((it) => it.key).join(", ")}.</p>
          <div class="actions">
            <Button onClick={() => setDeleting(false)}>Close</Button>
          </div>
        </Dialog>
      )}
      {deleting && segment && !usedBy?.length && (
        <Confirm
          title={`Delete ${segment.key}?`}
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={() => {
            setDeleting(false);
            void run(editing.remove);
          }}
        >
          <p>This permanently deletes the segment.{usedBy && " No flag uses it."}</p>
        </Confirm>
      )}
    </>
  );
}

/** The flags that use the segment. */
function UsedBy({ flags }: { flags: Flag[] }) {
  const address = useAddress();
  return (
    <Block title="Used by">
      {flags.length === 0 && (
        <p class="quiet nothing">
          No flags. To use it, add a condition “is in segment” to a flag rule.
        </p>
      )}
      <ul class="rows">
        {flags.map((it) => (
          <li key={it.key}>
            <Link class="row" href={hrefOf("flag", { ...keptParams(address), key: it.key })}>
              <RowTitle name={it.name} description={<code>{it.key}</code>} />
              <span class={`status ${stateOf(it)}`}>{stateOf(it)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </Block>
  );
}
