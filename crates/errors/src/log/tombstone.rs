//! Deleted errors whose events are still in the log and its runs, and count no more.

use std::time::Duration;

use shared::timestamp::Timestamp;

use super::day::Day;
use super::manifest::Run;
use crate::ErrorId;
use crate::grouping::Fingerprint;

/// How long after the last of its events was removed a deleted error is remembered: nobody reads a
/// manifest for longer.
const RETENTION_AFTER_REMOVAL: Duration = Duration::from_hours(1);

/// A deleted error: what was received of it before its deletion does not count, what came since does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// The error that was deleted.
    pub error: ErrorId,
    /// What its events had in common.
    pub fingerprint: Fingerprint,
    /// Over how many partitions the keys of its events were spread.
    pub event_shards: u8,
    /// When it was deleted.
    pub at: Timestamp,
    /// The day of its first event.
    pub first_day: Day,
    /// What of it has been removed.
    pub removed: RemovalProgress,
}

/// How far the events of a deleted error are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalProgress {
    /// From the runs of the days before this one.
    FromRunsBefore(Day),
    /// From all runs. Payloads are removed up to a key among those of its events, if any are.
    UpToEvent {
        /// The partition of the key.
        shard: u8,
        /// The key; `None` before the first of the partition.
        after: Option<String>,
    },
    /// All of it, at that time.
    All(Timestamp),
}

impl Tombstone {
    /// The last day that may have events of it.
    pub fn last_day(&self) -> Day {
        Day::of(self.at).next()
    }

    /// Whether all of it is removed, and it is still to be remembered at `now`.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        matches!(self.removed, RemovalProgress::All(at) if now < at.plus(RETENTION_AFTER_REMOVAL))
    }

    /// Whether a run has events of before its deletion only. No step of packing spans a deletion, and
    /// merging leaves out what is deleted; so other runs have none of these events.
    pub fn hides_in(&self, run: &Run) -> bool {
        run.until <= self.at
    }
}

/// The deleted errors of a project that are remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tombstones(pub Vec<Tombstone>);

impl Tombstones {
    /// Whether an event does not count that was received then.
    pub fn hide_event(&self, fingerprint: Fingerprint, received_at: Timestamp) -> bool {
        let mut of_kind = self.0.iter().filter(|it| it.fingerprint == fingerprint);
        of_kind.any(|tombstone| received_at < tombstone.at)
    }

    /// Whether the events of a kind do not count that a run has.
    pub fn hide_in_run(&self, fingerprint: Fingerprint, run: &Run) -> bool {
        let mut of_kind = self.0.iter().filter(|it| it.fingerprint == fingerprint);
        of_kind.any(|tombstone| tombstone.hides_in(run))
    }

    /// Whether a run of a day may have events that do not count: its totals do not tell then.
    pub fn may_hide_in(&self, day: Day, run: &Run) -> bool {
        let of_day = self.0.iter().filter(|it| (it.first_day..=it.last_day()).contains(&day));
        of_day.into_iter().any(|tombstone| tombstone.hides_in(run))
    }

    /// Whether an error is deleted.
    pub fn have(&self, error: ErrorId) -> bool {
        self.0.iter().any(|tombstone| tombstone.error == error)
    }

    /// The first deletion after `from`, and at `to` at the latest: a step of packing ends there.
    pub fn first_between(&self, from: Timestamp, to: Timestamp) -> Option<Timestamp> {
        let times = self.0.iter().map(|tombstone| tombstone.at);
        times.filter(|at| from < *at && *at <= to).min()
    }
}
