//! The functions: what `openapi.yaml` says of their operations and their own folder of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::names::pascal_case;
use crate::openapi::{Access, Operation};
use crate::schedule::Schedule;

/// The file in a function's folder with policies that are not about tables: items of the template's
/// list `Policies`, taken as they are.
const POLICIES: &str = "policies.yaml";

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// One sentence.
    pub(crate) description: String,
    /// Its own operation, then those that `x-function` hands to it; none if it runs on a schedule.
    pub(crate) operations: Vec<Operation>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) metadata: Metadata,
    /// The content of [`POLICIES`].
    pub(crate) policies: Option<String>,
}

/// What is particular to a function: `[package.metadata.waymark]` of its `Cargo.toml`. All of it may be
/// left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Metadata {
    /// How often it runs, if no request brings it to: `rate(5 minutes)`.
    pub(crate) schedule: Option<String>,
    /// The parameter of the template that is its memory, if not `MemorySize`.
    pub(crate) memory: Option<String>,
    /// The parameter of the template that is how many of it may run at once, 0 for any number, if that is
    /// bounded.
    pub(crate) concurrency: Option<String>,
    /// Whether requests go over to a new version of it bit by bit, and back if it fails. Of all others
    /// the template's parameter `ShiftAllTraffic` says so.
    #[serde(default)]
    pub(crate) canary: bool,
    /// From how many milliseconds on somebody who waits for it finds it slow, which an alarm tells of.
    pub(crate) slow_after: Option<u32>,
    /// How long it may run, in seconds, if not as long as all others.
    pub(crate) timeout: Option<u32>,
    /// The least severe lines of Lambda's own about it, if not `WARN`.
    pub(crate) system_log_level: Option<String>,
    /// Variables of its environment, each with the parameter of the template that is its value.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// The actions that it needs, by table or index: `errors`, `errors/index/byStatus`. What
    /// authentication needs is not among them.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, Vec<String>>,
    /// The partition keys that it writes, by table, as patterns of IAM: `log#*`. A table that is not listed
    /// has no kinds of partition keys.
    #[serde(default)]
    pub(crate) writes: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    #[serde(default)]
    metadata: PackageMetadata,
}

#[derive(Default, Deserialize)]
struct PackageMetadata {
    #[serde(default)]
    waymark: Metadata,
}

impl Function {
    /// The function in the template.
    pub(crate) fn resource(&self) -> String {
        pascal_case(&self.name)
    }

    pub(crate) fn is_job(&self) -> bool {
        self.schedule.is_some()
    }

    /// What its callers must have.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.operations.first().map(|operation| &operation.access)
    }

    pub(crate) fn takes_cursor(&self) -> bool {
        self.operations.iter().any(|operation| operation.takes_cursor)
    }

    /// Whether a path of it names a project.
    pub(crate) fn names_project(&self) -> bool {
        self.operations.iter().any(|operation| operation.path.contains("{idOrSlug}"))
    }
}

/// Reads all functions: those with operations in the order of `openapi.yaml`, then the others.
pub(crate) fn functions(root: &Path, operations: &[Operation]) -> Result<Vec<Function>, String> {
    let mut functions = Vec::new();
    for name in folders(&root.join("functions"))? {
        let folder = root.join("functions").join(&name);
        let read = read(&folder, &name, operations);
        functions.push(read.map_err(|error| format!("functions/{name}: {error}"))?);
    }
    let names: BTreeSet<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    if let Some(operation) = operations.iter().find(|it| !names.contains(it.function.as_str())) {
        return Err(format!(
            "openapi.yaml: {} {} is answered by {}, but there is no folder functions/{}; add it, or \
             correct `operationId` or `x-function`",
            operation.method, operation.path, operation.function, operation.function
        ));
    }
    functions.sort_by_key(|function| {
        let own = operations.iter().position(|operation| operation.id == function.name);
        own.unwrap_or(operations.len())
    });
    Ok(functions)
}

/// The folders with a manifest, sorted.
fn folders(functions: &Path) -> Result<BTreeSet<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", functions.display());
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(functions).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().join("Cargo.toml").is_file() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn read(folder: &Path, name: &str, operations: &[Operation]) -> Result<Function, String> {
    let manifest = folder.join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).map_err(|error| format!("Cargo.toml: {error}"))?;
    let policies = folder.join(POLICIES);
    let policies = policies.is_file().then(|| fs::read_to_string(policies)).transpose();
    let policies = policies.map_err(|error| format!("{POLICIES}: {error}"))?;
    function(name, &manifest, policies, operations)
}

