//! Routes of the HTTP API, as declared in `template.yaml`. They include API Gateway's greedy
//! routes.

use axum::http::Method;
use percent_encoding::percent_decode_str;
use yaml_serde::Value as Yaml;

use crate::template::{TemplateError, function_of_code};

/// The routes of an API.
#[derive(Debug)]
pub(super) struct Api {
    routes: Vec<Route>,
}

/// A route and its function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Method and path: API Gateway's key of the route.
    pub(super) key: String,
    method: Method,
    segments: Vec<Segment>,
    /// The function's name.
    pub(super) function: String,
}

/// Suffix of the alias that SAM creates for a function.
const ALIAS: &str = "Aliaslive";

/// Returns the name of the function that a method of a path calls, by its ARN or alias.
fn function_of(method: &Yaml) -> Option<&str> {
    let Yaml::Tagged(uri) = method.get("x-amazon-apigateway-integration")?.get("uri")? else {
        return None;
    };
    let (_, target) = uri.value.as_str()?.split_once("/functions/${")?;
    let (target, _) = target.split_once('}')?;
    target.strip_suffix(".Arn").or_else(|| target.strip_suffix(ALIAS))
}

/// Returns the name of a function, which is that of its archive.
fn code_of(function: &Yaml) -> Option<&str> {
    function.get("Properties")?.get("CodeUri")?.as_str().map(function_of_code)
}

/// A path segment of a route.
#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Variable(String),
    /// The rest of the path.
    Greedy(String),
}

/// Decoded path parameters of a request.
pub(super) type Parameters = Vec<(String, String)>;

impl Api {
    /// Reads the routes of a template's API, whose functions have archives as their code.
    pub(super) fn parse(template: &str) -> Result<Self, TemplateError> {
        let template: Yaml = yaml_serde::from_str(template)?;
        let resources = template.get("Resources");
        let api = resources.and_then(|it| it.get("Api")?.get("Properties")?.get("DefinitionBody"));
        let paths = api.and_then(|api| api.get("paths")?.as_mapping());
        let mut routes = Vec::new();
        for (path, methods) in paths.into_iter().flatten() {
            let path = path.as_str().unwrap_or_default();
            for (method, integration) in methods.as_mapping().into_iter().flatten() {
                let method = method.as_str().unwrap_or_default().to_uppercase();
                let function = resources.zip(function_of(integration));
                let function = function.and_then(|(all, name)| code_of(all.get(name)?));
                let route = function.and_then(|function| Route::of(&method, path, function));
                routes.push(route.ok_or_else(|| {
                    TemplateError::Unsupported(format!("the route {method} {path} has no function"))
                })?);
            }
        }
        Ok(Self { routes })
    }

    /// Returns the route of a request, and its path parameters.
    pub(super) fn find(&self, method: &Method, path: &str) -> Option<(&Route, Parameters)> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let of_method = self.routes.iter().filter(|route| route.method == method);
        let matching = of_method.filter_map(|route| Some((route, route.matches(&parts)?)));
        matching
            .min_by_key(|(route, _)| route.segments.iter().map(Segment::rank).collect::<Vec<_>>())
    }
}

impl Route {
    fn of(method: &str, path: &str, function: &str) -> Option<Self> {
        let segments = path.strip_prefix('/')?.split('/').map(Segment::of).collect();
        Some(Self {
            key: format!("{method} {path}"),
            method: method.parse().ok()?,
            segments,
            function: function.to_owned(),
        })
    }

    fn matches(&self, parts: &[&str]) -> Option<Parameters> {
        let mut parameters = Vec::new();
        let mut parts = parts.iter().copied();
        for segment in &self.segments {
            let (name, value) = match segment {
                Segment::Literal(text) => {
                    if decoded(parts.next()?) != *text {
                        return None;
                    }
                    continue;
                }
                Segment::Variable(name) => (name, parts.next()?.to_owned()),
                Segment::Greedy(name) => (name, parts.by_ref().collect::<Vec<_>>().join("/")),
            };
            if value.is_empty() {
                return None;
            }
            parameters.push((name.clone(), decoded(&value)));
        }
        parts.next().is_none().then_some(parameters)
    }
}

