/** Parts shared by the editors of flags and segments: pages, drafts, conflicts, errors and saving. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { go, hrefOf, useAddress, usePageGuard } from "../address";
import { type KeyHeader, useAttempts } from "../api/attempt";
import { ApiError } from "../api/client";
import { useLoaded } from "../api/loaded";
import { isChangedAt } from "../api/pointer";
import { type Project, useCurrentProject } from "../caller";
import { dropDraft, useDraft } from "../drafts";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { Back, DetailPage } from "../ui/detail-page";
import { Field } from "../ui/form";
import { ErrorMessage, formError, useFocusFirstError } from "../ui/states";
import { RelativeTime } from "../ui/time";
import { showErrorToast, showToast } from "../ui/toast";
import { Conflict, type EditConflict, findConflict } from "./conflict";
import { isMismatch, versionOf } from "./flag";

/** A flag or a segment. */
interface Versioned {
  id: string;
  key: string;
  name: string;
  version: number;
}

export interface EditorProps<T> {
  /** `null` for a new one. */
  saved: T | null;
  back: string;
  onChange: (saved: T) => void;
}

interface EditorPageProps<T> {
  page: "flag" | "segment";
  load: (project: Project, key: string, signal: AbortSignal) => Promise<T>;
  Editor: (props: EditorProps<T>) => preact.JSX.Element;
}

