use std::collections::BTreeSet;

use super::*;
use crate::error_tracking::attribute::{Attribute, Attributes};
use crate::error_tracking::log::day::{MINUTES_PER_DAY, start_of_minute};
use crate::error_tracking::log::segment::pack;
use crate::error_tracking::query::day_plan::{DayPlan, Demand, SegmentPlan};
use crate::error_tracking::query::filter::Filter;
use crate::error_tracking::query::time_bucket::WrittenTime;
use crate::timestamp::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;

/// Ten days around a leap day; the queries of the model are asked on the last of them.
const FIRST_DAY: &str = "2028-02-22";
const DAYS: i64 = 10;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_date_or_date_time(text).unwrap()
}

fn first_day() -> Day {
    Day::of(at(FIRST_DAY))
}

fn fingerprint(number: u8) -> Fingerprint {
    Fingerprint([number; 16])
}

fn event(minute: i64, error: u8, values: &[(Attribute, &str)]) -> EventRow {
    let mut attributes = Attributes::default();
    for (attribute, value) in values {
        attributes.set(*attribute, Some((*value).to_owned()));
    }
    EventRow {
        occurred_at: start_of_minute(first_day().first_minute() + minute),
        fingerprint: fingerprint(error),
        attributes,
    }
}

fn rows() -> impl Strategy<Value = Vec<EventRow>> {
    let value = || select(vec!["", "a", "b", "ab"]);
    // Half of them lie close together, so that buckets, hours and errors meet.
    let minute = prop_oneof![
        0..DAYS * MINUTES_PER_DAY,
        9 * MINUTES_PER_DAY - 150..9 * MINUTES_PER_DAY + 150
    ];
    let row = (minute, 0_i64..60_000, 0_u8..6, value(), value());
    let row = row.prop_map(|(minute, millis, error, browser, release)| {
        let mut row =
            event(minute, error, &[(Attribute::Browser, browser), (Attribute::Release, release)]);
        row.occurred_at = Timestamp::from_millis(row.occurred_at.as_millis() + millis);
        row
    });
    proptest::collection::vec(row, 0..150)
}

fn filters() -> impl Strategy<Value = Vec<Filter>> {
    let attribute = select(vec![Attribute::Browser, Attribute::Release, Attribute::Os]);
    let filter =
        (attribute, 0..4, select(vec!["a", "b", "ab"])).prop_map(|(attribute, kind, value)| {
            match kind {
                0 => Filter::is(attribute, value),
                1 => Filter::is_not(attribute, value),
                2 => Filter::is_set(attribute),
                _ => Filter::is_not_set(attribute),
            }
        });
    prop_oneof![Just(Vec::new()), proptest::collection::vec(filter, 0..4)]
}

/// How one day of one project is stored: where its segments end, and which hours are dirty or not
/// packed at all.
#[derive(Debug, Clone)]
struct Packing {
    ends: Vec<u8>,
    unpacked: Hours,
    dirty: Hours,
}

fn packings() -> impl Strategy<Value = Packing> {
    let hours = || {
        let any = any::<u32>().prop_map(|bits| Hours::from_bits(bits & Hours::ALL.bits()).unwrap());
        prop_oneof![2 => Just(Hours::NONE), 1 => any]
    };
    let ends = prop_oneof![
        Just(vec![24]),
        Just(Vec::new()),
        proptest::collection::btree_set(1_u8..=24, 0..4)
            .prop_map(|ends| ends.into_iter().collect())
    ];
    (ends, hours(), hours()).prop_map(|(ends, unpacked, dirty)| Packing { ends, unpacked, dirty })
}

#[derive(Debug, Clone)]
struct Model {
    projects: Vec<Vec<EventRow>>,
    packings: Vec<Packing>,
    range: QueryRange,
    filters: Vec<Filter>,
    /// The error of each fingerprint, and whether it counts; without them, each counts for itself.
    errors: Option<[(u8, bool); 6]>,
}

