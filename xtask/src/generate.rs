//! `cargo xtask generate`: all targets, written or compared.

use std::fs;
use std::path::Path;

use crate::{function, openapi, readme, template, test_lists, user_agents};

/// Writes each file whose content is not what is generated, and names those that it wrote. Where it
/// only checks, it fails if there are any.
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

/// The files that have something generated, with what they should contain.
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
    let readme = in_file("README.md", readme::generated(&read("README.md")?, &functions))?;
    let of_tests =
        in_file("tests/Cargo.toml", test_lists::manifest(&read("tests/Cargo.toml")?, &functions))?;
    let published = "crates/errors/src/user_agent/data/regexes.yaml";
    let user_agents = in_file(published, user_agents::generated(&read(published)?))?;
    Ok(vec![
        ("template.yaml", template),
        ("README.md", readme),
        ("tests/Cargo.toml", of_tests),
        ("tests/src/operations.rs", test_lists::declarations(&functions)),
        ("crates/errors/src/user_agent/data/rules.txt", user_agents),
    ])
}
