//! The directions in which the code may depend on itself, read from its `use` lines: functions use
//! fields, fields use the platform, and nothing goes round in a circle.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tests::workspace;

/// The modules below the fields. Each uses only those before it.
const PLATFORM: [&str; 18] = [
    "timestamp",
    "json",
    "text",
    "user_agent",
    "id",
    "json_number",
    "page",
    "entity_tag",
    "idempotency",
    "usage",
    "cache",
    "dynamodb",
    "quotas",
    "http",
    "projects",
    "telemetry",
    "auth",
    "app",
];
/// The fields of the product. None uses another.
const FIELDS: [&str; 6] =
    ["error_tracking", "flags", "insights", "markers", "notifications", "preferences"];

/// A file of `shared/src`.
struct Source {
    /// Its module: `flags::store::items`.
    module: Vec<String>,
    /// What it uses, as paths from the crate's root.
    uses: BTreeSet<Vec<String>>,
    /// Its code without comments and unit tests.
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

    fn name(&self) -> String {
        self.module.join("::")
    }

    /// The module of the crate that it belongs to.
    fn top(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    fn is_store(&self) -> bool {
        self.module.iter().skip(1).any(|part| part == "store")
    }

    fn mentions(&self, module: &str) -> bool {
        self.uses.iter().any(|path| path[0] == module)
    }
}

/// All files of `shared/src` but those of unit tests.
fn sources() -> Vec<Source> {
    fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                collect(root, &path, sources);
            } else if path.extension().is_some_and(|it| it == "rs") && !name.contains("test") {
                sources.push(Source::read(root, &path));
            }
        }
    }
    let root = workspace().join("shared/src");
    let mut sources = Vec::new();
    collect(&root, &root, &mut sources);
    assert!(sources.len() > 100, "{}", sources.len());
    sources
}

