//! Which attempts at a write nobody knows the outcome of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// Whether an attempt at a write ended without an answer, those included that the SDK makes by itself: it was
/// carried out, or never arrived, or may yet arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct UnknownOutcome(Arc<AtomicBool>);

impl UnknownOutcome {
    /// Whether there was one.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Intercept for UnknownOutcome {
    fn name(&self) -> &'static str {
        "Unanswered"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let is_answered = match context.output_or_error() {
            Some(Err(error)) => error.is_operation_error(),
            answer => answer.is_some(),
        };
        if !is_answered {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
