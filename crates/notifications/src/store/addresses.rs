//! Addresses and the signing key of tokens, in table `notifications`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `addresses#ORGANIZATION` | user | addresses of a user |
//! | `confirmations#HASH` | `confirmations` | times of an address's confirmation emails in the last day |
//! | `token-key` | `token-key` | signing key of tokens |

use aws_sdk_dynamodb::types::TransactWriteItem;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, count, item, item_at, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::{NotificationStore, TABLE};
use crate::address::{
    DAY, EmailAddress, Nonce, PendingAddress, Rejection, ReplacedAddress, UserAddress,
};
use crate::store::outbox::shard_pk;
use crate::token::TokenKey;

/// A user of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserName {
    /// The organization.
    pub organization: Organization,
    /// The user.
    pub user: UserId,
}

/// A user with a confirmed or pending address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownUser {
    /// The user.
    pub name: UserName,
    /// The addresses. `None` if they are unreadable.
    pub address: Option<UserAddress>,
}

impl NotificationStore<'_> {
    /// Returns the addresses of a user. Strongly consistent: writes depend on them, and emails must
    /// not go to a replaced address.
    pub async fn find_address(self, name: &UserName) -> Result<UserAddress, StoreError> {
        let found = self.db.get(TABLE, address_key(name)).await?;
        found.as_ref().map_or(Ok(UserAddress::default()), read_address)
    }

    /// Stores a user's addresses if they were not changed since they were read, and returns whether
    /// they are stored. `asks_to_confirm` also requests the confirmation and security emails.
    pub async fn replace_address(
        self,
        name: &UserName,
        address: &UserAddress,
        asks_to_confirm: bool,
    ) -> Result<bool, StoreError> {
        let mut actions = vec![self.put_address(name, address)?];
        if asks_to_confirm {
            actions.push(self.db.put(TABLE, confirmation_key(name)).into_action()?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// Returns the times of an address's confirmation emails in order, for all users together.
    pub async fn confirmation_times(
        self,
        email: &EmailAddress,
    ) -> Result<Vec<Timestamp>, StoreError> {
        let found = self.db.get(TABLE, confirmation_times_key(email)).await?;
        let times = found.as_ref().map(|item| read_times(ItemReader { table: TABLE, item }));
        Ok(times.transpose()?.unwrap_or_default())
    }

    /// Stores a user's addresses and the times of confirmation emails to `email`, unless either was
    /// changed since it was read. Returns whether they are stored.
    pub async fn record_confirmation_times(
        self,
        name: &UserName,
        address: &UserAddress,
        email: &EmailAddress,
        [read, times]: [&[Timestamp]; 2],
    ) -> Result<bool, StoreError> {
        let latest = read.last().max(times.last());
        let ends = latest.map_or(0, |latest| latest.plus(DAY).as_seconds());
        let item = item_at(
            confirmation_times_key(email),
            [(CONFIRMATIONS_ATTRIBUTE, s(write_times(times))), ("expiresAt", n(ends))],
        );
        let put = self
            .db
            .put(TABLE, item)
            .condition_expression("attribute_not_exists(pk) OR confirmations = :read")
            .expression_attribute_values(":read", s(write_times(read)));
        let actions = vec![self.put_address(name, address)?, put.into_action()?];
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    pub(super) fn put_address(
        self,
        name: &UserName,
        address: &UserAddress,
    ) -> Result<TransactWriteItem, StoreError> {
        let (condition, values) = still_as_read(address);
        self.db
            .put(TABLE, write_address(name, address))
            .condition_expression(condition)
            .set_expression_attribute_values(values)
            .into_action()
    }

    /// Returns the check that addresses were not changed since they were read.
    pub(super) fn check_address(
        self,
        name: &UserName,
        read: &UserAddress,
    ) -> Result<TransactWriteItem, StoreError> {
        let (condition, values) = still_as_read(read);
        self.db
            .check(TABLE, address_key(name))
            .condition_expression(condition)
            .set_expression_attribute_values(values)
            .into_action()
    }

    /// Returns all users of an organization with a stored address item. Strongly consistent.
    pub async fn list_addresses(
        self,
        organization: &Organization,
    ) -> Result<Vec<KnownUser>, StoreError> {
        let mut users = Vec::new();
        for item in self.db.all(self.db.partition(TABLE, addresses_pk(organization))).await? {
            let Some(user) = self.db.unless_damaged(&item, read_user(&item))? else { continue };
            let name = UserName { organization: organization.clone(), user };
            let address = self.db.unless_damaged(&item, read_address(&item))?;
            users.push(KnownUser { name, address });
        }
        Ok(users)
    }

    /// Returns the signing key of tokens. Stores `new` if there is none.
    pub(crate) async fn token_key(self, new: TokenKey) -> Result<TokenKey, StoreError> {
        let item_key = || key("token-key", "token-key");
        loop {
            if let Some(found) = self.db.get(TABLE, item_key()).await? {
                return Ok(TokenKey(ItemReader { table: TABLE, item: &found }.bytes("key")?));
            }
            self.db
                .put_unless_there(TABLE, "pk", item_at(item_key(), [("key", b(&new.0))]))
                .await?;
        }
    }
}

/// Returns the condition that addresses were not changed since they were read, and its values.
fn still_as_read(read: &UserAddress) -> (&'static str, Option<Item>) {
    match read.revision {
        0 => ("attribute_not_exists(pk)", None),
        revision => ("revision = :read", Some(item([(":read", count(revision))]))),
    }
}

fn addresses_pk(organization: &Organization) -> String {
    format!("addresses#{organization}")
}

pub(super) fn address_key(name: &UserName) -> Item {
    key(&addresses_pk(&name.organization), name.user.as_str())
}

/// Returns the key of a confirmation request. Organization names contain no `/`.
pub(super) fn confirmation_key(name: &UserName) -> Item {
    let UserName { organization, user } = name;
    key(&shard_pk(organization.as_str()), &format!("{CONFIRMATION_PREFIX}{organization}/{user}"))
}

/// Returns the key of an address's confirmation times. It contains a hash, not the address.
fn confirmation_times_key(email: &EmailAddress) -> Item {
    // Most providers ignore case.
    let hash = Sha256::digest(email.as_str().to_ascii_lowercase());
    key(
        &format!("{CONFIRMATIONS_ATTRIBUTE}#{}", BASE64_URL_SAFE_NO_PAD.encode(hash)),
        CONFIRMATIONS_ATTRIBUTE,
    )
}

/// Attribute: times of confirmation emails.
const CONFIRMATIONS_ATTRIBUTE: &str = "confirmations";

fn write_times(times: &[Timestamp]) -> String {
    let times: Vec<String> = times.iter().map(|at| at.as_millis().to_string()).collect();
    times.join(" ")
}

fn read_times(reader: ItemReader<'_>) -> Result<Vec<Timestamp>, StoreError> {
    let times = reader.optional_parsed(CONFIRMATIONS_ATTRIBUTE, |text| {
        let times = text.split_whitespace();
        times.map(|at| at.parse().ok().map(Timestamp::from_millis)).collect::<Option<Vec<_>>>()
    });
    Ok(times?.unwrap_or_default())
}

/// Prefix of the sort keys of confirmation requests.
pub(super) const CONFIRMATION_PREFIX: &str = "confirm#";

fn read_user(item: &Item) -> Result<UserId, StoreError> {
    ItemReader { table: TABLE, item }.parsed("sk", |text| UserId::parse(text).ok())
}

fn write_address(name: &UserName, address: &UserAddress) -> Item {
    let revision = address.revision.saturating_add(1);
    let mut item = item_at(address_key(name), [("revision", count(revision))]);
    let mut set = |name: &str, value| item.insert(name.to_owned(), value);
    if let Some(email) = &address.confirmed {
        set("email", s(email));
    }
    if let Some(pending) = &address.pending {
        set("pendingEmail", s(&pending.email));
        set("pendingNonce", b(&pending.nonce.0));
        set("pendingEnds", n(pending.ends.as_millis()));
        if let Some(user_agent) = &pending.user_agent {
            set("pendingUserAgent", s(user_agent));
        }
    }
    if let Some(used_nonce) = &address.used_nonce {
        set("usedNonce", b(&used_nonce.0));
    }
    if let Some(rejection) = &address.rejection {
        set("rejectedAt", n(rejection.at.as_millis()));
        set("rejection", s(&rejection.reason));
    }
    if address.delayed_emails > 0 {
        set("heldBack", count(address.delayed_emails));
    }
    if !address.confirmations.is_empty() {
        set(CONFIRMATIONS_ATTRIBUTE, s(write_times(&address.confirmations)));
    }
    if !address.replaced.is_empty() {
        let replaced: Vec<String> = address.replaced.iter().map(write_replaced).collect();
        set(REPLACED_ATTRIBUTE, s(replaced.join(" ")));
    }
    item
}

/// Attribute: replaced addresses.
const REPLACED_ATTRIBUTE: &str = "replaced";

/// Returns the stored text: address, nonce, expiry, and `notified` if the security email was sent.
fn write_replaced(replaced: &ReplacedAddress) -> String {
    let ReplacedAddress { email, nonce, ends, is_notified } = replaced;
    let nonce = BASE64_URL_SAFE_NO_PAD.encode(nonce.0);
    let notified = if *is_notified { NOTIFIED } else { "pending" };
    format!("{email} {nonce} {} {notified}", ends.as_millis())
}

/// Mark of a replaced address whose security email was sent.
const NOTIFIED: &str = "notified";

fn read_replaced(text: &str) -> Option<Vec<ReplacedAddress>> {
    let words: Vec<&str> = text.split(' ').collect();
    let read = |words: &[&str]| {
        let &[email, nonce, ends, notified] = words else { return None };
        Some(ReplacedAddress {
            email: EmailAddress::stored(email)?,
            nonce: Nonce(BASE64_URL_SAFE_NO_PAD.decode(nonce).ok()?.try_into().ok()?),
            ends: Timestamp::from_millis(ends.parse().ok()?),
            is_notified: notified == NOTIFIED,
        })
    };
    words.chunks(4).map(read).collect()
}

fn read_address(item: &Item) -> Result<UserAddress, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let email = |attribute| reader.optional_parsed(attribute, EmailAddress::stored);
    let pending = email("pendingEmail")?.map(|email| {
        let nonce = Nonce(reader.bytes("pendingNonce")?);
        let ends = reader.millis("pendingEnds")?;
        let user_agent = reader.optional_text("pendingUserAgent")?.map(str::to_owned);
        Ok::<_, StoreError>(PendingAddress { email, nonce, ends, user_agent })
    });
    let used_nonce = item.contains_key("usedNonce").then(|| reader.bytes("usedNonce").map(Nonce));
    let rejection = reader.optional_text("rejection")?.map(|reason| {
        Ok::<_, StoreError>(Rejection {
            at: reader.millis("rejectedAt")?,
            reason: reason.to_owned(),
        })
    });
    let replaced = reader.optional_parsed(REPLACED_ATTRIBUTE, read_replaced)?;
    Ok(UserAddress {
        confirmed: email("email")?,
        pending: pending.transpose()?,
        used_nonce: used_nonce.transpose()?,
        replaced: replaced.unwrap_or_default(),
        confirmations: read_times(reader)?,
        rejection: rejection.transpose()?,
        delayed_emails: reader.optional_count("heldBack")?.unwrap_or_default(),
        revision: reader.count("revision")?,
    })
}
