//! Schedules the packing of a project's log and the next check of the project.

use std::time::Duration;

use shared::timestamp::Timestamp;

/// Time from the timestamp in a row's key until the row is in the log or will never arrive.
///
/// A write starts at that timestamp and lasts at most 3.5 s. Its transaction is retried for 1.5 s,
/// and the last try takes up to 2 s. Lambda ends the function 10 s after the request arrived.
/// DynamoDB can apply a last try some seconds later. The clocks of writer and packer can differ by
/// 20 s: the packer stops if its clock differs from DynamoDB's by more than 10 s.
pub const GRACE: Duration = Duration::from_mins(1);
/// Number of rows that are packed immediately. Each step writes a few items even for few rows, and
/// large runs take fewer bytes per event.
const PACK_ROW_THRESHOLD: usize = 1_000;
/// Number of rows that are packed if they arrive slowly. Queries read unpacked rows one by one, at
/// about thirty times the read units. At few events a day, packing writes few items too.
const SLOW_PACK_ROW_THRESHOLD: usize = 250;
/// Minimum age of the oldest row for rows that arrive slowly.
const SLOW_AGE: Duration = Duration::from_mins(15);
/// Bytes of rows that are packed immediately.
const PACK_BYTE_THRESHOLD: usize = 1_000_000;
/// Delay after which a row can certainly be packed.
pub const SOON: Duration = GRACE.saturating_add(Duration::from_secs(30));
/// Maximum time that a row waits to be packed.
pub const LONGEST_WAIT: Duration = Duration::from_hours(24);
/// Time between checks of a project while events of deleted errors are left to remove.
const DELETION_CHECK_INTERVAL: Duration = Duration::from_mins(10);
/// Minimum time between checks of a project.
const MIN_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The rows that were read and can be packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of rows.
    pub rows: usize,
    /// The bytes of the rows.
    pub bytes: usize,
    /// The time of receipt of the first row.
    pub oldest: Option<Timestamp>,
    /// `true` if events of deleted errors are left to remove.
    pub has_deletions: bool,
}

impl Backlog {
    /// `true` if packing the rows at `now` is worth a step.
    pub fn is_worth_packing(&self, now: Timestamp) -> bool {
        let wait = match self.rows {
            PACK_ROW_THRESHOLD.. => Duration::ZERO,
            SLOW_PACK_ROW_THRESHOLD.. => SLOW_AGE,
            _ => LONGEST_WAIT,
        };
        self.bytes >= PACK_BYTE_THRESHOLD
            || self.oldest.is_some_and(|oldest| now >= oldest.plus(wait))
    }

    /// Returns the time of the next check of the project if the rows are not packed at `now`.
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        let Some(oldest) = self.oldest else { return self.latest_check(now) };
        self.time_until_enough(self.rows, oldest, now)
            .min(oldest.plus(LONGEST_WAIT))
            .min(self.latest_check(now))
            .max(now.plus(MIN_CHECK_INTERVAL))
    }

    /// Returns the time of the next check of the project if the rows were packed at `now`.
    pub fn next_visit_once_packed(&self, now: Timestamp) -> Timestamp {
        if self.rows == 0 {
            return self.latest_check(now);
        }
        self.time_until_enough(0, now, now)
            .min(self.latest_check(now))
            .max(now.plus(MIN_CHECK_INTERVAL))
    }

    /// Estimates the rows received from `end` to `now` by the rate of these rows, which end at
    /// `end`.
    pub fn rows_since(&self, end: Timestamp, now: Timestamp) -> u64 {
        let Some(oldest) = self.oldest else { return 0 };
        let rows = u128::try_from(self.rows).unwrap_or_default();
        let since = rows.saturating_mul(end.until(now).as_millis());
        u64::try_from(since / oldest.until(end).as_millis().max(1)).unwrap_or(u64::MAX)
    }

    fn latest_check(&self, now: Timestamp) -> Timestamp {
        now.plus(if self.has_deletions { DELETION_CHECK_INTERVAL } else { LONGEST_WAIT })
    }

    /// Estimates when enough rows wait. `waiting` rows wait at `now`, the oldest since `since`. New
    /// rows arrive at the rate of these rows.
    fn time_until_enough(&self, waiting: usize, since: Timestamp, now: Timestamp) -> Timestamp {
        let slow = self.time_until(SLOW_PACK_ROW_THRESHOLD, waiting, now).max(since.plus(SLOW_AGE));
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

/// Returns the time of an early check if the event's random `draw` requests one: 1 of 250 events
/// does.
///
/// No execution environment knows how many rows the others write. Independent draws need no count:
/// on average, the check follows 250 rows of all environments together, and sees their rate.
pub fn early_check(draw: u32, now: Timestamp) -> Option<Timestamp> {
    let is_drawn =
        usize::try_from(draw).is_ok_and(|draw| draw.is_multiple_of(SLOW_PACK_ROW_THRESHOLD));
    is_drawn.then(|| now.plus(SOON))
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
    fn next_check_waits_for_enough_rows() {
        let check = |rows, age| backlog(rows, age).next_check(now());
        assert_eq!(check(0, HOUR), now().plus(24 * HOUR));
        assert_eq!(check(125, HOUR), now().plus(HOUR));
        assert_eq!(check(1, 10 * HOUR), now().plus(14 * HOUR));
        assert_eq!(check(249, HOUR), now().plus(MINUTE));
        assert_eq!(check(250, 5 * MINUTE), now().plus(10 * MINUTE));
        assert_eq!(check(500, 5 * MINUTE), now().plus(5 * MINUTE));
        let packed = |rows, age| backlog(rows, age).next_visit_once_packed(now());
        assert_eq!(packed(24, 24 * HOUR), now().plus(24 * HOUR));
        assert_eq!(packed(250, HOUR), now().plus(HOUR));
        assert_eq!(packed(2_000, HOUR), now().plus(15 * MINUTE));
        assert_eq!(packed(10_000, HOUR), now().plus(6 * MINUTE));
        assert_eq!(packed(100_000, HOUR), now().plus(MINUTE));
    }

    #[test]
    fn unread_rows_are_estimated_by_read_rows() {
        let end = now().minus(3 * HOUR);
        let read = |rows| Backlog { oldest: Some(end.minus(HOUR)), ..backlog(rows, HOUR) };
        assert_eq!(read(20_000).rows_since(end, now()), 60_000);
        assert_eq!(read(20_000).rows_since(end, end), 0);
        assert_eq!(backlog(0, HOUR).rows_since(end, now()), 0);
        let at_once = Backlog { oldest: Some(end), ..backlog(2, HOUR) };
        assert_eq!(at_once.rows_since(end, end.plus(Duration::from_secs(1))), 2_000);
    }

    #[test]
    fn high_rates_leave_at_most_15_000_rows() {
        for minutes in [1, 3, 60] {
            let age = Duration::from_mins(minutes);
            let rows = usize::try_from(100 * age.as_secs()).unwrap();
            let check = backlog(rows, age).next_visit_once_packed(now());
            let pause = check.as_millis() - now().as_millis();
            let waiting = GRACE + Duration::from_millis(pause.unsigned_abs());
            assert!(100 * waiting.as_secs() <= 15_000, "{minutes}: {waiting:?}");
        }
    }

    #[test]
    fn one_of_250_events_requests_an_early_check() {
        let checks: Vec<_> = (0..1_000).filter_map(|draw| early_check(draw, now())).collect();
        assert_eq!(checks, [now().plus(Duration::from_secs(90)); 4]);
    }
}
