//! Random secrets in cookies and links. The tables store only their hashes.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::NoRandomness;

/// 256 random bits. A secret has neither `Debug` nor `Display`.
pub struct Secret([u8; 32]);

impl Secret {
    /// Number of characters of a secret.
    pub const LENGTH: usize = 43;

    /// Generates a secret from the operating system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Parses a secret as sent.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Returns the secret as cookies and links contain it.
    pub fn reveal(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Returns the first 64 bits.
    pub fn leading_number(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// Returns the hash, which is stored. A secret has 256 random bits, so neither a salt nor a
    /// slow hash would make it harder to guess.
    pub fn digest(&self) -> SecretDigest {
        SecretDigest(BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.0)))
    }
}

/// The SHA-256 of a secret, as text. Compared in constant time.
#[derive(Clone, Eq, Hash)]
#[allow(clippy::derived_hash_with_manual_eq)] // The comparison has the same result.
pub struct SecretDigest(String);

impl SecretDigest {
    /// Parses a stored digest.
    pub fn parse(text: &str) -> Option<Self> {
        let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (text.len() == Secret::LENGTH && text.bytes().all(is_base64)).then(|| Self(text.to_owned()))
    }
}

impl PartialEq for SecretDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

crate::text_type!(SecretDigest);

impl fmt::Debug for SecretDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretDigest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_parsed_as_revealed() {
        let secret = Secret::generate().unwrap();
        let text = secret.reveal();
        assert_eq!(text.len(), Secret::LENGTH);
        assert_eq!(Secret::parse(&text).unwrap().digest(), secret.digest());
        assert_eq!(SecretDigest::parse(secret.digest().as_str()).unwrap(), secret.digest());
        assert_ne!(Secret::generate().unwrap().digest(), secret.digest());
        for wrong in ["", "é", &text[1..], &format!("{text}A"), &format!("{}=", &text[1..])] {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn debug_output_hides_digests() {
        assert_eq!(format!("{:?}", Secret::generate().unwrap().digest()), "SecretDigest(…)");
    }
}
