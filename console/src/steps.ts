/**
 * What is kept of each step of the browser's history, so that going back shows what was left: until when it
 * looked, what had been loaded, how far it was scrolled and which row it was at. Until the tab is loaded anew.
 */

export interface Step {
  /** What counts as now in it. */
  now?: number;
  scroll: number;
  /** The id of the row that keys are at. */
  row?: string | undefined;
  /** The pages of a list beyond the first, under the key of the list. */
  more?: { key: string; pages: unknown[] };
  /** How many pages of a list are read at once. */
  pages?: number;
  /** The address that led to it by a link. */
  before: string | null;
}

const MOST_KEPT = 100;
const steps = new Map<string, Step>();

/** The state of a new entry of the history. */
export function newState(): { step: string } {
  return { step: crypto.randomUUID() };
}

/** The step that is shown. */
export function stepNow(): Step {
  let id = (history.state as { step?: string } | null)?.step;
  if (!id) {
    const state = newState();
    history.replaceState(state, "");
    id = state.step;
  }
  const step = steps.get(id) ?? { scroll: 0, before: null };
  steps.delete(id);
  steps.set(id, step);
  const oldest = steps.keys().next();
  if (steps.size > MOST_KEPT && !oldest.done) steps.delete(oldest.value);
  return step;
}

export function forgetSteps(): void {
  steps.clear();
}

/** Whether two addresses say the same, in whatever order. */
export function sameAddress(one: string, other: string): boolean {
  const sorted = (text: string) => {
    const [path, query] = text.split("?");
    return `${path}?${[...new URLSearchParams(query)].map(String).sort()}`;
  };
  return sorted(one) === sorted(other);
}

/** Until when a page that is still too short is waited for. */
const PATIENCE_MS = 4_000;
let stop = () => {};

/** Scrolls to where a step was left, as soon as the page is long enough again. */
export function scrollBack({ scroll }: Step): void {
  stop();
  const ends = performance.now() + PATIENCE_MS;
  let frame = 0;
  const end = () => {
    cancelAnimationFrame(frame);
    for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
      removeEventListener(name, end);
    stop = () => {};
    isGoingBack = false;
  };
  stop = end;
  isGoingBack = true;
  // Who scrolls meanwhile wants to be elsewhere.
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
    addEventListener(name, end, { passive: true });
  const look = () => {
    const there = document.documentElement.scrollHeight - innerHeight;
    if (there >= scroll || performance.now() > ends) {
      scrollTo(0, scroll);
      end();
    } else frame = requestAnimationFrame(look);
  };
  frame = requestAnimationFrame(look);
}

let isGoingBack = false;

/** Notes how far each step is scrolled, in place of the browser, which does not know when a page is there. */
export function watchScroll(): void {
  history.scrollRestoration = "manual";
  // Of a page that is loaded anew only the browser knows.
  addEventListener("pagehide", () => {
    history.scrollRestoration = "auto";
  });
  addEventListener(
    "scroll",
    () => {
      if (!isGoingBack) stepNow().scroll = scrollY;
    },
    { passive: true },
  );
}
