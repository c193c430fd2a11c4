//! Queries with expected answers: a query that was read correctly once stays so.

use std::thread;

use super::gold::Case;

/// Returns the queries of a file that are read otherwise than expected, and the number of all.
fn misses(file: &str) -> (Vec<String>, usize) {
    let cases = Case::of_file(file).unwrap();
    let wrong = cases.iter().filter(|case| !case.accepts(&case.filters().unwrap()));
    let miss =
        |case: &Case<'_>| format!("{} {:?} {}", case.id, case.tags, case.request_field("query"));
    (wrong.map(miss).collect(), cases.len())
}

/// The sets: the file, its name, a lower bound of its queries, and the number of queries of which
/// one can be misread; 0: none.
const SETS: [(&str, &str, usize, usize); 16] = [
    (include_str!("queries/development.jsonl"), "development", 501, 100),
    (include_str!("queries/held-out.jsonl"), "held-out", 101, 20),
    (include_str!("queries/specified.jsonl"), "specified", 101, 0),
    (include_str!("queries/second-round.jsonl"), "second-round", 301, 100),
    (include_str!("queries/blind.jsonl"), "blind", 251, 100),
    (include_str!("queries/released.jsonl"), "released", 401, 50),
    (include_str!("queries/third-round.jsonl"), "third-round", 251, 20),
    (include_str!("queries/fourth-round.jsonl"), "fourth-round", 301, 20),
    (include_str!("queries/fifth-round.jsonl"), "fifth-round", 101, 20),
    (include_str!("queries/sixth-round.jsonl"), "sixth-round", 81, 20),
    (include_str!("queries/seventh-round.jsonl"), "seventh-round", 151, 20),
    (include_str!("queries/eighth-round.jsonl"), "eighth-round", 101, 20),
    (include_str!("queries/ninth-round.jsonl"), "ninth-round", 100, 20),
    (include_str!("queries/tenth-round.jsonl"), "tenth-round", 100, 33),
    (include_str!("queries/eleventh-round.jsonl"), "eleventh-round", 150, 100),
    (include_str!("queries/twelfth-round.jsonl"), "twelfth-round", 150, 100),
];

#[test]
fn reads_the_queries_of_each_set() {
    let read = thread::scope(|scope| {
        let reading = SETS.map(|(file, ..)| scope.spawn(move || misses(file)));
        reading.map(|it| it.join().unwrap())
    });
    for ((_, name, least, one_of), (wrong, all)) in SETS.into_iter().zip(read) {
        assert!(all >= least, "{name}: {all}");
        let allowed = all.checked_div(one_of).unwrap_or(0);
        assert!(wrong.len() <= allowed, "{name}: {wrong:#?}");
    }
}
