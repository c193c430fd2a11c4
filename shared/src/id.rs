//! Identifiers that are UUIDs, each with its own type to prevent mix-ups, and random bytes.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Instant;

use uuid::Uuid;

use crate::timestamp::Timestamp;

/// Returns random bytes from the system. If the system has none, the hasher's randomness, which is
/// seeded once per process, keeps identifiers unique. Callers do not rely on identifiers being
/// unpredictable.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        for chunk in bytes.chunks_mut(8) {
            let random = RandomState::new().hash_one(Instant::now()).to_le_bytes();
            chunk.copy_from_slice(random.get(..chunk.len()).unwrap_or(&random));
        }
    }
    bytes
}

/// Declares an identifier that is a UUID, displayed and serialized in lower case. The function
/// after its name, from [`crate::text`], defines which UUIDs are valid and how they are parsed.
#[macro_export]
macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident, $parse:ident) => {
        $(#[$doc])*
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            serde::Serialize,
            serde::Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// Creates the identifier `uuid`.
            pub const fn new(uuid: uuid::Uuid) -> Self {
                Self(uuid)
            }

            /// Parses the usual form of a UUID (`8-4-4-4-12` hexadecimal digits), in either case.
            pub fn parse(text: &str) -> Option<Self> {
                $crate::text::$parse(text).map(Self)
            }

            /// Returns the 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.as_hyphenated().fmt(formatter)
            }
        }
    };
}

/// The source of new identifiers.
#[derive(Debug)]
pub enum Ids {
    /// The time and the system's randomness.
    Random,
    /// The time and a counter, for a test.
    Sequential(AtomicU64),
}

/// Number of random ids that this process has generated.
static GENERATED_IDS: AtomicU16 = AtomicU16::new(0);

impl Ids {
    /// Returns a new UUID of version 7 with the time `now`. Ids that a process generates in one
    /// millisecond are ordered: 12 bits count them (RFC 9562, section 6.2, method 1).
    pub fn new_uuid(&self, now: Timestamp) -> Uuid {
        let tail: [u8; 10] = match self {
            Self::Random => {
                let mut tail: [u8; 10] = random_bytes();
                let [high, low] = GENERATED_IDS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                // The version is above the 12 bits.
                (tail[0], tail[1]) = (high & 0x0f, low);
                tail
            }
            Self::Sequential(counter) => {
                let mut tail = [0; 10];
                let count = counter.fetch_add(1, Ordering::Relaxed);
                tail[2..].copy_from_slice(&count.to_be_bytes());
                tail
            }
        };
        let millis = u64::try_from(now.as_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_are_ordered() {
        let now = Timestamp::from_millis(1_795_234_560_000);
        let ids: Vec<Uuid> = (0..1_000).map(|_| Ids::Random.new_uuid(now)).collect();
        let descents = ids.windows(2).filter(|pair| pair[0] >= pair[1]).count();
        assert!(descents <= 1, "{descents}: the counter wraps at most once");
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        let tails: std::collections::HashSet<_> = ids.iter().map(|id| id.as_u64_pair().1).collect();
        assert_eq!(tails.len(), ids.len(), "the tails differ");
    }
}
