//! The documents name what is there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tests::workspace;

fn document(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap()
}

/// What a text has between single backticks.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The names of all tests below a folder.
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
                // Further attributes may stand between.
                while lines.next_if(|line| line.starts_with("#[")).is_some() {}
                let declaration = lines.peek().and_then(|line| line.split_once("fn "));
                names
                    .extend(declaration.and_then(|(_, it)| Some(it.split_once('(')?.0.to_owned())));
            }
            // Properties are declared within `proptest!`, without `async`.
            let properties = source.split("#[test]").skip(1).filter_map(|it| it.split_once("fn "));
            names.extend(properties.filter_map(|(_, it)| Some(it.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut tests = BTreeSet::new();
    for folder in ["shared", "functions", "tests", "cli", "local"] {
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
    assert!(missing.is_empty(), "docs/security.md names tests that are not there: {missing:#?}");
}

#[test]
fn every_direct_dependency_is_justified() {
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
fn the_readme_links_every_document() {
    let readme = document("README.md");
    for entry in fs::read_dir(workspace().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(readme.contains(&format!("(docs/{name})")), "README.md does not link {name}");
    }
}
