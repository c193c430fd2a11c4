// Raises one error with more than 32 KiB of context, which the SDK compresses. The expected event is in
// tests/tests/end_to_end/errors/sentry_sdks/.
//
// SENTRY_DSN is the destination of the SDK.

import * as Sentry from "@sentry/node";

// A busy computer can respond slowly. Unsent events are lost when the program ends.
Sentry.init({ release: "shop@1.2.3", environment: "staging", shutdownTimeout: 60_000 });
Sentry.setTag("team", "payments");
Sentry.setExtra("rows", Array.from({ length: 800 }, (_, row) => `row ${row}: ${"x".repeat(50)}`));

function closeDay() {
  throw new RangeError("the last one");
}

closeDay();
