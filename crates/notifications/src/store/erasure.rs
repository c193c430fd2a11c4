//! What a project or a user that is erased leaves in table `notifications`.

use aws_sdk_dynamodb::types::AttributeValue;

use shared::dynamodb::item::{Item, ItemReader, key, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::erasure::Subject;

use super::addresses::{UserName, address_key, confirmation_key};
use super::dispatch::EVENTS;
use super::feed::mailbox_key;
use super::{NotificationStore, TABLE};
use crate::store::announced::ANNOUNCED;
use crate::store::outbox::OUTBOX;

/// What one step of a sweep of notifications found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationSweep {
    /// What it removed, and where the next step goes on.
    pub sweep: Sweep,
    /// How many items it left that name the subject: lines of feeds, which tell of others too. They go
    /// once their mails are sent.
    pub mentions: u64,
}

impl NotificationStore<'_> {
    /// Removes where a user gets mail, and what is noted of mails to the user.
    pub async fn erase_mailbox(self, name: &UserName) -> Result<Sweep, StoreError> {
        let keys = vec![address_key(name), confirmation_key(name), mailbox_key(name)];
        self.db.sweep_away(TABLE, keys, None).await
    }

    /// Removes what is on its way of a project, or to a user, from the next page of the table.
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
            // Of these each is of one project, or one user; but for who did it.
            let of_one_scene =
                sk.starts_with(OUTBOX) || sk.starts_with(EVENTS) || pk.starts_with(ANNOUNCED);
            if of_one_scene && is_scene(item, subject) {
                found.push(key(pk, sk));
            } else {
                mentions += 1;
            }
        }
        let sweep = self.db.sweep_away(TABLE, found, after).await?;
        Ok(NotificationSweep { sweep, mentions })
    }
}

/// Whether an item, or a happening in it, names the subject.
fn names(item: &Item, subject: &Subject) -> bool {
    domain_events(item)
        .any(|domain_event| is_about(domain_event, subject) || is_by(domain_event, subject))
}

/// Whether a happening, or all of a batch, is the subject's own.
fn is_scene(item: &Item, subject: &Subject) -> bool {
    domain_events(item).filter(|it| it.contains_key("kind")).all(|it| is_about(it, subject))
}

/// The item itself, and the happenings in its lists.
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
        // Users of the same name in other organizations only make this wait a little longer.
        Subject::User(_, user) => domain_event.get("actor") == Some(&s(user)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::dynamodb::item::item;
    use shared::projects::project::ProjectId;

    #[test]
    fn what_tells_of_others_too_only_mentions_it() {
        let project = ProjectId::new(uuid::Uuid::nil());
        let subject = Subject::Project(project);
        let domain_event =
            |project: &str| item([("kind", s("error_new")), ("project", s(project))]);
        let step = |of: &[&str]| {
            let lines = of.iter().map(|project| AttributeValue::M(domain_event(project)));
            item([("lines", AttributeValue::L(lines.collect()))])
        };
        let (own, other) = (project.to_string(), "another".to_owned());
        assert!(names(&domain_event(&own), &subject) && is_scene(&domain_event(&own), &subject));
        assert!(!names(&domain_event(&other), &subject));
        assert!(names(&step(&[&own, &other]), &subject));
        assert!(!is_scene(&step(&[&own, &other]), &subject));
        assert!(is_scene(&step(&[&own, &own]), &subject));
        assert!(!names(&step(&[]), &subject));
    }
}
