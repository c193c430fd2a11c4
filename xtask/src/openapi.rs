//! Reads the operations in `openapi.yaml`.

use std::collections::BTreeSet;

use yaml_serde::Value as Yaml;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A method of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) id: String,
    /// In upper case.
    pub(crate) method: String,
    pub(crate) path: String,
    /// The function that handles the operation: `x-function`, or the function named like the
    /// operation.
    pub(crate) function: String,
    pub(crate) access: Access,
    /// `true` if the operation takes a cursor. Sealing cursors requires a key.
    pub(crate) takes_cursor: bool,
}

/// Credentials that an operation requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// An API key with this scope.
    Key(String),
    /// An API key with any scopes.
    AnyKey,
    /// A project's DSN.
    Dsn,
    /// No credentials.
    Public,
}

/// Reads all operations, in document order.
pub(crate) fn operations(text: &str) -> Result<Vec<Operation>, String> {
    let document: Yaml = yaml_serde::from_str(text).map_err(|error| error.to_string())?;
    let paths = document.get("paths").and_then(Yaml::as_mapping).ok_or("it has no `paths`")?;
    let mut operations = Vec::new();
    for (path, item) in paths {
        let path = path.as_str().ok_or("a path is not text")?;
        let fields = item.as_mapping().ok_or_else(|| format!("{path} has no operations"))?;
        for (method, described) in fields {
            let method = method.as_str().unwrap_or_default();
            if METHODS.contains(&method) {
                let read = operation(&document, path, item, method, described);
                operations.push(read.map_err(|error| format!("{method} {path}: {error}"))?);
            }
        }
    }
    let mut ids = BTreeSet::new();
    match operations.iter().find(|operation| !ids.insert(&operation.id)) {
        Some(duplicate) => {
            Err(format!("the operationId `{}` occurs twice; change one", duplicate.id))
        }
        None => Ok(operations),
    }
}

fn operation(
    document: &Yaml,
    path: &str,
    item: &Yaml,
    method: &str,
    described: &Yaml,
) -> Result<Operation, String> {
    let text = |field: &str| described.get(field).and_then(Yaml::as_str).map(str::to_owned);
    // `null` means that no scope is required; a missing value is an error.
    let scope = match described.get("x-required-scope") {
        None => None,
        Some(Yaml::Null) => Some(Access::AnyKey),
        Some(scope) => Some(Access::Key(scope.as_str().ok_or("its scope is not text")?.to_owned())),
    };
    let id = text("operationId").ok_or("it has no `operationId`")?;
    let mut takes_cursor = has_cursor(document, described)?;
    for parameters in [item.get("parameters"), described.get("parameters")].into_iter().flatten() {
        for parameter in parameters.as_sequence().into_iter().flatten() {
            let parameter = resolve(document, parameter)?;
            let is =
                |field: &str, value| parameter.get(field).and_then(Yaml::as_str) == Some(value);
            takes_cursor |= is("name", "cursor") && is("in", "query");
        }
    }
    Ok(Operation {
        function: text("x-function").unwrap_or_else(|| id.clone()),
        id,
        method: method.to_uppercase(),
        path: path.to_owned(),
        access: access(described, scope)?,
        takes_cursor,
    })
}

/// `true` if the request body has a cursor.
fn has_cursor(document: &Yaml, described: &Yaml) -> Result<bool, String> {
    let content = described.get("requestBody").and_then(|body| body.get("content"));
    let json = content.and_then(|content| content.get("application/json"));
    let Some(schema) = json.and_then(|json| json.get("schema")) else { return Ok(false) };
    let properties = resolve(document, schema)?.get("properties");
    Ok(properties.is_some_and(|properties| properties.get("cursor").is_some()))
}

/// Combines `security` and `x-required-scope`.
fn access(described: &Yaml, scope: Option<Access>) -> Result<Access, String> {
    let Some(security) = described.get("security").and_then(Yaml::as_sequence) else {
        let missing = "it has no `x-required-scope`; set it to the required scope, or to `null` if any \
                       key is accepted, or give the operation its own `security`";
        return scope.ok_or_else(|| missing.to_owned());
    };
    let schemes = security.iter().filter_map(Yaml::as_mapping).flat_map(|it| it.keys());
    let schemes: Vec<&str> = schemes.filter_map(Yaml::as_str).collect();
    match scope {
        Some(_) => {
            Err("it has both its own `security` and `x-required-scope`; remove one".to_owned())
        }
        None if schemes.is_empty() => Ok(Access::Public),
        None if schemes.iter().all(|scheme| scheme.starts_with("dsn")) => Ok(Access::Dsn),
        None => Err(format!(
            "its `security` ({}) is neither empty nor a DSN scheme; operations that accept API keys have \
             `x-required-scope` instead",
            schemes.join(", ")
        )),
    }
}

