//! Raises errors like a shop. The expected events are in
//! `tests/tests/end_to_end/errors/sentry_sdks/`.
//!
//! `SENTRY_DSN` is the destination of the SDK.

use std::fmt;
use std::time::Duration;

use sentry::protocol::{Map, User, Value};
use sentry::{ClientOptions, Level};

#[derive(Debug)]
struct PaymentError {
    order: u32,
}

impl std::error::Error for PaymentError {}

impl fmt::Display for PaymentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = self.order;
        write!(formatter, "order {order} at 10.0.0.{order} is not found")
    }
}

fn charge(order: u32) -> Result<(), PaymentError> {
    Err(PaymentError { order })
}

fn check_out(order: u32) {
    if let Err(error) = charge(order) {
        sentry::with_scope(
            |scope| scope.set_tag("order", order),
            || {
                sentry::capture_error(&error);
            },
        );
    }
}

fn close_day() {
    panic!("the last one");
}

fn main() {
    // Unsent events are lost when the program ends. A busy computer can respond slowly.
    let mut options = ClientOptions::default();
    options.release = Some("shop@1.2.3".into());
    options.environment = Some("staging".into());
    options.in_app_include = vec!["raise_errors"];
    options.shutdown_timeout = Duration::from_mins(1);
    let _client = sentry::init(options);
    sentry::configure_scope(|scope| {
        scope.set_tag("team", "payments");
        let country = ("country_code".to_owned(), Value::from("DE"));
        let geo = Value::Object([country].into_iter().collect());
        scope.set_user(Some(User {
            id: Some("u-17".to_owned()),
            other: Map::from([("geo".to_owned(), geo)]),
            ..User::default()
        }));
    });

    for order in 1..3 {
        check_out(order);
    }
    sentry::capture_message("the nightly import is late", Level::Warning);
    close_day();
}
