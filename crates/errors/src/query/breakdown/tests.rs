use super::*;
use crate::category::Attributes;
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours};
use crate::log::row::EventRow;
use crate::log::run::pack;
use crate::query::counted_run::CountedErrors;
use crate::query::day_plan::QueryNeeds;
use crate::query::filter::EventFilters;
use crate::query::time_bucket::QueryRange;

/// Adds events of a project: values of the category, numbers of errors, and numbers of events.
fn add(shares: &mut ValueShares, events: &[(Option<&str>, u8, usize)]) {
    let now = Timestamp::from_millis(1_794_000_000_000);
    let rows = events.iter().flat_map(|(value, error, events)| {
        let mut attributes = Attributes::default();
        let Category::Attribute(attribute) = shares.by else { panic!("a tag") };
        attributes.set(attribute, value.map(str::to_owned));
        let fingerprint = Fingerprint([*error; 16]);
        std::iter::repeat_n(EventRow { occurred_at: now, fingerprint, attributes }, *events)
    });
    let columns = pack(Day::of(now), &rows.collect::<Vec<_>>()).unwrap();
    let (range, filters) = (QueryRange::until(now, 60), EventFilters::default());
    let counted = shares.counted();
    let needs =
        QueryNeeds { range: &range, filters: &filters, every_fingerprint_counts: true, counted };
    let (mut errors, decoder) = (CountedErrors::default(), &mut Decoder::new());
    let of_day = (Day::of(now), Hours::ALL);
    let run = CountedRun::decode(&columns, of_day, &needs, &mut errors, |_| false, decoder);
    shares.add(&run.unwrap(), decoder).unwrap();
}

fn shares() -> ValueShares {
    let mut shares = ValueShares::new(Attribute::Browser.into());
    let rows =
        [(Some("b"), 0, 2), (Some("a"), 0, 1), (Some("a"), 1, 1), (None, 1, 2), (Some("c"), 1, 1)];
    add(&mut shares, &rows);
    shares.end_project(2);
    add(&mut shares, &[(Some("c"), 0, 1)]);
    shares.end_project(1);
    shares
}

#[test]
fn rows_are_ordered_and_the_rest_is_distinct() {
    let row = |value: Option<&str>, errors, unique_errors, other| BreakdownRow {
        value: value.map(str::to_owned),
        errors,
        unique_errors,
        other,
    };
    let rows = [
        row(Some("a"), 2, 2, false),
        row(Some("b"), 2, 1, false),
        // Errors of two projects are distinct.
        row(Some("c"), 2, 2, false),
        row(None, 2, 1, false),
    ];
    assert_eq!(shares().into_shares(4).unwrap(), rows);
    assert_eq!(shares().into_shares(100).unwrap(), rows);
    let mut cut = rows[..2].to_vec();
    // Events without a value share one of the two errors of `c`.
    cut.push(row(None, 4, 2, true));
    assert_eq!(shares().into_shares(2).unwrap(), cut);
    assert_eq!(ValueShares::new(Attribute::Os.into()).into_shares(3).unwrap(), []);
}

#[test]
fn too_many_values_are_rejected() {
    let with = |count: usize| {
        let mut shares = ValueShares::new(Attribute::Url.into());
        let numbers = 0..u32::try_from(count).unwrap();
        shares.values = numbers.map(|number| (Some(number.to_string().into()), number)).collect();
        shares.events = vec![1; count];
        shares.into_shares(1)
    };
    let violations = with(MAX_VALUES + 1).unwrap_err();
    let [violation] = violations.listed() else { panic!("{violations:?}") };
    assert_eq!(violation.pointer, "/by");
    assert_eq!(with(MAX_VALUES).unwrap().len(), 2);
}
