//! API keys (`docs/api-conventions.md`, "Authentication"): their form, secret and permissions.
//!
//! A key consists of `wm_` + 16 characters of key id + `_` + 43 characters of secret + 6 characters
//! of checksum, all base62. The fixed prefix and the checksum let a secret scanner reliably find
//! it. A mistyped key is rejected without a read.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::NoRandomness;
use super::member::MemberId;
use super::project::{Organization, ProjectId};
use crate::timestamp::Timestamp;

const PREFIX: &str = "wm_";
const KEY_ID_LENGTH: usize = 16;
/// 43 base62 digits hold 256.03 bits.
const SECRET_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The public part of an API key, which can be logged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KeyId(String);

impl KeyId {
    /// Parses a key id: 16 base62 characters.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = text.len() == KEY_ID_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric());
        valid.then(|| Self(text.to_owned()))
    }
}

crate::text_type!(KeyId);

/// A whole API key as a client sends it. It contains the secret, so it has neither `Debug` nor
/// `Display`.
pub struct ApiKey {
    key_id: KeyId,
    secret: String,
}

impl ApiKey {
    /// Number of characters of a key.
    pub const LENGTH: usize = PREFIX.len() + KEY_ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH;

    /// Generates a key from the operating system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let key_id = KeyId(random_base62(KEY_ID_LENGTH)?);
        Ok(Self { key_id, secret: random_base62(SECRET_LENGTH)? })
    }

    /// Parses a key as sent. Returns `None` if its form or checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (key_id, rest) = rest.split_at_checked(KEY_ID_LENGTH)?;
        let (secret, checksum) = rest.strip_prefix('_')?.split_at_checked(SECRET_LENGTH)?;
        let key_id = KeyId::parse(key_id)?;
        if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let key = Self { key_id, secret: secret.to_owned() };
        (checksum == key.checksum()).then_some(key)
    }

    /// Returns the key's public part.
    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// Returns the hash of the secret, which is stored.
    pub fn secret_hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(&self.secret).into())
    }

    /// Returns the whole key with its secret, to be shown once, to the key's creator.
    pub fn reveal(&self) -> String {
        format!("{}{}", self.unchecked(), self.checksum())
    }

    fn unchecked(&self) -> String {
        format!("{PREFIX}{}_{}", self.key_id, self.secret)
    }

    /// Returns the CRC-32 (ISO-HDLC) of all preceding characters, as six base62 digits.
    fn checksum(&self) -> String {
        let mut rest = crc32fast::hash(self.unchecked().as_bytes()) as usize;
        let mut digits = [b'0'; CHECKSUM_LENGTH];
        for digit in digits.iter_mut().rev() {
            *digit = BASE62[rest % 62];
            rest /= 62;
        }
        digits.iter().map(|digit| char::from(*digit)).collect()
    }
}

/// Returns `length` random base62 characters, each equally likely.
fn random_base62(length: usize) -> Result<String, NoRandomness> {
    let mut text = String::with_capacity(length);
    let mut bytes = [0_u8; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes)?;
        // 248 = 4 × 62: four bytes below it map to each digit, so all digits are equally likely.
        let digits = bytes.iter().filter(|byte| **byte < 248);
        let missing = length - text.len();
        text.extend(digits.take(missing).map(|byte| char::from(BASE62[usize::from(byte % 62)])));
    }
    Ok(text)
}

/// The SHA-256 of a key's secret. The secret has 256 random bits, so neither a salt nor a slow hash
/// would make it harder to guess. Compared in constant time.
#[derive(Clone)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Creates a hash from its stored bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the hash as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretHash {}

impl fmt::Debug for SecretHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretHash(…)")
    }
}

