"""Raises errors like a shop. The expected events are in tests/tests/end_to_end/errors/sentry_sdks/.

SENTRY_DSN is the destination of the SDK. Standard output has the requests.
"""

import http.client
import logging
import threading

import sentry_sdk

# The SDK uses these connections.
http.client.HTTPConnection.debuglevel = 1

# A busy computer can respond slowly. Events that are unsent when the program ends are lost.
sentry_sdk.init(release="shop@1.2.3", environment="staging", shutdown_timeout=60)
sentry_sdk.set_tag("team", "payments")
sentry_sdk.set_user({"id": "u-17", "geo": {"country_code": "DE"}})


class PaymentError(Exception):
    """A failed payment."""


def charge(order):
    if order % 2 == 0:
        raise PaymentError(f"order {order} cannot be charged")
    raise PaymentError(f"order {order} at 10.0.0.{order} is not found")


def check_out(order):
    try:
        charge(order)
    except PaymentError:
        with sentry_sdk.new_scope() as scope:
            scope.set_tag("order", order)
            sentry_sdk.capture_exception()


def load_cart():
    try:
        return {}["cart"]
    except KeyError as missing:
        raise RuntimeError("no cart") from missing


def synchronize():
    raise ConnectionResetError("the warehouse hung up")


# One error, independent of line and value.
for number in range(1, 5):
    check_out(number)
check_out(5)

# Another error, with two exceptions.
try:
    load_cart()
except RuntimeError:
    sentry_sdk.capture_exception()

# The SDK captures errors from the log.
for number in (23, 42):
    logging.getLogger("shop.mail").error("mail %d bounced", number)

sentry_sdk.capture_message("the nightly import is late", level="warning")

# An exception that ends a thread, and one that ends the program.
thread = threading.Thread(target=synchronize)
thread.start()
thread.join()

raise PermissionError("the last one")
