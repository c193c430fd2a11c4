//! Tokens: what the links in mails may do, signed, each for one purpose (`docs/notifications.md`,
//! "Addresses and tokens").

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use shared::projects::api_key::UserId;
use shared::projects::project::Organization;

use super::address::Nonce;
use crate::notification_type::NotificationType;

/// How many bytes of the code of 32 are kept: guessing 128 bits is hopeless, too.
const CODE_BYTES: usize = 16;
/// The most characters of a token: more than any that is made.
pub const MAX_TOKEN: usize = 512;

/// What tokens are signed with.
#[derive(Clone, Copy)]
pub struct TokenKey(pub(super) [u8; 32]);

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenKey(…)")
    }
}

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// To have notifications sent to the address to which it was sent.
    Confirm {
        /// The organization of the user.
        organization: Organization,
        /// The user whose address it is.
        user: UserId,
        /// The nonce of a pending or a replaced address, which has the expiry, too.
        nonce: Nonce,
    },
    /// To switch off mails of one type.
    Unsubscribe {
        /// The organization of the user.
        organization: Organization,
        /// The user who gets them.
        user: UserId,
        /// The type.
        notification_type: NotificationType,
    },
}

/// The names of the purposes, which tokens begin with.
const CONFIRM: &str = "confirm";
const UNSUBSCRIBE: &str = "unsubscribe";
/// What separates the parts of a token: none of them has it.
const SEPARATOR: &str = "\n";

impl Token {
    /// The token as text, for a URL.
    pub fn seal(&self, key: &TokenKey) -> String {
        let text = self.text();
        let mut bytes = code(key, &text);
        bytes.extend_from_slice(text.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what [`Self::seal`] wrote with the same key; nothing else.
    pub fn open(key: &TokenKey, sealed: &str) -> Option<Self> {
        if sealed.len() > MAX_TOKEN {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (sent, text) = bytes.split_at_checked(CODE_BYTES)?;
        let text = std::str::from_utf8(text).ok()?;
        let is_ours: bool = subtle::ConstantTimeEq::ct_eq(&code(key, text)[..], sent).into();
        if is_ours { Self::parse(text) } else { None }
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
    // HMAC takes keys of any length.
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
    fn what_is_sealed_is_opened_with_the_same_key_alone() {
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
    fn a_token_that_was_changed_anywhere_is_none() {
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
    fn the_longest_token_is_taken() {
        let organization = Organization::parse(&"o".repeat(64)).unwrap();
        let user = UserId::parse(&"u".repeat(128)).unwrap();
        let token = Token::Confirm { organization, user, nonce: Nonce([255; 16]) };
        let key = TokenKey([1; 32]);
        assert_eq!(Token::open(&key, &token.seal(&key)), Some(token));
    }
}
