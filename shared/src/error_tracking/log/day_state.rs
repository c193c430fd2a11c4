//! How far a project's day is packed.
//!
//! An event is a row first. Once an hour is closed, the rows of it are packed into a segment, with
//! those of the hours before as long as the segment stays small. An event that comes later than its
//! hour is closed is a row as well, and is noted as late: its hour is counted from rows again until
//! it is packed anew. An hour with more than a segment holds is set aside: it stays in rows.

use std::time::Duration;

use crate::timestamp::Timestamp;

use super::day::{Day, Hours};
use super::segment::Totals;

/// From how long after its end on an hour's events are noted as late. Writers before that and the
/// packer after [`CLOSING`] may disagree about the time by the difference.
const LATENESS: Duration = Duration::from_mins(5);
/// How long after its end an hour is closed, and may be packed.
const CLOSING: Duration = Duration::from_mins(10);
/// Up to how many bytes a segment takes in further hours. Each time it is written anew.
const GROWING_BYTES: u64 = 1_000_000;
/// Up to how many events a segment takes in further hours: all of them are in memory then.
const GROWING_EVENTS: u32 = 100_000;
const HOUR: Duration = Duration::from_hours(1);

/// A segment of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentState {
    /// The hours whose events it has.
    pub hours: Hours,
    /// Which writing of the segment the day refers to.
    pub generation: u64,
    /// The bytes of its columns.
    pub bytes: u64,
    /// How many events and errors it has.
    pub totals: Totals,
}

impl SegmentState {
    /// How many events it has of some hours.
    pub fn events_of(&self, hours: Hours) -> usize {
        hours.iter().map(|hour| self.totals.hour(hour).events as usize).sum()
    }
}

/// What is to be packed next of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// The segment that is written anew.
    pub segment: Option<SegmentState>,
    /// The hours that are packed from rows; those of the segment that are not among them stay.
    pub hours: Hours,
    /// Whether the hours are the segment's own: then all of them must be packed together.
    pub is_repair: bool,
}

/// How far a day is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayState {
    /// The day.
    pub day: Day,
    /// Grows with each packing; 0 before the first.
    pub version: u64,
    /// Over how many partitions the day's rows are spread.
    pub shards: u8,
    /// Its segments, by their hours.
    pub segments: Vec<SegmentState>,
    /// How many late events each hour got.
    pub late: [u64; 24],
    /// The same as it is stored, in shards.
    pub late_by_shard: Vec<[u64; 24]>,
    /// How many of them its segment has.
    pub packed_late: [u64; 24],
    /// The hours that are too large for a segment, and stay in rows.
    pub set_aside: Hours,
}

impl DayState {
    /// A day that has rows only, in one partition.
    pub fn new(day: Day) -> Self {
        Self {
            day,
            version: 0,
            shards: 1,
            segments: Vec::new(),
            late: [0; 24],
            late_by_shard: Vec::new(),
            packed_late: [0; 24],
            set_aside: Hours::NONE,
        }
    }

    /// The hours that are packed.
    pub fn packed(&self) -> Hours {
        self.segments.iter().fold(Hours::NONE, |packed, segment| packed.with(segment.hours))
    }

    /// The hours that are packed, and got late events since.
    pub fn dirty(&self) -> Hours {
        let changed = (0_u8..).zip(self.late.iter().zip(&self.packed_late));
        let changed: Hours =
            changed.filter(|(_, (late, packed))| late != packed).map(|(hour, _)| hour).collect();
        changed.common_with(self.packed())
    }

    /// The hours that may be packed at `now` and are not, or not any more.
    pub fn to_pack(&self, now: Timestamp) -> Hours {
        let open = closed_hours(self.day, now).without(self.packed()).without(self.set_aside);
        open.with(self.dirty())
    }

    /// What is to be packed next at `now`: first what late events have changed, then new hours, with
    /// those of the last segment while that is small.
    pub fn next_packing(&self, now: Timestamp) -> Option<Packing> {
        let dirty = self.dirty();
        let changed = self.segments.iter().find(|it| !it.hours.common_with(dirty).is_empty());
        if let Some(segment) = changed {
            let hours = segment.hours.common_with(dirty);
            return Some(Packing { segment: Some(segment.clone()), hours, is_repair: true });
        }
        let hours = self.to_pack(now);
        let growing = self.segments.last().filter(|segment| {
            segment.bytes < GROWING_BYTES && segment.totals.whole().events < GROWING_EVENTS
        });
        (!hours.is_empty()).then(|| Packing { segment: growing.cloned(), hours, is_repair: false })
    }

    /// The day after `hours` of a segment were packed from rows, as they were when this state was
    /// read. The segment takes the place of those that it has hours of; of these, hours that it does
    /// not have are rows again.
    #[must_use]
    pub fn with_segment(&self, segment: &SegmentState, hours: Hours) -> Self {
        let mut next = self.without_segments_of(segment.hours);
        next.segments.push(SegmentState { generation: next.version, ..segment.clone() });
        next.segments.sort_by_key(|segment| segment.hours.iter().next());
        for hour in hours.iter().map(usize::from) {
            if let (Some(packed), Some(late)) =
                (next.packed_late.get_mut(hour), self.late.get(hour))
            {
                *packed = *late;
            }
        }
        next
    }

    /// The day after hours that are too large for a segment were set aside.
    #[must_use]
    pub fn with_set_aside(&self, hours: Hours) -> Self {
        let mut next = self.without_segments_of(hours);
        next.set_aside = next.set_aside.with(hours);
        next
    }

