//! Domain events for flag changes.

use notifications::domain_event::{DELETED, DomainEvent, DomainEventKind, Visibility};
use shared::audit::AuditTarget;
use shared::projects::api_key::Actor;
use shared::timestamp::Timestamp;

use super::FeatureFlag;
use super::history::ChangeKind;

/// Factor that separates the creation time from the version in an event's instance number. No flag
/// reaches this version.
const MAX_VERSIONS: u64 = 1_000_000;

impl FeatureFlag {
    /// Returns the flag as the target of an audit entry.
    pub fn audit_target(&self) -> AuditTarget {
        AuditTarget::new("flag", self.id, self.key.as_str())
    }

    /// Returns the event for a change from `before` (`None` for a new flag) to this flag.
    pub fn changed(&self, before: Option<&Self>, kind: ChangeKind, author: &Actor) -> DomainEvent {
        self.domain_event(self.version, self.updated_at, change(before, self, kind), author)
    }

    /// Returns the event for the deletion of this flag at `now`.
    pub fn deleted(&self, author: &Actor, now: Timestamp) -> DomainEvent {
        self.domain_event(self.version.saturating_add(1), now, DELETED, author)
    }

    fn domain_event(
        &self,
        version: u64,
        at: Timestamp,
        change: &str,
        author: &Actor,
    ) -> DomainEvent {
        let visibility = Visibility::Project(self.project_id);
        let domain_event =
            DomainEvent::new(DomainEventKind::FlagChanged, visibility, &self.key, &self.name, at);
        // A new flag can reuse a deleted flag's key and also starts at version 1.
        let created = u64::try_from(self.created_at.as_millis()).unwrap_or_default();
        let instance = created.saturating_mul(MAX_VERSIONS).saturating_add(version);
        let domain_event = domain_event.detailed(change).at_instance(instance);
        match author.user() {
            Some(user) => domain_event.by(user),
            None => domain_event,
        }
    }
}

/// Returns the aspect of a change that matters most for evaluations, in one or two words.
pub(crate) fn change(
    before: Option<&FeatureFlag>,
    after: &FeatureFlag,
    kind: ChangeKind,
) -> &'static str {
    match (kind, before.map(|before| before.enabled), after.enabled) {
        (ChangeKind::Created, ..) => "created",
        (ChangeKind::Archived, ..) => "archived",
        (ChangeKind::Unarchived, ..) => "unarchived",
        (ChangeKind::Restored, ..) => "restored",
        (ChangeKind::Updated, Some(false), true) => "turned on",
        (ChangeKind::Updated, Some(true), false) => "turned off",
        (ChangeKind::Updated, ..) => "changed",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::evaluation::test_flags::flag;
    use shared::projects::api_key::{KeyId, UserId};

    #[test]
    fn change_details_name_the_most_important_aspect() {
        let flag = flag("new-checkout", &json!({}));
        let off = FeatureFlag { enabled: false, ..flag.clone() };
        let archived = FeatureFlag { archived_at: Some(flag.created_at), ..off.clone() };
        let renamed = FeatureFlag { description: "x".to_owned(), ..flag.clone() };
        for (before, after, expected) in [
            (&flag, &off, "turned off"),
            (&off, &flag, "turned on"),
            (&flag, &archived, "archived"),
            (&archived, &flag, "unarchived"),
            (&flag, &renamed, "changed"),
        ] {
            assert_eq!(change(Some(before), after, ChangeKind::of(before, after)), expected);
        }
        assert_eq!(change(None, &flag, ChangeKind::Created), "created");
        assert_eq!(change(Some(&off), &flag, ChangeKind::Restored), "restored");
    }

    #[test]
    fn events_have_unique_ids_even_for_reused_keys() {
        let first = flag("new-checkout", &json!({}));
        let second = FeatureFlag { version: 2, ..first.clone() };
        let later = first.created_at.plus(Duration::from_millis(1));
        let again = FeatureFlag { created_at: later, updated_at: later, ..first.clone() };
        let user = UserId::parse("mira").unwrap();
        let key_id = KeyId::parse("0123456789abcdef").unwrap();
        let mira = Actor::Key { user: user.clone(), key_id };
        let events = [
            first.changed(None, ChangeKind::Created, &Actor::Command),
            second.changed(Some(&first), ChangeKind::Updated, &mira),
            second.deleted(&mira, later),
            again.changed(None, ChangeKind::Created, &Actor::Command),
        ];
        let ids: BTreeSet<String> = events.iter().map(DomainEvent::id).collect();
        assert_eq!(ids.len(), events.len());
        assert_eq!((events[2].detail.as_str(), events[2].at), ("deleted", later));
        assert_eq!((&events[0].actor, &events[1].actor), (&None, &Some(user)));
        assert_eq!(events[0].subject, "new-checkout");
    }
}
