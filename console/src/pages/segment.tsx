import { useMemo, useState } from "preact/hooks";
import { go, hrefOf, Link, useAddress, usePageGuard } from "../address";
import { useAttempts } from "../api/attempt";
import { ApiError } from "../api/client";
import { useLoaded } from "../api/loaded";
import { isChangedAt } from "../api/pointer";
import { useCan, useCurrentProject } from "../caller";
import { dropDraft, useDraft } from "../drafts";
import { AttributeNames } from "../flags/attributes";
import {
  Conditions,
  describeCondition,
  describeConditions,
  isComplete,
  NEW_CONDITION,
} from "../flags/conditions-editor";
import { Conflict, type EditConflict } from "../flags/conflict";
import { type Flag, isMismatch, loadFlags, versionOf } from "../flags/flag";
import {
  createSegment,
  deleteSegment,
  findSegmentConflict,
  flagsUsing,
  loadSegment,
  patchSegment,
  type Segment,
  type SegmentDraft,
} from "../segments/segment";
import { keptParams } from "../time/range";
import { Confirm, Dialog } from "../ui/confirm";
import { Back, DetailPage } from "../ui/detail-page";
import { ErrorMessage, errorProps, FieldError, formError, useFocusFirstError } from "../ui/states";
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
    <DetailPage
      list="Segments"
      back={back}
      loaded={loaded}
      isCurrent={(it) => it.key === key}
      noun="Segment"
      notFoundHint={
        <>
          This project has no segment with the key <code>{key}</code>.
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
    </DetailPage>
  );
}

interface EditorProps {
  /** `null` for a new segment. */
  segment: Segment | null;
  back: string;
  onChange: (segment: Segment) => void;
}

