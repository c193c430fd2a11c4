//! Why the store could not do what it was asked to.

use std::error::Error;
use std::{fmt, iter};

use aws_sdk_dynamodb::error::{BuildError, ErrorMetadata, ProvideErrorMetadata, SdkError};

use crate::usage;

/// Why the store could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// DynamoDB is out of reach or did not answer in time, after all retries.
    #[error("DynamoDB is not available: {0}")]
    Unavailable(#[source] Cause),
    /// DynamoDB throttles: the partition, or the table, takes no more.
    #[error("DynamoDB throttles: {cause}")]
    Throttled {
        /// The names of the actions of a transaction that were throttled. Empty for other requests.
        actions: Vec<&'static str>,
        /// What DynamoDB says.
        #[source]
        cause: Cause,
    },
    /// Other writers kept getting in between until the retries ran out.
    #[error("other writers kept getting in between: {0}")]
    Contended(#[source] Cause),
    /// DynamoDB refused a request that should be valid: a missing table or permission, or a bug.
    #[error("DynamoDB refused a request: {0}")]
    Refused(#[source] Cause),
    /// An item is not of the form in which this code writes it.
    #[error("an item of table {table} is damaged: attribute {attribute}")]
    Damaged {
        /// The table's name without its prefix.
        table: &'static str,
        /// The attribute that is missing or of another form.
        attribute: &'static str,
    },
    /// A service other than DynamoDB did not do what a job asked it to.
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

    /// Whether the same may be possible a while later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Throttled { .. } | Self::Contended(_))
    }
}

/// What is behind a [`StoreError`]. Displayed with every cause behind it in turn, since a log has one
/// line for it; neither that nor its debug form shows the contents of items.
#[derive(Debug)]
pub struct Cause(Box<dyn Error + Send + Sync>);

impl Cause {
    /// A step of the store's own that failed with an error.
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

/// A step of the store's own that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
struct FailedStep {
    step: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

/// What DynamoDB says of a request: the code and the message of its answer, without the items that
/// the answer may hold.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", .0.code().unwrap_or("no code"), .0.message().unwrap_or("no message"))]
struct ServiceAnswer(ErrorMetadata);

impl<E, R> From<SdkError<E, R>> for StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    R: fmt::Debug + Send + Sync + 'static,
{
    fn from(error: SdkError<E, R>) -> Self {
        let (is_refusal, cause): (bool, Box<dyn Error + Send + Sync>) = match error {
            SdkError::ServiceError(service) => {
                let answer = service.err().meta().clone();
                if is_conflict(answer.code()) {
                    return Self::Contended(Cause(Box::new(ServiceAnswer(answer))));
                }
                if is_throttling(answer.code()) {
                    return Self::throttled(Vec::new(), Cause(Box::new(ServiceAnswer(answer))));
                }
                (!is_transient(answer.code()), Box::new(ServiceAnswer(answer)))
            }
            // The answer itself, which its debug form would show, may hold items.
            error @ SdkError::ResponseError(_) => {
                let cause = error.into_source().unwrap_or_else(Into::into);
                (false, Box::new(SdkError::<E, ()>::response_error(cause, ())))
            }
            error => (matches!(error, SdkError::ConstructionFailure(_)), Box::new(error)),
        };
        if is_refusal { Self::Refused(Cause(cause)) } else { Self::Unavailable(Cause(cause)) }
    }
}

impl From<BuildError> for StoreError {
    fn from(error: BuildError) -> Self {
        Self::Refused(Cause(Box::new(error)))
    }
}

/// Whether DynamoDB refuses a write of one item because another write is at work on it, of a
/// transaction or of another region. Of a transaction it is a reason, `TransactionConflict`.
pub(super) fn is_conflict(code: Option<&str>) -> bool {
    matches!(code, Some("TransactionConflictException" | "ReplicatedWriteConflictException"))
}

/// Whether DynamoDB takes no more at the moment. Transactions and requests have names of their own
/// for the same.
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

/// Whether DynamoDB names an error that says nothing about the request itself: a later one may
/// succeed. What each error that DynamoDB documents comes to stands in docs/data-model.md, "What
/// DynamoDB answers".
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
    fn a_lost_connection_keeps_what_is_behind_it() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "reset by peer");
        let failure = PutError::dispatch_failure(ConnectorError::io(Box::new(reset)));
        let error = StoreError::from(failure);
        assert_eq!(
            error.to_string(),
            "DynamoDB is not available: dispatch failure: io error: reset by peer"
        );
        let behind = causes(&error);
        assert_eq!(behind[1..], ["dispatch failure", "io error", "reset by peer"]);
    }

    #[test]
    fn an_answer_is_told_without_its_items() {
        let answer = ConditionalCheckFailedException::builder()
            .item("name", AttributeValue::S("private".to_owned()))
            .message("The conditional request failed")
            .meta(ErrorMetadata::builder().code("X").message("no such table").build())
            .build();
        let service = PutItemError::ConditionalCheckFailedException(answer);
        let refused = StoreError::from(PutError::service_error(service, "private"));
        assert_eq!(refused.to_string(), "DynamoDB refused a request: X: no such table");

        let unreadable = PutError::response_error("no JSON", "private");
        let unavailable = StoreError::from(unreadable);
        assert_eq!(unavailable.to_string(), "DynamoDB is not available: response error: no JSON");
        for error in [refused, unavailable] {
            let told = format!("{error} {error:?} {:?}", causes(&error));
            assert!(!told.contains("private"), "{told}");
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
    fn a_failed_step_is_told_with_its_cause() {
        let error = StoreError::Refused(Cause::of_step("it cannot be packed", "too large"));
        assert_eq!(error.to_string(), "DynamoDB refused a request: it cannot be packed: too large");
    }
}
