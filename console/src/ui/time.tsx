import { useEffect, useState } from "preact/hooks";
import { ago, clampTime, inFull } from "../time/format";

let shared = Date.now();
const watchers = new Set<() => void>();
setInterval(() => {
  shared = Date.now();
  for (const watcher of watchers) watcher();
}, 60_000);

/** How long ago something was; the whole time, local and UTC, on hover. */
export function RelativeTime({ at }: { at: string | number }) {
  const [now, set] = useState(shared);
  useEffect(() => {
    const watcher = () => set(shared);
    watchers.add(watcher);
    return () => {
      watchers.delete(watcher);
    };
  }, []);
  const millis = clampTime(typeof at === "number" ? at : Date.parse(at));
  return (
    <time dateTime={new Date(millis).toISOString()} title={inFull(millis)}>
      {ago(millis, Math.max(now, Date.now() - 60_000))}
    </time>
  );
}
