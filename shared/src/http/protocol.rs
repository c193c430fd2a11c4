//! Protocols: most operations are Waymark's own, some are other systems'.

/// Whose rules an operation follows where they differ: in the form of errors, and in what pages may
/// send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Waymark's own: errors have the members of RFC 9457.
    Waymark,
    /// Sentry's, for its SDKs: errors are `{detail}`.
    Sentry,
    /// OFREP, for `OpenFeature`'s providers: errors are `{key, errorCode, errorDetails}`, but for
    /// those that the protocol leaves open.
    Ofrep,
}

impl Protocol {
    /// The protocol of an operation.
    pub fn of(operation: &str) -> Self {
        match operation {
            "ingest-error-events" => Self::Sentry,
            "evaluate-feature-flag" | "evaluate-feature-flags" => Self::Ofrep,
            _ => Self::Waymark,
        }
    }
}
