//! The table of operations in `docs/api-conventions.md`.

use std::fmt::Write;

use crate::function::Function;
use crate::openapi::{Access, Operation};
use crate::region;

const REGION: &str = "operations";

/// Returns the page with the generated table.
pub(crate) fn generated(text: &str, functions: &[Function]) -> Result<String, String> {
    region::replace(text, REGION, &table(functions))
}

fn table(functions: &[Function]) -> String {
    let mut text = "\n| operation | | needs |\n| --- | --- | --- |\n".to_owned();
    for function in functions {
        let needs = match function.access() {
            Some(Access::Key(scope)) => format!("`{scope}`"),
            Some(Access::AnyKey) => "any key".to_owned(),
            Some(Access::Dsn) => "a DSN".to_owned(),
            Some(Access::Public) => "nothing".to_owned(),
            None => continue,
        };
        let _ = writeln!(text, "| {} | {} | {needs} |", function.name, paths(&function.operations));
    }
    text + "\n"
}

/// Lists all paths, but only one of two that differ in the trailing slash.
fn paths(operations: &[Operation]) -> String {
    let mut kept: Vec<&Operation> = Vec::new();
    for operation in operations {
        let bare = |it: &Operation| (it.method.clone(), it.path.trim_end_matches('/').to_owned());
        if !kept.iter().any(|it| bare(it) == bare(operation)) {
            kept.push(operation);
        }
    }
    let mut text: Vec<String> =
        kept.iter().map(|operation| format!("`{} {}`", operation.method, operation.path)).collect();
    if kept.len() < operations.len() {
        text.push("with or without a trailing slash".to_owned());
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::{LIST, function_of};

    #[test]
    fn table_lists_operations_but_no_jobs() {
        let list = function_of("list-things", "", LIST).unwrap();
        let job = function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap();
        assert!(
            table(&[list, job])
                .ends_with("| --- |\n| list-things | `GET /things` | `things:read` |\n\n")
        );
    }

    #[test]
    fn paths_differing_in_the_trailing_slash_are_merged() {
        let described = "
  /a/b/: {post: {operationId: report, security: [{dsnKey: []}]}}
  /a/b: {post: {operationId: report-bare, x-function: report, security: [{dsnKey: []}]}}
  /a/c: {post: {operationId: report-c, x-function: report, security: [{dsnKey: []}]}}
";
        let table = table(&[function_of("report", "", described).unwrap()]);
        let row =
            "| report | `POST /a/b/`, `POST /a/c`, with or without a trailing slash | a DSN |\n\n";
        assert!(table.ends_with(row), "{table}");
    }
}
