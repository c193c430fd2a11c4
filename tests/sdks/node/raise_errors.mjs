// Raises errors like a shop. The expected events are in tests/tests/end_to_end/errors/sentry_sdks/.
//
// SENTRY_DSN is the destination of the SDK. Prints the response status of each event.

import * as Sentry from "@sentry/node";

Sentry.init({
  release: "shop@1.2.3",
  environment: "staging",
  // A busy computer can respond slowly. Unsent events are lost when the program ends.
  shutdownTimeout: 60_000,
});
Sentry.setTag("team", "payments");
Sentry.setUser({ id: "u-17", geo: { country_code: "DE" } });
Sentry.getClient().on("afterSendEvent", (event, response) => {
  console.log(`${response.statusCode} ${event.event_id}`);
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
  // One error, independent of line and value.
  for (let number = 1; number < 5; number += 1) {
    checkOut(number);
  }
  checkOut(5);

  // Another error, with two exceptions.
  try {
    loadCart();
  } catch (error) {
    Sentry.captureException(error);
  }

  Sentry.captureMessage("the nightly import is late", "warning");

  // A promise without a handler, and an exception that ends the program.
  synchronize();
  setTimeout(() => closeDay(), 100);
}

serve();
