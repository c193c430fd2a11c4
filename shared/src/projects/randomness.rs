//! The error of missing randomness.

/// The reason why no random value could be generated: the operating system returned no random
/// bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);
