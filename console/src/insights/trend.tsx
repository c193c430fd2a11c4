import { percent, pluralize } from "../time/format";
import type { Insight } from "./insight";

/** The change in affected sessions vs. the previous 30 days. */
export function Trend({ insight }: { insight: Insight }) {
  const { trendPercent, previousAffectedSessions } = insight;
  const isNew = previousAffectedSessions === 0 && trendPercent > 0;
  const kind = trendPercent > 10 ? "worse" : trendPercent < -10 ? "better" : "quiet";
  const arrow = trendPercent > 0 ? "↑" : trendPercent < 0 ? "↓" : "";
  return (
    <span
      class={kind}
      title={`${pluralize(previousAffectedSessions, "session")} in the previous 30 days`}
    >
      {isNew ? "new" : `${arrow} ${percent(trendPercent)}`}
    </span>
  );
}
