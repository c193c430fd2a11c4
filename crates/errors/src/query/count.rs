//! Counts events and errors in buckets exactly.
//!
//! Distinct errors are counted with a set, not estimated. No bucket spans two days, so a query
//! needs only one set at a time, for one day of one project. This bounds the memory of a query.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::ops::Range;

use super::counted_run::{CountedPart, CountedRun, EventsOfRun};
use super::day_plan::{Aggregation, QueryNeeds};
use super::filter::EventFilters;
use super::tally::{DayRun, RowTally, Tally, damaged};
use super::time_bucket::{BucketSize, QueryRange};
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours, hour_of, minute_of};
use crate::log::row::EventRow;
use crate::log::run::{Columns, Damaged, Decoder, Totals};

/// The errors of a project that count, and their fingerprints.
#[derive(Debug, Clone, Default)]
pub struct CountedErrors {
    /// The number of each fingerprint's error, from 0. `None` for fingerprints that do not count.
    numbers: HashMap<Fingerprint, Option<u32>>,
    error_count: u32,
    only_listed: bool,
}

impl CountedErrors {
    /// Counts all errors. Fingerprints in `known` count under their error, any other one as a
    /// separate error.
    pub fn all<E: Hash + Eq>(known: impl IntoIterator<Item = (Fingerprint, E)>) -> Self {
        let mut errors = HashMap::new();
        let mut counted = Self::default();
        for (fingerprint, error) in known {
            let next = counted.error_count;
            let number = *errors.entry(error).or_insert(next);
            counted.error_count = next.max(number.saturating_add(1));
            counted.numbers.insert(fingerprint, Some(number));
        }
        counted
    }

    /// Counts only errors of the listed fingerprints, for example those that match a status or
    /// search.
    pub fn only<E: Hash + Eq>(matching: impl IntoIterator<Item = (Fingerprint, E)>) -> Self {
        Self { only_listed: true, ..Self::all(matching) }
    }

    /// Returns the number of errors so far.
    pub(super) fn count(&self) -> u32 {
        self.error_count
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

/// The counts of one bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of events.
    pub events: u64,
    /// The number of distinct errors.
    pub errors: u64,
}

/// Counts the events of a query, one day of a project after the other.
#[derive(Debug)]
pub struct Counter<'q> {
    range: &'q QueryRange,
    filters: &'q EventFilters,
    counts: Vec<Count>,
    decoder: Decoder,
    seen: SeenErrors,
    /// The day of the seen errors.
    open_day: Option<Day>,
}

impl<'q> Counter<'q> {
    /// Returns a counter for events of the range that pass the filters.
    pub fn new(range: &'q QueryRange, filters: &'q EventFilters) -> Self {
        let counts = vec![Count::default(); range.bucket_count()];
        let (decoder, seen) = (Decoder::new(), SeenErrors::default());
        Self { range, filters, counts, decoder, seen, open_day: None }
    }

    /// Starts a day of a project. Add every event of the day to the returned counter once, from a
    /// run or as a row. Starting a day of a project twice counts its errors twice.
    pub fn day<'c>(&'c mut self, errors: &'c mut CountedErrors, day: Day) -> DayCounter<'c, 'q> {
        self.open_day = None;
        self.resume_day(errors, day)
    }

    /// Continues with a day of the project, or starts it.
    fn resume_day<'c>(&'c mut self, errors: &'c mut CountedErrors, day: Day) -> DayCounter<'c, 'q> {
        let buckets = DayBuckets::new(self.range, day);
        if self.open_day.replace(day) != Some(day) {
            self.seen.reset(buckets.positions.len());
        }
        DayCounter { counter: self, errors, day, buckets }
    }

    /// Returns the counts of the buckets, oldest first.
    pub fn into_counts(self) -> Vec<Count> {
        self.counts
    }
}

/// Counts the events of one project and day.
#[derive(Debug)]
pub struct DayCounter<'c, 'q> {
    counter: &'c mut Counter<'q>,
    errors: &'c mut CountedErrors,
    day: Day,
    buckets: DayBuckets,
}

impl DayCounter<'_, '_> {
    /// Adds the events of a run in these hours, except those with hidden fingerprints. A damaged
    /// run adds nothing.
    ///
    /// Needs the base, the columns of the filters, and the minutes if the range
    /// [needs](QueryRange::needs_minutes) them for these hours.
    pub fn add_run(
        &mut self,
        hours: Hours,
        columns: &Columns,
        is_hidden: impl Fn(Fingerprint) -> bool,
    ) -> Result<(), Damaged> {
        let needs_minutes = self.counter.range.needs_minutes(self.day, hours);
        let decoder = &mut self.counter.decoder;
        let filters = self.counter.filters;
        let run = EventsOfRun { columns, needs_minutes, is_hidden: &is_hidden };
        let run = CountedRun::decode(&run, decoder, filters, self.errors)?;
        for part in run.parts(hours) {
            self.add_part(&part);
        }
        Ok(())
    }

    /// Adds hours of a run by its totals. [`QueryNeeds::plan`] returns the hours for which this is
    /// exact.
    pub fn add_totals(&mut self, hours: Hours, totals: &Totals) {
        let range = self.counter.range;
        let hours = hours.common_with(range.hours_of(self.day));
        if range.bucket_size() == BucketSize::Day {
            let bucket = hours.iter().next().and_then(|hour| self.buckets.of_hour(hour));
            let whole = totals.whole();
            self.counter.add(bucket, whole.events, whole.fingerprints);
        } else {
            for hour in hours.iter() {
                let total = totals.hour(hour);
                let bucket = self.buckets.of_hour(hour);
                self.counter.add(bucket, total.events, total.fingerprints);
            }
        }
    }

