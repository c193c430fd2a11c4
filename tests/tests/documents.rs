//! Checks the names, links and citations of documents.
//!
//! A document is cited by its path from the root. Its parts are cited by their heading in quotes:
//! `docs/api-conventions.md`, "Order of checks".

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::workspace;

fn document(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap()
}

/// Returns the names between single backticks.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Collects the names of all tests below a folder.
fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                tests_below(&path, names);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let mut lines = source.lines().map(str::trim).peekable();
            while let Some(line) = lines.next() {
                if !line.starts_with("#[test") && !line.starts_with("#[tokio::test") {
                    continue;
                }
                // Skips further attributes.
                while lines.next_if(|line| line.starts_with("#[")).is_some() {}
                let declaration = lines.peek().and_then(|line| line.split_once("fn "));
                names
                    .extend(declaration.and_then(|(_, it)| Some(it.split_once('(')?.0.to_owned())));
            }
            // Properties in `proptest!` have no `async`.
            let properties = source.split("#[test]").skip(1).filter_map(|it| it.split_once("fn "));
            names.extend(properties.filter_map(|(_, it)| Some(it.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn tests_in_the_threat_model_exist() {
    let mut tests = BTreeSet::new();
    for folder in ["shared", "crates", "functions", "tests", "cli", "local"] {
        tests_below(&workspace().join(folder), &mut tests);
    }
    let text = document("docs/security.md");
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
    };
    let named: Vec<&str> = names_in(&text).filter(is_test).collect();
    assert!(named.len() > 40, "{}", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !tests.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/security.md names missing tests: {missing:#?}");
}

#[test]
fn direct_dependencies_are_justified() {
    let manifest: toml::Table = document("Cargo.toml").parse().unwrap();
    let declared = manifest["workspace"]["dependencies"].as_table().unwrap();
    let foreign = declared.iter().filter(|(_, it)| it.get("path").is_none());
    let foreign: BTreeSet<&str> = foreign.map(|(name, _)| name.as_str()).collect();
    let text = document("docs/dependencies.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<&str> = rows.filter_map(|row| Some(row.split_once('`')?.0)).collect();
    assert_eq!(listed, foreign);
}

#[test]
fn readme_links_every_document() {
    let readme = document("README.md");
    let files = project_files();
    let documents = files.iter().filter(|name| name.starts_with("docs/"));
    let missing: Vec<&String> =
        documents.filter(|name| !readme.contains(&format!("({name})"))).collect();
    assert!(missing.is_empty(), "README.md does not link {missing:?}");
}

#[test]
fn citations_are_valid() {
    let (mut found, mut faults) = (0, Vec::new());
    // This file has invalid examples.
    let is_other = |name: &str| name != "tests/tests/documents.rs";
    for (name, text) in texts().into_iter().filter(|(name, _)| is_other(name)) {
        let text = without_line_breaks(&text);
        for citation in citations(&text) {
            found += 1;
            faults.extend(citation.fault(&name).map(|fault| format!("{name}: {fault}")));
        }
    }
    assert!(found > 50, "{found}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn links_are_valid() {
    let (mut found, mut faults) = (0, Vec::new());
    for (name, text) in texts().into_iter().filter(|(name, _)| is_markdown(name)) {
        // Code between backticks can look like a link.
        let prose: String = text.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        for target in targets.filter(|target| !target.contains("://")) {
            found += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&name).parent().unwrap();
            let file = if path.is_empty() { PathBuf::from(&name) } else { folder.join(path) };
            let file = workspace().join(file);
            let has_anchor = || headings(&file).iter().any(|heading| anchor_of(heading) == anchor);
            if !file.exists() || (!anchor.is_empty() && !has_anchor()) {
                faults.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(found > 25, "{found}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn rules_cited_by_the_interpreter_exist() {
    let headings = headings(&workspace().join("docs/semantics/error-filters.md"));
    let (mut found, mut faults) = (0, Vec::new());
    let sources = "crates/interpreter/src/";
    for (name, text) in texts().into_iter().filter(|(name, _)| name.starts_with(sources)) {
        for (at, _) in text.match_indices("(rule ") {
            let rule = text[at..].trim_start_matches("(rule ").split(')').next().unwrap();
            found += 1;
            if !headings.iter().any(|heading| heading.starts_with(&format!("Rule {rule}: "))) {
                faults.push(format!("{name}: rule {rule}"));
            }
        }
    }
    assert!(found > 10, "{found}");
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The project can be built and tested from a clone alone.
#[test]
fn no_paths_outside_the_project_are_named() {
    let outside = [concat!("../", "shared/"), concat!("SEMAN", "TICS")];
    let mut faults = Vec::new();
    for (name, text) in texts() {
        let named = outside.iter().filter(|outside| text.contains(**outside));
        faults.extend(named.map(|outside| format!("{name}: {outside}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn invalid_citations_are_found() {
    let fault = |text: &str| {
        let text = without_line_breaks(text);
        let faults: Vec<_> = citations(&text).map(|citation| citation.fault("README.md")).collect();
        let [fault] = faults.as_slice() else { panic!("{text} has {} citations", faults.len()) };
        fault.clone()
    };
    for sound in [
        "// As docs/security.md says.",
        "//! Checks (`docs/api-conventions.md`,\n    //! \"Order of checks\").",
        "# docs/operations.md#raise-limits",
    ] {
        assert_eq!(fault(sound), None, "{sound}");
    }
    for unsound in [
        "/// (`docs/nowhere.md`)",
        "/// As `security.md` says.",
        "//! (`docs/api-conventions.md`,\n//! \"Order of cheques\")",
        "// docs/operations.md#raise-the-limits",
        "// `docs/security.md` §2",
    ] {
        assert!(fault(unsound).is_some(), "{unsound}");
    }
    assert_eq!(citations("see https://example.com/readme.md").count(), 0);
}

/// Returns the paths of the project's files from the root, committed or not.
fn project_files() -> Vec<String> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(arguments).current_dir(workspace()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let names = names.split_terminator('\0').map(str::to_owned);
    names.filter(|name| workspace().join(name).is_file()).collect()
}

/// Returns the paths and texts of the project's own files.
fn texts() -> Vec<(String, String)> {
    let is_own = |name: &String| {
        let foreign = ["tests/conformance/", "crates/errors/src/user_agent/data/"];
        let is_foreign =
            foreign.iter().any(|folder| name.starts_with(folder)) && !is_markdown(name);
        let is_data = [".lock", ".jsonl", "package-lock.json"].iter().any(|it| name.ends_with(it));
        !is_foreign && !is_data
    };
    let read = |name: String| Some((fs::read_to_string(workspace().join(&name)).ok()?, name));
    let texts = project_files().into_iter().filter(is_own).filter_map(read);
    texts.map(|(text, name)| (name, text)).collect()
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// Joins a text into one line, without comment markers.
fn without_line_breaks(text: &str) -> String {
    let marks = |line: &str| line.trim().trim_start_matches(['/', '!', '#']).trim().to_owned();
    text.lines().map(marks).collect::<Vec<_>>().join(" ")
}

/// A cited document, and its cited part.
struct Citation<'t> {
    path: &'t str,
    anchor: Option<&'t str>,
    heading: Option<&'t str>,
    has_section_sign: bool,
}

/// Returns all citations in a text without line breaks.
fn citations(text: &str) -> impl Iterator<Item = Citation<'_>> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    text.match_indices(".md").filter_map(move |(at, mark)| {
        let (before, after) = (&text[..at], &text[at + mark.len()..]);
        let stem = before.rsplit(|c| !is_of_path(c)).next().unwrap();
        let path = &text[at - stem.len()..at + mark.len()];
        let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric());
        let unquoted = after.strip_prefix('`').unwrap_or(after);
        // A link's text is not a citation. Links are checked separately.
        let names_a_link = unquoted.starts_with("](");
        if stem.is_empty() || !ends || names_a_link || path.contains("://") {
            return None;
        }
        let anchor = after.strip_prefix('#').map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
            &rest[..end.unwrap_or(rest.len())]
        });
        let quoted = unquoted.strip_prefix(", \"").and_then(|rest| rest.split_once('"'));
        let heading = quoted.map(|(heading, _)| heading);
        let has_section_sign = unquoted.trim_start().starts_with('§');
        Some(Citation { path, anchor, heading, has_section_sign })
    })
}

impl Citation<'_> {
    /// Returns the reason if the citation is invalid. In documents, paths can be relative to their
    /// folder.
    fn fault(&self, citing: &str) -> Option<String> {
        let path = self.path;
        let folder = Path::new(citing).parent().filter(|_| is_markdown(citing));
        let mut places = [Some(Path::new("")), folder].into_iter().flatten();
        let place = places.find(|place| workspace().join(place).join(path).is_file());
        let Some(file) = place.map(|place| workspace().join(place).join(path)) else {
            return Some(format!(
                "{path} does not exist; cite a document by its path from the root"
            ));
        };
        if self.has_section_sign {
            return Some(format!("{path} has no numbers; cite a part by its heading in quotes"));
        }
        let headings = headings(&file);
        let lacks_heading = |wanted: &&str| !headings.iter().any(|heading| heading == wanted);
        if let Some(wanted) = self.heading.filter(lacks_heading) {
            return Some(format!("{path} has no heading \"{wanted}\""));
        }
        let lacks_anchor = |wanted: &&str| !headings.iter().any(|it| anchor_of(it) == *wanted);
        self.anchor.filter(lacks_anchor).map(|wanted| format!("{path} has no anchor #{wanted}"))
    }
}

/// Returns the headings of a Markdown document; other files have none.
fn headings(file: &Path) -> Vec<String> {
    if !is_markdown(&file.to_string_lossy()) {
        return Vec::new();
    }
    let text = fs::read_to_string(file).unwrap();
    // Code blocks have comments that look like headings.
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    headings.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// Returns the anchor of a heading on GitHub.
fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