fn ranges() -> impl Strategy<Value = QueryRange> {
    let length = prop_oneof![
        1..=180_i64,
        1..=3_000_i64,
        1..=DAYS * MINUTES_PER_DAY,
        15 * MINUTES_PER_DAY..=25 * MINUTES_PER_DAY
    ];
    let end = prop_oneof![
        (0..=11_i64).prop_map(|day| day * MINUTES_PER_DAY),
        (0..=11 * 24_i64).prop_map(|hour| hour * 60),
        0..11 * MINUTES_PER_DAY,
        9 * MINUTES_PER_DAY - 150..9 * MINUTES_PER_DAY + 150,
    ];
    let now = prop_oneof![
        Just((DAYS + 1) * MINUTES_PER_DAY),
        9 * MINUTES_PER_DAY..DAYS * MINUTES_PER_DAY
    ];
    let limit = proptest::option::of(1_u16..40);
    let rounding = select(vec![1, 60, MINUTES_PER_DAY]);
    (length, end, now, limit, rounding).prop_map(|(length, end, now, limit, rounding)| {
        let first = first_day().first_minute();
        let from = (first + end - length).div_euclid(rounding) * rounding;
        let time = |minute: i64| WrittenTime::from(start_of_minute(minute));
        QueryRange::new(
            Some(&time(from)),
            Some(&time(first + end)),
            limit,
            start_of_minute(first + now),
        )
        .unwrap()
    })
}

fn models() -> impl Strategy<Value = Model> {
    let projects = proptest::collection::vec(rows(), 1..4);
    let packings = proptest::collection::vec(packings(), 7);
    let error = (0_u8..3, any::<bool>());
    let errors = proptest::option::of(proptest::array::uniform6(error));
    (projects, packings, ranges(), filters(), errors).prop_map(
        |(projects, packings, range, filters, errors)| Model {
            projects,
            packings,
            range,
            filters,
            errors,
        },
    )
}

/// Counts bucket by bucket, as the contract words it.
fn brute_force(model: &Model) -> Vec<Count> {
    let filters = EventFilters::new(model.filters.clone());
    let size = model.range.bucket_size().seconds() * 1_000;
    let count_bucket = |start: Timestamp| {
        let (mut events, mut errors) = (0, BTreeSet::new());
        for (project, rows) in model.projects.iter().enumerate() {
            for row in rows {
                let millis = row.occurred_at.as_millis();
                let in_bucket = (start.as_millis()..start.as_millis() + size).contains(&millis);
                let in_range = millis >= model.range.from().as_millis()
                    && millis < model.range.to().as_millis();
                let number = row.fingerprint.0[0];
                let (error, counts) =
                    model.errors.map_or((number, true), |errors| errors[usize::from(number)]);
                if in_bucket && in_range && counts && filters.matches(&row.attributes) {
                    events += 1;
                    errors.insert((project, error));
                }
            }
        }
        Count { events, errors: u64::try_from(errors.len()).unwrap() }
    };
    model.range.bucket_starts().map(count_bucket).collect()
}

/// Counts from segments, totals and rows. Of a segment it hands over only what the plan names.
fn count(model: &Model) -> Vec<Count> {
    let filters = EventFilters::new(model.filters.clone());
    let demand = Demand {
        range: &model.range,
        filters: &filters,
        every_fingerprint_counts: model.errors.is_none(),
    };
    let mut counter = Counter::new(&model.range, &filters);
    for (project, rows) in model.projects.iter().enumerate() {
        let mut errors = match model.errors {
            None => CountedErrors::all::<u8>([]),
            Some(errors) => {
                let listed = (0..).zip(errors).filter(|(_, (_, counts))| *counts);
                CountedErrors::only(listed.map(|(number, (error, _))| (fingerprint(number), error)))
            }
        };
        for (index, day) in model.range.days().enumerate() {
            let packing = &model.packings[(project + index) % model.packings.len()];
            count_day(&mut counter.day(&mut errors, day), &demand, day, rows, packing);
        }
    }
    counter.into_counts()
}

