// Fails once, with more beside it than 32 KiB, from where on the SDK compresses. What must arrive of
// it stands in tests/tests/end_to_end/errors/sentry_sdks/.
//
// SENTRY_DSN says where the SDK sends to.

import * as Sentry from "@sentry/node";

// A busy computer may answer slowly; what was not sent when the program ends is lost.
Sentry.init({ release: "shop@1.2.3", environment: "staging", shutdownTimeout: 60_000 });
Sentry.setTag("team", "payments");
Sentry.setExtra("rows", Array.from({ length: 800 }, (_, row) => `row ${row}: ${"x".repeat(50)}`));

function closeDay() {
  throw new RangeError("the last one");
}

closeDay();
