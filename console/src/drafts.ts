/** Unsaved edits. They survive navigation, a reload and changes by other users. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";

const PREFIX = "waymark.draft ";

/** Returns the fields of `is` that differ from `was`. */
export function changedFields<T extends object>(was: T, is: T): Partial<T> {
  const names = Object.keys(is) as (keyof T)[];
  const different = names.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
  return Object.fromEntries(different.map((name) => [name, is[name]])) as Partial<T>;
}

/** Applies the edits that turned `base` into `edited` to `onto`. */
export function rebase<T extends object>(base: T, edited: T, onto: T): T {
  return { ...onto, ...changedFields(base, edited) };
}

interface State<T> {
  /** The version of `base`. */
  version: string;
  base: T;
  draft: T;
  conflict?: DraftConflict<T> | null;
}

/** Edits of fields that another user changed too, and the state before both changes. */
export interface DraftConflict<T> {
  base: T;
  edited: T;
}

/**
 * Rebases a draft onto `saved`, the version `version`, and detects fields that both sides changed.
 */
export function withNewBase<T extends object>(
  state: State<T>,
  version: string,
  saved: T,
): State<T> {
  if (state.version === version) return state;
  const theirs = changedFields(state.base, saved);
  const ours = changedFields(state.base, state.draft);
  const names = Object.keys(theirs) as (keyof T)[];
  const isConflict = names.some(
    (name) => name in ours && JSON.stringify(ours[name]) !== JSON.stringify(theirs[name]),
  );
  return {
    version,
    base: saved,
    draft: rebase(state.base, state.draft, saved),
    // Keeps the first conflict: compared with its base, all changes by others show.
    conflict: state.conflict ?? (isConflict ? { base: state.base, edited: state.draft } : null),
  };
}

/** Stores a draft until the tab closes. */
function store<T>(name: string, state: State<T>): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(state));
  } catch {
    // The storage is full. The page still has the draft.
  }
}

export function dropDraft(name: string): void {
  sessionStorage.removeItem(PREFIX + name);
}

/** Removes all drafts, for a user who signs out. */
export function dropAllDrafts(): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  }
}

function storedDraft<T>(name: string): State<T> | null {
  const text = sessionStorage.getItem(PREFIX + name);
  return text === null ? null : (JSON.parse(text) as State<T>);
}

export interface Edited<T> {
  draft: T;
  /** The saved state that the draft is based on. */
  base: T;
  isChanged: boolean;
  /** Set if another user changed the same fields, until the draft is saved or discarded. */
  conflict: DraftConflict<T> | null;
  /** `true` if the draft comes from the tab's storage. */
  isRestored: boolean;
  set: (change: Partial<T>) => void;
  discard: () => void;
  /** Rebases the draft onto `saved`, the result of saving `sent`. Edits since then stay. */
  accept: (sent: T, version: string, saved: T, withSavedIds?: (draft: T) => T) => void;
  /** Like `accept`, but stores the draft under another name, for the page that opens next. */
  handOver: (
    sent: T,
    to: string,
    version: string,
    saved: T,
    withSavedIds?: (draft: T) => T,
  ) => void;
}

/**
 * Returns a draft of `saved`, the version `version`. A new version becomes the base; edits stay.
 */
export function useDraft<T extends object>(name: string, version: string, saved: T): Edited<T> {
  const [found] = useState(() => storedDraft<T>(name));
  const [state, setState] = useState<State<T>>(found ?? { version, base: saved, draft: saved });
  const update = (was: State<T>) => withNewBase(was, version, saved);
  const current = update(state);
  useLayoutEffect(() => {
    if (state.version !== version) setState(update);
  }, [state, version]);
  const isChanged = Object.keys(changedFields(saved, current.draft)).length > 0;
  useEffect(() => {
    if (isChanged) store(name, current);
    else dropDraft(name);
  }, [name, isChanged, current.version, current.base, current.draft]);
  useLayoutEffect(() => {
    if (!isChanged) return;
    const listener = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", listener);
    return () => removeEventListener("beforeunload", listener);
  }, [isChanged]);
  return {
    draft: current.draft,
    base: current.base,
    isChanged,
    conflict: (isChanged && current.conflict) || null,
    isRestored: found !== null,
    set: (change) =>
      setState((was) => {
        const updated = update(was);
        return { ...updated, draft: { ...updated.draft, ...change } };
      }),
    discard: () => setState({ version, base: saved, draft: saved }),
    accept: (sent, newVersion, newBase, withSavedIds = (it) => it) =>
      setState((was) => ({
        version: newVersion,
        base: newBase,
        draft: rebase(withSavedIds(sent), withSavedIds(was.draft), newBase),
      })),
    handOver: (sent, to, newVersion, newBase, withSavedIds = (it) => it) =>
      setState((was) => {
        dropDraft(name);
        const draft = rebase(withSavedIds(sent), withSavedIds(was.draft), newBase);
        if (Object.keys(changedFields(newBase, draft)).length > 0) {
          store(to, { version: newVersion, base: newBase, draft });
        }
        return { version, base: saved, draft: saved };
      }),
  };
}
