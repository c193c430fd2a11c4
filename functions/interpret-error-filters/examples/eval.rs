//! `make eval`: prints how many queries with expected answers are read correctly, in total, by
//! difficulty and by tag. Lists the queries that are not.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../../tests/tests/errors/interpret_error_filters/gold.rs"]
mod gold;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

use gold::Case;
use serde_json::Value;

const DIFFICULTIES: [&str; 3] = ["easy", "medium", "hard"];

fn main() -> ExitCode {
    let files: Vec<String> = env::args().skip(1).collect();
    match evaluate(&files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(files: &[String]) -> Result<(), String> {
    let mut everything = Accuracy::default();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let accuracy = Accuracy::of_file(&text).map_err(|error| format!("{file}: {error}"))?;
        println!("{file}\n{accuracy}");
        everything.add(accuracy);
    }
    if files.len() > 1 {
        println!("All files\n{everything}");
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Tally {
    right: u32,
    all: u32,
}

impl Tally {
    fn count(&mut self, right: bool) {
        self.right += u32::from(right);
        self.all += 1;
    }
}

#[derive(Default)]
struct Accuracy {
    overall: Tally,
    by_tag: BTreeMap<String, Tally>,
    misses: String,
}

impl Accuracy {
    fn of_file(text: &str) -> Result<Self, String> {
        let mut accuracy = Self::default();
        for case in Case::of_file(text)? {
            let filters = case.filters()?;
            let right = case.accepts(&filters);
            accuracy.overall.count(right);
            for tag in &case.tags {
                accuracy.by_tag.entry(tag.clone()).or_default().count(right);
            }
            if !right {
                accuracy.misses.push_str(&miss(&case, &filters));
            }
        }
        Ok(accuracy)
    }

    /// Adds the counts of other queries. Their misses are printed already.
    fn add(&mut self, other: Self) {
        let sum = |one: Tally, other: Tally| Tally {
            right: one.right + other.right,
            all: one.all + other.all,
        };
        self.overall = sum(self.overall, other.overall);
        for (tag, tally) in other.by_tag {
            let known = self.by_tag.entry(tag).or_default();
            *known = sum(*known, tally);
        }
    }
}

fn miss(case: &Case<'_>, filters: &[Value]) -> String {
    let current =
        case.request_field("currentFilters").as_array().map_or_else(String::new, |it| list(it));
    let mut lines =
        format!("  {} {}\n    current  {current}\n", case.id, case.request_field("query"));
    let expected = case.expected.iter().map(|it| format!("    expected {}\n", list(it)));
    lines.extend(expected);
    let trace = case.trace().unwrap_or_default();
    lines + &format!("    got      {}\n    rules    {trace}\n", list(filters))
}

fn list(filters: &[Value]) -> String {
    let text = |filter: &Value| {
        let name = |field: &str| filter[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", name("categoryId"), name("operator"), filter["value"])
    };
    let mut texts: Vec<String> = filters.iter().map(text).collect();
    texts.sort();
    texts.join("; ")
}

impl std::fmt::Display for Accuracy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.misses)?;
        line(f, "all", self.overall)?;
        let is_difficulty = |tag: &str| DIFFICULTIES.contains(&tag);
        for difficulty in DIFFICULTIES {
            if let Some(tally) = self.by_tag.get(difficulty) {
                line(f, difficulty, *tally)?;
            }
        }
        let tags = self.by_tag.iter().filter(|(tag, _)| !is_difficulty(tag));
        tags.into_iter().try_for_each(|(tag, tally)| line(f, &format!("  {tag}"), *tally))
    }
}

fn line(
    f: &mut std::fmt::Formatter<'_>,
    name: &str,
    Tally { right, all }: Tally,
) -> std::fmt::Result {
    let percent = 100.0 * f64::from(right) / f64::from(all.max(1));
    writeln!(f, "  {name:<24} {right:>5} of {all:<5} {percent:>5.1} %")
}
