//! Reasons to reject a delivery.

/// The reason why a whole delivery is rejected. Odd content inside an event is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestionFault {
    /// The body is not one that the route accepts: 400.
    #[error("{0}")]
    Malformed(String),
    /// The body exceeds a limit: 413, which SDKs know and do not retry.
    #[error("{0}")]
    TooLarge(String),
    /// No key, several different keys, or an impossible one: 403. The response does not say which.
    #[error("the DSN key is missing or invalid; check the DSN")]
    Unauthorized,
}

impl IngestionFault {
    pub(super) fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed(reason.into())
    }

    pub(super) fn too_large(reason: impl Into<String>) -> Self {
        Self::TooLarge(reason.into())
    }
}
