//! Requests that can be sent twice and are applied once (`docs/api-conventions.md`, "Idempotency").

use std::fmt::Display;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::json::{FieldError, ViolationCode};

/// Time for which a response is stored.
pub const RETENTION: Duration = Duration::from_hours(24);

/// The value of the `Idempotency-Key` header: 1 to 255 printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses the header's value.
    pub fn parse(value: &[u8]) -> Result<Self, FieldError> {
        let printable = value.iter().all(|byte| (b' '..=b'~').contains(byte));
        match std::str::from_utf8(value) {
            Ok(text) if (1..=255).contains(&text.len()) && printable => Ok(Self(text.to_owned())),
            _ => Err(FieldError::new(
                ViolationCode::InvalidFormat,
                "must have 1 to 255 printable ASCII characters",
            )),
        }
    }
}

/// A hash of a request's method, path and body bytes. Equal requests have equal fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFingerprint([u8; 32]);

impl RequestFingerprint {
    /// Returns the fingerprint of a request.
    pub fn of(method: &str, path: &str, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        // Methods and paths contain no line feed, so different requests have different texts.
        hash.update(method);
        hash.update("\n");
        hash.update(path);
        hash.update("\n");
        hash.update(body);
        Self(hash.finalize().into())
    }

    /// Returns the fingerprint as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// API key, operation and idempotency key. The same idempotency key with another API key or
    /// operation is another request.
    pub scope: String,
    /// The fingerprint, which must match before the stored response is returned.
    pub fingerprint: RequestFingerprint,
}

impl IdempotentRequest {
    /// Creates a request with an idempotency key, which applies to an API key and an operation.
    pub fn new(
        api_key: &impl Display,
        operation: &str,
        key: &IdempotencyKey,
        fingerprint: RequestFingerprint,
    ) -> Self {
        // Key ids and operations contain no `/`, so different scopes have different texts.
        Self { scope: format!("{api_key}/{operation}/{}", key.0), fingerprint }
    }
}

/// A response that is stored to be returned again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The HTTP status code.
    pub status: u16,
    /// The headers of this response, such as `location`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_1_to_255_printable_ascii_characters() {
        for value in ["a", " ", "~", "order 4711/é".split('é').next().unwrap(), &"x".repeat(255)]
        {
            assert!(IdempotencyKey::parse(value.as_bytes()).is_ok(), "{value:?}");
        }
        for value in [&b""[..], b"a\tb", b"\x7f", "é".as_bytes(), b"\xff", &[b'x'; 256]] {
            assert!(IdempotencyKey::parse(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn fingerprints_depend_on_method_path_and_body() {
        let base = RequestFingerprint::of("POST", "/a", b"{}");
        assert_eq!(base, RequestFingerprint::of("POST", "/a", b"{}"));
        for (method, path, body) in
            [("PUT", "/a", "{}"), ("POST", "/b", "{}"), ("POST", "/a", "{ }"), ("POST", "/a{}", "")]
        {
            assert_ne!(base, RequestFingerprint::of(method, path, body.as_bytes()));
        }
    }
}
