/** The address is the state: what is shown follows from it alone, so that a link shows the same. */

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { newState, sameAddress, scrollBack, stepNow } from "./steps";

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
const tell = () => {
  for (const listener of listeners) listener();
};
const goneBack = () => {
  const step = stepNow();
  tell();
  // A part of the page that is named is scrolled to by the browser.
  if (!location.hash) scrollBack(step);
};

export type Params = Record<string, string | string[] | number | null | undefined>;

/** The address of a page. Parameters without a value are left out. */
export function hrefOf(page: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
  }
  const text = query.toString();
  return (page ? `${ROOT}/${page}` : ROOT) + (text ? `?${text}` : "");
}

export function go(href: string, how: "push" | "replace" = "push"): void {
  const before = currentHref();
  if (href === before) return;
  if (how === "push") {
    history.pushState(newState(), "", href);
    stepNow().before = before;
    if (before.split("?")[0] !== location.pathname) scrollTo(0, 0);
    stepNow().scroll = scrollY;
  } else history.replaceState(history.state, "", href);
  tell();
}

/** Goes back, if that is where a link leads to; what was loaded and where one was is still there then. */
export function goBack(href: string): boolean {
  const { before } = stepNow();
  if (before === null || !sameAddress(before, href)) return false;
  history.back();
  return true;
}

/** The parameters that stand in the address now, with some changed; `null` takes one out. */
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
    // The same listener counts once.
    addEventListener("popstate", goneBack);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return address;
}

/** Where one is, as a link says it. */
export function currentHref(): string {
  return location.pathname + location.search;
}

/** Whether what asks is on the page still, for what comes after an answer. */
export function useShown(): { readonly current: boolean } {
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  return isShown;
}

/**
 * For what goes elsewhere once an answer is there. Called when it is asked for, it gives what tells later
 * whether one is still where one was: whoever went on is not pulled away.
 */
export function useStay(): () => () => boolean {
  const isShown = useShown();
  return useCallback(() => {
    const from = currentHref();
    return () => isShown.current && currentHref() === from;
  }, []);
}

interface LinkProps {
  href: string;
  class?: string;
  title?: string;
  "aria-current"?: "page" | undefined;
  /** Whether it leads back, if that is where one came from. */
  back?: boolean;
  children?: ComponentChildren;
}

/** A link that stays in the page; with a key held down it opens a tab as any link does. */
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
