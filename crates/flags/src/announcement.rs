//! What people and other systems are told of when a flag changes.

use notifications::domain_event::{DELETED, DomainEvent, DomainEventKind, Visibility};
use shared::projects::api_key::Actor;
use shared::timestamp::Timestamp;

use super::FeatureFlag;
use super::history::ChangeKind;

/// What a number of versions is multiplied with that comes before them: more than a flag ever has.
const VERSIONS: u64 = 1_000_000;

impl FeatureFlag {
    /// That it became what it is, after it was what it was `before`, if it was there.
    pub fn changed(&self, before: Option<&Self>, kind: ChangeKind, author: &Actor) -> DomainEvent {
        self.domain_event(self.version, self.updated_at, change(before, self, kind), author)
    }

    /// That it was deleted at `now`.
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
        let scene = Visibility::Project(self.project_id);
        let domain_event =
            DomainEvent::new(DomainEventKind::FlagChanged, scene, &self.key, &self.name, at);
        // Another flag may get the key of a deleted one, and begins at version 1 as well.
        let made = u64::try_from(self.created_at.as_millis()).unwrap_or_default();
        let instance = made.saturating_mul(VERSIONS).saturating_add(version);
        let domain_event = domain_event.detailed(change).at_occasion(instance);
        match author.user() {
            Some(user) => domain_event.by(user),
            None => domain_event,
        }
    }
}

/// The change in a word or two: that which matters most to those whom the flag is served to.
fn change(before: Option<&FeatureFlag>, after: &FeatureFlag, kind: ChangeKind) -> &'static str {
    match (kind, before.map(|before| before.enabled), after.enabled) {
        (ChangeKind::Created, ..) => "created",
        (ChangeKind::Archived, ..) => "archived",
        (ChangeKind::Unarchived, ..) => "brought back",
        (ChangeKind::Restored, ..) => "restored",
        (ChangeKind::Updated, Some(false), true) => "switched on",
        (ChangeKind::Updated, Some(true), false) => "switched off",
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
    fn a_change_is_told_by_what_matters_most() {
        let flag = flag("new-checkout", &json!({}));
        let off = FeatureFlag { enabled: false, ..flag.clone() };
        let archived = FeatureFlag { archived_at: Some(flag.created_at), ..off.clone() };
        let renamed = FeatureFlag { description: "x".to_owned(), ..flag.clone() };
        for (before, after, told) in [
            (&flag, &off, "switched off"),
            (&off, &flag, "switched on"),
            (&flag, &archived, "archived"),
            (&archived, &flag, "brought back"),
            (&flag, &renamed, "changed"),
        ] {
            assert_eq!(change(Some(before), after, ChangeKind::of(before, after)), told);
        }
        assert_eq!(change(None, &flag, ChangeKind::Created), "created");
        assert_eq!(change(Some(&off), &flag, ChangeKind::Restored), "restored");
    }

    #[test]
    fn every_change_is_another_domain_event_also_of_a_flag_that_got_the_key_of_another() {
        let first = flag("new-checkout", &json!({}));
        let second = FeatureFlag { version: 2, ..first.clone() };
        let later = first.created_at.plus(Duration::from_millis(1));
        let again = FeatureFlag { created_at: later, updated_at: later, ..first.clone() };
        let user = UserId::parse("mira").unwrap();
        let key_id = KeyId::parse("0123456789abcdef").unwrap();
        let mira = Actor::Key { user: user.clone(), key_id };
        let told = [
            first.changed(None, ChangeKind::Created, &Actor::Command),
            second.changed(Some(&first), ChangeKind::Updated, &mira),
            second.deleted(&mira, later),
            again.changed(None, ChangeKind::Created, &Actor::Command),
        ];
        let ids: BTreeSet<String> = told.iter().map(DomainEvent::id).collect();
        assert_eq!(ids.len(), told.len());
        assert_eq!((told[2].detail.as_str(), told[2].at), ("deleted", later));
        assert_eq!((&told[0].actor, &told[1].actor), (&None, &Some(user)));
        assert_eq!(told[0].subject, "new-checkout");
    }
}
