//! Schedule of a user's emails (`docs/notifications.md`): the first of a kind immediately, later
//! events in batches of ten minutes, all within an hourly limit.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::timestamp::Timestamp;

use crate::domain_event::DomainEventKind;

/// Duration of a batch window.
pub const WINDOW: Duration = Duration::from_mins(10);
/// Period of the hourly email limit.
const HOUR: Duration = Duration::from_hours(1);

/// A time in which events of one kind are batched into one email.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchWindow {
    /// The number of the last feed entry that needs no email anymore.
    pub covered: u64,
    /// The end of the window.
    pub until: Timestamp,
    /// The time since which the hourly limit defers this email, if it does.
    pub deferred_since: Option<Timestamp>,
}

/// The recent emails of a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryState {
    /// Windows by kind. Emails of kinds without a window are sent immediately.
    pub windows: BTreeMap<DomainEventKind, BatchWindow>,
    /// Times of emails in the last hour, earliest first.
    pub sent: Vec<Timestamp>,
    /// Incremented by each write; 0 if nothing is stored.
    pub revision: u64,
}

impl DeliveryState {
    /// Returns the number of the last feed entry that needs no email of a kind, or `None` while its
    /// window is open. `delivered`: [`crate::feed::FeedHead::delivered`].
    pub fn covered(&self, kind: DomainEventKind, delivered: u64, now: Timestamp) -> Option<u64> {
        match self.windows.get(&kind) {
            Some(window) => (now >= window.until).then_some(window.covered),
            None => Some(delivered),
        }
    }

    /// Returns the time until which the hourly limit forbids an email, or `None` if it allows one.
    pub fn rate_limited_until(&self, emails_per_hour: usize, now: Timestamp) -> Option<Timestamp> {
        let recent: Vec<Timestamp> =
            self.sent.iter().map(|at| at.plus(HOUR)).filter(|at| *at > now).collect();
        let over = recent.len().checked_sub(emails_per_hour)?;
        recent.get(over).copied()
    }

    /// Records an email about all entries up to `last`, and opens a window.
    pub fn note_sent(&mut self, kind: DomainEventKind, last: u64, now: Timestamp) {
        self.sent.retain(|at| at.plus(HOUR) > now);
        self.sent.push(now);
        self.windows.insert(
            kind,
            BatchWindow { covered: last, until: now.plus(WINDOW), deferred_since: None },
        );
    }

    /// Defers the email about entries after `covered`, because of the hourly limit. Returns `true`
    /// the first time: an email that is deferred again counts once.
    pub fn defer(
        &mut self,
        kind: DomainEventKind,
        covered: u64,
        until: Timestamp,
        now: Timestamp,
    ) -> bool {
        let deferred_since = self.windows.get(&kind).and_then(|window| window.deferred_since);
        let window = BatchWindow { covered, until, deferred_since: deferred_since.or(Some(now)) };
        self.windows.insert(kind, window);
        deferred_since.is_none()
    }

    /// Returns the kinds whose windows have ended at `now`. Deferred emails come first, longest
    /// deferred first, so that busy kinds cannot take the whole hourly limit.
    pub fn due(&self, now: Timestamp) -> Vec<DomainEventKind> {
        let mut due: Vec<_> = self.windows.iter().filter(|(_, it)| it.until <= now).collect();
        due.sort_by_key(|(_, it)| {
            (it.deferred_since.is_none(), it.deferred_since.unwrap_or(it.until))
        });
        due.into_iter().map(|(kind, _)| *kind).collect()
    }

    /// Closes the window of a kind. Returns `true` if one was closed.
    ///
    /// The window stays while it covers entries after `delivered`: without it they would be sent
    /// again.
    pub fn close(&mut self, kind: DomainEventKind, delivered: u64) -> bool {
        let can_close = self.windows.get(&kind).is_some_and(|window| window.covered <= delivered);
        can_close && self.windows.remove(&kind).is_some()
    }

    /// Returns `true` if the state has no effect from `now` on, and can be deleted.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.windows.is_empty() && self.sent.iter().all(|at| at.plus(HOUR) <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: DomainEventKind = DomainEventKind::ErrorCreated;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_mins(minutes))
    }

    #[test]
    fn later_events_are_batched_for_ten_minutes() {
        let mut state = DeliveryState::default();
        assert_eq!(state.covered(KIND, 4, at(0)), Some(4));
        state.note_sent(KIND, 5, at(0));
        assert_eq!(state.covered(KIND, 5, at(9)), None);
        assert_eq!(state.covered(KIND, 7, at(10)), Some(5));
        // Other kinds do not wait.
        assert_eq!(state.covered(DomainEventKind::FlagChanged, 7, at(1)), Some(7));
    }

    #[test]
    fn storms_cause_seven_emails_an_hour() {
        let (mut state, mut sent) = (DeliveryState::default(), 0);
        for minute in 0..=60 {
            if state.covered(KIND, 0, at(minute)).is_some() {
                state.note_sent(KIND, minute, at(minute));
                sent += 1;
            }
        }
        assert_eq!(sent, 7);
    }

    #[test]
    fn emails_over_the_hourly_limit_are_deferred() {
        let mut state = DeliveryState::default();
        for (minute, kind) in [0, 10, 20].into_iter().zip(DomainEventKind::ALL) {
            assert_eq!(state.rate_limited_until(3, at(minute)), None);
            state.note_sent(kind, 1, at(minute));
        }
        assert_eq!(state.rate_limited_until(3, at(21)), Some(at(60)));
        assert_eq!(state.rate_limited_until(2, at(21)), Some(at(70)));
        assert_eq!(state.rate_limited_until(3, at(60)), None);
        assert!(state.defer(KIND, 1, at(50), at(21)));
        assert!(!state.defer(KIND, 1, at(60), at(50)), "already deferred");
        assert_eq!(state.covered(KIND, 9, at(59)), None);
        assert_eq!(state.covered(KIND, 9, at(60)), Some(1));
        state.note_sent(KIND, 9, at(60));
        assert!(state.defer(KIND, 9, at(70), at(61)), "another email");
    }

    #[test]
    fn longest_deferred_kinds_come_first() {
        let mut state = DeliveryState::default();
        let [urgent, other, last, open] = [
            DomainEventKind::ErrorCreated,
            DomainEventKind::FlagChanged,
            DomainEventKind::WeekEnded,
            DomainEventKind::ErrorSpiked,
        ];
        assert!(urgent < last);
        state.note_sent(other, 1, at(0));
        state.note_sent(open, 1, at(50));
        state.defer(last, 1, at(55), at(20));
        state.defer(urgent, 1, at(55), at(30));
        state.defer(urgent, 1, at(59), at(55));
        state.defer(last, 1, at(59), at(55));
        assert_eq!(state.due(at(59)), [last, urgent, other]);
    }

    #[test]
    fn windows_close_after_their_entries_are_delivered() {
        let mut state = DeliveryState::default();
        state.note_sent(KIND, 5, at(0));
        assert!(!state.close(KIND, 4));
        assert!(state.close(KIND, 5));
        assert!(!state.close(KIND, 5));
        assert!(!state.is_idle(at(59)));
        assert!(state.is_idle(at(60)));
    }
}
