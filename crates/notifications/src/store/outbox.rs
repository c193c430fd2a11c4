//! The outbox, in table `notifications`. Its items are part of the transactions that cause the
//! domain events (`docs/notifications.md`).
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `shard#SHARD` | `outbox#VISIBILITY#KIND#SUBJECT#INSTANCE` | domain event |

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, count, item, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::project::{Organization, ProjectId};

use super::NotificationStore;
use crate::domain_event::{DomainEvent, DomainEventKind, Visibility};

/// The table with outbox, feeds, event batches and addresses.
pub(crate) const OUTBOX_TABLE: &str = "notifications";
/// Prefix of the outbox's sort keys.
pub(crate) const OUTBOX: &str = "outbox#";
/// Number of shards, the partitions of outbox, feeds and batches.
pub(crate) const SHARDS: u32 = 4;

impl NotificationStore<'_> {
    /// Returns the action that puts a domain event into the outbox. It has no condition: those of
    /// the other actions in its transaction decide.
    pub fn announce(self, domain_event: &DomainEvent) -> Result<TransactWriteItem, StoreError> {
        let mut item = outbox_key(domain_event);
        item.extend(write_domain_event(domain_event));
        self.db.put(OUTBOX_TABLE, item).into_action()
    }

    /// Stores a new key and announces it to its user, in a transaction with more actions.
    /// `user_agent` is that of the browser that created the key, if one did.
    pub async fn create_api_key(
        self,
        record: &ApiKeyRecord,
        user_agent: Option<&str>,
        mut more: Vec<TransactWriteItem>,
    ) -> Result<(), StoreError> {
        more.push(self.announce(&DomainEvent::api_key_created(record, user_agent))?);
        self.db.create_api_key(record, more).await
    }
}

/// Returns the partition key for a project id or an organization.
pub(crate) fn shard_pk(name: &str) -> String {
    numbered_shard_pk(crc32fast::hash(name.as_bytes()) % SHARDS)
}

/// Returns the partition key for a number below [`SHARDS`].
pub(crate) fn numbered_shard_pk(shard: u32) -> String {
    format!("shard#{shard}")
}

/// Returns the partition key for domain events with a visibility.
pub(crate) fn visibility_pk(visibility: &Visibility) -> String {
    match visibility {
        Visibility::Project(project) => shard_pk(&project.to_string()),
        Visibility::User(organization, _) => shard_pk(organization.as_str()),
    }
}

/// Returns the key of a domain event in the outbox.
pub(crate) fn outbox_key(domain_event: &DomainEvent) -> Item {
    key(&visibility_pk(&domain_event.visibility), &format!("{OUTBOX}{}", domain_event.id()))
}

/// Returns the attributes of a domain event, for an item or a map.
pub(crate) fn write_domain_event(domain_event: &DomainEvent) -> Item {
    let DomainEvent { kind, visibility, subject, instance, at, title, detail, weight, actor } =
        domain_event;
    let mut written = item([
        ("kind", s(kind.as_str())),
        ("subject", s(subject)),
        ("instance", count(*instance)),
        ("at", n(at.as_millis())),
        ("title", s(title)),
        ("detail", s(detail)),
        ("weight", count(*weight)),
    ]);
    let mut set = |name: &str, value: AttributeValue| written.insert(name.to_owned(), value);
    let (project, concerned) = match visibility {
        Visibility::Project(project) => (Some(project), None),
        Visibility::User(organization, user) => (None, Some((organization, user))),
    };
    if let Some(project) = project {
        set("project", s(project));
    }
    if let Some((organization, user)) = concerned {
        set("organization", s(organization));
        set("user", s(user));
    }
    if let Some(actor) = actor {
        set("actor", s(actor));
    }
    written
}

/// Parses the attributes of [`write_domain_event`].
pub(crate) fn read_domain_event(item: &Item) -> Result<DomainEvent, StoreError> {
    let reader = ItemReader { table: OUTBOX_TABLE, item };
    let user = |text: &str| UserId::parse(text).ok();
    let visibility = if let Some(project) = reader.optional_parsed("project", ProjectId::parse)? {
        Visibility::Project(project)
    } else {
        let organization = reader.parsed("organization", |text| Organization::parse(text).ok())?;
        Visibility::User(organization, reader.parsed("user", user)?)
    };
    Ok(DomainEvent {
        kind: reader.parsed("kind", DomainEventKind::parse)?,
        visibility,
        subject: reader.text("subject")?.to_owned(),
        instance: reader.count("instance")?,
        at: reader.millis("at")?,
        title: reader.text("title")?.to_owned(),
        detail: reader.text("detail")?.to_owned(),
        weight: reader.count("weight")?,
        actor: reader.optional_parsed("actor", user)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::timestamp::Timestamp;

    #[test]
    fn domain_events_round_trip_as_items() {
        let organization = Organization::parse("default").unwrap();
        let user = UserId::parse("mira#1/x").unwrap();
        let visibilities = [
            Visibility::Project(ProjectId::new(uuid::Uuid::nil())),
            Visibility::User(organization, user.clone()),
        ];
        for (visibility, kind) in visibilities.into_iter().zip(DomainEventKind::ALL) {
            let at = Timestamp::from_millis(1_795_234_560_000);
            let plain = DomainEvent::new(kind, visibility, "subject", "title", at);
            let full = plain.clone().detailed("d").at_instance(7).with_event_count(9).by(&user);
            for domain_event in [plain, full] {
                assert_eq!(
                    read_domain_event(&write_domain_event(&domain_event)).unwrap(),
                    domain_event
                );
            }
        }
    }
}