function Editor({ segment, back, onChange }: EditorProps) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const canWrite = useCan()("flags:write");
  const saved = useMemo(() => (segment ? draftOf(segment) : NEW_SEGMENT), [segment]);
  const nameOf = (key: string) => `segment ${project.id} ${key}`;
  const edited = useDraft(nameOf(segment?.key ?? ""), versionOf(segment), saved);
  const { draft, isChanged, set } = edited;
  const [saveConflict, setSaveConflict] = useState<EditConflict | null>(null);
  const draftConflict = edited.conflict;
  const conflict = useMemo(() => {
    if (saveConflict || !draftConflict || !segment) return saveConflict;
    const found = findSegmentConflict(
      draftConflict.base,
      draftConflict.edited,
      saved,
      segment.version,
    );
    return { ...found, isSaveRejected: false };
  }, [saveConflict, draftConflict, saved, segment]);
  const [failure, setFailure] = useState<{ error: ApiError; sent: SegmentDraft } | null>(null);
  // An error disappears when its field changes.
  const saveError = useMemo(
    () => failure?.error.without((at) => isChangedAt(at, failure.sent, draft)) ?? null,
    [failure, draft],
  );
  const setSaveError = (error: ApiError | null) => setFailure(error && { error, sent: draft });
  const form = useFocusFirstError(failure ?? saveConflict);
  const attempts = useAttempts();
  const guardPage = usePageGuard();
  const [busy, setBusy] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const flags = useLoaded(segment && `flags ${project.id} true`, (signal) =>
    loadFlags(project, true, signal),
  );
  const usedBy = segment && flags.data ? flagsUsing(segment.key, flags.data) : null;

  const attempt = async (task: () => Promise<void>) => {
    const isHere = guardPage();
    setBusy(true);
    setSaveError(null);
    setSaveConflict(null);
    try {
      await task();
    } catch (error) {
      if (error instanceof ApiError && isHere()) setSaveError(formError(error));
      else showErrorToast(error);
    } finally {
      setBusy(false);
    }
  };
  const save = () =>
    attempt(async () => {
      const sent = draft;
      const isHere = guardPage();
      if (!segment) {
        const created = await createSegment(project, sent, attempts.keyFor(sent));
        attempts.succeeded();
        edited.handOver(sent, nameOf(created.key), versionOf(created), draftOf(created));
        const href = hrefOf("segment", { ...keptParams(address), key: created.key });
        const isStillHere = isHere();
        showToast(
          `Created ${created.key}. You can now use it in flag rules.`,
          undefined,
          isStillHere ? undefined : { href, text: "Open" },
        );
        if (isStillHere) go(href, "replace");
        return;
      }
      const { name, conditions } = sent;
      let changed: Segment;
      try {
        changed = await patchSegment(project, segment, { name, conditions });
      } catch (error) {
        if (!isMismatch(error)) throw error;
        // Merges the changes of another user into the form, and shows them.
        const latest = await loadSegment(project, segment.key);
        const found = findSegmentConflict(edited.base, sent, draftOf(latest), latest.version);
        setSaveConflict({ ...found, isSaveRejected: true });
        onChange(latest);
        return;
      }
      edited.accept(sent, versionOf(changed), draftOf(changed));
      onChange(changed);
      showToast(`Saved as version ${changed.version}. Takes effect everywhere within 5 seconds.`);
    });
  const remove = () =>
    attempt(async () => {
      if (!segment) return;
      const isHere = guardPage();
      setDeleting(false);
      await deleteSegment(project, segment.key);
      dropDraft(nameOf(segment.key));
      showToast(`Deleted ${segment.key}.`);
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
        {segment && canWrite && (
          <div class="actions">
            <button
              type="button"
              class="danger"
              onClick={() => {
                flags.reload();
                setDeleting(true);
              }}
            >
              Delete
            </button>
          </div>
        )}
      </div>
      <div class="editor">
        {!canWrite && segment && (
          <section class="part">
            <h2>Users who match all of these</h2>
            <ul>
              {segment.conditions.map((it, index) => (
                <li key={index}>
                  <bdi>{describeCondition(it)}</bdi>
                </li>
              ))}
            </ul>
          </section>
        )}
        <form
          ref={form}
          hidden={!canWrite}
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
                    autofocus
                    {...errorProps(saveError, "/key")}
                    onInput={(event) => set({ key: event.currentTarget.value })}
                  />
                  <FieldError error={saveError} at="/key" />
                </label>
              )}
              <label class="field grow">
                Name
                <input
                  value={draft.name}
                  placeholder="Beta testers"
                  disabled={!canWrite}
                  {...errorProps(saveError, "/name")}
                  onInput={(event) => set({ name: event.currentTarget.value })}
                />
                <FieldError error={saveError} at="/name" />
              </label>
            </div>
          </div>
          <section class="part">
            <header>
              <h2>Users who match all of these</h2>
            </header>
            <FieldError error={saveError} at="/conditions" />
            <Conditions
              conditions={draft.conditions}
              segments={null}
              pointer="/conditions"
              error={saveError}
              disabled={!canWrite}
              onChange={(conditions) => set({ conditions })}
            />
          </section>
          {conflict && <Conflict noun="segment" conflict={conflict} isChanged={isChanged} />}
          {saveError && <ErrorMessage error={saveError} />}
          {canWrite && (isChanged || !segment) && (
            <div class="save-bar">
              <button type="submit" class="primary" disabled={busy}>
                {!segment ? "Create segment" : conflict ? "Overwrite" : "Save"}
              </button>
              {isChanged && (
                <button
                  type="button"
                  onClick={() => {
                    edited.discard();
                    setSaveError(null);
                    setSaveConflict(null);
                  }}
                >
                  Discard
                </button>
              )}
              {edited.isRestored && isChanged && <span class="small">Unsaved draft restored.</span>}
              {draft.conditions.length > 0 && draft.conditions.every(isComplete) && (
                <span class="quiet small">
                  Users whose <bdi>{describeConditions(draft.conditions)}</bdi>
                </span>
              )}
            </div>
          )}
        </form>
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
            <button type="button" onClick={() => setDeleting(false)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
      {deleting && segment && !usedBy?.length && (
        <Confirm
          title={`Delete ${segment.key}?`}
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={() => void remove()}
        >
          <p>This permanently deletes the segment.{usedBy && " No flag uses it."}</p>
        </Confirm>
      )}
      <AttributeNames />
    </>
  );
}

/** The flags that use the segment. */
function UsedBy({ flags }: { flags: Flag[] }) {
  const address = useAddress();
  return (
    <section class="block">
      <header>
        <h2>Used by</h2>
      </header>
      {flags.length === 0 && (
        <p class="quiet nothing">
          No flags. To use it, add a condition “is in segment” to a flag rule.
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
