//! What people and other systems are told of when a flag changes.

use crate::projects::api_key::UserId;
use crate::projects::happening::{Happening, HappeningKind, Scene};
use crate::timestamp::Timestamp;

use super::FeatureFlag;

/// What a number of versions is multiplied with that comes before them: more than a flag ever has.
const VERSIONS: u64 = 1_000_000;

impl FeatureFlag {
    /// That it became what it is, after it was what it was before, if it was there; by whom, if that was a
    /// user.
    pub fn changed(&self, before: Option<&Self>, by: Option<&UserId>) -> Happening {
        self.happening(self.version, self.updated_at, change(before, self), by)
    }

    /// That it was deleted at `now`.
    pub fn deleted(&self, now: Timestamp, by: Option<&UserId>) -> Happening {
        self.happening(self.version.saturating_add(1), now, "deleted", by)
    }

    fn happening(
        &self,
        version: u64,
        at: Timestamp,
        change: &str,
        by: Option<&UserId>,
    ) -> Happening {
        let scene = Scene::Project(self.project_id);
        let happening =
            Happening::new(HappeningKind::FlagChanged, scene, &self.key, &self.name, at);
        // Another flag may get the key of a deleted one, and begins at version 1 as well.
        let made = u64::try_from(self.created_at.as_millis()).unwrap_or_default();
        let occasion = made.saturating_mul(VERSIONS).saturating_add(version);
        let happening = happening.detailed(change).at_occasion(occasion);
        match by {
            Some(user) => happening.by(user),
            None => happening,
        }
    }
}

/// The change in a word or two: that which matters most to those whom the flag is served to.
fn change(before: Option<&FeatureFlag>, after: &FeatureFlag) -> &'static str {
    let Some(before) = before else { return "created" };
    match (before.archived_at.is_some(), after.archived_at.is_some()) {
        (false, true) => return "archived",
        (true, false) => return "brought back",
        _ => {}
    }
    match (before.enabled, after.enabled) {
        (false, true) => "switched on",
        (true, false) => "switched off",
        _ => "changed",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::flags::evaluation::test_flags::flag;

    #[test]
    fn a_change_is_told_by_what_matters_most() {
        let flag = flag("new-checkout", &json!({}));
        assert_eq!(change(None, &flag), "created");
        let off = FeatureFlag { enabled: false, ..flag.clone() };
        assert_eq!(change(Some(&flag), &off), "switched off");
        assert_eq!(change(Some(&off), &flag), "switched on");
        let archived = FeatureFlag { archived_at: Some(flag.created_at), ..off };
        assert_eq!(change(Some(&flag), &archived), "archived");
        assert_eq!(change(Some(&archived), &flag), "brought back");
        let renamed = FeatureFlag { description: "x".to_owned(), ..flag.clone() };
        assert_eq!(change(Some(&flag), &renamed), "changed");
    }

    #[test]
    fn every_change_is_another_happening_also_of_a_flag_that_got_the_key_of_another() {
        let first = flag("new-checkout", &json!({}));
        let second = FeatureFlag { version: 2, ..first.clone() };
        let later = first.created_at.plus(Duration::from_millis(1));
        let again = FeatureFlag { created_at: later, updated_at: later, ..first.clone() };
        let user = UserId::parse("mira").unwrap();
        let told = [
            first.changed(None, None),
            second.changed(Some(&first), Some(&user)),
            second.deleted(later, Some(&user)),
            again.changed(None, None),
        ];
        let ids: BTreeSet<String> = told.iter().map(Happening::id).collect();
        assert_eq!(ids.len(), told.len());
        assert_eq!((told[2].detail.as_str(), told[2].at), ("deleted", later));
        assert_eq!((&told[0].actor, &told[1].actor), (&None, &Some(user)));
        assert_eq!(told[0].subject, "new-checkout");
    }
}
