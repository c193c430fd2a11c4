/** The message about a rate limit or an outage, with a countdown to the next try. */

import { useEffect, useState } from "preact/hooks";
import { outage, retryNow } from "../api/outage";
import { useStore } from "../store";
import { Button } from "./button";

export function Banner() {
  const current = useStore(outage);
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!current) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [current]);
  if (!current) return null;
  const seconds = Math.max(1, Math.ceil((current.retryAt - now) / 1000));
  return (
    <div class="banner">
      <span role="alert">{current.text}</span>
      <span aria-hidden="true">Retrying in {seconds} s.</span>
      <span class="quiet">Your changes are kept.</span>
      <Button class="link" onClick={retryNow}>
        Retry now
      </Button>
    </div>
  );
}
