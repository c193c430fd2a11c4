//! Why a delivery is refused.

/// Why a delivery is refused as a whole. What is merely odd inside of an event never is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestionFault {
    /// The body is not what the route takes: 400.
    #[error("{0}")]
    Malformed(String),
    /// The body exceeds a limit: 413, which SDKs know and do not repeat.
    #[error("{0}")]
    TooLarge(String),
    /// No key, several that differ, or one that cannot exist: 403. Never says which.
    #[error("missing or invalid DSN key")]
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
