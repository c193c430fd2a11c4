/** What one types and has not saved: it outlives another page, a reload, and changes by others. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";

const PREFIX = "waymark.draft ";

/** The members that differ. */
export function differing<T extends object>(was: T, is: T): Partial<T> {
  const names = Object.keys(is) as (keyof T)[];
  const different = names.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
  return Object.fromEntries(different.map((name) => [name, is[name]])) as Partial<T>;
}

/** What was typed over `base`, over what that became. */
export function rebased<T extends object>(base: T, typed: T, onto: T): T {
  return { ...onto, ...differing(base, typed) };
}

interface State<T> {
  /** Which version `base` is of. */
  of: string;
  base: T;
  draft: T;
  overtaken?: Overtaken<T> | null;
}

/** What was typed, and over what, when others changed the same members. */
export interface Overtaken<T> {
  base: T;
  typed: T;
}

/** The draft over the version `of`, and whether saving it would undo what others did. */
export function carried<T extends object>(was: State<T>, of: string, saved: T): State<T> {
  if (was.of === of) return was;
  const [theirs, own] = [differing(was.base, saved), differing(was.base, was.draft)];
  const names = Object.keys(theirs) as (keyof T)[];
  const isBoth = names.some(
    (name) => name in own && JSON.stringify(own[name]) !== JSON.stringify(theirs[name]),
  );
  return {
    of,
    base: saved,
    draft: rebased(was.base, was.draft, saved),
    // The first of several counts: its base shows all that others did since.
    overtaken: was.overtaken ?? (isBoth ? { base: was.base, typed: was.draft } : null),
  };
}

/** Drafts are kept for as long as the tab is open. */
function keep<T>(name: string, state: State<T>): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(state));
  } catch {
    // There is no room for more; what was typed is still in the page.
  }
}

export function dropDraft(name: string): void {
  sessionStorage.removeItem(PREFIX + name);
}

/** Whoever signs out leaves nothing behind. */
export function dropAllDrafts(): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  }
}

function kept<T>(name: string): State<T> | null {
  const text = sessionStorage.getItem(PREFIX + name);
  return text === null ? null : (JSON.parse(text) as State<T>);
}

export interface Edited<T> {
  draft: T;
  /** What it was typed over. */
  base: T;
  isChanged: boolean;
  /** Set where others changed the same since it was typed, until it is saved or discarded. */
  overtaken: Overtaken<T> | null;
  /** Whether it was typed before, and found again. */
  wasKept: boolean;
  set: (change: Partial<T>) => void;
  discard: () => void;
  /** Takes over what `sent` became; what was typed since it was sent stays. */
  accept: (sent: T, of: string, became: T, fresh?: (draft: T) => T) => void;
  /** Takes over what `sent` became as the draft of another name, for a page that is to come. */
  handOver: (sent: T, to: string, of: string, became: T, fresh?: (draft: T) => T) => void;
}

/** A draft of what is `saved` as the version `of`. Another version is taken over, beside what was typed. */
export function useDraft<T extends object>(name: string, of: string, saved: T): Edited<T> {
  const [found] = useState(() => kept<T>(name));
  const [state, setState] = useState<State<T>>(found ?? { of, base: saved, draft: saved });
  const onto = (was: State<T>) => carried(was, of, saved);
  const now = onto(state);
  useLayoutEffect(() => {
    if (state.of !== of) setState(onto);
  }, [state, of]);
  const isChanged = Object.keys(differing(saved, now.draft)).length > 0;
  useEffect(() => {
    if (isChanged) keep(name, now);
    else dropDraft(name);
  }, [name, isChanged, now.of, now.base, now.draft]);
  useLayoutEffect(() => {
    if (!isChanged) return;
    const listener = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", listener);
    return () => removeEventListener("beforeunload", listener);
  }, [isChanged]);
  return {
    draft: now.draft,
    base: now.base,
    isChanged,
    overtaken: (isChanged && now.overtaken) || null,
    wasKept: found !== null,
    set: (change) =>
      setState((was) => {
        const current = onto(was);
        return { ...current, draft: { ...current.draft, ...change } };
      }),
    discard: () => setState({ of, base: saved, draft: saved }),
    accept: (sent, newOf, became, fresh = (it) => it) =>
      setState((was) => ({
        of: newOf,
        base: became,
        draft: rebased(fresh(sent), fresh(was.draft), became),
      })),
    handOver: (sent, to, newOf, became, fresh = (it) => it) =>
      setState((was) => {
        dropDraft(name);
        const draft = rebased(fresh(sent), fresh(was.draft), became);
        if (Object.keys(differing(became, draft)).length > 0) {
          keep(to, { of: newOf, base: became, draft });
        }
        return { of, base: saved, draft: saved };
      }),
  };
}
