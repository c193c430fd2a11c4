//! CORS, as `template.yaml` declares it for API Gateway.

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

/// API Gateway's CORS headers.
#[derive(Debug)]
pub(super) struct Cors {
    origins: Vec<String>,
    preflight_headers: Vec<(HeaderName, HeaderValue)>,
    exposed: HeaderValue,
}

impl Cors {
    /// Reads the configuration of a template's HTTP API, with default parameters. Returns `None` if
    /// no page can call the API.
    pub(super) fn parse(template: &str) -> Result<Option<Self>, TemplateError> {
        let template: Yaml = yaml_serde::from_str(template)?;
        let resources = template.get("Resources").and_then(Yaml::as_mapping);
        let mut resources = resources.into_iter().flat_map(|it| it.values());
        let api = resources
            .find(|it| it.get("Type").and_then(Yaml::as_str) == Some("AWS::Serverless::HttpApi"));
        let declared = api.and_then(|api| api.get("Properties")?.get("CorsConfiguration"));
        let Some(declared) = declared else { return Ok(None) };
        let unsupported = || {
            TemplateError::Unsupported(
                "CorsConfiguration is not supported by the local stack".into(),
            )
        };
        // `!If [condition, configuration, none]`.
        let declared = match declared {
            Yaml::Tagged(tagged) => tagged.value.get(1).ok_or_else(unsupported)?,
            plain => plain,
        };
        let origins = origins(&template, declared).ok_or_else(unsupported)?;
        if origins.is_empty() {
            return Ok(None);
        }
        let list = |property: &str| -> Option<HeaderValue> {
            let items = declared.get(property)?.as_sequence()?.iter().filter_map(Yaml::as_str);
            items.collect::<Vec<_>>().join(",").parse().ok()
        };
        let read = || {
            let max_age = declared.get("MaxAge")?.as_i64()?;
            Some(Self {
                origins,
                preflight_headers: vec![
                    (ACCESS_CONTROL_ALLOW_METHODS, list("AllowMethods")?),
                    (ACCESS_CONTROL_ALLOW_HEADERS, list("AllowHeaders")?),
                    (ACCESS_CONTROL_MAX_AGE, max_age.into()),
                ],
                exposed: list("ExposeHeaders")?,
            })
        };
        read().map(Some).ok_or_else(unsupported)
    }

    /// Replaces the CORS headers of a response with API Gateway's. Requests without `origin` get
    /// none.
    pub(super) fn apply(&self, request: &Parts, response: &mut HeaderMap) {
        let replaced: Vec<HeaderName> = response
            .keys()
            .filter(|it| it.as_str().starts_with("access-control-"))
            .cloned()
            .collect();
        for name in replaced {
            response.remove(name);
        }
        let Some(origin) = request.headers.get(ORIGIN) else { return };
        if self.origins.iter().any(|allowed| allowed == ANY) {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static(ANY));
        } else if self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.append(VARY, ORIGIN.into());
        } else {
            return;
        }
        let is_preflight = request.method == Method::OPTIONS
            && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if is_preflight {
            response.extend(self.preflight_headers.clone());
        } else {
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
        }
    }
}

/// Returns the listed origins, or splits the default of the parameter that contains them.
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

    /// Returns the CORS headers of the response to a request.
    fn cors_headers(origins: &str, method: &str, sent: &[(&str, &str)]) -> Vec<(String, String)> {
        let template = TEMPLATE.replace('*', origins);
        let cors = Cors::parse(&template).unwrap().unwrap();
        let mut request = Request::builder().method(method);
        for (name, value) in sent {
            request = request.header(*name, *value);
        }
        let mut response = HeaderMap::new();
        response.insert("access-control-allow-origin", HeaderValue::from_static("of the function"));
        response.insert("etag", HeaderValue::from_static("1"));
        cors.apply(&request.body(()).unwrap().into_parts().0, &mut response);
        response.remove("etag").unwrap();
        let mut headers: Vec<_> = response
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        headers
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn template_headers_replace_those_of_functions() {
        let page = ("origin", "https://a.example");
        let allowed = ("access-control-allow-origin", "*");
        let exposed = ("access-control-expose-headers", "etag,location");
        assert_eq!(cors_headers("*", "GET", &[]), []);
        assert_eq!(cors_headers("*", "GET", &[page]), pairs(&[allowed, exposed]));
        let requested = ("access-control-request-method", "POST");
        let preflight = pairs(&[
            ("access-control-allow-headers", "x-api-key"),
            ("access-control-allow-methods", "GET,POST"),
            allowed,
            ("access-control-max-age", "60"),
        ]);
        assert_eq!(cors_headers("*", "OPTIONS", &[page, requested]), preflight);
    }

    #[test]
    fn only_listed_origins_get_headers() {
        let origins = "https://a.example,https://b.example";
        let of = |origin| cors_headers(origins, "GET", &[("origin", origin)]);
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
    fn unsupported_configurations_are_rejected() {
        for (part, other) in [("!Split [\",\", !Ref Origins]", "x"), ("MaxAge: 60", "MaxAge: x")] {
            assert!(Cors::parse(&TEMPLATE.replace(part, other)).is_err(), "{other}");
        }
    }
}
