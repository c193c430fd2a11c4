//! The routes of `cargo lambda watch`, in the workspace's `Cargo.toml`.

use std::fmt::Write;

use crate::openapi::Operation;
use crate::region;

const REGION: &str = "routes";

/// The manifest with the routes of all operations. The first of each path answers preflight requests,
/// which in AWS API Gateway does.
pub(crate) fn generated(text: &str, operations: &[Operation]) -> Result<String, String> {
    region::replace(text, REGION, &routes(operations))
}

fn routes(operations: &[Operation]) -> String {
    let mut text = String::new();
    // Operations of a path stand together, since it is a member of the description.
    for of_path in operations.chunk_by(|one, other| one.path == other.path) {
        let methods = of_path.iter().map(|operation| (operation.method.as_str(), operation));
        let preflight = of_path.first().map(|operation| ("OPTIONS", operation));
        let _ = writeln!(text, "\"{}\" = [", of_path[0].path);
        for (method, operation) in methods.chain(preflight) {
            let function = &operation.function;
            let _ = writeln!(text, "    {{ method = \"{method}\", function = \"{function}\" }},");
        }
        let _ = writeln!(text, "]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi;

    #[test]
    fn every_path_has_its_methods_and_answers_preflight_requests() {
        let described = "
paths:
  /things:
    post: {operationId: create-thing, x-required-scope: a}
    get: {operationId: list-things, x-required-scope: a}
  /things/:
    get: {operationId: list-things-with-slash, x-function: list-things, x-required-scope: a}
";
        let expected = r#""/things" = [
    { method = "POST", function = "create-thing" },
    { method = "GET", function = "list-things" },
    { method = "OPTIONS", function = "create-thing" },
]
"/things/" = [
    { method = "GET", function = "list-things" },
    { method = "OPTIONS", function = "list-things" },
]
"#;
        assert_eq!(routes(&openapi::operations(described).unwrap()), expected);
    }
}
