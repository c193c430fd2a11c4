//! Functions: their operations in `openapi.yaml`, and the settings in their folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::names::pascal_case;
use crate::openapi::{Access, Operation};
use crate::schedule::Schedule;

/// File in a function's folder with policies other than table access. Its items are copied into the
/// template's list `Policies`.
const POLICIES: &str = "policies.yaml";

/// A Lambda function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// One sentence.
    pub(crate) description: String,
    /// The function's own operation, followed by those that name it in `x-function`. Empty for jobs.
    pub(crate) operations: Vec<Operation>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) metadata: Metadata,
    /// Content of [`POLICIES`].
    pub(crate) policies: Option<String>,
}

/// Settings of a function: `[package.metadata.waymark]` in its `Cargo.toml`. All are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Metadata {
    /// Rate of a job: `rate(5 minutes)`.
    pub(crate) schedule: Option<String>,
    /// Template parameter with the memory size, if not `MemorySize`.
    pub(crate) memory: Option<String>,
    /// Template parameter with the maximum concurrency, if it is limited. The value 0 means no
    /// limit.
    pub(crate) concurrency: Option<String>,
    /// `true` if traffic shifts gradually to a new version, and back if it fails. Other functions
    /// have no versions.
    #[serde(default)]
    pub(crate) canary: bool,
    /// Timeout in seconds, if it differs from the default.
    pub(crate) timeout: Option<u32>,
    /// Minimum level of Lambda's own log lines, if not `WARN`.
    pub(crate) system_log_level: Option<String>,
    /// Environment variables and the template parameters with their values.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Required actions by table or index: `errors`, `replay-insights/index/byStatus`. Actions for
    /// authentication are implied.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, Vec<String>>,
    /// Written partition keys by table, as IAM patterns: `log#*`. Writes to unlisted tables are not
    /// limited.
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
    /// Returns the function's resource name in the template.
    pub(crate) fn resource(&self) -> String {
        pascal_case(&self.name)
    }

    pub(crate) fn is_job(&self) -> bool {
        self.schedule.is_some()
    }

    /// Returns the credentials that callers need. `None` for jobs.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.operations.first().map(|operation| &operation.access)
    }

    pub(crate) fn takes_cursor(&self) -> bool {
        self.operations.iter().any(|operation| operation.takes_cursor)
    }
}

/// Reads all functions: those with operations in the order of `openapi.yaml`, followed by jobs.
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
            "openapi.yaml: {} {} belongs to the function {}, but there is no folder functions/{}; add it, \
             or correct `operationId` or `x-function`",
            operation.method, operation.path, operation.function, operation.function
        ));
    }
    functions.sort_by_key(|function| {
        let own = operations.iter().position(|operation| operation.id == function.name);
        own.unwrap_or(operations.len())
    });
    Ok(functions)
}

/// Returns the names of folders with a manifest, sorted.
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
        return Err(format!(
            "its package is called `{package}`; rename it to `{name}`, like its folder"
        ));
    }
    let description = description
        .ok_or("Cargo.toml has no `description`; describe the function in one sentence")?;
    let metadata = metadata.waymark;
    let schedule = metadata.schedule.as_deref().map(Schedule::parse).transpose()?;

    let (own, aliases): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().filter(|it| it.function == name).partition(|it| it.id == name);
    match (own.first(), aliases.first(), &schedule) {
        (None, None, None) => {
            return Err(format!(
                "openapi.yaml has no operation `{name}`; add it there, or give the function a \
                 `schedule` in [package.metadata.waymark]"
            ));
        }
        (None, Some(alias), _) => {
            return Err(format!(
                "openapi.yaml has `{}` with the x-function `{name}`, but no operation `{name}`; one path \
                 must belong to the function itself",
                alias.id
            ));
        }
        (Some(_), _, Some(_)) => {
            return Err(
                "it has both a `schedule` and an operation in openapi.yaml; remove one".to_owned()
            );
        }
        _ => {}
    }
    let operations: Vec<Operation> = own.into_iter().chain(aliases).cloned().collect();
    if let Some(other) = operations.iter().find(|it| it.access != operations[0].access) {
        return Err(format!(
            "openapi.yaml: `{}` must have the same access as `{name}`: `x-required-scope` or `security` \
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

    /// Returns a function and its operations, which are described in YAML.
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
    fn reads_operations_and_metadata() {
        let metadata = "timeout = 29\n[package.metadata.waymark.tables]\nthings = [\"Query\"]\n";
        let function = function_of("list-things", metadata, LIST).unwrap();
        assert_eq!(function.resource(), "ListThings");
        assert_eq!(function.operations.len(), 1);
        assert_eq!(function.metadata.timeout, Some(29));
        assert_eq!(function.metadata.tables["things"], ["Query"]);
        assert!(!function.is_job());
    }

    #[test]
    fn functions_need_an_operation_or_a_schedule() {
        let error = function_of("sweep", "", LIST).unwrap_err();
        assert!(error.contains("no operation `sweep`; add it there, or give"), "{error}");
        assert!(function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap().is_job());
        let both = function_of("list-things", "schedule = \"rate(1 minute)\"", LIST).unwrap_err();
        assert!(both.contains("remove one"), "{both}");
    }

    #[test]
    fn unknown_metadata_keys_are_rejected() {
        let error = function_of("list-things", "timout = 29", LIST).unwrap_err();
        assert!(error.contains("unknown field `timout`"), "{error}");
    }

    #[test]
    fn aliases_need_an_own_operation_and_equal_access() {
        let other =
            "  /t: {get: {operationId: other, x-function: list-things, x-required-scope: a}}\n";
        let error = function_of("list-things", "", other).unwrap_err();
        assert!(error.contains("one path must belong to the function itself"), "{error}");
        let error = function_of("list-things", "", &format!("{LIST}{other}")).unwrap_err();
        assert!(error.contains("`other` must have the same access as `list-things`"), "{error}");
    }
}
