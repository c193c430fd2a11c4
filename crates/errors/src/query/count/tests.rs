use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use shared::timestamp::Timestamp;

use super::*;
use crate::attribute::Attribute;
use crate::category::Attributes;
use crate::grouping::Fingerprint;
use crate::log::day::{MINUTES_PER_DAY, start_of_minute};
use crate::log::row::EventRow;
use crate::log::run::{Base, ColumnName, Columns, pack, pack_uncompressed};
use crate::query::counted_run::CountedErrors;
use crate::query::day_plan::{QueryNeeds, RunPlan};
use crate::query::filter::{EventFilters, Filter, Operator};
use crate::query::time_bucket::WrittenTime;

/// The first of ten days around a leap day. The model's queries run on the last of them or later.
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
    // Half of the events are close together, so buckets, hours and errors overlap.
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
    let filter = (attribute, 0_usize..4, select(vec!["a", "b", "ab"])).prop_map(
        |(attribute, kind, value)| {
            let operators = [Operator::Is, Operator::IsNot, Operator::IsSet, Operator::IsNotSet];
            Filter::new(attribute, operators[kind], value)
        },
    );
    prop_oneof![Just(Vec::new()), proptest::collection::vec(filter, 0..4)]
}

/// The storage of the events of one day of one project: the run of each event, or `None` for a row.
type Packing = Vec<Option<usize>>;

const RUNS: usize = 3;

fn packings() -> impl Strategy<Value = Packing> {
    let place = prop_oneof![1 => Just(None), 6 => (0..RUNS).prop_map(Some)];
    prop_oneof![
        Just(vec![Some(0)]),
        Just(vec![None]),
        proptest::collection::vec((0..RUNS).prop_map(Some), 1..20),
        proptest::collection::vec(place, 1..20)
    ]
}

#[derive(Debug, Clone)]
struct Model {
    projects: Vec<Vec<EventRow>>,
    packings: Vec<Packing>,
    range: QueryRange,
    filters: Vec<Filter>,
    /// For each fingerprint, `true` if its error counts. `None` if all count.
    errors: Option<[bool; 6]>,
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
    let errors = proptest::option::of(proptest::array::uniform6(any::<bool>()));
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

/// Counts bucket by bucket, by the definition in the API contract.
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
                let counts = model.errors.is_none_or(|errors| errors[usize::from(number)]);
                if in_bucket && in_range && counts && filters.matches(&row.attributes) {
                    events += 1;
                    errors.insert((project, number));
                }
            }
        }
        Count { events, errors: u64::try_from(errors.len()).unwrap() }
    };
    model.range.bucket_starts().map(count_bucket).collect()
}

/// Counts from runs, totals and rows in memory. Passes only the planned columns of each run.
fn count(model: &Model) -> Vec<Count> {
    let filters = EventFilters::new(model.filters.clone());
    let needs = needs(&model.range, &filters, model.errors.is_none());
    let mut counter = Counter::new(&model.range);
    for (project, rows) in model.projects.iter().enumerate() {
        let mut errors = match model.errors {
            None => CountedErrors::default(),
            Some(errors) => {
                let listed = (0..).zip(errors).filter(|(_, counts)| *counts);
                CountedErrors::only(listed.map(|(number, _)| fingerprint(number)))
            }
        };
        for (index, day) in model.range.days().enumerate() {
            let packing = &model.packings[(project + index) % model.packings.len()];
            let of_day: Vec<&EventRow> =
                rows.iter().filter(|row| Day::of(row.occurred_at) == day).collect();
            let (mut runs, mut unpacked) = (vec![Vec::new(); RUNS], Vec::new());
            for (row, place) in of_day.into_iter().zip(packing.iter().cycle()) {
                match place {
                    Some(run) => runs[*run].push(row.clone()),
                    None => unpacked.push(row.clone()),
                }
            }
            let mut runs: Vec<Columns> = runs.iter().map(|rows| pack(day, rows).unwrap()).collect();
            runs.push(pack_uncompressed(day, &unpacked).unwrap());
            count_runs(&mut counter, &mut errors, &needs, day, &runs);
        }
        counter.end_project(errors.count());
    }
    counter.into_counts()
}

fn needs<'q>(
    range: &'q QueryRange,
    filters: &'q EventFilters,
    every_fingerprint_counts: bool,
) -> QueryNeeds<'q> {
    let counted = Counter::new(range).counted();
    QueryNeeds { range, filters, every_fingerprint_counts, counted }
}

fn count_runs(
    counter: &mut Counter<'_>,
    errors: &mut CountedErrors,
    needs: &QueryNeeds<'_>,
    day: Day,
    runs: &[Columns],
) {
    let totals: Vec<Totals> = runs.iter().map(totals_of).collect();
    let plans = needs.plan(day, &totals.iter().collect::<Vec<_>>(), true);
    for ((columns, totals), plan) in runs.iter().zip(&totals).zip(plans) {
        counter.add_totals(day, plan.totals, totals);
        if !plan.columns.is_empty() {
            let names = needs.columns(day, plan.columns);
            let read = names.into_iter().map(|name| (name, columns.get(name).unwrap().to_vec()));
            let of_day = (day, plan.columns);
            add_run(counter, errors, needs, of_day, &read.collect()).unwrap();
        }
    }
}

fn add_run(
    counter: &mut Counter<'_>,
    errors: &mut CountedErrors,
    needs: &QueryNeeds<'_>,
    of_day: (Day, Hours),
    columns: &Columns,
) -> Result<(), Damaged> {
    let decoder = &mut Decoder::new();
    let run = CountedRun::decode(columns, of_day, needs, errors, |_| false, decoder)?;
    counter.add(&run, decoder)
}