crate::named_enum! {
    /// A permission of a key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Scope {
        /// Read feature flags.
        FlagsRead = "flags:read",
        /// Create, change, archive and delete feature flags.
        FlagsWrite = "flags:write",
        /// Evaluate feature flags.
        FlagsEvaluate = "flags:evaluate",
        /// Read replay insights.
        InsightsRead = "insights:read",
        /// Create, change, split and merge replay insights.
        InsightsWrite = "insights:write",
        /// Read event marker collections.
        MarkersRead = "markers:read",
        /// Create and delete event marker collections, add events.
        MarkersWrite = "markers:write",
        /// Read errors and their timeseries, interpret error filters.
        ErrorsRead = "errors:read",
        /// Change errors.
        ErrorsWrite = "errors:write",
        /// Read notification preferences.
        NotificationsRead = "notifications:read",
        /// Change notification preferences.
        NotificationsWrite = "notifications:write",
        /// Upload and delete source maps.
        SourceMapsWrite = "source-maps:write",
        /// Read members and invitations.
        MembersRead = "members:read",
        /// Change and remove members, create and revoke invitations.
        MembersWrite = "members:write",
        /// Create, list and revoke API keys.
        KeysWrite = "keys:write",
        /// Create, change and delete projects.
        ProjectsWrite = "projects:write",
        /// Read the audit log.
        AuditRead = "audit:read",
    }
}

/// A text that is not a scope. The display form lists all scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scope; the scopes are {list}", list = Scope::ALL.map(Scope::as_str).join(", "))]
pub struct NotAScope(String);

impl Scope {
    /// The scopes of a key with `all` scopes. Scopes that administer people, keys and projects must
    /// be named.
    pub fn of_keys() -> BTreeSet<Self> {
        Self::ALL.into_iter().filter(|scope| *scope <= Self::SourceMapsWrite).collect()
    }
}

impl FromStr for Scope {
    type Err = NotAScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::named(text).ok_or_else(|| NotAScope(text.to_owned()))
    }
}

/// The user that a key acts for: 1 to 128 visible ASCII characters, such as an email address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct UserId(String);

/// A text that is not a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a user has 1 to 128 visible ASCII characters")]
pub struct NotAUser;

impl UserId {
    /// Parses a user.
    pub fn parse(text: &str) -> Result<Self, NotAUser> {
        let valid = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        valid.then(|| Self(text.to_owned())).ok_or(NotAUser)
    }
}

crate::text_type!(UserId);

/// The author of a change, as recorded in its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A user, with an API key.
    Key {
        /// The user.
        user: UserId,
        /// The key.
        key_id: KeyId,
    },
    /// A signed-in user.
    Session {
        /// The user.
        user: UserId,
    },
    /// An operator who runs the `waymark` command, which needs no key.
    Command,
}

