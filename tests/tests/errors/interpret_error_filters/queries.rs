//! Queries with expected answers: a query that was read correctly once stays so.

use super::gold::Case;

/// Returns the queries of a file that are read otherwise than expected, and the number of all.
fn misses(file: &str) -> (Vec<String>, usize) {
    let cases = Case::of_file(file).unwrap();
    let wrong = cases.iter().filter(|case| !case.accepts(&case.filters().unwrap()));
    let miss =
        |case: &Case<'_>| format!("{} {:?} {}", case.id, case.tags, case.request_field("query"));
    (wrong.map(miss).collect(), cases.len())
}

#[test]
fn reads_the_development_queries() {
    let (wrong, all) = misses(include_str!("queries/development.jsonl"));
    assert!(all > 500);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_held_out_queries() {
    let (wrong, all) = misses(include_str!("queries/held-out.jsonl"));
    assert!(all > 100);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_specification() {
    let (wrong, all) = misses(include_str!("queries/specified.jsonl"));
    assert!(all > 100);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_second_round() {
    let (wrong, all) = misses(include_str!("queries/second-round.jsonl"));
    assert!(all > 300);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_blind_queries() {
    let (wrong, all) = misses(include_str!("queries/blind.jsonl"));
    assert!(all > 250);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_released_queries() {
    let (wrong, all) = misses(include_str!("queries/released.jsonl"));
    assert!(all > 400);
    assert!(wrong.len() * 50 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_third_round() {
    let (wrong, all) = misses(include_str!("queries/third-round.jsonl"));
    assert!(all > 250);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_fourth_round() {
    let (wrong, all) = misses(include_str!("queries/fourth-round.jsonl"));
    assert!(all > 300);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_fifth_round() {
    let (wrong, all) = misses(include_str!("queries/fifth-round.jsonl"));
    assert!(all > 100);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_sixth_round() {
    let (wrong, all) = misses(include_str!("queries/sixth-round.jsonl"));
    assert!(all > 80);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_seventh_round() {
    let (wrong, all) = misses(include_str!("queries/seventh-round.jsonl"));
    assert!(all > 150);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_eighth_round() {
    let (wrong, all) = misses(include_str!("queries/eighth-round.jsonl"));
    assert!(all > 100);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_ninth_round() {
    let (wrong, all) = misses(include_str!("queries/ninth-round.jsonl"));
    assert!(all >= 100);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_tenth_round() {
    let (wrong, all) = misses(include_str!("queries/tenth-round.jsonl"));
    assert!(all >= 100);
    assert!(wrong.len() * 33 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_eleventh_round() {
    let (wrong, all) = misses(include_str!("queries/eleventh-round.jsonl"));
    assert!(all >= 150);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}

#[test]
fn reads_the_queries_of_the_twelfth_round() {
    let (wrong, all) = misses(include_str!("queries/twelfth-round.jsonl"));
    assert!(all >= 150);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}
