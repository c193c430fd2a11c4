import { percent } from "../time/format";
import type { Insight } from "./insight";

/** How affected sessions changed against the 30 days before. */
export function Trend({ insight }: { insight: Insight }) {
  const { trendPercent, previousAffectedSessions } = insight;
  const isNew = previousAffectedSessions === 0 && trendPercent > 0;
  const kind = trendPercent > 10 ? "worse" : trendPercent < -10 ? "better" : "quiet";
  const arrow = trendPercent > 0 ? "↑" : trendPercent < 0 ? "↓" : "";
  return (
    <span class={kind} title={`${previousAffectedSessions} sessions in the 30 days before`}>
      {isNew ? "new" : `${arrow} ${percent(trendPercent)}`}
    </span>
  );
}
