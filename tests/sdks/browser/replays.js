// A page with elements that react to clicks in known ways, replayed by the official SDK.

import * as Sentry from "@sentry/browser";

// By default, visits under five seconds are not replayed, and compression needs a worker.
const replay = Sentry.replayIntegration({ minReplayDuration: 0 });

Sentry.init({
  dsn: window.dsn,
  release: "shop@1.2.3",
  integrations: [replay],
  replaysSessionSampleRate: 1,
  replaysOnErrorSampleRate: 1,
});

const byId = (id) => document.getElementById(id);
let changes = 0;
function change() {
  changes += 1;
  byId("log").textContent = `changed ${changes} times`;
}

byId("fast").addEventListener("click", change);
byId("stepper").addEventListener("click", change);
byId("slow").addEventListener("click", () => setTimeout(change, 4_000));
byId("failing").addEventListener("click", () => {
  change();
  setTimeout(() => {
    throw new TypeError("the cart is gone");
  }, 50);
});
byId("failing-late").addEventListener("click", () => {
  change();
  setTimeout(() => {
    throw new TypeError("the cart is gone late");
  }, 1_500);
});
byId("failing-silently").addEventListener("click", () => {
  throw new RangeError("nothing is shown");
});
byId("route").addEventListener("click", () => {
  history.pushState({}, "", `/orders/${Math.floor(Math.random() * 100_000)}?from=route#top`);
  change();
});

window.replayId = () => replay.getReplayId();
// True when everything has been sent.
window.leave = async () => {
  await replay.flush();
  return Sentry.flush(30_000);
};
