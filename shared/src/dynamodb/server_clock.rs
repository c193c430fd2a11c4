//! The difference between this computer's clock and DynamoDB's, from the `date` header of
//! responses.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};

/// Seconds by which this computer's clock was ahead of DynamoDB's at the last response. All clients
/// of a process share it, since they run on one computer.
static SECONDS_AHEAD: AtomicI64 = AtomicI64::new(0);

/// Returns the difference between the clocks at the last response, to the second. Returns zero
/// before the first response.
pub fn clock_difference() -> Duration {
    Duration::from_secs(SECONDS_AHEAD.load(Ordering::Relaxed).unsigned_abs())
}

/// An interceptor that compares the clocks at each response.
#[derive(Debug)]
pub(super) struct ServerClock;

impl Intercept for ServerClock {
    fn name(&self) -> &'static str {
        "ServerClock"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        if let Some(ahead) = date.and_then(|date| seconds_ahead(date, SystemTime::now())) {
            SECONDS_AHEAD.store(ahead, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Returns the seconds by which `now` is after an HTTP date (RFC 9110, section 5.6.7).
fn seconds_ahead(date: &str, now: SystemTime) -> Option<i64> {
    let there = DateTime::from_str(date, DateTimeFormat::HttpDate).ok()?.secs();
    let here = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(i64::try_from(here).ok()?.saturating_sub(there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_to_the_second() {
        let now = UNIX_EPOCH + Duration::from_millis(1_795_234_560_900);
        let ahead = |date| seconds_ahead(date, now);
        assert_eq!(ahead("Sat, 21 Nov 2026 04:16:00 GMT"), Some(0));
        assert_eq!(ahead("Sat, 21 Nov 2026 04:15:49 GMT"), Some(11));
        assert_eq!(ahead("Sat, 21 Nov 2026 04:16:30 GMT"), Some(-30));
        assert_eq!(ahead("yesterday"), None);
    }
}
