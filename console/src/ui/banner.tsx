/** The message about a rate limit or an outage, with a countdown to the next try. */

import { useEffect, useState } from "preact/hooks";
import { type Outage, retryNow, watchOutage } from "../api/outage";
import { Button } from "./button";

export function Banner() {
  const [outage, setOutage] = useState<Outage | null>(null);
  const [now, setNow] = useState(0);
  useEffect(() => watchOutage(setOutage), []);
  useEffect(() => {
    if (!outage) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [outage]);
  if (!outage) return null;
  const seconds = Math.max(1, Math.ceil((outage.retryAt - now) / 1000));
  return (
    <div class="banner">
      <span role="alert">{outage.text}</span>
      <span aria-hidden="true">Retrying in {seconds} s.</span>
      <span class="quiet">Your changes are kept.</span>
      <Button class="link" onClick={retryNow}>
        Retry now
      </Button>
    </div>
  );
}
