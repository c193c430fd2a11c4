/** The page of a project without errors: how to report the first one. It waits for it. */

import { useEffect, useState } from "preact/hooks";
import { hrefOf, Link, useAddress } from "../address";
import { useCurrentProject } from "../caller";
import { type ErrorRow, loadErrors } from "../errors/load";
import { sendTestEvent, useDsn } from "../settings/dsn";
import { Snippets } from "../settings/snippets";
import { keptParams } from "../time/range";
import { Button } from "../ui/button";
import { RelativeTime } from "../ui/time";
import { useAction } from "../ui/toast";

const INTERVAL_MS = 3_000;
const PERIOD_MS = 3_600_000;

export function Onboarding() {
  const address = useAddress();
  const { project } = useCurrentProject();
  const first = useFirstError();
  const dsn = useDsn().data;
  const [busy, run] = useAction();
  return (
    <div class="onboarding">
      <h2>{first ? "The first event arrived" : `No errors in ${project.name} yet`}</h2>
      <div class="first-event" role="status">
        {first ? (
          <p>
            <Link href={hrefOf("error", { ...keptParams(address), id: first.errorId })}>
              <bdi>{first.title}</bdi>
            </Link>{" "}
            <span class="quiet">
              <RelativeTime at={first.lastSeen} />
            </span>
          </p>
        ) : (
          <p class="quiet">Waiting for the first event …</p>
        )}
        <Button disabled={!dsn || busy} onClick={() => dsn && void run(() => sendTestEvent(dsn))}>
          Send a test event
        </Button>
      </div>
      <p>Point any Sentry SDK at this DSN; errors show up here.</p>
      <Snippets />
    </div>
  );
}

/** Looks for the newest error every few seconds while the page is visible, until there is one. */
function useFirstError(): ErrorRow | null {
  const { project } = useCurrentProject();
  const [first, setFirst] = useState<ErrorRow | null>(null);
  useEffect(() => {
    if (first) return;
    const stop = new AbortController();
    const look = () => {
      if (document.hidden) return;
      // Clocks of applications can be ahead.
      const range = { from: Date.now() - PERIOD_MS, to: Date.now() + PERIOD_MS };
      const view = { filters: [], search: "", status: null };
      loadErrors(project, view, range, { limit: 1 }, stop.signal).then(
        ({ items }) => items[0] && setFirst(items[0]),
        () => {},
      );
    };
    const timer = setInterval(look, INTERVAL_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [project, first]);
  return first;
}