impl Segment {
    fn of(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            Some(name) => match name.strip_suffix('+') {
                Some(name) => Self::Greedy(name.to_owned()),
                None => Self::Variable(name.to_owned()),
            },
            None => Self::Literal(text.to_owned()),
        }
    }

    /// Rank among matching routes: the most specific route has the lowest.
    fn rank(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Variable(_) => 1,
            Self::Greedy(_) => 2,
        }
    }
}

/// Decodes a part of a path like API Gateway.
pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCES: &str = "
Resources:
  ListThings: {Properties: {CodeUri: target/package/list-things.zip}}
  GetThing: {Properties: {CodeUri: target/package/get-thing.zip}}
  GetOwnThing: {Properties: {CodeUri: target/package/get-own-thing.zip}}
  Report: {Properties: {CodeUri: target/package/report.zip}}
  Api: {Properties: {DefinitionBody: {paths: {PATHS}}}}
";
    const ROUTES: [(&str, &str, &str); 5] = [
        ("/things", "get", "ListThings.Arn"),
        ("/things/{id}", "get", "GetThing.Arn"),
        ("/things/own", "get", "GetOwnThingAliaslive"),
        ("/api/{id}/{proxy+}", "post", "Report.Arn"),
        ("/{proxy+}", "get", "Report.Arn"),
    ];

    fn template(routes: &[(&str, &str, &str)]) -> String {
        let paths = routes.iter().map(|(path, method, function)| {
            format!(
                "'{path}': {{{method}: {{x-amazon-apigateway-integration: \
                 {{uri: !Sub 'arn:x/functions/${{{function}}}/invocations'}}}}}}"
            )
        });
        RESOURCES.replace("PATHS", &paths.collect::<Vec<_>>().join(", "))
    }

    fn found(method: &Method, path: &str) -> Option<(String, String, Parameters)> {
        let api = Api::parse(&template(&ROUTES)).unwrap();
        let (route, parameters) = api.find(method, path)?;
        Some((route.function.clone(), route.key.clone(), parameters))
    }

    fn expected(
        function: &str,
        key: &str,
        parameters: &[(&str, &str)],
    ) -> (String, String, Parameters) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        (function.to_owned(), key.to_owned(), parameters.iter().map(owned).collect())
    }

    #[test]
    fn most_specific_route_matches() {
        for (path, function, key, parameters) in [
            ("/things", "list-things", "GET /things", &[][..]),
            ("/things/own", "get-own-thing", "GET /things/own", &[]),
            ("/things/a", "get-thing", "GET /things/{id}", &[("id", "a")]),
            ("/things/", "report", "GET /{proxy+}", &[("proxy", "things/")]),
            ("/things/a/b", "report", "GET /{proxy+}", &[("proxy", "things/a/b")]),
        ] {
            let found = found(&Method::GET, path).unwrap();
            assert_eq!(found, expected(function, key, parameters), "{path}");
        }
    }

    #[test]
    fn unknown_paths_and_methods_are_not_found() {
        for path in ["/things", "/api/1", "/api/1/", "/api//envelope", "/", "*"] {
            assert_eq!(found(&Method::POST, path), None, "{path}");
        }
        assert_eq!(found(&Method::HEAD, "/things"), None);
        assert_eq!(found(&Method::GET, "/"), None);
    }

    #[test]
    fn parameters_are_decoded() {
        for (path, id) in [("/things/%73hop", "shop"), ("/things/a%2Fb%20%C3%A9", "a/b é")] {
            let found = found(&Method::GET, path).unwrap();
            assert_eq!(found, expected("get-thing", "GET /things/{id}", &[("id", id)]));
        }
        let (.., parameters) = found(&Method::GET, "/things/%FF%zz").unwrap();
        assert_eq!(parameters, [("id".to_owned(), "\u{fffd}%zz".to_owned())]);
        let delivered = found(&Method::POST, "/api/7/envelope/").unwrap();
        let parameters = [("id", "7"), ("proxy", "envelope/")];
        assert_eq!(delivered, expected("report", "POST /api/{id}/{proxy+}", &parameters));
    }

    #[test]
    fn routes_without_a_function_are_rejected() {
        let error = Api::parse(&template(&[("/things", "get", "Unknown.Arn")])).unwrap_err();
        assert_eq!(error.to_string(), "template.yaml: the route GET /things has no function");
    }
}
