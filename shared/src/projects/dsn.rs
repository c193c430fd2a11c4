//! DSNs, which contain the address and the key with which Sentry SDKs send a project's errors.
//!
//! SDKs take the project id from the end of the DSN and accept only digits. They accept only keys
//! without hyphens. A project therefore has both in addition to its UUID.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use super::NoRandomness;

/// The numeric id with which a project receives errors: 1 to 15 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct IngestId(u64);

/// One more than the greatest id. The numbers of every language represent all ids exactly.
const INGEST_IDS: u64 = 1_000_000_000_000_000;

impl IngestId {
    /// Parses an id from a path.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let id = text.parse().ok().filter(|id| (1..INGEST_IDS).contains(id))?;
        (digits && !text.starts_with('0')).then_some(Self(id))
    }

    /// Generates a random id. It is not secret, but must be unique.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        Ok(Self(u64::from_le_bytes(random) % (INGEST_IDS - 1) + 1))
    }
}

impl fmt::Display for IngestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The key with which SDKs send errors, 32 hexadecimal digits. Every web page that reports errors
/// contains it, so it permits nothing else.
#[derive(Debug, Clone, Copy)]
pub struct PublicKey([u8; 16]);

impl PublicKey {
    /// Parses a key, in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let key = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
        Some(Self(key.to_be_bytes()))
    }

    /// Generates a random key.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }
}

/// Compares in constant time, so that the duration reveals nothing about the key.
impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl Eq for PublicKey {}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A Sentry DSN: `https://KEY@HOST/ID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dsn(String);

impl Dsn {
    /// Returns the DSN for the API at `base_url`, which can have its own path.
    pub fn new(base_url: &str, key: PublicKey, id: IngestId) -> Self {
        let (scheme, address) = base_url.split_once("://").unwrap_or(("https", base_url));
        let address = address.trim_end_matches('/');
        Self(format!("{scheme}://{key}@{address}/{id}"))
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ingest_ids_have_up_to_15_digits() {
        for text in ["1", "4711", "999999999999999"] {
            assert_eq!(IngestId::parse(text).map(|id| id.to_string()).as_deref(), Some(text));
        }
        for text in ["", "0", "01", "+1", "-1", "1000000000000000", "1a", "१", " 1"] {
            assert_eq!(IngestId::parse(text), None, "{text:?}");
        }
        let generated = IngestId::generate().unwrap();
        assert_eq!(IngestId::parse(&generated.to_string()), Some(generated));
    }

    #[test]
    fn public_keys_have_32_hexadecimal_digits() {
        let key = PublicKey::parse("00FF00ff00ff00ff00ff00ff00ff00ff").unwrap();
        assert_eq!(key.to_string(), "00ff00ff00ff00ff00ff00ff00ff00ff");
        for text in ["", "0", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"+".repeat(32)] {
            assert!(PublicKey::parse(text).is_none(), "{text:?}");
        }
        let (one, other) = (PublicKey::generate().unwrap(), PublicKey::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(PublicKey::parse(&one.to_string()), Some(one));
    }

    #[test]
    fn dsns_contain_key_host_and_id() {
        let key = PublicKey::parse(&"ab".repeat(16)).unwrap();
        let id = IngestId::parse("42").unwrap();
        let of = |base_url| Dsn::new(base_url, key, id).to_string();
        let k = "ab".repeat(16);
        assert_eq!(of("http://127.0.0.1:9000"), format!("http://{k}@127.0.0.1:9000/42"));
        assert_eq!(of("https://x.example/prod/"), format!("https://{k}@x.example/prod/42"));
        assert_eq!(of("x.example"), format!("https://{k}@x.example/42"));
    }
}
