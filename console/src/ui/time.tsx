import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { clampTime, formatFull, formatRelative } from "../time/format";

let sharedNow = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  sharedNow = Date.now();
  for (const watcher of watchers) watcher();
}, 60_000);

/** A time, with the absolute local time, its zone, and UTC on hover. */
export function Time({ at, children }: { at: number; children: ComponentChildren }) {
  const millis = clampTime(at);
  return (
    <time dateTime={new Date(millis).toISOString()} title={formatFull(millis)}>
      {children}
    </time>
  );
}

/** A time relative to now, updated each minute. */
export function RelativeTime({ at }: { at: string | number }) {
  const [now, set] = useState(sharedNow);
  useEffect(() => {
    const watcher = () => set(sharedNow);
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
    };
  }, []);
  const millis = clampTime(typeof at === "number" ? at : Date.parse(at));
  return <Time at={millis}>{formatRelative(millis, Math.max(now, Date.now() - 60_000))}</Time>;
}

export function TimeOrNever({ at }: { at: string | null }) {
  return at ? <RelativeTime at={at} /> : <>Never</>;
}
