//! Table `audit`, key `organization` and `id`: the changes in an organization, in order of time.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::{AuditEntry, AuditSource, COMMAND, ListedEntry, NamedResource, RETENTION};
use crate::page::{Page, PageRequest};
use crate::projects::api_key::Actor;
use crate::projects::project::Organization;
use crate::timestamp::Timestamp;

use crate::dynamodb::item::{Item, ItemReader, item, n, s};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError};

/// The name of the table.
const TABLE: &str = "audit";

impl Store {
    /// Returns the action that records a change. Add it to the transaction of the change.
    pub fn audit(&self, entry: &AuditEntry) -> Result<TransactWriteItem, StoreError> {
        let mut stored = item([
            ("organization", s(&entry.organization)),
            ("id", s(entry.id)),
            ("at", n(entry.at.as_millis())),
            ("action", s(entry.action.as_str())),
            ("targetType", s(entry.target.kind)),
            ("targetId", s(&entry.target.id)),
            ("targetName", s(&entry.target.name)),
            ("expiresAt", n(entry.at.plus(RETENTION).as_seconds())),
        ]);
        let key_id = match &entry.actor {
            Actor::Key { key_id, .. } => Some(s(key_id)),
            Actor::Session { .. } | Actor::Command => None,
        };
        let optional = [
            ("user", entry.actor.user().map(s)),
            ("keyId", key_id),
            ("address", entry.source.address.as_ref().map(s)),
            ("userAgent", entry.source.user_agent.as_ref().map(s)),
        ];
        for (attribute, value) in optional {
            stored.extend(value.map(|value| (attribute.to_owned(), value)));
        }
        self.put(TABLE, stored).into_action()
    }

    /// Returns a page of an organization's entries that have not expired, newest first. Strongly
    /// consistent.
    pub async fn list_audit(
        &self,
        organization: &Organization,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<ListedEntry>, StoreError> {
        let start = page_request.after.as_ref();
        let start = start.map(|id| item([("organization", s(organization)), ("id", s(id))]));
        let query = self
            .query(TABLE)
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("organization = :organization")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":organization", s(organization))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .limit(one_more_than(page_request.limit))
            .set_exclusive_start_key(start);
        let response = query.send().await?;
        // Entries expire in order, so only the last page has fewer entries than were read.
        let more = false;
        let end_of = |item: &Item| ItemReader { table: TABLE, item }.text("id").map(str::to_owned);
        let items = response.items.unwrap_or_default();
        self.page(items, more, page_request.limit, end_of, read_entry)
    }
}

fn read_entry(item: &Item) -> Result<ListedEntry, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let text = |name| reader.optional_text(name).map(|text| text.map(str::to_owned));
    let (user, key_id) = (text("user")?, text("keyId")?);
    let (kind, id) = match (&user, key_id) {
        (Some(user), None) => ("user", user.clone()),
        (_, Some(key_id)) => ("key", key_id),
        (None, None) => ("command", COMMAND.to_owned()),
    };
    Ok(ListedEntry {
        id: reader.text("id")?.to_owned(),
        at: reader.millis("at")?,
        actor: NamedResource {
            kind: kind.to_owned(),
            id,
            name: user.unwrap_or_else(|| COMMAND.to_owned()),
        },
        action: reader.text("action")?.to_owned(),
        target: NamedResource {
            kind: reader.text("targetType")?.to_owned(),
            id: reader.text("targetId")?.to_owned(),
            name: reader.text("targetName")?.to_owned(),
        },
        source: AuditSource { address: text("address")?, user_agent: text("userAgent")? },
    })
}