export function EditorPage<T extends Versioned>({ page, load, Editor }: EditorPageProps<T>) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const isNew = address.query.has("new");
  const key = address.query.get("key") ?? "";
  const loaded = useLoaded(isNew ? null : `${page} ${project.id} ${key}`, (signal) =>
    load(project, key, signal),
  );
  const [noun, list] = page === "flag" ? ["Flag", "Flags"] : ["Segment", "Segments"];
  const back = hrefOf(`${page}s`, keptParams(address));
  if (isNew) {
    return (
      <>
        <Back list={list} href={back} />
        <Editor saved={null} back={back} onChange={() => {}} />
      </>
    );
  }
  return (
    <DetailPage
      list={list}
      back={back}
      loaded={loaded}
      isCurrent={(it) => it.key === key}
      noun={noun}
      notFoundHint={
        <>
          This project has no {page} with the key <code>{key}</code>.
        </>
      }
      rows={9}
    >
      {(saved) => (
        <Editor
          key={saved.id}
          saved={saved}
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

export interface Kind<T, D> {
  page: "flag" | "segment";
  newDraft: D;
  draftOf: (saved: T) => D;
  load: (project: Project, key: string) => Promise<T>;
  create: (project: Project, draft: D, header: KeyHeader) => Promise<T>;
  patch: (project: Project, saved: T, draft: D) => Promise<T>;
  remove: (project: Project, key: string) => Promise<unknown>;
  /** Applies the IDs of the saved state to a draft. */
  withIds?: (draft: D, sent: D, saved: T) => D;
  created: (created: T) => string;
  changed: (changed: T) => string;
}

/** The state of an editor. `check` returns an error that stops saving. */
export function useEditor<T extends Versioned, D extends object>(
  kind: Kind<T, D>,
  { saved: resource, back, onChange }: EditorProps<T>,
  check: (draft: D, saved: D) => ApiError | null = () => null,
) {
  const address = useAddress();
  const { project } = useCurrentProject();
  const saved = useMemo(
    () => (resource ? kind.draftOf(resource) : kind.newDraft),
    [resource, kind],
  );
  const nameOf = (key: string) => `${kind.page} ${project.id} ${key}`;
  const edited = useDraft<D>(nameOf(resource?.key ?? ""), versionOf(resource), saved);
  const { draft } = edited;
  const [saveConflict, setSaveConflict] = useState<EditConflict | null>(null);
  const draftConflict = edited.conflict;
  const conflict = useMemo(() => {
    if (saveConflict || !draftConflict || !resource) return saveConflict;
    const { base, edited } = draftConflict;
    const found = findConflict(base, edited, saved, resource.version);
    return { ...found, isSaveRejected: false };
  }, [saveConflict, draftConflict, saved, resource, kind]);
  const [failure, setFailure] = useState<{ error: ApiError; sent: D } | null>(null);
  // An error disappears when its field changes.
  const error = useMemo(
    () => failure?.error.without((at) => isChangedAt(at, failure.sent, draft)) ?? null,
    [failure, draft],
  );
  const setError = (it: ApiError | null) => setFailure(it && { error: it, sent: draft });
  const ref = useFocusFirstError(failure ?? saveConflict);
  const attempts = useAttempts();
  const guardPage = usePageGuard();
  const [busy, setBusy] = useState(false);

  const saveDraft = async (sent: D, isHere: () => boolean) => {
    const savedAs = (result: T) =>
      [
        versionOf(result),
        kind.draftOf(result),
        (it: D) => kind.withIds?.(it, sent, result) ?? it,
      ] as const;
    if (!resource) {
      const created = await kind.create(project, sent, attempts.keyFor(sent));
      attempts.succeeded();
      edited.handOver(sent, nameOf(created.key), ...savedAs(created));
      const href = hrefOf(kind.page, { ...keptParams(address), key: created.key });
      const isStillHere = isHere();
      const link = isStillHere ? undefined : { href, text: "Open" };
      showToast(kind.created(created), undefined, link);
      if (isStillHere) go(href, "replace");
      return;
    }
    try {
      const changed = await kind.patch(project, resource, sent);
      edited.accept(sent, ...savedAs(changed));
      onChange(changed);
      showToast(kind.changed(changed));
    } catch (failed) {
      if (!isMismatch(failed) || !isHere()) throw failed;
      // Merges the changes of another user into the form, and shows them.
      const latest = await kind.load(project, resource.key);
      const theirs = kind.draftOf(latest);
      const found = findConflict(edited.base, sent, theirs, latest.version);
      setSaveConflict({ ...found, isSaveRejected: true });
      onChange(latest);
    }
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const stopped = check(draft, saved);
    if (stopped) return setError(stopped);
    const isHere = guardPage();
    setBusy(true);
    setError(null);
    setSaveConflict(null);
    try {
      await saveDraft(draft, isHere);
    } catch (failed) {
      if (failed instanceof ApiError && isHere()) setError(formError(failed));
      else showErrorToast(failed);
    } finally {
      setBusy(false);
    }
  };
  const remove = async () => {
    if (!resource) return;
    const isHere = guardPage();
    await kind.remove(project, resource.key);
    dropDraft(nameOf(resource.key));
    showToast(`Deleted ${resource.key}.`);
    if (isHere()) go(back);
  };
  const discard = () => {
    edited.discard();
    setError(null);
    setSaveConflict(null);
  };
  return {
    ...edited,
    saved,
    isNew: !resource,
    noun: kind.page,
    conflict,
    error,
    // Errors disappear by themselves, see above.
    touch: () => {},
    busy,
    form: { ref, onSubmit: save },
    discard,
    remove,
  };
}

interface EditorHeadProps {
  item: (Versioned & { updatedAt: string }) | null;
  noun: string;
  /** Facts between the key and the version. */
  facts?: string;
  /** Buttons for a saved item. */
  children: ComponentChildren;
}

/** Common context attributes, which fields for attributes suggest. */
const ATTRIBUTES = ["email", "country", "plan", "appVersion", "ip", "$now"];

export function EditorHead({ item, noun, facts = "", children }: EditorHeadProps) {
  return (
    <div class="page-head">
      <div>
        <h1>
          <bdi>{item ? item.name : `New ${noun}`}</bdi>
        </h1>
        {item && (
          <p class="quiet small">
            <code>{item.key}</code> ·{facts} version {item.version},{" "}
            <RelativeTime at={item.updatedAt} />
          </p>
        )}
      </div>
      {item && children && <div class="actions">{children}</div>}
      <datalist id="attributes">
        {ATTRIBUTES.map((it) => (
          <option key={it}>{it}</option>
        ))}
      </datalist>
    </div>
  );
}

interface Editing {
  noun: string;
  isNew: boolean;
  isChanged: boolean;
  isRestored: boolean;
  busy: boolean;
  conflict: EditConflict | null;
  error: ApiError | null;
  touch: () => void;
  discard: () => void;
}

interface KeyAndNameProps {
  editing: Editing & { draft: { key: string; name: string } };
  placeholders: [key: string, name: string];
  onChange: (change: { key?: string; name?: string }) => void;
  children?: ComponentChildren;
}

/** The fields for the key, which cannot change later, and the name. */
export function KeyAndName(props: KeyAndNameProps) {
  const { editing, placeholders, onChange, children } = props;
  const { draft, isNew } = editing;
  return (
    <div class="form-row">
      {isNew && (
        <Field
          class="grow"
          label="Key"
          at="/key"
          form={editing}
          placeholder={placeholders[0]}
          spellcheck={false}
          autocomplete="off"
          autofocus
          value={draft.key}
          onInput={(key) => onChange({ key })}
        />
      )}
      <Field
        class="grow"
        label="Name"
        at="/name"
        form={editing}
        placeholder={placeholders[1]}
        value={draft.name}
        onInput={(name) => onChange({ name })}
      />
      {children}
    </div>
  );
}

interface SaveBarProps {
  editing: Editing;
  /** Explanation of the draft, beside the buttons. */
  children: ComponentChildren;
}

/** Conflicts, errors, and the buttons that save or discard the draft. */
export function SaveBar({ editing, children }: SaveBarProps) {
  const { noun, conflict, error, isNew, isChanged, isRestored, busy, discard } = editing;
  return (
    <>
      {conflict && <Conflict noun={noun} conflict={conflict} isChanged={isChanged} />}
      {error && <ErrorMessage error={error} />}
      {(isChanged || isNew) && (
        <div class="save-bar">
          <button type="submit" class="primary" disabled={busy}>
            {isNew ? `Create ${noun}` : conflict ? "Overwrite" : "Save"}
          </button>
          {isChanged && <Button onClick={discard}>Discard</Button>}
          {isRestored && isChanged && <span class="small">Unsaved draft restored.</span>}
          {children}
        </div>
      )}
    </>
  );
}
