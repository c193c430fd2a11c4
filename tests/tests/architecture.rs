//! Checks dependency directions that crate boundaries do not enforce: between crates, and from
//! modules to DynamoDB and HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tests::workspace;

/// The crates in `crates/` with their own tables.
const AREAS: [&str; 6] = ["errors", "flags", "insights", "markers", "notifications", "people"];

/// A source file of a crate.
struct Source {
    /// The module, such as `store::items`.
    module: Vec<String>,
    /// The used paths of the own crate, from the crate's root.
    uses: BTreeSet<Vec<String>>,
    /// The code without comments and unit tests.
    code: String,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let relative = path.strip_prefix(root).unwrap().with_extension("");
        let mut module: Vec<String> =
            relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| last == "mod" || last == "lib");
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap()).collect();
        let code = code.join("\n");
        let uses = uses(&module, &code);
        Self { module, uses, code }
    }

    fn is_in(&self, module: &str) -> bool {
        self.module.iter().any(|part| part == module)
    }
}

/// Returns the Rust files in a folder and its subfolders.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the sources of the crate in a folder, without files of unit tests.
fn sources(folder: &str) -> Vec<Source> {
    let root = workspace().join(folder).join("src");
    let mut files = source_files(&root);
    files.retain(|path| !path.file_name().unwrap().to_str().unwrap().contains("test"));
    assert!(files.len() > 4, "{folder}: {}", files.len());
    files.iter().map(|path| Source::read(&root, path)).collect()
}

/// Returns the paths of the own crate that code uses, in `use` lines and expressions.
fn uses(module: &[String], code: &str) -> BTreeSet<Vec<String>> {
    let mut written = Vec::new();
    for (start, _) in code.match_indices("use ") {
        // Messages can contain the word, too.
        let before = code[..start].rsplit('\n').next().unwrap_or_default().trim();
        let is_use = before.is_empty() || before.starts_with("pub");
        if let Some(tree) = code[start + 4..].split(';').next().filter(|_| is_use) {
            expand("", tree, &mut written);
        }
    }
    for (start, _) in code.match_indices("crate::") {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let end = code[start..].find(|c| !is_part(c)).unwrap_or(code.len() - start);
        // A path before a brace begins a `use` tree.
        if !code[start + end..].starts_with('{') {
            written.push(code[start..start + end].to_owned());
        }
    }
    written.iter().filter_map(|path| from_root(module, path)).collect()
}

