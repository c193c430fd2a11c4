//! Which mail is due (`docs/notifications.md`, "When mails are sent"): the first at once, what follows within
//! ten minutes together, and no more than so many in an hour.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::timestamp::Timestamp;

use crate::domain_event::DomainEventKind;

/// For how long what follows is gathered.
pub const WINDOW: Duration = Duration::from_mins(10);
/// The time in which mails are counted.
const HOUR: Duration = Duration::from_hours(1);

/// The time in which what happens is not told by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchWindow {
    /// The last step that was told, or need not be.
    pub covered: u64,
    /// When the window ends.
    pub until: Timestamp,
    /// Since when a mail waits for room, if one does: that was counted.
    pub held_since: Option<Timestamp>,
}

/// What was sent to a user lately.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryState {
    /// The open windows. Kinds without one are told at once.
    pub windows: BTreeMap<DomainEventKind, BatchWindow>,
    /// When mails were sent in the last hour, the earliest first.
    pub sent: Vec<Timestamp>,
    /// Grows with each change; 0 if nothing is stored.
    pub revision: u64,
}

/// What is to be done about a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// Its window is open: not yet.
    Later,
    /// Tell of all steps after this one, if there are any that the user may be told of.
    Tell {
        /// The last step that was told.
        after: u64,
    },
}

impl DeliveryState {
    /// Whose turn it is at `now`, if all others have been told of the steps up to `told`.
    pub fn turn(&self, kind: DomainEventKind, told: u64, now: Timestamp) -> SendDecision {
        match self.windows.get(&kind) {
            Some(window) if now < window.until => SendDecision::Later,
            Some(window) => SendDecision::Tell { after: window.covered },
            None => SendDecision::Tell { after: told },
        }
    }

    /// From when on there is room for another mail, if there is none now.
    pub fn rate_limited_until(&self, mails_per_hour: usize, now: Timestamp) -> Option<Timestamp> {
        let lately: Vec<Timestamp> =
            self.sent.iter().map(|at| at.plus(HOUR)).filter(|at| *at > now).collect();
        let over = lately.len().checked_sub(mails_per_hour)?;
        lately.get(over).copied()
    }

    /// Notes that a mail was sent which tells of all steps up to `last`.
    pub fn note_sent(&mut self, kind: DomainEventKind, last: u64, now: Timestamp) {
        self.sent.retain(|at| at.plus(HOUR) > now);
        self.sent.push(now);
        self.windows
            .insert(kind, BatchWindow { covered: last, until: now.plus(WINDOW), held_since: None });
    }

    /// Holds back at `now` what comes after a step, until there is room. Answers whether it was not held before: a
    /// mail that waits again, since another one took the room, is still one.
    pub fn defer(
        &mut self,
        kind: DomainEventKind,
        covered: u64,
        until: Timestamp,
        now: Timestamp,
    ) -> bool {
        let held_since = self.windows.get(&kind).and_then(|window| window.held_since);
        let window = BatchWindow { covered, until, held_since: held_since.or(Some(now)) };
        self.windows.insert(kind, window);
        held_since.is_none()
    }

    /// The kinds whose windows have ended at `now`. What waits for room comes first, what has waited the longest
    /// before all: there is room for each in its turn, however busy others are.
    pub fn due(&self, now: Timestamp) -> Vec<DomainEventKind> {
        let mut due: Vec<_> = self.windows.iter().filter(|(_, it)| it.until <= now).collect();
        due.sort_by_key(|(_, it)| (it.held_since.is_none(), it.held_since.unwrap_or(it.until)));
        due.into_iter().map(|(kind, _)| *kind).collect()
    }

    /// Closes a window after which nothing came, once everybody has been told of what it covers: only
    /// then is nothing of it told again. Answers whether that changed anything.
    pub fn close(&mut self, kind: DomainEventKind, told: u64) -> bool {
        let can_close = self.windows.get(&kind).is_some_and(|window| window.covered <= told);
        can_close && self.windows.remove(&kind).is_some()
    }

    /// Whether nothing of it matters at `now` any more.
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
    fn the_first_is_told_at_once_and_what_follows_after_ten_minutes() {
        let mut mailbox = DeliveryState::default();
        assert_eq!(mailbox.turn(KIND, 4, at(0)), SendDecision::Tell { after: 4 });
        mailbox.note_sent(KIND, 5, at(0));
        assert_eq!(mailbox.turn(KIND, 5, at(9)), SendDecision::Later);
        assert_eq!(mailbox.turn(KIND, 7, at(10)), SendDecision::Tell { after: 5 });
        // Another kind does not wait.
        assert_eq!(
            mailbox.turn(DomainEventKind::FlagChanged, 7, at(1)),
            SendDecision::Tell { after: 7 }
        );
    }

    #[test]
    fn a_storm_of_one_kind_is_seven_mails_in_an_hour() {
        let (mut mailbox, mut sent) = (DeliveryState::default(), 0);
        for minute in 0..=60 {
            if let SendDecision::Tell { .. } = mailbox.turn(KIND, 0, at(minute)) {
                mailbox.note_sent(KIND, minute, at(minute));
                sent += 1;
            }
        }
        assert_eq!(sent, 7);
    }

    #[test]
    fn beyond_so_many_mails_in_an_hour_there_is_no_room() {
        let mut mailbox = DeliveryState::default();
        for (minute, kind) in [0, 10, 20].into_iter().zip(DomainEventKind::ALL) {
            assert_eq!(mailbox.rate_limited_until(3, at(minute)), None);
            mailbox.note_sent(kind, 1, at(minute));
        }
        assert_eq!(mailbox.rate_limited_until(3, at(21)), Some(at(60)));
        assert_eq!(mailbox.rate_limited_until(2, at(21)), Some(at(70)));
        assert_eq!(mailbox.rate_limited_until(3, at(60)), None);
        assert!(mailbox.defer(KIND, 1, at(50), at(21)));
        assert!(!mailbox.defer(KIND, 1, at(60), at(50)), "it waits already");
        assert_eq!(mailbox.turn(KIND, 9, at(59)), SendDecision::Later);
        assert_eq!(mailbox.turn(KIND, 9, at(60)), SendDecision::Tell { after: 1 });
        mailbox.note_sent(KIND, 9, at(60));
        assert!(mailbox.defer(KIND, 9, at(70), at(61)), "that is another one");
    }

    #[test]
    fn what_has_waited_for_room_the_longest_comes_first() {
        let mut mailbox = DeliveryState::default();
        let [urgent, other, last, open] = [
            DomainEventKind::ErrorCreated,
            DomainEventKind::FlagChanged,
            DomainEventKind::WeekEnded,
            DomainEventKind::ErrorSpiked,
        ];
        assert!(urgent < last);
        mailbox.note_sent(other, 1, at(0));
        mailbox.note_sent(open, 1, at(50));
        mailbox.defer(last, 1, at(55), at(20));
        mailbox.defer(urgent, 1, at(55), at(30));
        mailbox.defer(urgent, 1, at(59), at(55));
        mailbox.defer(last, 1, at(59), at(55));
        assert_eq!(mailbox.due(at(59)), [last, urgent, other]);
    }

    #[test]
    fn a_window_closes_once_all_have_been_told_of_what_it_covers() {
        let mut mailbox = DeliveryState::default();
        mailbox.note_sent(KIND, 5, at(0));
        assert!(!mailbox.close(KIND, 4));
        assert!(mailbox.close(KIND, 5));
        assert!(!mailbox.close(KIND, 5));
        assert!(!mailbox.is_idle(at(59)));
        assert!(mailbox.is_idle(at(60)));
    }
}
