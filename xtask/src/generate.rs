//! `cargo xtask generate`: writes or checks all generated files.

use std::fs;
use std::path::Path;

use crate::{function, openapi, template, test_lists, user_agents};

/// Writes each stale file and returns the names of the written files.
///
/// # Errors
///
/// With `check`, nothing is written, and stale files are an error.
pub(crate) fn run(root: &Path, check: bool) -> Result<Vec<String>, String> {
    let stale: Vec<(&str, String)> = targets(root)?
        .into_iter()
        .filter(|(file, content)| {
            fs::read_to_string(root.join(file)).ok().as_ref() != Some(content)
        })
        .collect();
    let names: Vec<String> = stale.iter().map(|(file, _)| (*file).to_owned()).collect();
    if check && !names.is_empty() {
        return Err(format!("stale: {}; run `make generate`", names.join(", ")));
    }
    for (file, content) in stale {
        fs::write(root.join(file), content).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(names)
}

/// Returns the files with generated content, and their expected content.
fn targets(root: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let read = |file: &str| {
        fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
    };
    let in_file = |file: &str, result: Result<String, String>| {
        result.map_err(|error| format!("{file}: {error}"))
    };
    let operations = openapi::operations(&read("openapi.yaml")?)
        .map_err(|error| format!("openapi.yaml: {error}"))?;
    let functions = function::functions(root, &operations)?;

    let template =
        in_file("template.yaml", template::generated(&read("template.yaml")?, &functions))?;
    let tests_manifest =
        in_file("tests/Cargo.toml", test_lists::manifest(&read("tests/Cargo.toml")?, &functions))?;
    let published = "crates/errors/src/user_agent/data/regexes.yaml";
    let user_agents = in_file(published, user_agents::generated(&read(published)?))?;
    Ok(vec![
        ("template.yaml", template),
        ("tests/Cargo.toml", tests_manifest),
        ("tests/src/operations.rs", test_lists::declarations(&functions)),
        ("crates/errors/src/user_agent/data/rules.txt", user_agents),
    ])
}
