//! Write attempts whose outcome is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;

/// Records whether a write attempt ended without a response, including the SDK's own retries. Such
/// an attempt was applied, never arrived, or can still arrive.
#[derive(Debug, Clone, Default)]
pub(super) struct UnknownOutcome(Arc<AtomicBool>);

impl UnknownOutcome {
    /// Returns `true` if there was such an attempt.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Intercept for UnknownOutcome {
    fn name(&self) -> &'static str {
        "UnknownOutcome"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let has_response = match context.output_or_error() {
            Some(Err(error)) => error.is_operation_error(),
            response => response.is_some(),
        };
        if !has_response {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
