//! Identifiers that are UUIDs, each of a type of its own: none can stand where another belongs.

/// Declares an identifier that is a UUID, displayed and serialized in lower case. The function that
/// follows its name, of [`crate::text`], tells which UUIDs it may be and in which form they are read.
macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident, $parse:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// The identifier `uuid`.
            pub const fn new(uuid: uuid::Uuid) -> Self {
                Self(uuid)
            }

            /// Reads the usual form of a UUID (`8-4-4-4-12` hexadecimal digits), in either case.
            pub fn parse(text: &str) -> Option<Self> {
                $crate::text::$parse(text).map(Self)
            }

            /// Its 16 bytes.
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

pub(crate) use uuid_type;
