use super::*;
use crate::grouping::Fingerprint;

fn shares() -> ValueShares {
    let mut shares = ValueShares::new(Attribute::Browser.into());
    let rows =
        [(Some("b"), 0, 2), (Some("a"), 0, 1), (Some("a"), 1, 1), (None, 1, 2), (Some("c"), 1, 1)];
    let rows =
        rows.into_iter().map(|(value, error, events)| ((value.map(Box::from), error), events));
    let two = |number| (Fingerprint([number; 16]), number);
    shares.end_project(&mut CountedErrors::all([two(0), two(1)]), RowShares(rows.collect()));
    let other = HashMap::from([((Some(Box::from("c")), 0), 1)]);
    shares.end_project(&mut CountedErrors::all([two(0)]), RowShares(other));
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
    let with = |values: usize| {
        let mut shares = ValueShares::new(Attribute::Url.into());
        let rows = (0..values).map(|number| ((Some(number.to_string().into()), 0), 1));
        let mut errors = CountedErrors::all([(Fingerprint([0; 16]), 0)]);
        shares.end_project(&mut errors, RowShares(rows.collect()));
        shares.into_shares(1)
    };
    let violations = with(MAX_VALUES + 1).unwrap_err();
    let [violation] = violations.listed() else { panic!("{violations:?}") };
    assert_eq!(violation.pointer, "/by");
    assert_eq!(with(MAX_VALUES).unwrap().len(), 2);
}