fn count_day(
    counter: &mut DayCounter<'_, '_>,
    demand: &Demand<'_>,
    day: Day,
    rows: &[EventRow],
    packing: &Packing,
) {
    let rows_in = |hours: Hours| -> Vec<EventRow> {
        let hour_of = |row: &&EventRow| {
            let minute = minute_of(row.occurred_at) - day.first_minute();
            u8::try_from(minute.div_euclid(60)).is_ok_and(|hour| hours.contains(hour))
        };
        rows.iter().filter(hour_of).cloned().collect()
    };
    let starts = std::iter::once(0).chain(packing.ends.iter().copied());
    let segments = starts.zip(&packing.ends).map(|(from, to)| Hours::between(from, *to));
    let segments: Vec<Hours> = segments.map(|hours| hours.without(packing.unpacked)).collect();
    let plan = DayPlan::new(demand, day, &segments, packing.dirty);
    for (hours, plan) in segments.iter().zip(&plan.segments) {
        // A dirty hour lacks an event in its segment, which must not matter.
        let dirty_rows = rows_in(hours.common_with(packing.dirty));
        let mut packed = rows_in(hours.without(packing.dirty));
        packed.extend(dirty_rows.into_iter().skip(1));
        match plan {
            SegmentPlan::Skipped => {}
            SegmentPlan::Totals(hours) => {
                let columns = pack(day, &packed).unwrap();
                let base = columns.get(ColumnName::Base).unwrap();
                let totals = Base::decode(&mut Decoder::new(), base).unwrap().totals();
                counter.add_totals(*hours, &totals);
            }
            SegmentPlan::Columns(hours, names) => {
                let columns = pack(day, &packed).unwrap();
                let read = columns.iter().filter(|(name, _)| names.contains(name));
                let read: Columns = read.map(|(name, bytes)| (name, bytes.to_vec())).collect();
                counter.add_segment(*hours, &read).unwrap();
            }
        }
    }
    counter.add_rows(&rows_in(plan.rows));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_equals_a_count_over_the_raw_events(model in models()) {
        prop_assert_eq!(count(&model), brute_force(&model));
    }
}

fn daily() -> QueryRange {
    let (from, to) = (WrittenTime::from(at("2028-02-01")), WrittenTime::from(at("2028-03-05")));
    QueryRange::new(Some(&from), Some(&to), None, at("2028-04-01")).unwrap()
}

fn sum(counts: &[Count]) -> (u64, u64) {
    (counts.iter().map(|count| count.events).sum(), counts.iter().map(|count| count.errors).sum())
}

#[test]
fn an_error_with_several_fingerprints_counts_once_in_a_bucket() {
    let (range, filters) = (daily(), EventFilters::default());
    let rows = [event(0, 1, &[]), event(1, 2, &[]), event(2, 3, &[])];
    let columns = pack(first_day(), &rows[..2]).unwrap();
    let mut counter = Counter::new(&range, &filters);
    let mut errors = CountedErrors::all([(fingerprint(1), "x"), (fingerprint(2), "x")]);
    let mut day = counter.day(&mut errors, first_day());
    day.add_segment(Hours::ALL, &columns).unwrap();
    day.add_rows(&rows[2..]);
    assert_eq!(sum(&counter.into_counts()), (3, 2));
}

#[test]
fn an_error_counts_once_however_many_sources_have_its_events() {
    let (range, filters) = (daily(), EventFilters::default());
    let rows = [event(0, 1, &[]), event(200, 1, &[]), event(400, 1, &[])];
    let mut counter = Counter::new(&range, &filters);
    let mut errors = CountedErrors::all::<u8>([]);
    let mut day = counter.day(&mut errors, first_day());
    day.add_segment(Hours::between(0, 2), &pack(first_day(), &rows[..1]).unwrap()).unwrap();
    day.add_segment(Hours::between(2, 4), &pack(first_day(), &rows[1..2]).unwrap()).unwrap();
    day.add_rows(&rows[2..]);
    assert_eq!(sum(&counter.into_counts()), (3, 1));
}

#[test]
fn the_same_fingerprint_in_two_projects_is_two_errors() {
    let (range, filters) = (daily(), EventFilters::default());
    let mut counter = Counter::new(&range, &filters);
    for _ in 0..2 {
        let mut errors = CountedErrors::all::<u8>([]);
        counter.day(&mut errors, first_day()).add_rows(&[event(0, 1, &[]), event(1, 1, &[])]);
    }
    assert_eq!(sum(&counter.into_counts()), (4, 2));
}

