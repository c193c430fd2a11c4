//! Where secrets come from.

/// Why nothing random could be made: the operating system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);
