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
    /// Reads the routes of all functions in a template.
    pub(super) fn parse(template: &str) -> Result<Self, TemplateError> {
        let template: Yaml = yaml_serde::from_str(template)?;
        let resources = template.get("Resources").and_then(Yaml::as_mapping);
        let mut routes = Vec::new();
        for (name, resource) in resources.into_iter().flatten() {
            let properties = resource.get("Properties");
            let events = properties.and_then(|it| it.get("Events")).and_then(Yaml::as_mapping);
            let is_route = |it: &&Yaml| it.get("Type").and_then(Yaml::as_str) == Some("HttpApi");
            for event in events.into_iter().flat_map(|it| it.values()).filter(is_route) {
                let code = properties.and_then(|it| it.get("CodeUri")).and_then(Yaml::as_str);
                let function = code.map(function_of_code);
                let route = function.zip(event.get("Properties"));
                let route = route.and_then(|(function, event)| Route::of(function, event));
                routes.push(route.ok_or_else(|| {
                    let name = name.as_str().unwrap_or("a function");
                    TemplateError::Unsupported(format!("{name}: one of its routes cannot be read"))
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
    fn of(function: &str, event: &Yaml) -> Option<Self> {
        let text = |property: &str| event.get(property).and_then(Yaml::as_str);
        let (method, path) = (text("Method")?.to_uppercase(), text("Path")?);
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

    const TEMPLATE: &str = "
Resources:
  Api: {Type: AWS::Serverless::HttpApi}
  ListThings:
    Properties:
      CodeUri: target/package/list-things.zip
      Events:
        Get: {Type: HttpApi, Properties: {Method: GET, Path: /things}}
        Sweep: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 minute)}}
  GetThing:
    Properties:
      CodeUri: target/package/get-thing.zip
      Events:
        Get: {Type: HttpApi, Properties: {Method: GET, Path: '/things/{id}'}}
  GetOwnThing:
    Properties:
      CodeUri: target/package/get-own-thing.zip
      Events:
        Get: {Type: HttpApi, Properties: {Method: GET, Path: /things/own}}
  Report:
    Properties:
      CodeUri: target/package/report.zip
      Events:
        Post: {Type: HttpApi, Properties: {Method: POST, Path: '/api/{id}/{proxy+}'}}
        Get: {Type: HttpApi, Properties: {Method: GET, Path: '/{proxy+}'}}
";

    fn found(method: &Method, path: &str) -> Option<(String, String, Parameters)> {
        let api = Api::parse(TEMPLATE).unwrap();
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
    fn unreadable_routes_name_their_function() {
        let error = Api::parse(&TEMPLATE.replace("Path: /things/own", "Path: things")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "template.yaml: GetOwnThing: one of its routes cannot be read"
        );
    }
}
