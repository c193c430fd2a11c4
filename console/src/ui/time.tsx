import type { ComponentChildren } from "preact";
import { Store, useStore } from "../store";
import { clampTime, formatFull, formatRelative } from "../time/format";

const sharedNow = new Store(Date.now());
setInterval(() => sharedNow.set(Date.now()), 60_000);

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
  const now = useStore(sharedNow);
  const millis = clampTime(typeof at === "number" ? at : Date.parse(at));
  return <Time at={millis}>{formatRelative(millis, Math.max(now, Date.now() - 60_000))}</Time>;
}

export function TimeOrNever({ at }: { at: string | null }) {
  return at ? <RelativeTime at={at} /> : <>Never</>;
}
