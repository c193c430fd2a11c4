"""Registers media types that Schemathesis does not know."""

import schemathesis

schemathesis.serializer.alias("application/x-sentry-envelope", "text/plain")
