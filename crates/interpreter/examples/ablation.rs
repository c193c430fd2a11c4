//! Prints a table of the rules and classes, with the number of test queries that each is needed for:
//! queries that are read correctly with it, and not without it. Run it with
//! `cargo run --release -p interpreter --example ablation`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/queries/mod.rs"]
mod queries;

use std::collections::HashSet;
use std::process::Command;
use std::{env, fs};

use interpreter::{Filter, ablate, interpret, rule_names};

fn main() {
    if let Some(name) = env::args().nth(1) {
        ablate(&name);
        println!("{}", correct());
        return;
    }
    let all = correct();
    println!("| rule or class | needed for |\n| --- | --- |");
    let mut needs: Vec<(usize, String)> = names().map(|it| (all - without(&it), it)).collect();
    needs.sort_by_key(|(count, _)| usize::MAX - count);
    for (count, name) in needs {
        println!("| {name} | {count} |");
    }
}

/// Returns the number of queries that are read correctly.
fn correct() -> usize {
    let cases = queries::cases();
    let set = |filters: Vec<Filter>| filters.into_iter().collect::<HashSet<_>>();
    let right = cases.into_iter().filter(|(request, expected)| {
        let found = set(interpret(request).filters);
        expected.iter().any(|accepted| set(accepted.clone()) == found)
    });
    right.count()
}

/// Counts in another process, since a process has one lexicon.
fn without(name: &str) -> usize {
    let counted = Command::new(env::current_exe().unwrap()).arg(name).output().unwrap();
    String::from_utf8(counted.stdout).unwrap().trim().parse().unwrap()
}

/// Returns the names of the rules, and of the classes in the data.
fn names() -> impl Iterator<Item = String> {
    let classes = ["phrases.txt", "words.txt"].into_iter().flat_map(|file| {
        let path = format!("{}/data/en/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("# "));
        let classes = lines.filter_map(|line| line.split_once('\t'));
        let names: Vec<String> =
            classes.flat_map(|it| it.1.split(' ').map(str::to_owned)).collect();
        names
    });
    let rules = rule_names().map(str::to_owned);
    let names: HashSet<String> = rules.chain(classes).filter(|name| !name.is_empty()).collect();
    names.into_iter()
}
