//! Cursors: the positions at which the next pages of lists start. They are opaque to callers. A
//! cursor is valid only for the list and project for which it was created.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::json::{FieldError, ViolationCode};

/// Bytes of the 32-byte code that are kept: guessing 128 bits is also infeasible.
const CODE_BYTES: usize = 16;

/// The key that signs cursors: at least 32 random bytes, shared by all functions.
#[derive(Clone)]
pub struct CursorKey(Vec<u8>);

impl CursorKey {
    /// Creates a key.
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }

    /// Returns the cursor of a position in a list.
    pub fn seal(&self, list: &str, position: &str) -> String {
        let mut bytes = self.code(list, position);
        bytes.extend_from_slice(position.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the position of a cursor that [`Self::seal`] created for the list.
    pub fn open(&self, list: &str, cursor: &str) -> Result<String, FieldError> {
        let error = || {
            let message = "is not a cursor of this list; send `nextCursor` unchanged";
            FieldError::new(ViolationCode::InvalidValue, message)
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| error())?;
        let (code, position) = bytes.split_at_checked(CODE_BYTES).ok_or_else(error)?;
        let position = std::str::from_utf8(position).map_err(|_| error())?;
        let same: bool = subtle::ConstantTimeEq::ct_eq(&self.code(list, position)[..], code).into();
        same.then(|| position.to_owned()).ok_or_else(error)
    }

    fn code(&self, list: &str, position: &str) -> Vec<u8> {
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Vec::new() };
        // List names contain no NUL.
        for part in [list, "\0", position] {
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes()[..CODE_BYTES].to_vec()
    }
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CursorKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_open_only_in_their_list() {
        let key = CursorKey::new("secret");
        let cursor = key.seal("events/1", "position é");
        assert_eq!(key.open("events/1", &cursor), Ok("position é".to_owned()));
        assert!(key.open("events/2", &cursor).is_err());
        assert!(CursorKey::new("other").open("events/1", &cursor).is_err());
    }

    #[test]
    fn changed_cursors_are_rejected() {
        let key = CursorKey::new("secret");
        let cursor = key.seal("list", "2026");
        for index in 0..cursor.len() {
            let other = if cursor.as_bytes()[index] == b'x' { "y" } else { "x" };
            let mut changed = cursor.clone();
            changed.replace_range(index..=index, other);
            assert!(key.open("list", &changed).is_err(), "{changed}");
        }
        for cursor in
            ["", "x", "é", "AAAA", &cursor[1..], &format!("{cursor}A"), &format!("{cursor}=")]
        {
            assert!(key.open("list", cursor).is_err(), "{cursor}");
        }
    }
}
