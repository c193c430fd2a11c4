//! An insight's statistics: a pure function of its members and the time
//! (`docs/semantics/replay-insights.md`, "Statistics").

use std::collections::HashSet;
use std::time::Duration;

use shared::timestamp::Timestamp;

use super::membership::Member;
use crate::Percent;

/// Length of the current period, and of the previous period.
pub const PERIOD: Duration = Duration::from_hours(30 * 24);

/// An insight's statistics at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Distinct sessions in the current period.
    pub affected_sessions: u32,
    /// Distinct known users in the current period.
    pub identified_users: u32,
    /// Pain points in the current period.
    pub occurrences: u32,
    /// Distinct sessions in the previous period.
    pub previous_affected_sessions: u32,
    /// Time of the first pain point.
    pub first_seen: Option<Timestamp>,
    /// Time of the last pain point.
    pub last_seen: Option<Timestamp>,
}

impl Statistics {
    /// Returns the statistics of `members` at `now`. The current period begins 30 days ago, to the
    /// millisecond, and has no end, since clients' clocks differ. The previous period begins 60
    /// days ago.
    pub fn of<'m>(members: impl Iterator<Item = &'m Member>, now: Timestamp) -> Self {
        let current_begin = now.minus(PERIOD);
        let previous_begin = current_begin.minus(PERIOD);
        let (mut sessions, mut users, mut previous_sessions) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        let mut occurrences = 0;
        let (mut first_seen, mut last_seen) = (None::<Timestamp>, None::<Timestamp>);
        for member in members {
            let at = member.occurred_at;
            first_seen = Some(first_seen.map_or(at, |first| first.min(at)));
            last_seen = Some(last_seen.map_or(at, |last| last.max(at)));
            if at >= current_begin {
                occurrences += 1;
                sessions.insert(member.session);
                users.extend(member.user);
            } else if at >= previous_begin {
                previous_sessions.insert(member.session);
            }
        }
        Self {
            affected_sessions: count(&sessions),
            identified_users: count(&users),
            occurrences,
            previous_affected_sessions: count(&previous_sessions),
            first_seen,
            last_seen,
        }
    }

    /// Returns the change in affected sessions from the previous period: one decimal, halves
    /// rounded away from zero. If only the current period has sessions, the change is 100%.
    pub fn trend(&self) -> Percent {
        let (now, before) =
            (i64::from(self.affected_sessions), i64::from(self.previous_affected_sessions));
        let tenths = match (now, before) {
            (0, 0) => 0,
            (_, 0) => 1_000,
            _ => {
                let change = (now - before) * 1_000;
                // Adding half of the divisor, with the sign of the change, turns truncation into
                // rounding.
                (change * 2 + before * change.signum()) / (before * 2)
            }
        };
        Percent { tenths }
    }
}

fn count<T>(distinct: &HashSet<T>) -> u32 {
    u32::try_from(distinct.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PainPointId;
    use crate::membership::Subject;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    const NOW: i64 = 1_795_234_560_000;
    const DAY: i64 = 24 * 60 * 60 * 1_000;

    fn member(session: &str, user: Option<&str>, age: i64) -> Member {
        Member {
            id: PainPointId::new(Uuid::nil()),
            session: Subject::of(session),
            user: user.map(Subject::of),
            occurred_at: Timestamp::from_millis(NOW - age),
        }
    }

    fn at_now(members: &[Member]) -> Statistics {
        Statistics::of(members.iter(), Timestamp::from_millis(NOW))
    }

    #[test]
    fn periods_begin_exactly_30_and_60_days_ago() {
        let counted = |age| {
            let statistics = at_now(&[member("s", None, age)]);
            (statistics.affected_sessions, statistics.previous_affected_sessions)
        };
        assert_eq!(counted(-DAY), (1, 0));
        assert_eq!(counted(0), (1, 0));
        assert_eq!(counted(30 * DAY), (1, 0));
        assert_eq!(counted(30 * DAY + 1), (0, 1));
        assert_eq!(counted(60 * DAY), (0, 1));
        assert_eq!(counted(60 * DAY + 1), (0, 0));
    }

    #[test]
    fn counts_sessions_and_known_users_once() {
        let statistics = at_now(&[
            member("a", Some("ann"), 1),
            member("a", Some("ann"), 2),
            member("a", None, 3),
            member("b", Some("ann"), 4),
            member("b", Some("bob"), 31 * DAY),
            member("c", None, 31 * DAY),
        ]);
        assert_eq!(statistics.occurrences, 4);
        assert_eq!(statistics.affected_sessions, 2);
        assert_eq!(statistics.identified_users, 1);
        assert_eq!(statistics.previous_affected_sessions, 2);
        assert_eq!(statistics.first_seen.map(Timestamp::as_millis), Some(NOW - 31 * DAY));
        assert_eq!(statistics.last_seen.map(Timestamp::as_millis), Some(NOW - 1));
    }

    #[test]
    fn empty_insights_have_empty_statistics() {
        let statistics = at_now(&[]);
        assert_eq!(statistics.trend(), Percent { tenths: 0 });
        assert_eq!((statistics.first_seen, statistics.occurrences), (None, 0));
    }

    #[test]
    fn trends_round_halves_away_from_zero() {
        let trend = |now, before| {
            let statistics = Statistics {
                affected_sessions: now,
                previous_affected_sessions: before,
                ..at_now(&[])
            };
            statistics.trend().tenths
        };
        assert_eq!([trend(0, 0), trend(7, 0), trend(0, 7)], [0, 1_000, -1_000]);
        assert_eq!([trend(4, 3), trend(1, 3), trend(2, 3)], [333, -667, -333]);
        // 1/16 = 6.25%, in both directions.
        assert_eq!([trend(17, 16), trend(15, 16)], [63, -63]);
        // 1/2000 = 0.05%; 1/2500 is less than half a tenth.
        assert_eq!([trend(2_001, 2_000), trend(1_999, 2_000), trend(2_501, 2_500)], [1, -1, 0]);
        assert_eq!(trend(18_000, 1), 17_999_000);
    }

    proptest! {
        #[test]
        fn statistics_equal_a_recount(
            drawn in prop::collection::vec((0..6_u8, prop::option::of(0..4_u8), 0..70 * DAY), 0..60)
        ) {
            let members: Vec<Member> = drawn.iter().map(|(session, user, age)| {
                member(&session.to_string(), user.map(|user| user.to_string()).as_deref(), *age)
            }).collect();
            let statistics = at_now(&members);
            let current = || drawn.iter().filter(|(_, _, age)| *age <= 30 * DAY);
            let previous = drawn.iter().filter(|(_, _, age)| (30 * DAY + 1..=60 * DAY).contains(age));
            let sessions: BTreeSet<_> = current().map(|(session, ..)| session).collect();
            let users: BTreeSet<_> = current().filter_map(|(_, user, _)| *user).collect();
            let before: BTreeSet<_> = previous.map(|(session, ..)| session).collect();
            let counted = [sessions.len(), users.len(), current().count(), before.len()];
            prop_assert_eq!(
                [
                    statistics.affected_sessions,
                    statistics.identified_users,
                    statistics.occurrences,
                    statistics.previous_affected_sessions,
                ].map(|count| usize::try_from(count).unwrap()),
                counted
            );
            let ages = || drawn.iter().map(|(_, _, age)| NOW - age);
            prop_assert_eq!(statistics.first_seen.map(Timestamp::as_millis), ages().min());
            prop_assert_eq!(statistics.last_seen.map(Timestamp::as_millis), ages().max());
        }
    }
}
