/** The page of a single resource, which the address identifies. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Link } from "../address";
import type { Loaded } from "../api/loaded";
import { Icon } from "./icons";
import { Empty, ErrorMessage, SkeletonRows } from "./states";

/** Fields that can provide the document title. */
interface Named {
  title?: string;
  name?: string;
  key?: string;
}

interface DetailPageProps<T> {
  /** Name of the list page. */
  list: string;
  back: string;
  loaded: Loaded<T>;
  /**
   * `true` if the loaded resource is the one in the address: while it loads, a previous one
   * remains.
   */
  isCurrent: (loaded: T) => boolean;
  /** Name of the resource type, for the message that it does not exist. */
  noun: string;
  notFoundHint?: ComponentChildren;
  /** Number of skeleton rows while loading. */
  rows: number;
  children: (resource: T) => ComponentChildren;
}

export function DetailPage<T extends Named>({
  list,
  back,
  loaded,
  isCurrent,
  noun,
  notFoundHint,
  rows,
  children,
}: DetailPageProps<T>) {
  const { data, error, reload } = loaded;
  const resource = data !== undefined && isCurrent(data) ? data : undefined;
  const name = resource?.title || resource?.name || resource?.key;
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
        <>
          <h1 class="hidden">{list}</h1>
          <Empty title={`${noun} not found`}>{notFoundHint && <p>{notFoundHint}</p>}</Empty>
        </>
      ) : (
        error && <ErrorMessage error={error} retry={reload} />
      )}
      {!resource && !error && <SkeletonRows rows={rows} />}
      {resource && children(resource)}
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
