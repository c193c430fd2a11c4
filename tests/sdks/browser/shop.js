// A page of a shop that fails. What must arrive of it stands in
// tests/tests/end_to_end/errors/sentry_sdks/.

import * as Sentry from "@sentry/browser";

// A visit of less than five seconds is not replayed otherwise.
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

// The SDK has read all answers once this is true.
window.settle = () => Sentry.getClient().getTransport().flush(30_000);
// Everything has been sent once this is true.
window.leave = async () => {
  await replay.flush();
  return Sentry.flush(30_000);
};