#[test]
fn a_damaged_or_incomplete_segment_adds_nothing() {
    let (range, filters) = (daily(), EventFilters::new(vec![Filter::is_set(Attribute::Os)]));
    let columns = pack(first_day(), &[event(0, 1, &[(Attribute::Os, "a")])]).unwrap();
    let incomplete = columns.iter().filter(|(name, _)| *name == ColumnName::Base);
    let incomplete: Columns = incomplete.map(|(name, bytes)| (name, bytes.to_vec())).collect();
    let mut counter = Counter::new(&range, &filters);
    let mut errors = CountedErrors::all::<u8>([]);
    assert!(counter.day(&mut errors, first_day()).add_segment(Hours::ALL, &incomplete).is_err());
    assert_eq!(sum(&counter.into_counts()), (0, 0));
}

fn plan(range: &QueryRange, day: Day, segments: &[Hours], dirty: Hours) -> DayPlan {
    let filters = EventFilters::default();
    DayPlan::new(
        &Demand { range, filters: &filters, every_fingerprint_counts: true },
        day,
        segments,
        dirty,
    )
}

#[test]
fn days_are_counted_by_totals_only_where_one_segment_tells_all() {
    let (range, day) = (daily(), first_day());
    let whole = plan(&range, day, &[Hours::ALL], Hours::NONE);
    assert_eq!(whole.segments, [SegmentPlan::Totals(Hours::ALL)]);
    assert!(whole.rows.is_empty());
    let base_of = |hours| SegmentPlan::Columns(hours, vec![ColumnName::Base]);
    let (morning, evening) = (Hours::between(0, 12), Hours::between(12, 24));
    let halves = plan(&range, day, &[morning, evening], Hours::NONE);
    assert_eq!(halves.segments, [base_of(morning), base_of(evening)]);
    let open = plan(&range, day, &[morning], Hours::NONE);
    assert_eq!((open.segments, open.rows), (vec![base_of(morning)], evening));
    let dirty = Hours::between(3, 4);
    let late = plan(&range, day, &[Hours::ALL], dirty);
    assert_eq!((late.segments, late.rows), (vec![base_of(Hours::ALL.without(dirty))], dirty));
}

#[test]
fn hours_are_counted_by_totals_where_they_are_whole_and_clean() {
    let (from, to) =
        (WrittenTime::from(at("2028-02-20")), WrittenTime::from(at("2028-02-22T05:30:00Z")));
    let range = QueryRange::new(Some(&from), Some(&to), None, at("2028-04-01")).unwrap();
    let plan = plan(
        &range,
        first_day(),
        &[Hours::between(0, 3), Hours::between(3, 20)],
        Hours::between(1, 2),
    );
    assert_eq!(plan.rows, Hours::between(1, 2));
    let expected = [
        SegmentPlan::Totals([0, 2].into_iter().collect()),
        SegmentPlan::Columns(Hours::between(3, 6), vec![ColumnName::Base, ColumnName::Minutes]),
    ];
    assert_eq!(plan.segments, expected);
}

#[test]
fn filters_and_errors_that_do_not_count_rule_totals_out() {
    let (range, day) = (daily(), first_day());
    let (none, os) =
        (EventFilters::default(), EventFilters::new(vec![Filter::is_set(Attribute::Os)]));
    let columns = |filters, every_fingerprint_counts| {
        let demand = Demand { range: &range, filters, every_fingerprint_counts };
        DayPlan::new(&demand, day, &[Hours::ALL], Hours::NONE).segments
    };
    let os_column = vec![ColumnName::Base, ColumnName::Attribute(Attribute::Os)];
    assert_eq!(columns(&os, true), [SegmentPlan::Columns(Hours::ALL, os_column)]);
    assert_eq!(columns(&none, false), [SegmentPlan::Columns(Hours::ALL, vec![ColumnName::Base])]);
}