impl Actor {
    /// Returns the user, if the actor is one.
    pub fn user(&self) -> Option<&UserId> {
        match self {
            Self::Key { user, .. } | Self::Session { user } => Some(user),
            Self::Command => None,
        }
    }
}

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyRecord {
    /// The key's public part.
    pub key_id: KeyId,
    /// The hash of the secret, which is never shown.
    #[serde(skip)]
    pub secret_hash: SecretHash,
    /// The organization whose projects the key can see.
    pub organization: Organization,
    /// The user that the key acts for.
    pub user: UserId,
    /// The name that its creator gave it, or an empty text.
    pub name: String,
    /// The membership that created the key over the API. The key has at most the scopes and
    /// projects of that member, and ends with the membership. `None` for keys of the `waymark` command.
    #[serde(skip)]
    pub member: Option<MemberId>,
    /// The permissions of the key.
    pub scopes: BTreeSet<Scope>,
    /// The projects that the key can see, or `None` for all of its organization.
    pub projects: Option<BTreeSet<ProjectId>>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Expiry time, if the key expires.
    pub expires_at: Option<Timestamp>,
    /// Revocation time, if the key is revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKeyRecord {
    /// Returns `true` if the key is valid at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expiry| now < expiry) && self.revoked_at.is_none()
    }

    /// Returns `true` if `key` is this key and is valid at `now`.
    pub fn admits(&self, key: &ApiKey, now: Timestamp) -> bool {
        // The comparison comes first and always runs, so that the time of a rejection reveals
        // nothing.
        let same = self.secret_hash == key.secret_hash();
        let is_active = self.is_active(now);
        same && is_active
    }

    /// Returns `true` if the key can see this project of the organization.
    pub fn may_see(&self, project: ProjectId, organization: &Organization) -> bool {
        let listed = self.projects.as_ref().is_none_or(|projects| projects.contains(&project));
        listed && self.organization == *organization
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const SECRET: &str = "0123456789abcdefghijABCDEFGHIJ0123456789xyz";

    fn key() -> ApiKey {
        ApiKey { key_id: KeyId("AAAABBBBCCCC0001".to_owned()), secret: SECRET.to_owned() }
    }

    #[test]
    fn keys_have_the_documented_form() {
        let text = key().reveal();
        // CRC-32 of the preceding 63 characters, by an independent implementation: 0x3606748C.
        assert_eq!(text, format!("wm_AAAABBBBCCCC0001_{SECRET}0zL89M"));
        assert_eq!(text.len(), 3 + 16 + 1 + 43 + 6);
    }

    #[test]
    fn generated_keys_can_be_parsed() {
        let generated = ApiKey::generate().unwrap();
        let read = ApiKey::parse(&generated.reveal()).unwrap();
        assert_eq!(read.key_id(), generated.key_id());
        assert!(read.secret_hash() == generated.secret_hash());
        assert_ne!(ApiKey::generate().unwrap().reveal(), generated.reveal());
    }

    #[test]
    fn mistyped_keys_are_rejected() {
        let text = key().reveal();
        for index in 0..text.len() {
            let other = if text.as_bytes()[index] == b'x' { "y" } else { "x" };
            let mut mistyped = text.clone();
            mistyped.replace_range(index..=index, other);
            assert!(ApiKey::parse(&mistyped).is_none(), "{mistyped}");
        }
        for text in ["", "wm_", &text[1..], &text[..text.len() - 1], &format!("{text}0"), "wm_é"] {
            assert!(ApiKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn random_characters_are_equally_likely() {
        let text = random_base62(62 * 2_000).unwrap();
        for digit in BASE62 {
            let count = text.bytes().filter(|byte| byte == digit).count();
            // 2,000 expected, standard deviation 44: the bounds are seven deviations away.
            assert!((1_690..2_310).contains(&count), "{}: {count}", char::from(*digit));
        }
    }

    fn record() -> ApiKeyRecord {
        ApiKeyRecord {
            key_id: key().key_id,
            secret_hash: key().secret_hash(),
            organization: Organization::parse("default").unwrap(),
            user: UserId::parse("owner").unwrap(),
            name: String::new(),
            member: None,
            scopes: BTreeSet::from([Scope::FlagsWrite]),
            projects: None,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn keys_are_valid_until_expiry_or_revocation() {
        let now = Timestamp::from_millis(10_000);
        let later = Timestamp::from_millis(10_001);
        assert!(record().admits(&key(), now));
        let other = ApiKey { secret: SECRET.replace('z', "w"), ..key() };
        assert!(!record().admits(&other, now));
        assert!(ApiKeyRecord { expires_at: Some(later), ..record() }.admits(&key(), now));
        assert!(!ApiKeyRecord { expires_at: Some(now), ..record() }.admits(&key(), now));
        assert!(!ApiKeyRecord { revoked_at: Some(later), ..record() }.admits(&key(), now));
    }

    #[test]
    fn keys_see_listed_projects_of_their_organization() {
        let [project, unlisted] = [1, 2].map(|n| ProjectId::new(Uuid::from_u128(n)));
        let (own, foreign) =
            (Organization::parse("default").unwrap(), Organization::parse("other").unwrap());
        let listing = ApiKeyRecord { projects: Some(BTreeSet::from([project])), ..record() };
        assert!(record().may_see(unlisted, &own));
        assert!(!record().may_see(project, &foreign));
        assert!(listing.may_see(project, &own));
        assert!(!listing.may_see(unlisted, &own));
        assert!(!listing.may_see(project, &foreign));
    }

    #[test]
    fn records_hide_secret_and_hash() {
        let shown = format!("{:?} {}", record(), serde_json::to_string(&record()).unwrap());
        assert!(!shown.contains(SECRET));
        assert!(!shown.to_lowercase().contains("hash\":"));
    }

    #[test]
    fn scopes_have_names_both_ways() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        let error = "flags:admin".parse::<Scope>().map_err(|e| e.to_string());
        assert!(error.is_err_and(|message| message.contains("flags:read, flags:write")));
    }
}
