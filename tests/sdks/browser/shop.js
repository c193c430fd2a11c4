// A page of a shop that raises errors. The expected events are in
// tests/tests/end_to_end/errors/sentry_sdks/.

import * as Sentry from "@sentry/browser";

// By default, visits under five seconds are not replayed.
const replay = Sentry.replayIntegration({ minReplayDuration: 0 });

Sentry.init({
  dsn: window.dsn,
  release: "shop@1.2.3",
  environment: "staging",
  integrations: [Sentry.browserTracingIntegration(), replay],
  tracesSampleRate: 1,
  replaysSessionSampleRate: 1,
  replaysOnErrorSampleRate: 1,
});
Sentry.setTag("team", "payments");
Sentry.setUser({ id: "u-17", geo: { country_code: "DE" } });

class PaymentError extends Error {
  name = "PaymentError";
}

function charge(order) {
  throw new PaymentError(`order ${order} at 10.0.0.${order} is not found`);
}

function checkOut() {
  for (let order = 1; order < 3; order += 1) {
    try {
      charge(order);
    } catch (error) {
      Sentry.captureException(error, { tags: { order } });
    }
  }
}

function closeDay() {
  throw new RangeError("the last one");
}

async function synchronize() {
  throw new URIError("the warehouse hung up");
}

document.querySelector("#check-out").addEventListener("click", checkOut);
document.querySelector("#close-day").addEventListener("click", () => closeDay());
document.querySelector("#synchronize").addEventListener("click", () => {
  synchronize();
});
document.querySelector("#import").addEventListener("click", () => {
  Sentry.captureMessage("the nightly import is late", "warning");
});

// True when the SDK has read all responses.
window.settle = () => Sentry.getClient().getTransport().flush(30_000);
// True when everything has been sent.
window.leave = async () => {
  await replay.flush();
  return Sentry.flush(30_000);
};