/// Expands a `use` tree: `a::{b, c::d}` becomes `a::b` and `a::c::d`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        paths.push(format!("{before}{}", tree.trim()));
        return;
    };
    let (inner, _) = rest.rsplit_once('}').unwrap();
    let before = format!("{before}{}", head.trim());
    let (mut depth, mut start) = (0, 0);
    for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    expand(&before, part, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Resolves a path in a module to the crate's root. Returns `None` for paths of other crates.
fn from_root(module: &[String], path: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = path.split("::").collect();
    let above = parts.iter().take_while(|part| **part == "super").count();
    let base = match parts[0] {
        "crate" => &[],
        "super" => &module[..module.len().checked_sub(above)?],
        _ => return None,
    };
    let rest = parts.iter().skip(above.max(1)).map(|part| (*part).to_owned());
    let path: Vec<String> = base.iter().cloned().chain(rest).collect();
    (!path.is_empty()).then_some(path)
}

/// Returns the names that a crate's root re-exports, with the modules that declare them.
fn exported(sources: &[Source]) -> BTreeMap<String, String> {
    let root =
        sources.iter().find(|source| source.module.is_empty()).expect("the crate has a lib.rs");
    let mut paths = Vec::new();
    for tree in root.code.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        expand("", tree, &mut paths);
    }
    let mut exported = BTreeMap::new();
    for path in paths {
        let Some((module, name)) = path.split_once("::") else { continue };
        if name != "*" {
            exported.insert(name.to_owned(), module.to_owned());
            continue;
        }
        let declares = sources.iter().find(|source| source.module == [module.to_owned()]);
        let words: Vec<&str> = declares.unwrap().code.split_whitespace().collect();
        for (kind, name) in words.iter().zip(words.iter().skip(1)) {
            if ["struct", "enum", "fn", "const", "type", "trait"].contains(kind) {
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &name[..end.unwrap_or(name.len())];
                exported.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    exported
}

/// Returns the dependencies in the manifest of a folder.
fn dependencies(folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let declared = manifest["dependencies"].as_table().unwrap();
    declared.keys().cloned().collect()
}

fn functions() -> Vec<PathBuf> {
    let entries = fs::read_dir(workspace().join("functions")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn areas_depend_only_on_shared_and_notifications() {
    let shared = dependencies(&workspace().join("shared"));
    assert!(AREAS.iter().all(|area| !shared.contains(*area)), "{shared:?}");
    for area in AREAS {
        let mut used = dependencies(&workspace().join("crates").join(area));
        used.retain(|name| AREAS.contains(&name.as_str()));
        used.remove("notifications");
        assert!(used.is_empty(), "{area} depends on {used:?}");
    }
}

#[test]
fn functions_use_no_tables_and_no_other_functions() {
    for function in functions() {
        for dependency in dependencies(&function) {
            let is_function = workspace().join("functions").join(&dependency).is_dir();
            let is_forbidden = is_function || dependency == "aws-sdk-dynamodb";
            assert!(!is_forbidden, "{} depends on {dependency}", function.display());
        }
    }
}

#[test]
fn functions_build_test_binaries_only_for_tests() {
    for function in functions() {
        let manifest = fs::read_to_string(function.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let is_tested = |target: &toml::Value| target.get("test") != Some(&false.into());
        let has_tests = source_files(&function.join("src"))
            .iter()
            .any(|path| fs::read_to_string(path).unwrap().contains("#[cfg(test)]"));
        let function = function.display();
        assert_eq!(is_tested(&manifest["lib"]), has_tests, "{function}: set lib.test");
        assert!(!is_tested(&manifest["bin"][0]), "{function}: set bin.test to false");
    }
}

#[test]
fn only_stores_use_dynamodb_and_http_modules_http() {
    let mut violations = Vec::new();
    for area in AREAS {
        for source in sources(&format!("crates/{area}")) {
            let name = format!("{area}::{}", source.module.join("::"));
            let uses = |text: &str| source.code.contains(text);
            if (uses("aws_sdk_dynamodb") || uses("dynamodb::item")) && !source.is_in("store") {
                violations.push(format!("{name} uses DynamoDB"));
            }
            if (uses("shared::http") || uses("lambda_http")) && !source.is_in("http") {
                violations.push(format!("{name} uses HTTP"));
            }
            if uses("shared::app") {
                violations.push(format!("{name} uses App"));
            }
        }
    }
    for source in sources("shared") {
        let knows = source.is_in("dynamodb") || source.is_in("store") || source.is_in("usage");
        if source.code.contains("aws_sdk_dynamodb") && !knows {
            violations.push(format!("shared::{} uses DynamoDB", source.module.join("::")));
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn modules_have_no_import_cycles() {
    let mut crates: Vec<String> = AREAS.iter().map(|area| format!("crates/{area}")).collect();
    crates.push("shared".to_owned());
    for folder in crates {
        let sources = sources(&folder);
        let exported = exported(&sources);
        let modules: BTreeSet<&str> =
            sources.iter().filter_map(|source| Some(source.module.first()?.as_str())).collect();
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for source in &sources {
            let Some(from) = source.module.first() else { continue };
            for name in source.uses.iter().map(|path| &path[0]) {
                let to = exported.get(name).unwrap_or(name).as_str();
                if to != from
                    && let Some(to) = modules.get(to)
                {
                    edges.entry(from).or_default().insert(to);
                }
            }
        }
        assert!(!edges.is_empty(), "{folder}");
        // Removes modules without imports until only cycles are left.
        let mut left = modules;
        while let Some(last) = left
            .iter()
            .copied()
            .find(|module| edges.get(module).is_none_or(|to| to.is_disjoint(&left)))
        {
            left.remove(last);
        }
        let cycles: Vec<_> = left.iter().map(|module| (module, &edges[module])).collect();
        assert!(cycles.is_empty(), "{folder}: {cycles:#?}");
    }
}

#[test]
fn use_trees_are_expanded() {
    let module = ["store".to_owned(), "items".to_owned()];
    let code = "use std::fmt;\nuse crate::json::{Fault,\n    path::{JsonPath, Root}};\nuse super::\
                super::FlagKey;\nfn f() { crate::text::parse(1) }";
    let uses: Vec<String> = uses(&module, code).iter().map(|path| path.join("::")).collect();
    assert_eq!(
        uses,
        ["FlagKey", "json::Fault", "json::path::JsonPath", "json::path::Root", "text::parse"]
    );
}

#[test]
fn only_source_files_restart_functions() {
    let rules = fs::read_to_string(workspace().join(".cargolambdaignore")).unwrap();
    let mut rules = rules.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(rules.next(), Some("/*"), "other files are ignored");
    let kept: BTreeSet<&str> = rules.map(|rule| rule.strip_prefix("!/").unwrap()).collect();
    let built_from = [
        ".cargo",
        "Cargo.lock",
        "Cargo.toml",
        "crates",
        "functions",
        "rust-toolchain.toml",
        "shared",
    ];
    assert_eq!(kept, BTreeSet::from(built_from));
    assert!(built_from.iter().all(|path| workspace().join(path).exists()));
}
