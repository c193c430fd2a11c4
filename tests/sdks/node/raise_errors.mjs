// Fails as a shop would. What must arrive of it stands in tests/tests/end_to_end/errors/sentry_sdks/.
//
// SENTRY_DSN says where the SDK sends to. How each event is answered is written to the standard output.

import * as Sentry from "@sentry/node";

Sentry.init({
  release: "shop@1.2.3",
  environment: "staging",
  // A busy computer may answer slowly; what was not sent when the program ends is lost.
  shutdownTimeout: 60_000,
});
Sentry.setTag("team", "payments");
Sentry.setUser({ id: "u-17", geo: { country_code: "DE" } });
Sentry.getClient().on("afterSendEvent", (event, answer) => {
  console.log(`${answer.statusCode} ${event.event_id}`);
});

class PaymentError extends Error {
  name = "PaymentError";
}

function charge(order) {
  if (order % 2 === 0) {
    throw new PaymentError(`order ${order} cannot be charged`);
  }
  throw new PaymentError(`order ${order} at 10.0.0.${order} is not found`);
}

function checkOut(order) {
  try {
    charge(order);
  } catch (error) {
    Sentry.captureException(error, { tags: { order } });
  }
}

function loadCart() {
  try {
    return [].cart.items;
  } catch (cause) {
    throw new Error("no cart", { cause });
  }
}

function closeDay() {
  throw new RangeError("the last one");
}

async function synchronize() {
  throw new URIError("the warehouse hung up");
}

async function serve() {
  // One error, whatever line and value.
  for (let number = 1; number < 5; number += 1) {
    checkOut(number);
  }
  checkOut(5);

  // Another error, of two exceptions.
  try {
    loadCart();
  } catch (error) {
    Sentry.captureException(error);
  }

  Sentry.captureMessage("the nightly import is late", "warning");

  // A promise that nobody waits for, and an exception that ends the program.
  synchronize();
  setTimeout(() => closeDay(), 100);
}

serve();
