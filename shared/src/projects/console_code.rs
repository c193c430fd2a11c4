//! Single-use codes for links into the console. A browser exchanges a code for an API key, so no
//! URL and no browser history contains a key.
//!
//! A code is a one-time pad: it has as many random bytes as a key has characters. The table stores
//! the exclusive or of code and key, under the hash of the code. Neither a used link nor the stored
//! item reveals the key.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::NoRandomness;
use super::api_key::ApiKey;
use crate::json::{FieldError, Fields, Json, ViolationCode, Violations, text};

/// Lifetime of a code. A browser needs a few seconds to start.
pub const CODE_LIFETIME: Duration = Duration::from_mins(1);

const UNUSABLE: &str =
    "the code is invalid, expired or already used; run `waymark console` for a new link";

/// A code. It opens a key, so it has neither `Debug` nor `Display`.
pub struct ConsoleCode([u8; ApiKey::LENGTH]);

impl ConsoleCode {
    /// Returns a new code from the operating system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut pad = [0; ApiKey::LENGTH];
        getrandom::fill(&mut pad)?;
        Ok(Self(pad))
    }

    /// Parses the body of exchange-console-code.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            fields.required("code", violations, text(Self::parse))
        })
    }

    fn parse(text: &str) -> Result<Self, FieldError> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let pad = bytes.and_then(|bytes| bytes.try_into().ok());
        pad.map(Self).ok_or_else(|| FieldError::new(ViolationCode::InvalidFormat, UNUSABLE))
    }

    /// Returns the violation of a code that opens no key, regardless of the reason.
    pub fn unusable() -> Violations {
        Violations::of_field("code", ViolationCode::InvalidValue, UNUSABLE)
    }

    /// Returns the code as links contain it.
    pub fn reveal(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the hash that identifies the stored item.
    pub(super) fn hash(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.0))
    }

    /// Returns the key combined with the code.
    pub(super) fn seal(&self, key: &ApiKey) -> Vec<u8> {
        self.combine(key.reveal().as_bytes())
    }

    /// Returns the key that [`Self::seal`] combined with this code.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<ApiKey> {
        ApiKey::parse(std::str::from_utf8(&self.combine(sealed)).ok()?)
    }

    fn combine(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.iter().zip(bytes).map(|(pad, byte)| pad ^ byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_keys_open_only_with_their_code() {
        let (key, code) = (ApiKey::generate().unwrap(), ConsoleCode::generate().unwrap());
        let sealed = code.seal(&key);
        assert_eq!(sealed.len(), key.reveal().len());
        let same = ConsoleCode::parse(&code.reveal()).ok().unwrap();
        assert_eq!(same.open(&sealed).unwrap().reveal(), key.reveal());
        assert_eq!(same.hash(), code.hash());
        let other = ConsoleCode::generate().unwrap();
        assert!(other.open(&sealed).is_none());
        assert_ne!(other.hash(), code.hash());
    }

    #[test]
    fn malformed_codes_are_rejected() {
        let code = ConsoleCode::generate().unwrap().reveal();
        for text in ["", "é", &code[1..], &format!("{code}AAAA"), &code.replace(&code[..1], "=")] {
            assert!(ConsoleCode::parse(text).is_err(), "{text}");
        }
    }
}
