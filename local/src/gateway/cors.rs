//! Which pages may call, as `template.yaml` declares it for API Gateway.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use yaml_serde::Value as Yaml;

use crate::template::TemplateError;

const ANY: &str = "*";

/// What API Gateway answers to pages.
#[derive(Debug)]
pub(super) struct Cors {
    origins: Vec<String>,
    of_preflights: Vec<(HeaderName, HeaderValue)>,
    exposed: HeaderValue,
}

impl Cors {
    /// Reads the configuration of a template's HTTP API, for parameters as they are by default; `None`
    /// if no page may call.
    pub(super) fn parse(template: &str) -> Result<Option<Self>, TemplateError> {
        let template: Yaml = yaml_serde::from_str(template)?;
        let resources = template.get("Resources").and_then(Yaml::as_mapping);
        let mut resources = resources.into_iter().flat_map(|it| it.values());
        let api = resources
            .find(|it| it.get("Type").and_then(Yaml::as_str) == Some("AWS::Serverless::HttpApi"));
        let declared = api.and_then(|api| api.get("Properties")?.get("CorsConfiguration"));
        let Some(declared) = declared else { return Ok(None) };
        let unsupported = || {
            TemplateError::Unsupported("CorsConfiguration is none that a laptop can follow".into())
        };
        // `!If [there are origins, …, none]`.
        let declared = match declared {
            Yaml::Tagged(tagged) => tagged.value.get(1).ok_or_else(unsupported)?,
            plain => plain,
        };
        let origins = origins(&template, declared).ok_or_else(unsupported)?;
        if origins.is_empty() {
            return Ok(None);
        }
        let list = |member: &str| -> Option<HeaderValue> {
            let items = declared.get(member)?.as_sequence()?.iter().filter_map(Yaml::as_str);
            items.collect::<Vec<_>>().join(",").parse().ok()
        };
        let read = || {
            let max_age = declared.get("MaxAge")?.as_i64()?;
            Some(Self {
                origins,
                of_preflights: vec![
                    (ACCESS_CONTROL_ALLOW_METHODS, list("AllowMethods")?),
                    (ACCESS_CONTROL_ALLOW_HEADERS, list("AllowHeaders")?),
                    (ACCESS_CONTROL_MAX_AGE, max_age.into()),
                ],
                exposed: list("ExposeHeaders")?,
            })
        };
        read().map(Some).ok_or_else(unsupported)
    }

    /// Puts what pages are told into the answer to a request, in the place of what a function says of
    /// it. Whoever sends no origin is told nothing.
    pub(super) fn apply(&self, request: &Parts, answer: &mut HeaderMap) {
        let of_function: Vec<HeaderName> = answer
            .keys()
            .filter(|it| it.as_str().starts_with("access-control-"))
            .cloned()
            .collect();
        for name in of_function {
            answer.remove(name);
        }
        let Some(origin) = request.headers.get(ORIGIN) else { return };
        if self.origins.iter().any(|allowed| allowed == ANY) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static(ANY));
        } else if self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            answer.append(VARY, ORIGIN.into());
        } else {
            return;
        }
        let asks_before = request.method == Method::OPTIONS
            && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if asks_before {
            answer.extend(self.of_preflights.clone());
        } else {
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
        }
    }
}

/// The origins as they are listed, or as the parameter holds them by default that they are split from.
fn origins(template: &Yaml, declared: &Yaml) -> Option<Vec<String>> {
    let text = |value: &Yaml| value.as_str().map(str::to_owned);
    match declared.get("AllowOrigins")? {
        Yaml::Sequence(items) => items.iter().map(text).collect(),
        Yaml::Tagged(split) if split.tag == "!Split" => {
            let Yaml::Tagged(reference) = split.value.get(1)? else { return None };
            let parameter = template.get("Parameters")?.get(reference.value.as_str()?)?;
            let origins = parameter.get("Default")?.as_str()?.split(split.value.get(0)?.as_str()?);
            Some(origins.filter(|it| !it.is_empty()).map(str::to_owned).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    const TEMPLATE: &str = r#"
Parameters:
  Origins: {Type: String, Default: "*"}
Resources:
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      CorsConfiguration: !If
        - HasCors
        - AllowOrigins: !Split [",", !Ref Origins]
          AllowMethods: [GET, POST]
          AllowHeaders: [x-api-key]
          ExposeHeaders: [etag, location]
          MaxAge: 60
        - !Ref AWS::NoValue
"#;

    /// What pages are told, of a request with these headers.
    fn told(origins: &str, method: &str, sent: &[(&str, &str)]) -> Vec<(String, String)> {
        let template = TEMPLATE.replace('*', origins);
        let cors = Cors::parse(&template).unwrap().unwrap();
        let mut request = Request::builder().method(method);
        for (name, value) in sent {
            request = request.header(*name, *value);
        }
        let mut answer = HeaderMap::new();
        answer.insert("access-control-allow-origin", HeaderValue::from_static("of the function"));
        answer.insert("etag", HeaderValue::from_static("1"));
        cors.apply(&request.body(()).unwrap().into_parts().0, &mut answer);
        answer.remove("etag").unwrap();
        let mut told: Vec<_> = answer
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        told.sort();
        told
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn pages_are_told_what_the_template_says_and_nothing_that_functions_say() {
        let page = ("origin", "https://a.example");
        let allowed = ("access-control-allow-origin", "*");
        let exposed = ("access-control-expose-headers", "etag,location");
        assert_eq!(told("*", "GET", &[]), []);
        assert_eq!(told("*", "GET", &[page]), pairs(&[allowed, exposed]));
        let asks = ("access-control-request-method", "POST");
        let preflight = pairs(&[
            ("access-control-allow-headers", "x-api-key"),
            ("access-control-allow-methods", "GET,POST"),
            allowed,
            ("access-control-max-age", "60"),
        ]);
        assert_eq!(told("*", "OPTIONS", &[page, asks]), preflight);
    }

    #[test]
    fn only_pages_of_listed_origins_are_told() {
        let origins = "https://a.example,https://b.example";
        let of = |origin| told(origins, "GET", &[("origin", origin)]);
        let allowed = pairs(&[
            ("access-control-allow-origin", "https://b.example"),
            ("access-control-expose-headers", "etag,location"),
            ("vary", "origin"),
        ]);
        assert_eq!(of("https://b.example"), allowed);
        assert_eq!(of("https://c.example"), []);
        assert!(Cors::parse(&TEMPLATE.replace('*', "")).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (part, other) in [("!Split [\",\", !Ref Origins]", "x"), ("MaxAge: 60", "MaxAge: x")] {
            assert!(Cors::parse(&TEMPLATE.replace(part, other)).is_err(), "{other}");
        }
    }
}