/// What code uses of its own crate: its `use` lines, and paths in the midst of it.
fn uses(module: &[String], code: &str) -> BTreeSet<Vec<String>> {
    let mut written = Vec::new();
    for (start, _) in code.match_indices("use ") {
        // Messages may have the word, too.
        let before = code[..start].rsplit('\n').next().unwrap_or_default().trim();
        let is_use = before.is_empty() || before.starts_with("pub");
        if let Some(tree) = code[start + 4..].split(';').next().filter(|_| is_use) {
            expand("", tree, &mut written);
        }
    }
    for (start, _) in code.match_indices("crate::") {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let end = code[start..].find(|c| !is_part(c)).unwrap_or(code.len() - start);
        // A `use` tree goes on with a brace, and was read.
        if !code[start + end..].starts_with('{') {
            written.push(code[start..start + end].to_owned());
        }
    }
    written.iter().filter_map(|path| from_root(module, path)).collect()
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
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

/// A path as it is written in a module, from the crate's root; none for other crates' paths.
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

#[test]
fn every_module_uses_only_what_lies_below_it() {
    let known: BTreeSet<&str> = PLATFORM.into_iter().chain(FIELDS).collect();
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.module.is_empty()) {
        assert!(known.contains(source.top()), "{} has no place in the order", source.name());
        let place = PLATFORM.iter().position(|module| *module == source.top());
        for used in source.uses.iter().map(|path| path[0].as_str()) {
            let below = &PLATFORM[..place.unwrap_or(PLATFORM.len())];
            if used != source.top() && !below.contains(&used) {
                wrong.push(format!("{} uses {used}", source.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_store_files_know_dynamodb() {
    let mut wrong = Vec::new();
    for source in sources() {
        let is_metering = matches!(source.top(), "dynamodb" | "usage");
        if source.code.contains("aws_sdk_dynamodb") && !is_metering && !source.is_store() {
            wrong.push(format!("{} uses DynamoDB's SDK", source.name()));
        }
        // What works with an `App` hands on what its store says.
        let joins = source.is_store() || source.mentions("app");
        if FIELDS.contains(&source.top()) && source.mentions("dynamodb") && !joins {
            wrong.push(format!("{} uses the store", source.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rules_know_no_http() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| FIELDS.contains(&source.top())) {
        let speaks = source.module.iter().any(|part| part == "http") || source.mentions("app");
        let http = source.mentions("http") || source.code.contains("lambda_http");
        if http && !speaks {
            wrong.push(source.name());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a field's face shows under a name of its own, and which of its modules has it.
fn shown_by(face: &str, of_field: &[&Source]) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    let mut paths = Vec::new();
    for tree in face.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        expand("", tree, &mut paths);
    }
    for path in paths {
        let Some((module, name)) = path.split_once("::") else { continue };
        if name != "*" {
            shown.insert(name.to_owned(), module.to_owned());
            continue;
        }
        let code = of_field.iter().find(|source| source.module[1..] == [module.to_owned()]);
        let words: Vec<&str> = code.unwrap().code.split_whitespace().collect();
        for (kind, name) in words.iter().zip(words.iter().skip(1)) {
            if ["struct", "enum", "fn", "const", "type", "trait"].contains(kind) {
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &name[..end.unwrap_or(name.len())];
                shown.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    shown
}

#[test]
fn the_modules_of_a_field_do_not_go_round_in_a_circle() {
    let sources = sources();
    for field in FIELDS.into_iter().chain(["projects", "app"]) {
        let of_field: Vec<&Source> = sources.iter().filter(|it| it.top() == field).collect();
        let face = of_field.iter().find(|it| it.module.len() == 1).expect("it has a mod.rs");
        let shown = shown_by(&face.code, &of_field);
        let modules: BTreeSet<&str> =
            of_field.iter().filter_map(|it| Some(it.module.get(1)?.as_str())).collect();
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for source in &of_field {
            let Some(from) = source.module.get(1) else { continue };
            let paths = source.uses.iter().filter(|path| path.len() > 1 && path[0] == field);
            for name in paths.map(|path| &path[1]) {
                let to = shown.get(name).unwrap_or(name).as_str();
                if to != from
                    && let Some(to) = modules.get(to)
                {
                    edges.entry(from).or_default().insert(to);
                }
            }
        }
        assert!(!edges.is_empty(), "{field} uses nothing of its own");
        // Whatever uses nothing more is taken away, until nothing is left, or only circles.
        let mut left = modules;
        while let Some(last) = left
            .iter()
            .copied()
            .find(|module| edges.get(module).is_none_or(|to| to.is_disjoint(&left)))
        {
            left.remove(last);
        }
        let circles: Vec<_> = left.iter().map(|module| (module, &edges[module])).collect();
        assert!(circles.is_empty(), "{field}: {circles:#?}");
    }
}

#[test]
fn functions_use_no_tables_and_no_other_functions() {
    for entry in fs::read_dir(workspace().join("functions")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let parsed: toml::Table = fs::read_to_string(&manifest).unwrap().parse().unwrap();
        for dependency in parsed["dependencies"].as_table().unwrap().keys() {
            let is_function = workspace().join("functions").join(dependency).is_dir();
            let is_forbidden = is_function || dependency == "aws-sdk-dynamodb";
            assert!(!is_forbidden, "{} depends on {dependency}", manifest.display());
        }
    }
}

#[test]
fn a_use_tree_is_read_whole() {
    let module = ["flags".to_owned(), "store".to_owned(), "items".to_owned()];
    let code = "use std::fmt;\nuse crate::json::{Fault,\n    path::{JsonPath, Root}};\nuse super::\
                super::FlagKey;\nfn f() { crate::text::parse(1) }";
    let uses: Vec<String> = uses(&module, code).iter().map(|path| path.join("::")).collect();
    assert_eq!(
        uses,
        [
            "flags::FlagKey",
            "json::Fault",
            "json::path::JsonPath",
            "json::path::Root",
            "text::parse"
        ]
    );
}

#[test]
fn only_files_that_functions_are_built_from_restart_them() {
    let rules = fs::read_to_string(workspace().join(".cargolambdaignore")).unwrap();
    let mut rules = rules.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(rules.next(), Some("/*"), "all else is ignored");
    let kept: BTreeSet<&str> = rules.map(|rule| rule.strip_prefix("!/").unwrap()).collect();
    let built_from =
        [".cargo", "Cargo.lock", "Cargo.toml", "functions", "rust-toolchain.toml", "shared"];
    assert_eq!(kept, BTreeSet::from(built_from));
    assert!(built_from.iter().all(|path| workspace().join(path).exists()));
}
