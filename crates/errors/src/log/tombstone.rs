//! Deleted errors whose events are still stored in the log and its runs, but no longer count.

use std::time::Duration;

use shared::timestamp::Timestamp;

use super::day::Day;
use super::manifest::Run;
use crate::ErrorId;
use crate::grouping::Fingerprint;

/// Retention of a tombstone after the last event was removed: no query reads an old manifest for
/// longer than 1 hour.
const RETENTION_AFTER_REMOVAL: Duration = Duration::from_hours(1);

/// A deleted error. Its events received before the deletion do not count, later ones do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The error that was deleted.
    pub error: ErrorId,
    /// The fingerprint of its events.
    pub fingerprint: Fingerprint,
    /// The time of the deletion.
    pub at: Timestamp,
    /// The day of its first event.
    pub first_day: Day,
    /// The progress of the removal.
    pub removed: RemovalProgress,
}

/// The progress of removing the events of a deleted error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalProgress {
    /// The events are removed from the runs of all days before this one.
    FromRunsBefore(Day),
    /// The events are removed from all runs, and payloads, rows and keys up to this key.
    UpToEvent {
        /// The partition of the key.
        shard: u8,
        /// The key. `None` before the first of the partition.
        after: Option<String>,
    },
    /// All events were removed at this time.
    All(Timestamp),
}

impl Tombstone {
    /// Returns the last day that can have events of the error.
    pub fn last_day(&self) -> Day {
        Day::of(self.at).next()
    }

    /// `true` if all events are removed, but the tombstone is still kept at `now`.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        matches!(self.removed, RemovalProgress::All(at) if now < at.plus(RETENTION_AFTER_REMOVAL))
    }

    /// `true` if all events of a run are from before the deletion.
    ///
    /// Other runs have no deleted events: no pack step spans a deletion, and compaction drops
    /// deleted events.
    pub fn hides_in(&self, run: &Run) -> bool {
        run.until <= self.at
    }
}

/// The tombstones of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tombstones(pub Vec<Tombstone>);

impl Tombstones {
    /// `true` if an event with this fingerprint, received at `received_at`, is deleted.
    pub fn hide_event(&self, fingerprint: Fingerprint, received_at: Timestamp) -> bool {
        let mut of_group = self.0.iter().filter(|it| it.fingerprint == fingerprint);
        of_group.any(|tombstone| received_at < tombstone.at)
    }

    /// `true` if the events with this fingerprint in a run are deleted.
    pub fn hide_in_run(&self, fingerprint: Fingerprint, run: &Run) -> bool {
        let mut of_group = self.0.iter().filter(|it| it.fingerprint == fingerprint);
        of_group.any(|tombstone| tombstone.hides_in(run))
    }

    /// `true` if a run of a day can contain deleted events. Its totals then cannot be used.
    pub fn may_hide_in(&self, day: Day, run: &Run) -> bool {
        let of_day = self.0.iter().filter(|it| (it.first_day..=it.last_day()).contains(&day));
        of_day.into_iter().any(|tombstone| tombstone.hides_in(run))
    }

    /// Returns the first deletion after `from` and up to `to`. A pack step ends there.
    pub fn first_between(&self, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        let times = self.0.iter().map(|tombstone| tombstone.at);
        times.filter(|at| from < *at && *at <= to).min()
    }
}
