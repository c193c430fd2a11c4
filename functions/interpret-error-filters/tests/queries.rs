//! Queries with gold answers: what was answered right once stays so.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod gold;

use std::fs;
use std::path::Path;

use gold::Case;

/// The queries of a file that are answered otherwise than expected, and how many there are.
fn misses(file: &str) -> (Vec<String>, usize) {
    let cases = Case::of_file(file).unwrap();
    let wrong = cases.iter().filter(|case| !case.accepts(&case.answer().unwrap()));
    let miss = |case: &Case<'_>| format!("{} {:?} {}", case.id, case.tags, case.asked("query"));
    (wrong.map(miss).collect(), cases.len())
}

#[test]
fn answers_the_development_queries() {
    let (wrong, all) = misses(include_str!("queries/development.jsonl"));
    assert!(all > 500);
    assert!(wrong.len() * 100 <= all, "{wrong:#?}");
}

#[test]
fn answers_the_held_out_queries() {
    let (wrong, all) = misses(include_str!("queries/held-out.jsonl"));
    assert!(all > 100);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}

/// The examples of the specification, which stands beside the project where it is developed.
#[test]
fn answers_the_queries_of_the_specification() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(file) = fs::read_to_string(root.join("../shared/interpret/dev.jsonl")) else {
        eprintln!("../shared/interpret/dev.jsonl is not there; its queries are not asked");
        return;
    };
    let (wrong, all) = misses(&file);
    assert!(all > 0);
    assert!(wrong.len() * 20 <= all, "{wrong:#?}");
}
