//! The events of a run that a query counts, and the interface of all counts.

use std::collections::HashMap;

use super::day_plan::{Counted, QueryNeeds};
use super::filter::EventFilters;
use super::time_bucket::QueryRange;
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours};
use crate::log::run::{Base, ColumnName, Columns, Damaged, Decoder, Minutes, Totals};

/// Event counts. A query passes the runs of one project after the other, day by day. Unpacked
/// rows are runs too.
pub trait Accumulator {
    /// Returns what is counted, which decides what is read.
    fn counted(&self) -> Counted;

    /// Adds the events of a run, or nothing or only some if the run is damaged.
    fn add(&mut self, run: &CountedRun<'_>, decoder: &mut Decoder) -> Result<(), Damaged>;

    /// Adds hours of a run by its totals, if [`Counted::by_totals`] is `true`.
    fn add_totals(&mut self, _day: Day, _hours: Hours, _totals: &Totals) {}

    /// Ends a project with this number of errors. The errors of the next one are numbered from 0
    /// again.
    fn end_project(&mut self, _errors: u32) {}
}

/// The errors of a project that count, and their fingerprints.
#[derive(Debug, Clone, Default)]
pub struct CountedErrors {
    /// The number of each fingerprint's error, from 0. `None` for fingerprints that do not count.
    numbers: HashMap<Fingerprint, Option<u32>>,
    error_count: u32,
    only_listed: bool,
}

impl CountedErrors {
    /// Counts only the errors of these fingerprints, for example those that match a status or
    /// search. They are numbered in this order.
    pub fn only(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Self {
        let mut counted = Self { only_listed: true, ..Self::default() };
        for fingerprint in fingerprints {
            counted.numbers.insert(fingerprint, Some(counted.error_count));
            counted.error_count += 1;
        }
        counted
    }

    /// Returns the number of errors so far.
    pub(crate) fn count(&self) -> u32 {
        self.error_count
    }

    /// Returns the number of a fingerprint's error, if it counted so far.
    pub(crate) fn known_number(&self, fingerprint: Fingerprint) -> Option<u32> {
        self.numbers.get(&fingerprint).copied().flatten()
    }

    /// Returns the fingerprints that counted so far, and the numbers of their errors.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Fingerprint, u32)> {
        self.numbers.iter().filter_map(|(fingerprint, number)| Some((*fingerprint, (*number)?)))
    }

    /// Returns the number of a fingerprint's error, if the error counts.
    pub(super) fn number_of(&mut self, fingerprint: Fingerprint) -> Option<u32> {
        *self.numbers.entry(fingerprint).or_insert_with(|| {
            let number = self.error_count;
            (!self.only_listed).then(|| {
                self.error_count += 1;
                number
            })
        })
    }
}

/// A run, decoded to find the events that count.
pub struct CountedRun<'r> {
    /// The columns that were read.
    pub(super) columns: &'r Columns,
    /// The day of the events.
    pub(super) day: Day,
    /// The base column.
    pub(super) base: Base,
    range: &'r QueryRange,
    hours: Hours,
    buckets: DayBuckets,
    /// The number of each fingerprint's error. `None` if the error does not count.
    errors: Vec<Option<u32>>,
    /// For each event, `true` if it passes the filters. `None` if all do.
    passing: Option<Vec<bool>>,
    minutes: Option<Minutes>,
}

/// The events of one error in one hour, which are adjacent in all columns.
#[derive(Debug, Clone, Copy)]
struct CountedPart<'r> {
    /// The number of the error.
    error: u32,
    /// The first minute of the hour, counted from the Unix epoch.
    first_minute: i64,
    /// The bucket of all events. `None` if it depends on the minute.
    bucket: Option<usize>,
    /// The position of the first event.
    start: usize,
    /// The number of events, including those that do not pass.
    length: usize,
    /// For each event, `true` if it passes the filters. `None` if all do.
    passing: Option<&'r [bool]>,
    /// The minute of each event in its hour. Empty if it was not requested.
    minutes: &'r [u8],
}

impl<'r> CountedRun<'r> {
    /// Decodes the events of these hours, except those with hidden fingerprints. Needs the
    /// [columns](QueryNeeds::columns) of a query.
    pub fn decode(
        columns: &'r Columns,
        (day, hours): (Day, Hours),
        needs: &QueryNeeds<'r>,
        errors: &mut CountedErrors,
        is_hidden: impl Fn(Fingerprint) -> bool,
        decoder: &mut Decoder,
    ) -> Result<Self, Damaged> {
        let base = Base::decode(decoder, columns.get(ColumnName::Base)?)?;
        let passing = passing_events(decoder, needs.filters, columns, &base)?;
        let minutes = if needs.needs_minutes(day, hours) {
            Some(Minutes::decode(decoder, columns.get(ColumnName::Minutes)?, &base)?)
        } else {
            None
        };
        let number_of = |fingerprint: &Fingerprint| {
            if is_hidden(*fingerprint) { None } else { errors.number_of(*fingerprint) }
        };
        let errors = base.fingerprints().iter().map(number_of).collect();
        let (range, buckets) = (needs.range, DayBuckets::new(needs, day));
        Ok(Self { columns, day, base, range, hours, buckets, errors, passing, minutes })
    }

