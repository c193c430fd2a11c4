//! The language stands in data, not in code.

use std::fs;
use std::path::{Path, PathBuf};

const CRATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/interpreter");

/// What is no English: names of operators and values on the wire, names that the data files use,
/// placeholders of formats, signs of units and of versions.
const NO_LANGUAGE: [&str; 33] = [
    "is",
    "is_not",
    "contains",
    "not_contains",
    "gt",
    "gte",
    "lt",
    "lte",
    "is_set",
    "is_not_set",
    "true",
    "false",
    "digit",
    "teen",
    "tens",
    "factor",
    "half",
    "article",
    "and",
    "point",
    "roman",
    "scale",
    "joint_scale",
    "time",
    "percent",
    "watt",
    "xx",
    "ss",
    "ae",
    "oe",
    "th",
    "v",
    "s",
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn all(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&Path::new(CRATE).join(folder), &mut found);
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The code of a file: without comments, tests, the examples of a rule and its name, and the tables
/// that say what the classes of the data files are.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut code = String::new();
    let (mut examples, mut classes) = (false, false);
    for line in text.lines() {
        examples |= line.trim_start().starts_with("examples: &[");
        classes |= line == "classes! {";
        let named = line.trim_start().starts_with("name: \"");
        if !examples && !classes && !named && !line.trim_start().starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
        let ends =
            line == "    ]," || line.trim_start().starts_with("examples: ") && line.ends_with("],");
        examples &= !ends;
        classes &= line != "}";
    }
    code
}

/// The texts in quotes.
fn literals(code: &str) -> Vec<String> {
    let plain = code.replace("'\"'", "").replace("\\\"", "");
    plain.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn no_word_of_english_stands_in_the_interpreters_code() {
    let mut words = Vec::new();
    for (path, text) in all("src") {
        for literal in literals(&code(&text)) {
            let formats = literal.contains('{') || literal.contains("data/en/");
            let lower = literal.chars().any(|it| it.is_ascii_lowercase());
            let escape = literal.starts_with('\\');
            if lower && !formats && !escape && !NO_LANGUAGE.contains(&literal.as_str()) {
                words.push(format!("{}: {literal:?}", path.display()));
            }
        }
    }
    assert!(words.is_empty(), "{words:#?}");
}

#[test]
fn data_stands_one_entry_a_line_sorted_and_with_its_source() {
    let files = all("data/en");
    assert!(files.len() > 10);
    for (path, text) in files {
        let (comments, entries): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("# "));
        let name = path.display();
        assert!(comments.iter().any(|line| line.contains("Source")), "{name} names no source");
        assert!(!entries.is_empty(), "{name}");
        for pair in entries.windows(2) {
            assert!(pair[0] < pair[1], "{name}: {:?} stands before {:?}", pair[0], pair[1]);
        }
    }
}
