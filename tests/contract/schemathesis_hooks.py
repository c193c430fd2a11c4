"""What Schemathesis is told of media types that it does not know."""

import schemathesis

schemathesis.serializer.alias("application/x-sentry-envelope", "text/plain")
