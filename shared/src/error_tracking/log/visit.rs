//! When the log of a project is packed, and when it is looked at next.

use std::time::Duration;

use crate::timestamp::Timestamp;

/// How long after the time in its key a row may still come. An attempt at writing it starts with that
/// time and lasts 3.5 s at most: its transaction is tried for 1.5 s, and the last try for 2 s. The rest
/// is for clocks that differ. What comes later all the same is looked for once more.
pub const GRACE: Duration = Duration::from_secs(90);
/// From how many rows on they are packed at once. Each query reads what is not packed row by row, at some
/// thirty times the read units: so it is as few as 0.05 write units an event for packing allow.
pub const ENOUGH_ROWS: usize = 500;
/// From how many bytes of rows on.
const ENOUGH_BYTES: usize = 1_000_000;
/// How long a row waits at most.
pub const LONGEST_WAIT: Duration = Duration::from_hours(24);
/// How often a project is looked at while something is left to remove of deleted errors.
const DELETIONS_PAUSE: Duration = Duration::from_mins(10);
/// How often a project is looked at, at most.
const SHORTEST_PAUSE: Duration = Duration::from_mins(1);

/// Rows that can be packed, as far as they were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many.
    pub rows: usize,
    /// Their bytes.
    pub bytes: usize,
    /// When the first of them was received.
    pub oldest: Option<Timestamp>,
    /// Whether something is left to remove of errors that were deleted.
    pub has_deletions: bool,
}

impl Backlog {
    /// Whether it is worth to pack them at `now`.
    pub fn is_worth_packing(&self, now: Timestamp) -> bool {
        self.rows >= ENOUGH_ROWS
            || self.bytes >= ENOUGH_BYTES
            || self.oldest.is_some_and(|oldest| now >= oldest.plus(LONGEST_WAIT))
    }

    /// When to look at the project again, if these rows stay at `now`.
    pub fn next_visit(&self, now: Timestamp) -> Timestamp {
        let Some(oldest) = self.oldest else { return self.latest_visit(now) };
        let missing = ENOUGH_ROWS.saturating_sub(self.rows);
        self.time_for(missing, oldest, now)
            .min(oldest.plus(LONGEST_WAIT))
            .min(self.latest_visit(now))
            .max(now.plus(SHORTEST_PAUSE))
    }

    /// When to look at the project again, if these rows were packed at `now`.
    pub fn next_visit_once_packed(&self, now: Timestamp) -> Timestamp {
        let Some(oldest) = self.oldest else { return self.latest_visit(now) };
        self.time_for(ENOUGH_ROWS, oldest, now)
            .min(self.latest_visit(now))
            .max(now.plus(SHORTEST_PAUSE))
    }

    /// About how many rows have come from `end` to `now`, if they come as these did, which end there.
    pub fn rows_since(&self, end: Timestamp, now: Timestamp) -> u64 {
        let Some(oldest) = self.oldest else { return 0 };
        let rows = u128::try_from(self.rows).unwrap_or_default();
        let since = rows.saturating_mul(end.until(now).as_millis());
        u64::try_from(since / oldest.until(end).as_millis().max(1)).unwrap_or(u64::MAX)
    }

    fn latest_visit(&self, now: Timestamp) -> Timestamp {
        now.plus(if self.has_deletions { DELETIONS_PAUSE } else { LONGEST_WAIT })
    }

    /// When so many more rows have come, if they come as these did.
    fn time_for(&self, more: usize, oldest: Timestamp, now: Timestamp) -> Timestamp {
        let took = now.as_millis().saturating_sub(oldest.as_millis()).max(1);
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let rows = i64::try_from(self.rows).unwrap_or(i64::MAX).max(1);
        let millis = took.saturating_mul(more) / rows;
        now.plus(Duration::from_millis(millis.unsigned_abs()).min(LONGEST_WAIT))
    }
}

/// When a project should be looked at by which one function alone took `events` in `took`; `None` if
/// there is no hurry.
pub fn early_visit(events: u64, took: Duration, now: Timestamp) -> Option<Timestamp> {
    let seen = Backlog {
        rows: usize::try_from(events).unwrap_or(usize::MAX),
        bytes: 0,
        oldest: (events > 0).then(|| now.minus(took)),
        has_deletions: false,
    };
    let visit = seen.next_visit_once_packed(now);
    (visit < now.plus(LONGEST_WAIT)).then_some(visit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap()
    }

    fn backlog(rows: usize, age: Duration) -> Backlog {
        let oldest = (rows > 0).then(|| now().minus(age));
        Backlog { rows, bytes: rows * 200, oldest, has_deletions: false }
    }

    #[test]
    fn many_rows_or_old_ones_are_packed() {
        let is_worth = |rows, age| backlog(rows, age).is_worth_packing(now());
        assert!(!is_worth(0, HOUR) && !is_worth(499, 23 * HOUR));
        assert!(is_worth(500, HOUR) && is_worth(1, 24 * HOUR));
        assert!(Backlog { bytes: 1_000_000, ..backlog(1, HOUR) }.is_worth_packing(now()));
    }

    #[test]
    fn a_project_is_looked_at_again_when_enough_rows_can_be_expected() {
        let visit = |rows, age| backlog(rows, age).next_visit(now());
        assert_eq!(visit(0, HOUR), now().plus(24 * HOUR));
        assert_eq!(visit(125, HOUR), now().plus(3 * HOUR));
        assert_eq!(visit(1, 10 * HOUR), now().plus(14 * HOUR));
        assert_eq!(visit(499, HOUR), now().plus(Duration::from_mins(1)));
        let packed = |rows, age| backlog(rows, age).next_visit_once_packed(now());
        assert_eq!(packed(500, HOUR), now().plus(HOUR));
        assert_eq!(packed(10_000, HOUR), now().plus(3 * Duration::from_mins(1)));
        assert_eq!(packed(24, 24 * HOUR), now().plus(24 * HOUR));
    }

    #[test]
    fn rows_that_are_not_read_are_estimated_by_those_that_were() {
        let end = now().minus(3 * HOUR);
        let read = |rows| Backlog { oldest: Some(end.minus(HOUR)), ..backlog(rows, HOUR) };
        assert_eq!(read(20_000).rows_since(end, now()), 60_000);
        assert_eq!(read(20_000).rows_since(end, end), 0);
        assert_eq!(backlog(0, HOUR).rows_since(end, now()), 0);
        let at_once = Backlog { oldest: Some(end), ..backlog(2, HOUR) };
        assert_eq!(at_once.rows_since(end, end.plus(Duration::from_secs(1))), 2_000);
    }

    #[test]
    fn of_a_hundred_events_a_second_no_more_than_15_000_wait() {
        for minutes in [1, 3, 60] {
            let age = Duration::from_mins(minutes);
            let rows = usize::try_from(100 * age.as_secs()).unwrap();
            let visit = backlog(rows, age).next_visit_once_packed(now());
            let pause = visit.as_millis() - now().as_millis();
            let waiting = GRACE + Duration::from_millis(pause.unsigned_abs());
            assert!(100 * waiting.as_secs() <= 15_000, "{minutes}: {waiting:?}");
        }
    }

    #[test]
    fn who_takes_many_events_has_the_project_looked_at_early() {
        let minute = Duration::from_mins(1);
        assert_eq!(early_visit(0, minute, now()), None);
        assert_eq!(early_visit(2, HOUR, now()), None);
        assert_eq!(early_visit(20, minute, now()), Some(now().plus(25 * minute)));
        assert_eq!(early_visit(100_000, minute, now()), Some(now().plus(minute)));
    }
}
