//! When the log of a project is packed, and when it is looked at next.

use std::time::Duration;

use shared::timestamp::Timestamp;

/// The time after which a row is in the log or never arrives, from the time in its key.
///
/// An attempt at writing it starts at that time. It lasts at most 3.5 s: its transaction is tried for 1.5 s,
/// and the last try lasts 2 s. Lambda ends the function 10 s after the request arrived, and DynamoDB can
/// carry out a last try some seconds after that. The clocks of writer and packer may be 20 s apart: the
/// packer refuses to pack if its own differs from DynamoDB's by more than 10 s.
pub const GRACE: Duration = Duration::from_mins(1);
/// From how many rows on they are packed at once: each step writes some items however few rows it has, and
/// large runs take fewer bytes an event.
const PACK_ROW_THRESHOLD: usize = 1_000;
/// From how many rows on they are packed where they come slowly. Each query reads what is not packed row by
/// row, at some thirty times the read units, and at few events a day these items are few as well.
const ENOUGH_SLOW_ROWS: usize = 250;
/// How long ago the oldest of rows was received, at least, that come slowly.
const SLOW: Duration = Duration::from_mins(15);
/// From how many bytes of rows on.
const ENOUGH_BYTES: usize = 1_000_000;
/// Time after which a row can certainly be packed.
pub const SOON: Duration = GRACE.saturating_add(Duration::from_secs(30));
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
        let wait = match self.rows {
            PACK_ROW_THRESHOLD.. => Duration::ZERO,
            ENOUGH_SLOW_ROWS.. => SLOW,
            _ => LONGEST_WAIT,
        };
        self.bytes >= ENOUGH_BYTES || self.oldest.is_some_and(|oldest| now >= oldest.plus(wait))
    }

    /// When to look at the project again, if these rows stay at `now`.
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        let Some(oldest) = self.oldest else { return self.latest_visit(now) };
        self.time_until_enough(self.rows, oldest, now)
            .min(oldest.plus(LONGEST_WAIT))
            .min(self.latest_visit(now))
            .max(now.plus(SHORTEST_PAUSE))
    }

    /// When to look at the project again, if these rows were packed at `now`.
    pub fn next_visit_once_packed(&self, now: Timestamp) -> Timestamp {
        if self.rows == 0 {
            return self.latest_visit(now);
        }
        self.time_until_enough(0, now, now)
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

    /// When enough rows wait, if so many do now, the oldest since then, and more come as these did.
    fn time_until_enough(&self, waiting: usize, since: Timestamp, now: Timestamp) -> Timestamp {
        let slow = self.time_until(ENOUGH_SLOW_ROWS, waiting, now).max(since.plus(SLOW));
        self.time_until(PACK_ROW_THRESHOLD, waiting, now).min(slow)
    }

    fn time_until(&self, enough: usize, waiting: usize, now: Timestamp) -> Timestamp {
        let oldest = self.oldest.unwrap_or(now);
        let took = now.as_millis().saturating_sub(oldest.as_millis()).max(1);
        let more = i64::try_from(enough.saturating_sub(waiting)).unwrap_or(i64::MAX);
        let rows = i64::try_from(self.rows).unwrap_or(i64::MAX).max(1);
        let millis = took.saturating_mul(more) / rows;
        now.plus(Duration::from_millis(millis.unsigned_abs()).min(LONGEST_WAIT))
    }
}

/// The early visit of a project that one event asks for, if it does: one of [`ENOUGH_SLOW_ROWS`] does, by the
/// event's random `draw`.
///
/// No execution environment knows how many rows the others write. Independent draws need no count: the
/// visit follows [`ENOUGH_SLOW_ROWS`] rows of all together on average, and sees the rate at which they come.
pub fn early_check(draw: u32, now: Timestamp) -> Option<Timestamp> {
    let asks = usize::try_from(draw).is_ok_and(|draw| draw.is_multiple_of(ENOUGH_SLOW_ROWS));
    asks.then(|| now.plus(SOON))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const MINUTE: Duration = Duration::from_mins(1);

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
        assert!(!is_worth(0, HOUR) && !is_worth(249, 23 * HOUR) && is_worth(1, 24 * HOUR));
        assert!(!is_worth(250, 14 * MINUTE) && is_worth(250, 15 * MINUTE));
        assert!(!is_worth(999, 14 * MINUTE) && is_worth(1_000, MINUTE));
        assert!(Backlog { bytes: 1_000_000, ..backlog(1, HOUR) }.is_worth_packing(now()));
    }

    #[test]
    fn a_project_is_looked_at_again_when_enough_rows_can_be_expected() {
        let visit = |rows, age| backlog(rows, age).next_check(now());
        assert_eq!(visit(0, HOUR), now().plus(24 * HOUR));
        assert_eq!(visit(125, HOUR), now().plus(HOUR));
        assert_eq!(visit(1, 10 * HOUR), now().plus(14 * HOUR));
        assert_eq!(visit(249, HOUR), now().plus(MINUTE));
        assert_eq!(visit(250, 5 * MINUTE), now().plus(10 * MINUTE));
        assert_eq!(visit(500, 5 * MINUTE), now().plus(5 * MINUTE));
        let packed = |rows, age| backlog(rows, age).next_visit_once_packed(now());
        assert_eq!(packed(24, 24 * HOUR), now().plus(24 * HOUR));
        assert_eq!(packed(250, HOUR), now().plus(HOUR));
        assert_eq!(packed(2_000, HOUR), now().plus(15 * MINUTE));
        assert_eq!(packed(10_000, HOUR), now().plus(6 * MINUTE));
        assert_eq!(packed(100_000, HOUR), now().plus(MINUTE));
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
    fn one_of_250_events_asks_for_an_early_visit() {
        let visits: Vec<_> = (0..1_000).filter_map(|draw| early_check(draw, now())).collect();
        assert_eq!(visits, [now().plus(Duration::from_secs(90)); 4]);
    }
}