fn function(
    name: &str,
    manifest: &str,
    policies: Option<String>,
    operations: &[Operation],
) -> Result<Function, String> {
    let manifest: Manifest =
        toml::from_str(manifest).map_err(|error| format!("Cargo.toml: {error}"))?;
    let Package { name: package, description, metadata } = manifest.package;
    if package != name {
        return Err(format!("its package is called `{package}`; call it `{name}`, as its folder"));
    }
    let description =
        description.ok_or("Cargo.toml has no `description`; say in one sentence what it does")?;
    let metadata = metadata.waymark;
    let schedule = metadata.schedule.as_deref().map(Schedule::parse).transpose()?;

    let (own, aliases): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().filter(|it| it.function == name).partition(|it| it.id == name);
    match (own.first(), aliases.first(), &schedule) {
        (None, None, None) => {
            return Err(format!(
                "openapi.yaml has no operation `{name}`; describe it there, or give the function a \
                 `schedule` in [package.metadata.waymark]"
            ));
        }
        (None, Some(alias), _) => {
            return Err(format!(
                "openapi.yaml has `{}` with the x-function `{name}`, but no operation `{name}`; one path \
                 must be the function's own",
                alias.id
            ));
        }
        (Some(_), _, Some(_)) => {
            return Err(
                "it has a `schedule`, and an operation in openapi.yaml; remove one".to_owned()
            );
        }
        _ => {}
    }
    let operations: Vec<Operation> = own.into_iter().chain(aliases).cloned().collect();
    if let Some(other) = operations.iter().find(|it| it.access != operations[0].access) {
        return Err(format!(
            "openapi.yaml: `{}` must ask for what `{name}` asks for: `x-required-scope` or `security` \
             differ",
            other.id
        ));
    }
    Ok(Function { name: name.to_owned(), description, operations, schedule, metadata, policies })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::openapi;

    /// A function, and the operations that are described in YAML.
    pub(crate) fn function_of(name: &str, metadata: &str, paths: &str) -> Result<Function, String> {
        let operations = openapi::operations(&format!("paths:\n{paths}")).unwrap();
        let manifest = format!(
            "[package]\nname = \"{name}\"\ndescription = \"Does things.\"\n\
             [package.metadata.waymark]\n{metadata}"
        );
        function(name, &manifest, None, &operations)
    }

    pub(crate) const LIST: &str =
        "  /things: {get: {operationId: list-things, x-required-scope: 'things:read'}}\n";

    #[test]
    fn knows_its_operations_and_what_is_particular_to_it() {
        let metadata = "timeout = 29\n[package.metadata.waymark.tables]\nthings = [\"Query\"]\n";
        let function = function_of("list-things", metadata, LIST).unwrap();
        assert_eq!(function.resource(), "ListThings");
        assert_eq!(function.operations.len(), 1);
        assert_eq!(function.metadata.timeout, Some(29));
        assert_eq!(function.metadata.tables["things"], ["Query"]);
        assert!(!function.is_job());
    }

    #[test]
    fn a_function_without_operation_or_schedule_is_told_what_to_do() {
        let error = function_of("sweep", "", LIST).unwrap_err();
        assert!(error.contains("no operation `sweep`; describe it there, or give"), "{error}");
        assert!(function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap().is_job());
        let both = function_of("list-things", "schedule = \"rate(1 minute)\"", LIST).unwrap_err();
        assert!(both.contains("remove one"), "{both}");
    }

    #[test]
    fn a_key_that_is_not_known_is_named() {
        let error = function_of("list-things", "timout = 29", LIST).unwrap_err();
        assert!(error.contains("unknown field `timout`"), "{error}");
    }

    #[test]
    fn paths_of_one_function_need_an_own_one_and_the_same_access() {
        let other =
            "  /t: {get: {operationId: other, x-function: list-things, x-required-scope: a}}\n";
        let error = function_of("list-things", "", other).unwrap_err();
        assert!(error.contains("one path must be the function's own"), "{error}");
        let error = function_of("list-things", "", &format!("{LIST}{other}")).unwrap_err();
        assert!(error.contains("`other` must ask for what `list-things` asks for"), "{error}");
    }
}