fn totals_of(columns: &Columns) -> Totals {
    let base = columns.get(ColumnName::Base).unwrap();
    Base::decode(&mut Decoder::new(), base).unwrap().totals()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn counts_equal_those_of_raw_events(model in models()) {
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

/// Adds each of these events as a run of its own.
fn add_each(counter: &mut Counter<'_>, errors: &mut CountedErrors, events: &[EventRow]) {
    let (range, filters) = (counter.range, EventFilters::default());
    let needs = needs(range, &filters, false);
    for event in events {
        let day = Day::of(event.occurred_at);
        let columns = pack(day, std::slice::from_ref(event)).unwrap();
        add_run(counter, errors, &needs, (day, Hours::ALL), &columns).unwrap();
    }
}

#[test]
fn errors_count_once_across_runs_of_a_day() {
    let range = daily();
    let events = [event(0, 1, &[]), event(200, 1, &[]), event(400, 1, &[])];
    let of_next = events.clone().map(|event| EventRow {
        occurred_at: event.occurred_at.plus(Duration::from_hours(24)),
        ..event
    });
    let mut counter = Counter::new(&range);
    add_each(&mut counter, &mut CountedErrors::default(), &[events, of_next].concat());
    assert_eq!(sum(&counter.into_counts()), (6, 2));
}

#[test]
fn fingerprints_of_two_projects_are_two_errors() {
    let range = daily();
    let mut counter = Counter::new(&range);
    for _ in 0..2 {
        let mut errors = CountedErrors::default();
        add_each(&mut counter, &mut errors, &[event(0, 1, &[]), event(1, 1, &[])]);
        counter.end_project(errors.count());
    }
    assert_eq!(sum(&counter.into_counts()), (4, 2));
}

#[test]
fn damaged_or_incomplete_runs_add_nothing() {
    let (range, filters) =
        (daily(), EventFilters::new(vec![Filter::new(Attribute::Os, Operator::IsSet, "")]));
    let columns = pack(first_day(), &[event(0, 1, &[(Attribute::Os, "a")])]).unwrap();
    let incomplete = columns.iter().filter(|(name, _)| *name == ColumnName::Base);
    let incomplete: Columns = incomplete.map(|(name, bytes)| (name, bytes.to_vec())).collect();
    let mut counter = Counter::new(&range);
    let (mut errors, of_day) = (CountedErrors::default(), (first_day(), Hours::ALL));
    let needs = needs(&range, &filters, true);
    assert!(add_run(&mut counter, &mut errors, &needs, of_day, &incomplete).is_err());
    assert_eq!(sum(&counter.into_counts()), (0, 0));
}

/// Plans runs of the first day that have an event in each of these hours.
fn plan(range: &QueryRange, runs: &[Hours]) -> Vec<RunPlan> {
    let filters = EventFilters::default();
    let needs = needs(range, &filters, true);
    let totals: Vec<Totals> = runs
        .iter()
        .map(|hours| {
            let rows: Vec<EventRow> =
                hours.iter().map(|hour| event(i64::from(hour) * 60, 1, &[])).collect();
            totals_of(&pack(first_day(), &rows).unwrap())
        })
        .collect();
    needs.plan(first_day(), &totals.iter().collect::<Vec<_>>(), true)
}

fn by_totals(totals: Hours) -> RunPlan {
    RunPlan { totals, columns: Hours::NONE }
}

fn by_columns(columns: Hours) -> RunPlan {
    RunPlan { totals: Hours::NONE, columns }
}

#[test]
fn totals_count_days_with_a_single_run() {
    let range = daily();
    let (morning, evening) = (Hours::between(0, 12), Hours::between(12, 24));
    assert_eq!(plan(&range, &[Hours::ALL]), [by_totals(Hours::ALL)]);
    assert_eq!(plan(&range, &[morning]), [by_totals(morning)]);
    let halves = plan(&range, &[morning, evening]);
    assert_eq!(halves, [by_columns(morning), by_columns(evening)]);
}

#[test]
fn totals_count_whole_hours_of_one_run() {
    let (from, to) =
        (WrittenTime::from(at("2028-02-20")), WrittenTime::from(at("2028-02-22T05:30:00Z")));
    let range = QueryRange::new(Some(&from), Some(&to), None, at("2028-04-01")).unwrap();
    let runs = [Hours::between(0, 3), Hours::between(2, 20), Hours::between(1, 2)];
    let hours = |hours: &[u8]| hours.iter().copied().collect::<Hours>();
    let expected = [
        RunPlan { totals: hours(&[0]), columns: hours(&[1, 2]) },
        RunPlan { totals: hours(&[3, 4]), columns: hours(&[2, 5]) },
        by_columns(hours(&[1])),
    ];
    assert_eq!(plan(&range, &runs), expected);
}

#[test]
fn uncounted_events_rule_out_totals() {
    let range = daily();
    let (none, os) = (
        EventFilters::default(),
        EventFilters::new(vec![Filter::new(Attribute::Os, Operator::IsSet, "")]),
    );
    let totals = totals_of(&pack(first_day(), &[event(0, 1, &[])]).unwrap());
    let read = |filters, every_fingerprint_counts, are_whole| {
        let needs = needs(&range, filters, every_fingerprint_counts);
        let plans = needs.plan(first_day(), &[&totals], are_whole);
        assert_eq!(plans, [by_columns(Hours::between(0, 1))]);
        needs.columns(first_day(), Hours::between(0, 1))
    };
    assert_eq!(
        read(&os, true, true),
        [ColumnName::Base, ColumnName::Category(Attribute::Os.into())]
    );
    assert_eq!(read(&none, false, true), [ColumnName::Base]);
    assert_eq!(read(&none, true, false), [ColumnName::Base]);
}
