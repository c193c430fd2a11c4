//! API Gateway routes of a function's operations.

use crate::openapi::Operation;

/// Suffix of a route that matches every longer path.
const GREEDY: &str = "{proxy+}";

/// A route of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) path: String,
}

impl Route {
    pub(crate) fn is_greedy(&self) -> bool {
        self.path.ends_with(GREEDY)
    }

    /// Returns the variables of the path.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    fn matches(&self, operation: &Operation) -> bool {
        let beginning = self.path.strip_suffix(GREEDY);
        self.method == operation.method
            && beginning.is_some_and(|it| operation.path.starts_with(it))
    }
}

/// Returns one route per path, except for paths that an earlier greedy route matches.
pub(crate) fn routes(operations: &[Operation]) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for operation in operations {
        if routes.iter().any(|route| route.matches(operation)) {
            continue;
        }
        routes.push(Route { method: operation.method.clone(), path: route_path(&operation.path) });
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

    fn of_report(operations: &[Operation]) -> Vec<String> {
        routes(operations).into_iter().map(|it| format!("{} {}", it.method, it.path)).collect()
    }

    #[test]
    fn paths_become_routes() {
        let operations = [operation("report", "PATCH", "/things/{id}")];
        assert_eq!(of_report(&operations), ["PATCH /things/{id}"]);
        let [route] = &routes(&operations)[..] else { panic!("{operations:?}") };
        assert_eq!(route.variables().collect::<Vec<_>>(), ["id"]);
    }

    #[test]
    fn paths_with_trailing_slash_need_a_greedy_route() {
        let operations = [
            operation("report", "POST", "/v1/flags"),
            operation("report-with-slash", "POST", "/v1/flags/"),
        ];
        assert_eq!(of_report(&operations), ["POST /v1/flags", "POST /v1/{proxy+}"]);
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
            ["POST /api/{id}/{proxy+}", "GET /api/{id}/store", "POST /api/store",]
        );
    }
}
