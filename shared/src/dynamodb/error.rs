//! Errors of the store.

use std::error::Error;
use std::{fmt, iter};

use aws_sdk_dynamodb::error::{BuildError, ErrorMetadata, ProvideErrorMetadata, SdkError};

use crate::usage;

/// The reason why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB is unreachable or did not respond in time, after all retries.
    #[error("DynamoDB is not available: {0}")]
    Unavailable(#[source] Cause),
    /// DynamoDB throttles the partition or the table.
    #[error("DynamoDB throttles: {cause}")]
    Throttled {
        /// The names of a transaction's throttled actions. Empty for other requests.
        actions: Vec<&'static str>,
        /// The error that DynamoDB returned.
        #[source]
        cause: Cause,
    },
    /// Other writers conflicted until the retries ran out.
    #[error("other writers kept getting in between: {0}")]
    Contended(#[source] Cause),
    /// DynamoDB rejected a request that should be valid. A table or permission is missing, or there
    /// is a bug.
    #[error("DynamoDB rejected a request: {0}")]
    Rejected(#[source] Cause),
    /// An item does not have the form that this code writes.
    #[error("an item of table {table} is damaged: attribute {attribute}")]
    Damaged {
        /// The table's name without its prefix.
        table: &'static str,
        /// The attribute that is missing or has another form.
        attribute: &'static str,
    },
    /// A service other than DynamoDB failed a job's request.
    #[error("{service}: {cause}")]
    OtherService {
        /// The service's name.
        service: &'static str,
        /// The reason.
        cause: String,
    },
}

impl StoreError {
    /// Returns [`StoreError::Throttled`] and counts the call for the alarm.
    pub(super) fn throttled(actions: Vec<&'static str>, cause: Cause) -> Self {
        usage::note_throttled();
        Self::Throttled { actions, cause }
    }

    /// Returns `true` if the operation can succeed later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Throttled { .. } | Self::Contended(_))
    }
}

/// The cause of a [`StoreError`]. Its display form contains the whole chain of causes, for a log
/// line. Neither the display nor the debug form shows the contents of items.
#[derive(Debug)]
pub struct Cause(Box<dyn Error + Send + Sync>);

impl Cause {
    /// Returns the cause for a failed step of the store itself.
    pub fn of_step(step: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Box::new(FailedStep { step, source: source.into() }))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)?;
        iter::successors(self.0.source(), |&cause| cause.source())
            .try_for_each(|cause| write!(formatter, ": {cause}"))
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl From<&'static str> for Cause {
    fn from(message: &'static str) -> Self {
        Self(message.into())
    }
}

impl From<String> for Cause {
    fn from(message: String) -> Self {
        Self(message.into())
    }
}

