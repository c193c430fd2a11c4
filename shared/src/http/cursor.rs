//! Cursors: where the next page of a list starts. Opaque to callers, and only of use in the list, and
//! for the caller's project, that they were made for.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::json::{FieldError, ViolationCode};

/// How many bytes of the code of 32 are kept: guessing 128 bits is hopeless, too.
const CODE_BYTES: usize = 16;

/// What cursors are signed with: 32 random bytes or more, the same in all functions.
#[derive(Clone)]
pub struct CursorKey(Vec<u8>);

impl CursorKey {
    /// A key.
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }

    /// The cursor of `position` in the list `list`.
    pub fn seal(&self, list: &str, position: &str) -> String {
        let mut bytes = self.code(list, position);
        bytes.extend_from_slice(position.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor that [`Self::seal`] made for the list.
    pub fn open(&self, list: &str, cursor: &str) -> Result<String, FieldError> {
        let fault = || {
            let message = "is not a cursor of this list; take it from `nextCursor` as it is";
            FieldError::new(ViolationCode::InvalidValue, message)
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).map_err(|_| fault())?;
        let (code, position) = bytes.split_at_checked(CODE_BYTES).ok_or_else(fault)?;
        let position = std::str::from_utf8(position).map_err(|_| fault())?;
        let same: bool = subtle::ConstantTimeEq::ct_eq(&self.code(list, position)[..], code).into();
        same.then(|| position.to_owned()).ok_or_else(fault)
    }

    fn code(&self, list: &str, position: &str) -> Vec<u8> {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Vec::new() };
        // No list has a NUL in its name.
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
    fn opens_what_it_sealed_for_the_same_list_only() {
        let key = CursorKey::new("secret");
        let cursor = key.seal("events/1", "position é");
        assert_eq!(key.open("events/1", &cursor), Ok("position é".to_owned()));
        assert!(key.open("events/2", &cursor).is_err());
        assert!(CursorKey::new("other").open("events/1", &cursor).is_err());
    }

    #[test]
    fn refuses_every_changed_character() {
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
