//! The operations that `openapi.yaml` describes.

use std::collections::BTreeSet;

use yaml_serde::Value as Yaml;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A method of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) id: String,
    /// In capitals.
    pub(crate) method: String,
    pub(crate) path: String,
    /// The function that answers: the one of the operation's name, or where a function has several
    /// paths, the one that `x-function` names.
    pub(crate) function: String,
    pub(crate) access: Access,
    /// Whether it takes a cursor, whose seal needs a key.
    pub(crate) takes_cursor: bool,
}

/// What a caller must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// An API key with this scope.
    Key(String),
    /// A project's DSN.
    Dsn,
    /// Nothing.
    Public,
}

/// Reads all operations, in their order.
pub(crate) fn operations(text: &str) -> Result<Vec<Operation>, String> {
    let document: Yaml = yaml_serde::from_str(text).map_err(|error| error.to_string())?;
    let paths = document.get("paths").and_then(Yaml::as_mapping).ok_or("it has no `paths`")?;
    let mut operations = Vec::new();
    for (path, item) in paths {
        let path = path.as_str().ok_or("a path is not text")?;
        let members = item.as_mapping().ok_or_else(|| format!("{path} has no operations"))?;
        for (method, described) in members {
            let method = method.as_str().unwrap_or_default();
            if METHODS.contains(&method) {
                let read = operation(&document, path, item, method, described);
                operations.push(read.map_err(|error| format!("{method} {path}: {error}"))?);
            }
        }
    }
    let mut ids = BTreeSet::new();
    match operations.iter().find(|operation| !ids.insert(&operation.id)) {
        Some(twice) => Err(format!("the operationId `{}` is there twice; change one", twice.id)),
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
    let text = |member: &str| described.get(member).and_then(Yaml::as_str).map(str::to_owned);
    let id = text("operationId").ok_or("it has no `operationId`")?;
    let mut takes_cursor = false;
    for parameters in [item.get("parameters"), described.get("parameters")].into_iter().flatten() {
        for parameter in parameters.as_sequence().into_iter().flatten() {
            let parameter = resolve(document, parameter)?;
            let is =
                |member: &str, value| parameter.get(member).and_then(Yaml::as_str) == Some(value);
            takes_cursor |= is("name", "cursor") && is("in", "query");
        }
    }
    Ok(Operation {
        function: text("x-function").unwrap_or_else(|| id.clone()),
        id,
        method: method.to_uppercase(),
        path: path.to_owned(),
        access: access(described, text("x-required-scope"))?,
        takes_cursor,
    })
}

/// What `security` and `x-required-scope` say together.
fn access(described: &Yaml, scope: Option<String>) -> Result<Access, String> {
    let Some(security) = described.get("security").and_then(Yaml::as_sequence) else {
        let missing = "it has no `x-required-scope`; name the scope that a key must have, or give the \
                       operation a `security` of its own";
        return scope.map(Access::Key).ok_or_else(|| missing.to_owned());
    };
    let schemes = security.iter().filter_map(Yaml::as_mapping).flat_map(|it| it.keys());
    let schemes: Vec<&str> = schemes.filter_map(Yaml::as_str).collect();
    match scope {
        Some(_) => {
            Err("it has both a `security` of its own and `x-required-scope`; remove one".to_owned())
        }
        None if schemes.is_empty() => Ok(Access::Public),
        None if schemes.iter().all(|scheme| scheme.starts_with("dsn")) => Ok(Access::Dsn),
        None => Err(format!(
            "its `security` ({}) is neither empty nor of DSNs; an operation that takes API keys leaves it \
             out and has `x-required-scope`",
            schemes.join(", ")
        )),
    }
}

/// What a `$ref` leads to, or the value itself.
fn resolve<'y>(document: &'y Yaml, value: &'y Yaml) -> Result<&'y Yaml, String> {
    let Some(reference) = value.get("$ref").and_then(Yaml::as_str) else { return Ok(value) };
    let names = reference.strip_prefix("#/").unwrap_or(reference).split('/');
    let found = names.into_iter().try_fold(document, |value, name| value.get(name));
    found.ok_or_else(|| format!("the reference {reference} leads nowhere"))
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
components: {parameters: {Cursor: {name: cursor, in: query}}}
";

    #[test]
    fn reads_who_answers_whom_and_with_a_cursor_or_without() {
        let read = operations(THINGS).unwrap();
        let told = |it: &Operation| {
            (it.id.clone(), format!("{} {}", it.method, it.path), it.function.clone())
        };
        let own = |(id, route): (&str, &str), function: &str| {
            (id.to_owned(), route.to_owned(), function.to_owned())
        };
        assert_eq!(
            read.iter().map(told).collect::<Vec<_>>(),
            [
                own(("list-things", "GET /things"), "list-things"),
                own(("get-thing", "GET /things/{id}"), "get-thing"),
                own(("report", "POST /reports/"), "report"),
                own(("report-without-slash", "POST /reports"), "report"),
                own(("get-health", "GET /health"), "get-health"),
            ]
        );
        let scope = || Access::Key("things:read".to_owned());
        let access: Vec<Access> = read.iter().map(|it| it.access.clone()).collect();
        assert_eq!(access, [scope(), scope(), Access::Dsn, Access::Dsn, Access::Public]);
        let cursors: Vec<bool> = read.iter().map(|it| it.takes_cursor).collect();
        assert_eq!(cursors, [true, false, false, false, false]);
    }

    #[test]
    fn says_what_is_missing_and_where() {
        let error = |from: &str, to: &str| operations(&THINGS.replace(from, to)).unwrap_err();
        assert!(
            error(", x-required-scope: things:read, p", ", p")
                .starts_with("get /things/{id}: it has no `x-req")
        );
        assert!(
            error("operationId: get-health", "x: y")
                .contains("get /health: it has no `operationId`")
        );
        assert!(error("get-health", "get-thing").contains("`get-thing` is there twice"));
        assert!(error("dsnKeyInQuery: []}, {}", "apiKey: []}").contains("(apiKey) is neither"));
        assert!(error("parameters/Cursor'", "parameters/Gone'").contains("Gone leads nowhere"));
    }
}
