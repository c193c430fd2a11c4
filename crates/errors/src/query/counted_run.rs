//! The events of a run that a query counts. All counts are based on them.

use super::count::{CountedErrors, DayBuckets};
use super::filter::EventFilters;
use super::time_bucket::QueryRange;
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours};
use crate::log::run::{Base, ColumnName, Columns, Damaged, Decoder, Minutes};

/// The columns of a run that were read.
pub(super) struct EventsOfRun<'r> {
    /// The base, the minutes if needed, and the columns of the filters.
    pub(super) columns: &'r Columns,
    /// `true` if the minutes are needed.
    pub(super) needs_minutes: bool,
    /// Returns `true` for deleted fingerprints.
    pub(super) is_hidden: &'r dyn Fn(Fingerprint) -> bool,
}

/// A run, decoded to find the events that count.
pub(super) struct CountedRun {
    base: Base,
    /// The number of each fingerprint's error. `None` if the error does not count.
    errors: Vec<Option<u32>>,
    /// For each event, `true` if it passes the filters. `None` if all do.
    passing: Option<Vec<bool>>,
    minutes: Option<Minutes>,
}

/// The events of one error in one hour, which are adjacent in all columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedPart<'r> {
    /// The number of the error.
    pub(super) error: u32,
    /// The hour of the day.
    pub(super) hour: u8,
    /// The position of the first event.
    start: usize,
    /// The number of events, including those that do not pass.
    length: usize,
    /// For each event, `true` if it passes the filters. `None` if all do.
    passing: Option<&'r [bool]>,
    /// The minute of each event in its hour. Empty if it was not requested.
    minutes: &'r [u8],
}

impl CountedRun {
    pub(super) fn decode(
        run: &EventsOfRun<'_>,
        decoder: &mut Decoder,
        filters: &EventFilters,
        errors: &mut CountedErrors,
    ) -> Result<Self, Damaged> {
        let columns = run.columns;
        let base = Base::decode(decoder, columns.get(ColumnName::Base)?)?;
        let passing = passing_events(decoder, filters, columns, &base)?;
        let minutes = if run.needs_minutes {
            Some(Minutes::decode(decoder, columns.get(ColumnName::Minutes)?, &base)?)
        } else {
            None
        };
        let number_of = |fingerprint: &Fingerprint| {
            if (run.is_hidden)(*fingerprint) { None } else { errors.number_of(*fingerprint) }
        };
        let errors = base.fingerprints().iter().map(number_of).collect();
        Ok(Self { base, errors, passing, minutes })
    }

    pub(super) fn base(&self) -> &Base {
        &self.base
    }

    /// Returns the events of these hours whose errors count.
    pub(super) fn parts(&self, hours: Hours) -> impl Iterator<Item = CountedPart<'_>> {
        let mut start = 0;
        self.base.error_hours().iter().filter_map(move |error_hour| {
            let (first, length) = (start, error_hour.count());
            start += length;
            let error = self.errors.get(error_hour.fingerprint as usize).copied().flatten()?;
            hours.contains(error_hour.hour).then(|| CountedPart {
                error,
                hour: error_hour.hour,
                start: first,
                length,
                passing: self.passing.as_ref().map(|passing| part_of(passing, first, length)),
                minutes: self
                    .minutes
                    .as_ref()
                    .map_or(&[], |minutes| part_of(minutes.of_events(), first, length)),
            })
        })
    }

    /// Calls `take` with the error and position of each event of these hours that counts, in order.
    pub(super) fn for_each(
        &self,
        range: &QueryRange,
        day: Day,
        hours: Hours,
        mut take: impl FnMut(u32, usize),
    ) {
        let whole = range.whole_hours_of(day);
        for part in self.parts(hours) {
            let is_whole = whole.contains(part.hour);
            for index in 0..part.length {
                let is_within = || {
                    let minute = part.minute(day, index);
                    minute.is_some_and(|minute| range.bucket_of(minute).is_some())
                };
                if part.passes(index) && (is_whole || is_within()) {
                    take(part.error, part.start + index);
                }
            }
        }
    }

    /// Calls `take` with the error, position and bucket of each event of these hours that counts,
    /// in order.
    pub(super) fn for_each_in_buckets(
        &self,
        range: &QueryRange,
        day: Day,
        hours: Hours,
        mut take: impl FnMut(u32, usize, usize),
    ) {
        let buckets = DayBuckets::new(range, day);
        for part in self.parts(hours) {
            let of_hour = buckets.of_hour(part.hour);
            for index in (0..part.length).filter(|index| part.passes(*index)) {
                let of_minute = || range.bucket_of(part.minute(day, index)?);
                if let Some(bucket) = of_hour.or_else(of_minute) {
                    take(part.error, part.start + index, bucket);
                }
            }
        }
    }
}

impl CountedPart<'_> {
    /// Returns the number of events that pass.
    pub(super) fn count(&self) -> u32 {
        let passing = self.passing.map(|passing| passing.iter().map(|passes| u32::from(*passes)));
        passing.map_or_else(|| u32::try_from(self.length).unwrap_or(u32::MAX), Iterator::sum)
    }

    /// Returns the minute of each event that passes, counted from the Unix epoch.
    pub(super) fn minutes(&self, day: Day) -> impl Iterator<Item = i64> {
        let passing = (0..self.length).filter(|index| self.passes(*index));
        passing.filter_map(move |index| self.minute(day, index))
    }

    fn passes(&self, index: usize) -> bool {
        self.passing.is_none_or(|passing| passing.get(index) == Some(&true))
    }

    fn minute(&self, day: Day, index: usize) -> Option<i64> {
        let minute = self.minutes.get(index)?;
        Some(day.first_minute() + i64::from(self.hour) * 60 + i64::from(*minute))
    }
}

fn part_of<T>(all: &[T], start: usize, count: usize) -> &[T] {
    all.get(start..start.saturating_add(count)).unwrap_or_default()
}

/// Returns for each event of a run whether it passes the filters, or `None` if there are no
/// filters. Holds one decoded column at a time, and tests each distinct value once.
fn passing_events(
    decoder: &mut Decoder,
    filters: &EventFilters,
    columns: &Columns,
    base: &Base,
) -> Result<Option<Vec<bool>>, Damaged> {
    let mut passing: Option<Vec<bool>> = None;
    for category in filters.texts() {
        let column = columns.texts(category, decoder, base)?;
        let values: Vec<bool> =
            column.values().map(|value| filters.match_value(category, value)).collect();
        let of_events = column
            .indexes()
            .iter()
            .map(|index| values.get(*index as usize).copied().unwrap_or_default());
        require(&mut passing, of_events);
    }
    if filters.need_user() {
        let users = columns.users(decoder, base)?;
        require(&mut passing, users.of_events().iter().map(|user| filters.match_user(*user)));
    }
    Ok(passing)
}

fn require(passing: &mut Option<Vec<bool>>, of_events: impl Iterator<Item = bool>) {
    match passing {
        None => *passing = Some(of_events.collect()),
        Some(passing) => {
            for (passes, also) in passing.iter_mut().zip(of_events) {
                *passes &= also;
            }
        }
    }
}
