import { useMemo, useState } from "preact/hooks";
import { go, hrefOf, Link, useAddress, useStay } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError } from "../api/client";
import { useLoaded } from "../api/loaded";
import { useCan, useCurrentProject } from "../caller";
import { dropDraft, useDraft } from "../drafts";
import { AttributeNames } from "../flags/attributes";
import { Conditions, conditionsInWords, NEW_CONDITION } from "../flags/conditions-editor";
import { Conflict, type Met } from "../flags/conflict";
import { type Flag, isMismatch, loadFlags, versionOf } from "../flags/flag";
import {
  createSegment,
  deleteSegment,
  loadSegment,
  meetSegment,
  patchSegment,
  type Segment,
  type SegmentDraft,
  usersOf,
} from "../segments/segment";
import { keptParams } from "../time/range";
import { Confirm } from "../ui/confirm";
import { Back, One } from "../ui/one";
import { errorProps, FieldFault, Refused, shownHere, useFirstFault } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";

const NEW_SEGMENT: SegmentDraft = { key: "", name: "", conditions: [NEW_CONDITION] };

function draftOf({ key, name, conditions }: Segment): SegmentDraft {
  return structuredClone({ key, name, conditions });
}

export function SegmentPage() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const isNew = address.query.has("new");
  const key = address.query.get("key") ?? "";
  const loaded = useLoaded(isNew ? null : `segment ${project.id} ${key}`, (signal) =>
    loadSegment(project, key, signal),
  );
  const back = hrefOf("segments", keptParams(address));
  if (isNew) {
    return (
      <>
        <Back list="Segments" href={back} />
        <Editor segment={null} back={back} onChange={() => {}} />
      </>
    );
  }
  return (
    <One
      list="Segments"
      back={back}
      loaded={loaded}
      isIt={(it) => it.key === key}
      what="segment"
      why={
        <>
          The project has no segment <code>{key}</code>, or not any more.
        </>
      }
      rows={5}
    >
      {(segment) => (
        <Editor
          key={segment.id}
          segment={segment}
          back={back}
          onChange={(changed) =>
            loaded.set((was) =>
              was.id === changed.id && was.version > changed.version ? was : changed,
            )
          }
        />
      )}
    </One>
  );
}

interface EditorProps {
  /** `null` for one that is to be made. */
  segment: Segment | null;
  back: string;
  onChange: (segment: Segment) => void;
}

