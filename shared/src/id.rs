//! Identifiers that are UUIDs, each with its own type to prevent mix-ups, and random bytes.

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

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
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
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
