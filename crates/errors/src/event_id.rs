//! Event ids, which the SDK assigns.

use std::fmt;

use serde::{Serialize, Serializer};
use uuid::Uuid;

/// An event id: displays as 32 lower-case hexadecimal digits, never all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Uuid);

/// The reason why a text is not an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEventId {
    /// Wrong form.
    #[error("event_id must be 32 hexadecimal digits")]
    Form,
    /// All zero, which old SDKs send for "none".
    #[error("event_id must not be all zeros")]
    Nil,
}

impl EventId {
    /// Parses 32 hexadecimal digits, or the usual form of a UUID, in either case.
    pub fn parse(text: &str) -> Result<Self, NotAnEventId> {
        // The library also accepts braces and URNs.
        if !matches!(text.len(), 32 | 36) {
            return Err(NotAnEventId::Form);
        }
        let id = Uuid::try_parse(text).map_err(|_| NotAnEventId::Form)?;
        if id.is_nil() { Err(NotAnEventId::Nil) } else { Ok(Self(id)) }
    }

    /// Returns the id with these bytes, for an event without one, or `None` if all bytes are zero.
    pub fn from_random_bytes(bytes: [u8; 16]) -> Option<Self> {
        let id = Uuid::from_bytes(bytes);
        (!id.is_nil()).then_some(Self(id))
    }

    /// Returns the id's 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(formatter)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_both_forms_in_either_case() {
        for text in [
            "ac012cadf588491bb76da90129e33c41",
            "AC012CADF588491BB76DA90129E33C41",
            "ac012cad-f588-491b-b76d-a90129e33c41",
            "AC012CAD-f588-491b-b76d-a90129e33c41",
        ] {
            let id = EventId::parse(text).map(|id| id.to_string());
            assert_eq!(id, Ok("ac012cadf588491bb76da90129e33c41".to_owned()));
        }
    }

    #[test]
    fn rejects_other_forms_and_the_nil_id() {
        for text in ["", "1", "{ac012cad-f588-491b-b76d-a90129e33c41}", "g".repeat(32).as_str()] {
            assert_eq!(EventId::parse(text), Err(NotAnEventId::Form), "{text}");
        }
        assert_eq!(EventId::parse(&"0".repeat(32)), Err(NotAnEventId::Nil));
        assert_eq!(EventId::parse("00000000-0000-0000-0000-000000000000"), Err(NotAnEventId::Nil));
    }
}