/// Resolves a `$ref`, or returns the value itself.
fn resolve<'y>(document: &'y Yaml, value: &'y Yaml) -> Result<&'y Yaml, String> {
    let Some(reference) = value.get("$ref").and_then(Yaml::as_str) else { return Ok(value) };
    let names = reference.strip_prefix("#/").unwrap_or(reference).split('/');
    let found = names.into_iter().try_fold(document, |value, name| value.get(name));
    found.ok_or_else(|| format!("the reference {reference} cannot be resolved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: &str = "
paths:
  /things:
    parameters: [{$ref: '#/components/parameters/Cursor'}]
    get: {operationId: list-things, x-required-scope: things:read}
  /things/{id}:
    get: {operationId: get-thing, x-required-scope: things:read, parameters: [{name: cursor, in: header}]}
  /reports/:
    post: {operationId: report, security: [{dsnKeyInQuery: []}, {}]}
  /reports:
    post: {operationId: report-without-slash, x-function: report, security: [{dsnKeyInQuery: []}]}
  /health:
    get: {operationId: get-health, security: []}
  /me:
    get: {operationId: get-me, x-required-scope: null}
components: {parameters: {Cursor: {name: cursor, in: query}}}
";

    #[test]
    fn reads_functions_access_and_cursors() {
        let read = operations(THINGS).unwrap();
        let summary = |it: &Operation| {
            (it.id.clone(), format!("{} {}", it.method, it.path), it.function.clone())
        };
        let own = |(id, route): (&str, &str), function: &str| {
            (id.to_owned(), route.to_owned(), function.to_owned())
        };
        assert_eq!(
            read.iter().map(summary).collect::<Vec<_>>(),
            [
                own(("list-things", "GET /things"), "list-things"),
                own(("get-thing", "GET /things/{id}"), "get-thing"),
                own(("report", "POST /reports/"), "report"),
                own(("report-without-slash", "POST /reports"), "report"),
                own(("get-health", "GET /health"), "get-health"),
                own(("get-me", "GET /me"), "get-me"),
            ]
        );
        let scope = || Access::Key("things:read".to_owned());
        let access: Vec<Access> = read.iter().map(|it| it.access.clone()).collect();
        let others = [Access::Dsn, Access::Dsn, Access::Public, Access::AnyKey];
        assert_eq!(access[..2], [scope(), scope()]);
        assert_eq!(access[2..], others);
        let cursors: Vec<bool> = read.iter().map(|it| it.takes_cursor).collect();
        assert_eq!(cursors, [true, false, false, false, false, false]);
    }

    #[test]
    fn finds_cursors_in_the_body() {
        let body = "operationId: report, requestBody: {content: {application/json: {schema: \
                    {$ref: '#/components/schemas/Query'}}}}, ";
        let takes_cursor = |fields: &str| {
            let schema =
                format!("components: {{schemas: {{Query: {{properties: {{{fields}}}}}}}, ");
            let text = THINGS.replace("operationId: report, ", body);
            let read = operations(&text.replace("components: {", &schema)).unwrap();
            read.iter().find(|it| it.id == "report").unwrap().takes_cursor
        };
        assert!(takes_cursor("cursor: {type: string}"));
        assert!(!takes_cursor("limit: {type: number}"));
    }

    #[test]
    fn errors_name_the_operation_and_the_problem() {
        let error = |from: &str, to: &str| operations(&THINGS.replace(from, to)).unwrap_err();
        assert!(
            error(", x-required-scope: things:read, p", ", p")
                .starts_with("get /things/{id}: it has no `x-req")
        );
        assert!(
            error("operationId: get-health", "x: y")
                .contains("get /health: it has no `operationId`")
        );
        assert!(error("get-health", "get-thing").contains("`get-thing` occurs twice"));
        assert!(error("dsnKeyInQuery: []}, {}", "apiKey: []}").contains("(apiKey) is neither"));
        assert!(
            error("parameters/Cursor'", "parameters/Gone'").contains("Gone cannot be resolved")
        );
    }
}
