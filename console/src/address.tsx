/**
 * The address is the state: a page follows from it alone, so everyone sees the same page at a link.
 */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { currentStep, newState, restoreScroll, sameAddress } from "./steps";

const ROOT = "/console";

export interface Address {
  /** `""` for the first page. */
  page: string;
  query: URLSearchParams;
}

function read(): Address {
  const page = location.pathname.slice(ROOT.length).replace(/^\/+|\/+$/g, "");
  return { page, query: new URLSearchParams(location.search) };
}

const listeners = new Set<() => void>();
const notify = () => {
  for (const listener of listeners) listener();
};
const onPopState = () => {
  const step = currentStep();
  notify();
  // With a fragment, the browser scrolls to the element that it names.
  if (!location.hash) restoreScroll(step);
};

export type Params = Record<string, string | string[] | number | null | undefined>;

/** Returns the address of a page. Parameters without a value are omitted. */
export function hrefOf(page: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === "") continue;
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
  }
  const text = query.toString();
  return (page ? `${ROOT}/${page}` : ROOT) + (text ? `?${text}` : "");
}

export function go(href: string, how: "push" | "replace" = "push"): void {
  const previous = currentHref();
  if (href === previous) return;
  if (how === "push") {
    history.pushState(newState(), "", href);
    currentStep().previousHref = previous;
    if (previous.split("?")[0] !== location.pathname) scrollTo(0, 0);
    currentStep().scroll = scrollY;
  } else history.replaceState(history.state, "", href);
  notify();
}

/**
 * Goes back in the history if `href` is the previous address: its data and scroll position are
 * kept.
 */
export function goBack(href: string): boolean {
  const { previousHref } = currentStep();
  if (previousHref === null || !sameAddress(previousHref, href)) return false;
  history.back();
  return true;
}

/** Returns the address with some parameters changed; `null` removes one. */
export function changed(address: Address, params: Params): string {
  const names = [...new Set(address.query.keys())];
  const all = Object.fromEntries(names.map((name) => [name, address.query.getAll(name)]));
  return hrefOf(address.page, { ...all, ...params });
}

export function useAddress(): Address {
  const [address, set] = useState(read);
  useEffect(() => {
    const listener = () => set(read());
    listeners.add(listener);
    // Adding the same listener again has no effect.
    addEventListener("popstate", onPopState);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return address;
}

/** Returns the current path and query. */
export function currentHref(): string {
  return location.pathname + location.search;
}

/** Returns a reference that is `true` while the component is mounted, for code after a response. */
export function useIsMounted(): { readonly current: boolean } {
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return isMounted;
}

/**
 * For code that navigates after a response. Call the returned function before the request: it
 * returns a check that is `true` while the user is still on the page. A user who left the page is
 * not pulled back.
 */
export function usePageGuard(): () => () => boolean {
  const isMounted = useIsMounted();
  return useCallback(() => {
    const from = currentHref();
    return () => isMounted.current && currentHref() === from;
  }, []);
}

interface LinkProps {
  href: string;
  class?: string;
  title?: string;
  "aria-current"?: "page" | undefined;
  /** `true` to go back in the history if `href` is the previous address. */
  back?: boolean;
  children?: ComponentChildren;
}

/** A link within the console. A click with a modifier key opens a tab, as with any link. */
export function Link({ href, back, children, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={href}
      onClick={(event) => {
        if (event.defaultPrevented || event.button !== 0) return;
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        if (back && goBack(href)) return;
        go(href);
        scrollTo(0, 0);
      }}
    >
      {children}
    </a>
  );
}