    fn without_segments_of(&self, hours: Hours) -> Self {
        let mut next = self.clone();
        next.version += 1;
        next.segments.retain(|segment| segment.hours.common_with(hours).is_empty());
        next
    }

    /// Whether nothing is left to be packed, now or later, unless late events come.
    pub fn is_complete(&self) -> bool {
        self.packed().with(self.set_aside) == Hours::ALL && self.dirty().is_empty()
    }
}

/// Whether an event that occurred at `occurred_at` and is written at `now` may come after its hour
/// was packed.
pub fn is_late(occurred_at: Timestamp, now: Timestamp) -> bool {
    now >= end_of_hour(occurred_at).plus(LATENESS)
}

/// The hours of a day that may be packed at `now`.
fn closed_hours(day: Day, now: Timestamp) -> Hours {
    let start = day.start();
    let is_closed = |hour: &u8| now >= start.plus(HOUR * (u32::from(*hour) + 1) + CLOSING);
    (0..24).filter(is_closed).collect()
}

fn end_of_hour(at: Timestamp) -> Timestamp {
    let hour = i64::try_from(HOUR.as_millis()).unwrap_or(i64::MAX);
    let millis = at.as_millis();
    Timestamp::from_millis(millis.saturating_sub(millis.rem_euclid(hour)).saturating_add(hour))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_tracking::attribute::Attributes;
    use crate::error_tracking::log::row::{EventRow, Fingerprint};
    use crate::error_tracking::log::segment::{Base, ColumnName, Decoder, pack};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(&format!("2026-11-21T{text}Z")).unwrap()
    }

    /// A segment of events of one error in the day's first minute.
    fn segment(hours: Hours, events: usize) -> SegmentState {
        let (occurred_at, fingerprint) = (at("00:00:00"), Fingerprint([0; 16]));
        let row = EventRow { occurred_at, fingerprint, attributes: Attributes::default() };
        let columns = pack(Day::of(occurred_at), &vec![row; events]).unwrap();
        let base = columns.get(ColumnName::Base).unwrap();
        let totals = Base::decode(&mut Decoder::new(), base).unwrap().totals();
        SegmentState { hours, generation: 1, bytes: 0, totals }
    }

    fn state(hours: &[Hours]) -> DayState {
        let segments = hours.iter().map(|hours| segment(*hours, 0)).collect();
        DayState { segments, ..DayState::new(Day::of(at("00:00:00"))) }
    }

    #[test]
    fn an_event_is_late_from_five_minutes_after_its_hour_on() {
        assert!(!is_late(at("07:00:00"), at("08:04:59.999")));
        assert!(is_late(at("07:00:00"), at("08:05:00")));
        assert!(is_late(at("07:59:59.999"), at("08:05:00")));
        assert!(!is_late(at("08:00:00"), at("08:05:00")));
    }

    #[test]
    fn an_hour_is_closed_ten_minutes_after_its_end() {
        let nothing_packed = state(&[]);
        assert_eq!(nothing_packed.to_pack(at("01:09:59.999")), Hours::NONE);
        assert_eq!(nothing_packed.to_pack(at("01:10:00")), Hours::between(0, 1));
        assert_eq!(nothing_packed.to_pack(at("23:59:59")), Hours::between(0, 23));
        let next_day = Timestamp::parse_rfc3339("2026-11-22T00:10:00Z").unwrap();
        assert_eq!(nothing_packed.to_pack(next_day), Hours::ALL);
    }

    #[test]
    fn late_events_make_packed_hours_dirty() {
        let mut state = state(&[Hours::between(0, 6), Hours::between(6, 12)]);
        assert_eq!(state.to_pack(at("13:10:00")), Hours::between(12, 13));
        state.late[7] = 2;
        state.late[20] = 1;
        assert_eq!(state.dirty(), Hours::between(7, 8));
        assert_eq!(state.to_pack(at("12:30:00")), Hours::between(7, 8));
        state.packed_late[7] = 2;
        assert_eq!(state.dirty(), Hours::NONE);
    }

    #[test]
    fn a_day_is_complete_when_all_of_it_is_packed_and_clean() {
        let mut state = state(&[Hours::between(0, 23)]);
        assert!(!state.is_complete());
        state
            .segments
            .push(SegmentState { hours: Hours::between(23, 24), ..state.segments[0].clone() });
        assert!(state.is_complete());
        state.late[0] = 1;
        assert!(!state.is_complete());
    }

    #[test]
    fn an_hour_that_is_set_aside_stays_in_rows_for_good() {
        let before = state(&[Hours::between(0, 3), Hours::between(3, 4)]);
        let after = before.with_set_aside(Hours::between(3, 4));
        assert_eq!((after.packed(), after.version), (Hours::between(0, 3), before.version + 1));
        assert_eq!(after.to_pack(at("05:10:00")), Hours::between(4, 5));
        let rest = segment(Hours::between(4, 24), 0);
        assert!(after.with_segment(&rest, Hours::ALL).is_complete());
    }

    #[test]
    fn a_segment_takes_in_hours_while_it_has_few_bytes_and_events() {
        let grows = |bytes, events| {
            let grown = SegmentState { bytes, ..segment(Hours::between(0, 1), events) };
            let state = DayState { segments: vec![grown], ..state(&[]) };
            state.next_packing(at("02:10:00")).unwrap().segment.is_some()
        };
        assert!(grows(999_999, 99_999));
        assert!(!grows(1_000_000, 1));
        assert!(!grows(1, 100_000));
    }
}
