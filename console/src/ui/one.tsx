/** The page of one thing that the address names. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Link } from "../address";
import type { Loaded } from "../api/loaded";
import { Icon } from "./icons";
import { Empty, Refused, SkeletonRows } from "./states";

/** What the title of the window calls it. */
interface Named {
  title?: string;
  name?: string;
  key?: string;
}

interface OneProps<T> {
  /** What leads back to all of them. */
  list: string;
  back: string;
  loaded: Loaded<T>;
  /** Whether what was loaded is what the address names: while another is on its way it is not. */
  isIt: (loaded: T) => boolean;
  /** What it is called where it is not found, and why that may be. */
  what: string;
  why?: ComponentChildren;
  /** How many rows of skeletons it takes until it is there. */
  rows: number;
  children: (thing: T) => ComponentChildren;
}

/** One thing: on its way, not found, refused, or there. */
export function One<T extends Named>({
  list,
  back,
  loaded,
  isIt,
  what,
  why,
  rows,
  children,
}: OneProps<T>) {
  const { data, error, reload } = loaded;
  const thing = data !== undefined && isIt(data) ? data : undefined;
  const name = thing?.title || thing?.name || thing?.key;
  useEffect(() => {
    if (name) document.title = `${name} · ${list} · Waymark`;
    return () => {
      document.title = `${list} · Waymark`;
    };
  }, [name, list]);
  return (
    <>
      <Back list={list} href={back} />
      {error?.status === 404 ? (
        <Empty title={`There is no such ${what}`}>{why && <p>{why}</p>}</Empty>
      ) : (
        error && <Refused refusal={error} retry={reload} />
      )}
      {!thing && !error && <SkeletonRows rows={rows} />}
      {thing && children(thing)}
    </>
  );
}

export function Back({ list, href }: { list: string; href: string }) {
  return (
    <Link class="back" href={href} back>
      <Icon name="left" /> {list}
    </Link>
  );
}