/// A failed step of the store itself.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
struct FailedStep {
    step: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

/// The code and message of an error response from DynamoDB, without the items that the response can
/// contain.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", .0.code().unwrap_or("no code"), .0.message().unwrap_or("no message"))]
struct ServiceResponse(ErrorMetadata);

impl<E, R> From<SdkError<E, R>> for StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: fmt::Debug + Send + Sync + 'static,
{
    fn from(error: SdkError<E, R>) -> Self {
        let (is_rejection, cause): (bool, Box<dyn Error + Send + Sync>) = match error {
            SdkError::ServiceError(service) => {
                let response = service.err().meta().clone();
                if is_conflict(response.code()) {
                    return Self::Contended(Cause(Box::new(ServiceResponse(response))));
                }
                if is_throttling(response.code()) {
                    return Self::throttled(Vec::new(), Cause(Box::new(ServiceResponse(response))));
                }
                (!is_transient(response.code()), Box::new(ServiceResponse(response)))
            }
            // The debug form would show the response, which can contain items.
            error @ SdkError::ResponseError(_) => {
                let cause = error.into_source().unwrap_or_else(Into::into);
                (false, Box::new(SdkError::<E, ()>::response_error(cause, ())))
            }
            error => (matches!(error, SdkError::ConstructionFailure(_)), Box::new(error)),
        };
        if is_rejection { Self::Rejected(Cause(cause)) } else { Self::Unavailable(Cause(cause)) }
    }
}

impl From<BuildError> for StoreError {
    fn from(error: BuildError) -> Self {
        Self::Rejected(Cause(Box::new(error)))
    }
}

/// Returns `true` if DynamoDB rejected a single-item write because of a concurrent write, by a
/// transaction or another region. Transactions report the reason `TransactionConflict` instead.
pub(super) fn is_conflict(code: Option<&str>) -> bool {
    matches!(code, Some("TransactionConflictException" | "ReplicatedWriteConflictException"))
}

/// Returns `true` if DynamoDB throttles. Transactions and requests use different codes.
pub(super) fn is_throttling(code: Option<&str>) -> bool {
    matches!(
        code,
        Some(
            "LimitExceededException"
                | "ProvisionedThroughputExceeded"
                | "ProvisionedThroughputExceededException"
                | "RequestLimitExceeded"
                | "ThrottlingError"
                | "ThrottlingException"
        )
    )
}

/// Returns `true` if the error is not about the request itself, so a later request can succeed.
/// Each error that DynamoDB documents is listed in docs/data-model.md, "DynamoDB errors".
pub(super) fn is_transient(code: Option<&str>) -> bool {
    is_throttling(code)
        || matches!(
            code,
            Some(
                "ExpiredTokenException"
                    | "InternalFailure"
                    | "InternalServerError"
                    | "RequestExpired"
                    | "ServiceUnavailable"
                    | "TransactionInProgressException"
            )
        )
}

#[cfg(test)]
mod tests {
    use std::io;

    use aws_sdk_dynamodb::error::ConnectorError;
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use aws_sdk_dynamodb::types::AttributeValue;
    use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;

    use super::*;

    type PutError = SdkError<PutItemError, &'static str>;

    fn causes(error: &StoreError) -> Vec<String> {
        let causes = iter::successors(error.source(), |&cause| cause.source());
        causes.map(ToString::to_string).collect()
    }

    #[test]
    fn lost_connections_keep_their_causes() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "reset by peer");
        let failure = PutError::dispatch_failure(ConnectorError::io(Box::new(reset)));
        let error = StoreError::from(failure);
        assert_eq!(
            error.to_string(),
            "DynamoDB is not available: dispatch failure: io error: reset by peer"
        );
        let chain = causes(&error);
        assert_eq!(chain[1..], ["dispatch failure", "io error", "reset by peer"]);
    }

    #[test]
    fn errors_hide_the_items_of_responses() {
        let response = ConditionalCheckFailedException::builder()
            .item("name", AttributeValue::S("private".to_owned()))
            .message("The conditional request failed")
            .meta(ErrorMetadata::builder().code("X").message("no such table").build())
            .build();
        let service = PutItemError::ConditionalCheckFailedException(response);
        let refused = StoreError::from(PutError::service_error(service, "private"));
        assert_eq!(refused.to_string(), "DynamoDB rejected a request: X: no such table");

        let unreadable = PutError::response_error("no JSON", "private");
        let unavailable = StoreError::from(unreadable);
        assert_eq!(unavailable.to_string(), "DynamoDB is not available: response error: no JSON");
        for error in [refused, unavailable] {
            let shown = format!("{error} {error:?} {:?}", causes(&error));
            assert!(!shown.contains("private"), "{shown}");
        }
    }

    #[tokio::test]
    async fn throttled_calls_are_counted() {
        let throttled = async {
            let meta = ErrorMetadata::builder().code("ThrottlingException").build();
            let error = PutItemError::generic(meta);
            StoreError::from(PutError::service_error(error, "private"))
        };
        let (error, usage) = usage::counted(throttled).await;
        assert!(matches!(error, StoreError::Throttled { .. }), "{error}");
        assert_eq!(usage.throttled, 1);
    }

    #[test]
    fn failed_steps_show_their_cause() {
        let error = StoreError::Rejected(Cause::of_step("it cannot be packed", "too large"));
        assert_eq!(
            error.to_string(),
            "DynamoDB rejected a request: it cannot be packed: too large"
        );
    }
}