function Editor({ segment, back, onChange }: EditorProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const mayWrite = useCan()("flags:write");
  const saved = useMemo(() => (segment ? draftOf(segment) : NEW_SEGMENT), [segment]);
  const nameOf = (key: string) => `segment ${project.id} ${key}`;
  const edited = useDraft(nameOf(segment?.key ?? ""), versionOf(segment), saved);
  const { draft, isChanged, set } = edited;
  const [refused, setMet] = useState<Met | null>(null);
  const { overtaken } = edited;
  const met = useMemo(() => {
    if (refused || !overtaken || !segment) return refused;
    const { base, typed } = overtaken;
    return { ...meetSegment(base, typed, saved, segment.version), isRefused: false };
  }, [refused, overtaken, saved, segment]);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const form = useFirstFault(refusal ?? refused);
  const attempts = useAttempts();
  const stay = useStay();
  const [busy, setBusy] = useState(false);
  const [asking, ask] = useState(false);
  const flags = useLoaded(segment && `flags ${project.id} true`, (signal) =>
    loadFlags(project, true, signal),
  );
  const using = segment && flags.data ? usersOf(segment.key, flags.data) : null;

  const attempt = async (task: () => Promise<void>) => {
    const isHere = stay();
    setBusy(true);
    setRefusal(null);
    setMet(null);
    try {
      await task();
    } catch (error) {
      if (error instanceof ApiError && isHere()) setRefusal(shownHere(error));
      else showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const save = () =>
    attempt(async () => {
      const sent = draft;
      const isHere = stay();
      if (!segment) {
        const made = await createSegment(project, sent, attempts.keyFor(sent));
        attempts.succeeded();
        edited.handOver(sent, nameOf(made.key), versionOf(made), draftOf(made));
        const href = hrefOf("segment", { ...keptParams(address), key: made.key });
        const isStill = isHere();
        showToast(
          `${made.key} was made. Rules of flags can ask for it now.`,
          undefined,
          isStill ? undefined : { href, text: "Open it" },
        );
        if (isStill) go(href, "replace");
        return;
      }
      const { name, conditions } = sent;
      let changed: Segment;
      try {
        changed = await patchSegment(project, segment, { name, conditions });
      } catch (error) {
        if (!isMismatch(error)) throw error;
        // What somebody else saved comes in beside what was typed, and is told.
        const now = await loadSegment(project, segment.key);
        setMet({ ...meetSegment(edited.base, sent, draftOf(now), now.version), isRefused: true });
        onChange(now);
        return;
      }
      edited.accept(sent, versionOf(changed), draftOf(changed));
      onChange(changed);
      showToast(`Saved as version ${changed.version}. It counts everywhere within five seconds.`);
    });
  const remove = () =>
    attempt(async () => {
      if (!segment) return;
      const isHere = stay();
      ask(false);
      await deleteSegment(project, segment.key);
      dropDraft(nameOf(segment.key));
      showToast(`${segment.key} is gone.`);
      if (isHere()) go(back);
    });

  return (
    <>
      <div class="page-head">
        <div>
          <h1>
            <bdi>{segment ? segment.name : "New segment"}</bdi>
          </h1>
          {segment && (
            <p class="quiet small">
              <code>{segment.key}</code> · version {segment.version},{" "}
              <RelativeTime at={segment.updatedAt} />
            </p>
          )}
        </div>
        {segment && mayWrite && (
          <div class="actions">
            <button type="button" class="danger" onClick={() => ask(true)}>
              Delete
            </button>
          </div>
        )}
      </div>
      <div class="editor">
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <div class="form part">
            <div class="form-row">
              {!segment && (
                <label class="field grow">
                  Key
                  <input
                    value={draft.key}
                    placeholder="beta-testers"
                    spellcheck={false}
                    autocomplete="off"
                    {...errorProps(refusal, "/key")}
                    onInput={(event) => set({ key: event.currentTarget.value })}
                  />
                </label>
              )}
              <label class="field grow">
                Name
                <input
                  value={draft.name}
                  placeholder="Beta testers"
                  disabled={!mayWrite}
                  {...errorProps(refusal, "/name")}
                  onInput={(event) => set({ name: event.currentTarget.value })}
                />
              </label>
            </div>
            <FieldFault refusal={refusal} at="/key" />
            <FieldFault refusal={refusal} at="/name" />
          </div>
          <section class="part">
            <header>
              <h2>Who is in it: all of this holds</h2>
            </header>
            <FieldFault refusal={refusal} at="/conditions" />
            <Conditions
              conditions={draft.conditions}
              segments={null}
              pointer="/conditions"
              refusal={refusal}
              disabled={!mayWrite}
              onChange={(conditions) => set({ conditions })}
            />
          </section>
          {met && <Conflict what="segment" met={met} isLeft={isChanged} />}
          {refusal && <Refused refusal={refusal} />}
          {mayWrite && (isChanged || !segment) && (
            <div class="save-bar">
              <button type="submit" class="primary" disabled={busy}>
                {!segment ? "Make the segment" : met ? "Save over it" : "Save"}
              </button>
              {isChanged && (
                <button
                  type="button"
                  onClick={() => {
                    edited.discard();
                    setRefusal(null);
                    setMet(null);
                  }}
                >
                  Discard
                </button>
              )}
              {edited.wasKept && isChanged && (
                <span class="small">You typed this before and did not save it.</span>
              )}
              <span class="quiet small">
                In it: <bdi>{conditionsInWords(draft.conditions)}</bdi>.
              </span>
            </div>
          )}
        </form>
        {segment && (
          <aside>
            {using && <Users flags={using} />}
            {flags.error && <Refused small refusal={flags.error} retry={flags.reload} />}
          </aside>
        )}
      </div>
      {asking && segment && (
        <Confirm
          title={`Delete ${segment.key}?`}
          action="Delete"
          onClose={() => ask(false)}
          onConfirm={() => void remove()}
        >
          <p>
            {using?.length
              ? `Flags use it, so this will be refused: ${using.map((it) => it.key).join(", ")}.`
              : "The segment is deleted for good. No flag uses it."}
          </p>
        </Confirm>
      )}
      <AttributeNames />
    </>
  );
}

/** Which flags a change of the segment changes. */
function Users({ flags }: { flags: Flag[] }) {
  const address = useAddress();
  return (
    <section class="block">
      <header>
        <h2>Used by</h2>
      </header>
      {flags.length === 0 && (
        <p class="quiet nothing">
          No flag. In a flag’s rule, choose “is in the segment” as the condition.
        </p>
      )}
      <ul class="rows">
        {flags.map((it) => (
          <li key={it.key}>
            <Link class="row" href={hrefOf("flag", { ...keptParams(address), key: it.key })}>
              <span class="row-title">
                <bdi>{it.name}</bdi>
                <small>
                  <code>{it.key}</code>
                </small>
              </span>
              <span class={`status ${it.archivedAt ? "archived" : it.enabled ? "on" : "off"}`}>
                {it.archivedAt ? "archived" : it.enabled ? "on" : "off"}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