    /// Adds rows of the day.
    pub fn add_rows(&mut self, rows: DayRows) {
        for ((bucket, error), events) in rows.counts {
            if self.buckets.positions.contains(&bucket) {
                self.add_events(error, bucket, events);
            }
        }
    }

    fn add_part(&mut self, part: &CountedPart<'_>) {
        if let Some(bucket) = self.buckets.of_hour(part.hour) {
            return self.add_events(part.error, bucket, part.count());
        }
        for minute in part.minutes(self.day) {
            if let Some(bucket) = self.counter.range.bucket_of(minute) {
                self.add_events(part.error, bucket, 1);
            }
        }
    }

    fn add_events(&mut self, error: u32, bucket: usize, events: u32) {
        if events > 0 {
            let is_new = self.counter.seen.insert(error, bucket - self.buckets.positions.start);
            self.counter.add(Some(bucket), events, u32::from(is_new));
        }
    }
}

/// Counts of a project's rows by day, bucket and error. They take no more memory than the result
/// needs.
#[derive(Debug, Default)]
pub struct RowCounts(BTreeMap<Day, DayRows>);

/// The counts of a day's rows.
#[derive(Debug, Default)]
pub struct DayRows {
    hours: Hours,
    counts: HashMap<(usize, u32), u32>,
}

impl RowCounts {
    /// Adds a row if it is in the range, passes the filters, and its error counts.
    pub fn add(
        &mut self,
        row: &EventRow,
        range: &QueryRange,
        filters: &EventFilters,
        errors: &mut CountedErrors,
    ) {
        let minute = minute_of(row.occurred_at);
        if let Some(bucket) = range.bucket_of(minute)
            && filters.matches(&row.attributes)
            && let Some(error) = errors.number_of(row.fingerprint)
        {
            let day = self.0.entry(Day::of_minute(minute)).or_default();
            day.hours = day.hours.with(std::iter::once(hour_of(row.occurred_at)).collect());
            *day.counts.entry((bucket, error)).or_default() += 1;
        }
    }

    /// Returns the hours of a day that have rows.
    pub fn hours_of(&self, day: Day) -> Hours {
        self.0.get(&day).map_or(Hours::NONE, |rows| rows.hours)
    }

    /// Removes and returns the counts of a day.
    pub fn take_day(&mut self, day: Day) -> DayRows {
        self.0.remove(&day).unwrap_or_default()
    }

    /// Returns the counts of all days.
    pub fn into_days(self) -> impl Iterator<Item = (Day, DayRows)> {
        self.0.into_iter()
    }
}

impl RowTally for RowCounts {
    fn add(&mut self, row: &EventRow, needs: &QueryNeeds<'_>, errors: &mut CountedErrors) {
        self.add(row, needs.range, needs.filters, errors);
    }

    fn hours_of(&self, day: Day) -> Hours {
        self.hours_of(day)
    }
}

impl Tally for Counter<'_> {
    type Rows = RowCounts;

    fn counted(&self) -> Aggregation {
        Aggregation::Buckets
    }

    fn add_runs(
        &mut self,
        errors: &mut CountedErrors,
        day: Day,
        runs: &[DayRun<'_>],
        rows: &mut RowCounts,
    ) -> Vec<usize> {
        let mut counting = self.resume_day(errors, day);
        let damaged = damaged(runs, |run| {
            counting.add_totals(run.plan.totals, run.totals);
            if run.plan.columns.is_empty() {
                return Ok(());
            }
            counting.add_run(run.plan.columns, run.columns, run.is_hidden)
        });
        counting.add_rows(rows.take_day(day));
        damaged
    }

    fn end_project(&mut self, errors: &mut CountedErrors, rows: RowCounts) {
        for (day, rows) in rows.into_days() {
            self.day(errors, day).add_rows(rows);
        }
        self.open_day = None;
    }
}

impl Counter<'_> {
    fn add(&mut self, bucket: Option<usize>, events: u32, errors: u32) {
        if let Some(count) = bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            count.events += u64::from(events);
            count.errors += u64::from(errors);
        }
    }
}

/// The buckets of a day.
#[derive(Debug)]
pub(super) struct DayBuckets {
    positions: Range<usize>,
    /// The bucket of each hour that is completely in one bucket.
    of_hours: [Option<usize>; 24],
}

impl DayBuckets {
    pub(super) fn new(range: &QueryRange, day: Day) -> Self {
        let mut of_hours = [None; 24];
        if range.bucket_size().has_whole_hours() {
            let whole = range.whole_hours_of(day);
            for (hour, bucket) in (0..).zip(&mut of_hours) {
                let minute = day.first_minute() + i64::from(hour) * 60;
                *bucket = range.bucket_of(minute).filter(|_| whole.contains(hour));
            }
        }
        Self { positions: range.buckets_of(day), of_hours }
    }

    /// The bucket of each hour that is completely in one bucket.
    pub(super) fn of_hour(&self, hour: u8) -> Option<usize> {
        self.of_hours.get(usize::from(hour)).copied().flatten()
    }
}

/// The errors that were seen in each bucket of one day: a row of bits for each error.
#[derive(Debug, Default)]
struct SeenErrors {
    words: Vec<u64>,
    words_per_error: usize,
}

impl SeenErrors {
    fn reset(&mut self, buckets: usize) {
        self.words.clear();
        self.words_per_error = buckets.div_ceil(64);
    }

    /// Returns `true` if the error was not yet seen in the bucket.
    fn insert(&mut self, error: u32, bucket: usize) -> bool {
        let index = error as usize * self.words_per_error + bucket / 64;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        let bit = 1_u64 << (bucket % 64);
        let Some(word) = self.words.get_mut(index) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests;
