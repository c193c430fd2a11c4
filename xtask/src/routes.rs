//! API Gateway routes of a function's operations.

use crate::names::{capitalized, pascal_case};
use crate::openapi::Operation;

/// Suffix of a route that matches every longer path. SAM derives the permission only if the
/// variable is called `proxy`.
const GREEDY: &str = "{proxy+}";

/// A route event of a function.
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

    fn matches(&self, operation: &Operation) -> bool {
        let beginning = self.path.strip_suffix(GREEDY);
        self.method == operation.method
            && beginning.is_some_and(|it| operation.path.starts_with(it))
    }
}

/// Returns one route per path, except for paths that an earlier greedy route matches.
pub(crate) fn routes(function: &str, operations: &[Operation]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for operation in operations {
        if routes.iter().any(|route| route.matches(operation)) {
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

/// Returns the route for a path. HTTP APIs support no routes with a trailing slash, so a greedy
/// variable replaces the last segment.
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
    fn paths_become_routes() {
        let operations = [operation("report", "PATCH", "/things/{id}")];
        assert_eq!(of_report(&operations), [route("Patch", "PATCH /things/{id}")]);
    }

    #[test]
    fn paths_with_trailing_slash_need_a_greedy_route() {
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
    fn greedy_routes_match_other_paths_of_their_method() {
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