    /// Calls `take` with the error, the bucket and the number of events, for all events.
    pub(super) fn for_each_part(&self, mut take: impl FnMut(u32, usize, u32)) {
        for part in self.parts() {
            if let Some(bucket) = part.bucket {
                take(part.error, bucket, part.count());
            } else {
                self.for_each_of(&part, |bucket, _| take(part.error, bucket, 1));
            }
        }
    }

    /// Calls `take` with the error, the bucket and the position of each event, in order.
    pub(super) fn for_each(&self, mut take: impl FnMut(u32, usize, usize)) {
        for part in self.parts() {
            self.for_each_of(&part, |bucket, position| take(part.error, bucket, position));
        }
    }

    fn for_each_of(&self, part: &CountedPart<'_>, mut take: impl FnMut(usize, usize)) {
        let of_minute = |index: usize| {
            let minute = part.first_minute + i64::from(*part.minutes.get(index)?);
            self.buckets.of_minute(self.range, minute)
        };
        for index in (0..part.length).filter(|index| part.passes(*index)) {
            if let Some(bucket) = part.bucket.or_else(|| of_minute(index)) {
                take(bucket, part.start + index);
            }
        }
    }

    /// Returns the events whose errors count.
    fn parts(&self) -> impl Iterator<Item = CountedPart<'_>> {
        let mut start = 0;
        let minutes = self.minutes.as_ref().map_or([].as_slice(), Minutes::of_events);
        self.base.error_hours().iter().filter_map(move |error_hour| {
            let (first, length, hour) = (start, error_hour.count(), error_hour.hour);
            start += length;
            let error = self.errors.get(error_hour.fingerprint as usize).copied().flatten()?;
            self.hours.contains(hour).then(|| CountedPart {
                error,
                first_minute: self.day.first_minute() + i64::from(hour) * 60,
                bucket: self.buckets.of_hour(hour),
                start: first,
                length,
                passing: self.passing.as_ref().map(|passing| part_of(passing, first, length)),
                minutes: part_of(minutes, first, length),
            })
        })
    }
}

impl CountedPart<'_> {
    /// Returns the number of events that pass.
    fn count(&self) -> u32 {
        let passing = self.passing.map(|passing| passing.iter().map(|passes| u32::from(*passes)));
        passing.map_or_else(|| u32::try_from(self.length).unwrap_or(u32::MAX), Iterator::sum)
    }

    fn passes(&self, index: usize) -> bool {
        self.passing.is_none_or(|passing| passing.get(index) == Some(&true))
    }
}

/// The buckets of a day. Counts without buckets have a single one.
struct DayBuckets {
    by_bucket: bool,
    /// The bucket of each hour that is completely in one bucket.
    of_hours: [Option<usize>; 24],
}

impl DayBuckets {
    fn new(needs: &QueryNeeds<'_>, day: Day) -> Self {
        let (range, by_bucket) = (needs.range, needs.counted.by_bucket);
        let mut of_hours = [None; 24];
        if !by_bucket || range.bucket_size().has_whole_hours() {
            for hour in range.whole_hours_of(day).iter() {
                let first_minute = day.first_minute() + i64::from(hour) * 60;
                let bucket = if by_bucket { range.bucket_of(first_minute) } else { Some(0) };
                of_hours[usize::from(hour)] = bucket;
            }
        }
        Self { by_bucket, of_hours }
    }

    fn of_hour(&self, hour: u8) -> Option<usize> {
        self.of_hours.get(usize::from(hour)).copied().flatten()
    }

    fn of_minute(&self, range: &QueryRange, minute: i64) -> Option<usize> {
        range.bucket_of(minute).map(|bucket| if self.by_bucket { bucket } else { 0 })
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
    for category in filters.categories() {
        let column = columns.values(category, decoder, base)?;
        let values: Vec<bool> =
            column.values().map(|value| filters.match_value(category, value)).collect();
        let of_events = column
            .indexes()
            .iter()
            .map(|index| values.get(*index as usize).copied().unwrap_or_default());
        require(&mut passing, of_events);
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
