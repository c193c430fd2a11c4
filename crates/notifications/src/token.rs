//! Signed tokens in email links, each for one purpose (`docs/notifications.md`, "Addresses and
//! tokens").

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use shared::projects::api_key::UserId;
use shared::projects::project::Organization;

use super::address::Nonce;
use crate::notification_type::NotificationType;

/// Bytes of the 32-byte HMAC in a token. 128 bits cannot be guessed.
const CODE_BYTES: usize = 16;
/// Maximum characters of a token: more than the longest valid one.
pub const MAX_TOKEN: usize = 512;

/// The signing key of tokens.
#[derive(Clone, Copy)]
pub struct TokenKey(pub(super) [u8; 32]);

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenKey(…)")
    }
}

/// The permission that a token grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Confirms or restores an address.
    Confirm {
        /// The organization of the user.
        organization: Organization,
        /// The user with the address.
        user: UserId,
        /// The nonce of a pending or replaced address. The expiry is stored with that address.
        nonce: Nonce,
    },
    /// Turns off emails of one type.
    Unsubscribe {
        /// The organization of the user.
        organization: Organization,
        /// The recipient of the emails.
        user: UserId,
        /// The notification type.
        notification_type: NotificationType,
    },
}

/// Names of purposes, the first part of a token.
const CONFIRM: &str = "confirm";
const UNSUBSCRIBE: &str = "unsubscribe";
/// Separator of a token's parts. No part contains it.
const SEPARATOR: &str = "\n";

impl Token {
    /// Returns the signed token in base64url.
    pub fn seal(&self, key: &TokenKey) -> String {
        let text = self.text();
        let mut bytes = code(key, &text);
        bytes.extend_from_slice(text.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Parses a token that [`Self::seal`] signed with this key. Returns `None` for any other text.
    pub fn open(key: &TokenKey, sealed: &str) -> Option<Self> {
        if sealed.len() > MAX_TOKEN {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (sent, text) = bytes.split_at_checked(CODE_BYTES)?;
        let text = std::str::from_utf8(text).ok()?;
        let is_valid: bool = subtle::ConstantTimeEq::ct_eq(&code(key, text)[..], sent).into();
        if is_valid { Self::parse(text) } else { None }
    }

    fn text(&self) -> String {
        let nonce_text;
        let (purpose, organization, user, last) = match self {
            Self::Confirm { organization, user, nonce } => {
                nonce_text = BASE64_URL_SAFE_NO_PAD.encode(nonce.0);
                (CONFIRM, organization, user, nonce_text.as_str())
            }
            Self::Unsubscribe { organization, user, notification_type } => {
                (UNSUBSCRIBE, organization, user, notification_type.as_str())
            }
        };
        [purpose, organization.as_str(), user.as_str(), last].join(SEPARATOR)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(SEPARATOR);
        let purpose = parts.next()?;
        let organization = Organization::parse(parts.next()?).ok()?;
        let user = UserId::parse(parts.next()?).ok()?;
        match purpose {
            CONFIRM => {
                let nonce = BASE64_URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
                let nonce = Nonce(nonce.try_into().ok()?);
                Some(Self::Confirm { organization, user, nonce })
            }
            UNSUBSCRIBE => {
                let notification_type = NotificationType::parse(parts.next()?).ok()?;
                Some(Self::Unsubscribe { organization, user, notification_type })
            }
            _ => None,
        }
    }
}

fn code(key: &TokenKey, text: &str) -> Vec<u8> {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key.0) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes()[..CODE_BYTES].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> [Token; 2] {
        let organization = Organization::parse("default").unwrap();
        let user = UserId::parse("mira@example.com").unwrap();
        [
            Token::Confirm {
                organization: organization.clone(),
                user: user.clone(),
                nonce: Nonce([7; 16]),
            },
            Token::Unsubscribe {
                organization,
                user,
                notification_type: NotificationType::ErrorNew,
            },
        ]
    }

    #[test]
    fn tokens_open_with_their_own_key_only() {
        for token in tokens() {
            let sealed = token.seal(&TokenKey([1; 32]));
            assert!(
                sealed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            );
            assert_eq!(Token::open(&TokenKey([1; 32]), &sealed), Some(token));
            assert_eq!(Token::open(&TokenKey([2; 32]), &sealed), None);
        }
    }

    #[test]
    fn modified_tokens_are_rejected() {
        let key = TokenKey([1; 32]);
        for token in tokens() {
            let sealed = token.seal(&key);
            for at in 0..sealed.len() {
                let mut changed = sealed.clone().into_bytes();
                changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(Token::open(&key, &changed), None, "{at}");
                assert_eq!(Token::open(&key, &sealed[..at]), None, "{at}");
            }
        }
        for other in ["", "A", "é", "%", &"A".repeat(MAX_TOKEN + 1)] {
            assert_eq!(Token::open(&key, other), None);
        }
    }

    #[test]
    fn the_longest_token_is_accepted() {
        let organization = Organization::parse(&"o".repeat(64)).unwrap();
        let user = UserId::parse(&"u".repeat(128)).unwrap();
        let token = Token::Confirm { organization, user, nonce: Nonce([255; 16]) };
        let key = TokenKey([1; 32]);
        assert_eq!(Token::open(&key, &token.seal(&key)), Some(token));
    }
}
