//! The routes of API Gateway that bring a function the paths of its operations.

use crate::names::{capitalized, pascal_case};
use crate::openapi::Operation;

/// The end of a route that takes every path that begins like it. Permissions follow only if the
/// variable is called `proxy`.
const GREEDY: &str = "{proxy+}";

/// An event of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The event's name.
    pub(crate) event: String,
    pub(crate) method: String,
    pub(crate) path: String,
}

impl Route {
    pub(crate) fn is_greedy(&self) -> bool {
        self.path.ends_with(GREEDY)
    }

    fn takes(&self, operation: &Operation) -> bool {
        let beginning = self.path.strip_suffix(GREEDY);
        self.method == operation.method
            && beginning.is_some_and(|it| operation.path.starts_with(it))
    }
}

/// The routes of a function: one for its own operation, and one for each other path that no greedy one
/// takes already.
pub(crate) fn routes(function: &str, operations: &[Operation]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for operation in operations {
        if routes.iter().any(|route| route.takes(operation)) {
            continue;
        }
        let alias = operation.id.strip_prefix(function).unwrap_or(&operation.id);
        let alias = pascal_case(alias.trim_start_matches('-'));
        routes.push(Route {
            event: capitalized(&operation.method) + &alias,
            method: operation.method.clone(),
            path: route_path(&operation.path),
        });
    }
    routes
}

/// HTTP APIs have no routes that end with a slash, and do not route such paths as if the slash were not
/// there. Only a greedy variable takes them, in the place of the last part.
fn route_path(path: &str) -> String {
    let parent = path.strip_suffix('/').and_then(|path| path.rsplit_once('/'));
    parent.map_or_else(|| path.to_owned(), |(parent, _)| format!("{parent}/{GREEDY}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::Access;

    fn operation(id: &str, method: &str, path: &str) -> Operation {
        Operation {
            id: id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            function: "report".to_owned(),
            access: Access::Public,
            takes_cursor: false,
        }
    }

    fn of_report(operations: &[Operation]) -> Vec<(String, String)> {
        let routes = routes("report", operations);
        routes.into_iter().map(|it| (it.event, format!("{} {}", it.method, it.path))).collect()
    }

    fn route(event: &str, path: &str) -> (String, String) {
        (event.to_owned(), path.to_owned())
    }

    #[test]
    fn a_path_is_its_own_route() {
        let operations = [operation("report", "PATCH", "/things/{id}")];
        assert_eq!(of_report(&operations), [route("Patch", "PATCH /things/{id}")]);
    }

    #[test]
    fn a_path_with_a_slash_at_its_end_needs_a_greedy_route_beside_that_without() {
        let operations = [
            operation("report", "POST", "/v1/flags"),
            operation("report-with-slash", "POST", "/v1/flags/"),
        ];
        assert_eq!(
            of_report(&operations),
            [route("Post", "POST /v1/flags"), route("PostWithSlash", "POST /v1/{proxy+}")]
        );
    }

    #[test]
    fn a_greedy_route_takes_the_other_paths_of_its_method() {
        let operations = [
            operation("report", "POST", "/api/{id}/envelope/"),
            operation("report-without-slash", "POST", "/api/{id}/envelope"),
            operation("report-store", "POST", "/api/{id}/store/"),
            operation("report-look", "GET", "/api/{id}/store"),
            operation("report-elsewhere", "POST", "/api/store"),
        ];
        assert_eq!(
            of_report(&operations),
            [
                route("Post", "POST /api/{id}/{proxy+}"),
                route("GetLook", "GET /api/{id}/store"),
                route("PostElsewhere", "POST /api/store"),
            ]
        );
    }
}
