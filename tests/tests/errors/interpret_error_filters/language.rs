//! The language is in data, not in code.

use std::fs;
use std::path::{Path, PathBuf};

const CRATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/interpreter");

/// Literals that are not English: names of operators and values on the wire, names in data files,
/// placeholders of formats, signs of units and versions.
const NO_LANGUAGE: [&str; 34] = [
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
    "ordinal",
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

/// Returns the code of a file. Omits comments, tests, the names of rules, and the
/// tables that define the classes of the data files.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut code = String::new();
    let mut classes = false;
    for line in text.lines() {
        classes |= line == "classes! {";
        let is_comment = line.trim_start().starts_with("//");
        if !classes && !is_comment && !line.contains("::read)") {
            code.push_str(line);
            code.push('\n');
        }
        classes &= line != "}";
    }
    code
}

/// Returns the texts in quotes.
fn literals(code: &str) -> Vec<String> {
    let plain = code.replace("'\"'", "").replace("\\\"", "");
    plain.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn interpreter_code_contains_no_english() {
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
fn data_files_are_sorted_and_name_their_sources() {
    let files = all("data/en");
    assert!(files.len() > 10);
    for (path, text) in files {
        let (comments, entries): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("# "));
        let name = path.display();
        assert!(comments.iter().any(|line| line.contains("Source")), "{name} has no source");
        assert!(!entries.is_empty(), "{name}");
        for pair in entries.windows(2) {
            assert!(pair[0] < pair[1], "{name}: {:?} is before {:?}", pair[0], pair[1]);
        }
    }
}
