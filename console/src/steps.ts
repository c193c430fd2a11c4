/**
 * State of each step of the browser's history: time range, loaded pages, scroll position and
 * current row. Going back shows the page as it was. A reload discards the state.
 */

export interface Step {
  /** The end of relative time ranges, in milliseconds since the epoch. */
  now?: number;
  scroll: number;
  /** The id of the current row. */
  row?: string | undefined;
  /** The pages of a list after the first, with the key of the list. */
  more?: { key: string; pages: unknown[] };
  /** Number of pages to load of a list. */
  pages?: number;
  /** The address from which a link led here. */
  previousHref: string | null;
}

const MAX_STEPS = 100;
const steps = new Map<string, Step>();

/** Returns the state of a new history entry. */
export function newState(): { step: string } {
  return { step: crypto.randomUUID() };
}

export function currentStep(): Step {
  let id = (history.state as { step?: string } | null)?.step;
  if (!id) {
    const state = newState();
    history.replaceState(state, "");
    id = state.step;
  }
  const step = steps.get(id) ?? { scroll: 0, previousHref: null };
  steps.delete(id);
  steps.set(id, step);
  const oldest = steps.keys().next();
  if (steps.size > MAX_STEPS && !oldest.done) steps.delete(oldest.value);
  return step;
}

export function clearSteps(): void {
  steps.clear();
}

/** Compares two addresses, ignoring the order of their parameters. */
export function sameAddress(one: string, other: string): boolean {
  const sorted = (text: string) => {
    const [path, query] = text.split("?");
    return `${path}?${[...new URLSearchParams(query)].map(String).sort()}`;
  };
  return sorted(one) === sorted(other);
}

/** Maximum time to wait for a page to become long enough to scroll. */
const SCROLL_TIMEOUT_MS = 4_000;
let stop = () => {};

/** Scrolls to the position of a step as soon as the page is long enough. */
export function restoreScroll({ scroll }: Step): void {
  stop();
  const deadline = performance.now() + SCROLL_TIMEOUT_MS;
  let frame = 0;
  const end = () => {
    cancelAnimationFrame(frame);
    for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
      removeEventListener(name, end);
    stop = () => {};
    isRestoring = false;
  };
  stop = end;
  isRestoring = true;
  // Input by the user has priority.
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
    addEventListener(name, end, { passive: true });
  const check = () => {
    const maxScroll = document.documentElement.scrollHeight - innerHeight;
    if (maxScroll >= scroll || performance.now() > deadline) {
      scrollTo(0, scroll);
      end();
    } else frame = requestAnimationFrame(check);
  };
  frame = requestAnimationFrame(check);
}

let isRestoring = false;

/**
 * Records the scroll position of each step. The browser cannot: it restores before the page has
 * loaded.
 */
export function watchScroll(): void {
  history.scrollRestoration = "manual";
  // After a reload only the browser knows the position.
  addEventListener("pagehide", () => {
    history.scrollRestoration = "auto";
  });
  addEventListener(
    "scroll",
    () => {
      if (!isRestoring) currentStep().scroll = scrollY;
    },
    { passive: true },
  );
}
