//! Erasure of a project or a user from table `notifications`.

use aws_sdk_dynamodb::types::AttributeValue;

use shared::dynamodb::item::{Item, ItemReader, key, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::erasure::Subject;

use super::addresses::{UserName, address_key, confirmation_key};
use super::dispatch::EVENTS;
use super::feed::delivery_state_key;
use super::{NotificationStore, TABLE};
use crate::store::announced::ANNOUNCED;
use crate::store::outbox::OUTBOX;

/// The result of sweeping one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationSweep {
    /// The removed items, and the position of the next page.
    pub sweep: Sweep,
    /// The number of kept items that name the subject. They also concern other subjects, and are
    /// deleted once their emails are sent.
    pub mentions: u64,
}

impl NotificationStore<'_> {
    /// Deletes the addresses, confirmation request and delivery state of a user.
    pub async fn erase_delivery_state(self, name: &UserName) -> Result<Sweep, StoreError> {
        let keys = vec![address_key(name), confirmation_key(name), delivery_state_key(name)];
        self.db.sweep_away(TABLE, keys, None).await
    }

    /// Deletes a subject's outbox items, event batches and announcements from the next page.
    pub async fn sweep_notifications(
        self,
        subject: &Subject,
        after: Option<&str>,
    ) -> Result<NotificationSweep, StoreError> {
        let (items, after) = self.db.scan_page(TABLE, &[], after).await?;
        let (mut found, mut mentions) = (Vec::new(), 0);
        for item in &items {
            let reader = ItemReader { table: TABLE, item };
            let (pk, sk) = (reader.text("pk")?, reader.text("sk")?);
            if !names(item, subject) {
                continue;
            }
            // Apart from actors, these items concern one project or user each.
            let has_one_subject =
                sk.starts_with(OUTBOX) || sk.starts_with(EVENTS) || pk.starts_with(ANNOUNCED);
            if has_one_subject && belongs_to(item, subject) {
                found.push(key(pk, sk));
            } else {
                mentions += 1;
            }
        }
        let sweep = self.db.sweep_away(TABLE, found, after).await?;
        Ok(NotificationSweep { sweep, mentions })
    }
}

/// Returns `true` if an item or a domain event in it names the subject.
fn names(item: &Item, subject: &Subject) -> bool {
    domain_events(item)
        .any(|domain_event| is_about(domain_event, subject) || is_by(domain_event, subject))
}

/// Returns `true` if all domain events of an item are about the subject.
fn belongs_to(item: &Item, subject: &Subject) -> bool {
    domain_events(item).filter(|it| it.contains_key("kind")).all(|it| is_about(it, subject))
}

/// Returns the item itself and the domain events in its lists.
fn domain_events(item: &Item) -> impl Iterator<Item = &Item> {
    let lists = item.values().filter_map(|value| value.as_l().ok()).flatten();
    let maps = lists.filter_map(|value| match value {
        AttributeValue::M(map) => Some(map),
        _ => None,
    });
    std::iter::once(item).chain(maps)
}

fn is_about(domain_event: &Item, subject: &Subject) -> bool {
    let is = |name: &str, value: AttributeValue| domain_event.get(name) == Some(&value);
    match subject {
        Subject::Project(id) => is("project", s(id)),
        Subject::User(organization, user) => {
            is("organization", s(organization)) && is("user", s(user))
        }
    }
}

fn is_by(domain_event: &Item, subject: &Subject) -> bool {
    match subject {
        Subject::Project(_) => false,
        // Users with this name in other organizations also match. That only delays the erasure.
        Subject::User(_, user) => domain_event.get("actor") == Some(&s(user)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::dynamodb::item::item;
    use shared::projects::project::ProjectId;

    #[test]
    fn shared_items_only_mention_the_subject() {
        let project = ProjectId::new(uuid::Uuid::nil());
        let subject = Subject::Project(project);
        let domain_event =
            |project: &str| item([("kind", s("error_new")), ("project", s(project))]);
        let entry = |projects: &[&str]| {
            let lines = projects.iter().map(|project| AttributeValue::M(domain_event(project)));
            item([("lines", AttributeValue::L(lines.collect()))])
        };
        let (own, other) = (project.to_string(), "another".to_owned());
        assert!(names(&domain_event(&own), &subject) && belongs_to(&domain_event(&own), &subject));
        assert!(!names(&domain_event(&other), &subject));
        assert!(names(&entry(&[&own, &other]), &subject));
        assert!(!belongs_to(&entry(&[&own, &other]), &subject));
        assert!(belongs_to(&entry(&[&own, &own]), &subject));
        assert!(!names(&entry(&[]), &subject));
    }
}
