//! The `OpenFeature` Remote Evaluation Protocol over HTTP: path, headers and problems.

use lambda_http::http::StatusCode;
use lambda_http::http::header::ETAG;

use shared::http::{ApiRequest, ApiResponse, JSON, Problem, Protocol, header_value};

use super::super::http::FLAG_KEY;
use crate::Freshness;
use crate::evaluation::{Context, ErrorCode};
use crate::ofrep::{EvaluationFailure, OfrepResponse, read_context};

/// The protocol OFREP. Failures have its format; errors that it does not define are problems.
pub const OFREP: Protocol =
    Protocol { name: "OFREP", problem_response: failure_response, request_headers: &[] };

/// Returns the flag key in the path as requested.
pub fn evaluated_key(incoming: &ApiRequest) -> String {
    incoming.path_parameter(FLAG_KEY).unwrap_or_default()
}

/// Parses the evaluation context. The body is optional.
pub fn evaluation_context(incoming: &ApiRequest) -> Result<Context<'_>, EvaluationFailure> {
    if !incoming.body().is_empty()
        && let Some(other) = incoming.other_media_type(&[JSON])
    {
        let details = format_args!("the content type {other} is not supported; send {JSON}");
        return Err(EvaluationFailure::new(ErrorCode::ParseError, details));
    }
    read_context(incoming.body())
}

/// Returns the freshness that the request requires (`cache-control: no-cache`, RFC 9111 §5.2.1.4).
pub fn freshness(incoming: &ApiRequest) -> Freshness {
    let values = incoming.header_texts("cache-control");
    let mut directives = values.iter().flat_map(|value| value.split(','));
    if directives.any(|directive| directive.trim().eq_ignore_ascii_case("no-cache")) {
        Freshness::Current
    } else {
        Freshness::Cached
    }
}

/// Returns the entity tags of the client's cached responses.
pub fn if_none_match(incoming: &ApiRequest) -> impl Iterator<Item = &[u8]> {
    incoming.header_values("if-none-match")
}

impl TryFrom<OfrepResponse> for ApiResponse {
    type Error = Problem;

    fn try_from(response: OfrepResponse) -> Result<Self, Problem> {
        let status = StatusCode::from_u16(response.status).map_err(|error| {
            Problem::internal(format!("a response has an invalid status: {error}"))
        })?;
        let json = Self::of_json_text(status, response.body);
        Ok(match response.etag {
            None => json,
            Some(etag) => json.with_header(ETAG, header_value(etag.as_str())?),
        })
    }
}

/// Returns the response to a request that could not be evaluated because of a problem.
fn failure_response(problem: &Problem, incoming: &ApiRequest) -> ApiResponse {
    let status = problem.status();
    let code = match status {
        // The protocol has no body for these.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
            return problem.to_response(incoming.request_id());
        }
        StatusCode::NOT_FOUND => ErrorCode::FlagNotFound,
        StatusCode::BAD_REQUEST => ErrorCode::ParseError,
        _ => ErrorCode::General,
    };
    let failure = EvaluationFailure::new(code, problem.detail());
    let response = match incoming.path_parameter(FLAG_KEY) {
        Some(key) => failure.for_flag(&key),
        None => failure.for_all_flags(),
    };
    problem.with_retry_after(ApiResponse::of_json_text(status, response.body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::{Body, RequestExt, http};
    use std::collections::HashMap;

    fn incoming(headers: &[(&str, &str)], body: &str, key: Option<&str>) -> ApiRequest {
        let mut request = http::Request::builder().method("POST").uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parameters = key.map(|key| (FLAG_KEY.to_owned(), vec![key.to_owned()]));
        let request = request.body(Body::from(body)).unwrap();
        ApiRequest::new(
            "an-operation",
            request.with_path_parameters(parameters.into_iter().collect::<HashMap<_, _>>()),
        )
    }

    fn shown(problem: &Problem, key: Option<&str>) -> (u16, String, Option<String>) {
        let response = failure_response(problem, &incoming(&[], "", key));
        let response = response.into_response("r-1");
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
        let Body::Text(body) = response.body() else { panic!("a failure has a body") };
        (response.status().as_u16(), body.clone(), retry_after)
    }

    #[test]
    fn problems_have_the_format_of_the_protocol() {
        let (status, body, _) = shown(&Problem::project_not_found(), Some("f\"1"));
        let expected = r#"{"key":"f\"1","errorCode":"FLAG_NOT_FOUND","errorDetails":"The project does not exist, or the API key cannot see it. Check the ID or slug."}"#;
        assert_eq!((status, body.as_str()), (404, expected));
        let (status, body, _) = shown(&Problem::internal("secret"), None);
        assert_eq!(status, 500);
        assert!(body.starts_with(r#"{"errorCode":"GENERAL","errorDetails":""#), "{body}");
        assert!(!body.contains("secret"));
        let (status, body, retry_after) = shown(&Problem::unavailable("x"), Some("f"));
        assert_eq!((status, retry_after.as_deref()), (503, Some("1")));
        assert!(body.starts_with(r#"{"key":"f","errorCode":"GENERAL","errorDetails":""#), "{body}");
    }

    #[test]
    fn unauthorized_requests_get_a_problem() {
        let (status, body, _) = shown(&Problem::missing_api_key(), Some("f"));
        assert_eq!(status, 401);
        assert!(body.contains("\"code\":\"missing_api_key\""), "{body}");
    }

    #[test]
    fn contexts_are_json_or_absent() {
        let code = |content_type: &str, body: &str| {
            let incoming = incoming(&[("content-type", content_type)], body, None);
            evaluation_context(&incoming).err().map(|failure| failure.code())
        };
        for content_type in ["application/json", "Application/JSON; charset=utf-8", ""] {
            assert_eq!(code(content_type, r#"{"context": {}}"#), None, "{content_type}");
        }
        assert_eq!(code("text/plain", ""), None);
        assert_eq!(code("text/plain", "{}"), Some(ErrorCode::ParseError));
        assert_eq!(code("application/json", "{"), Some(ErrorCode::ParseError));
        let key = r#"{"context": {"targetingKey": 1}}"#;
        assert_eq!(code("application/json", key), Some(ErrorCode::InvalidContext));
    }

    #[test]
    fn no_cache_requires_current_flags() {
        let freshness = |values: &[&str]| {
            let headers: Vec<_> = values.iter().map(|value| ("cache-control", *value)).collect();
            super::freshness(&incoming(&headers, "", None))
        };
        for cached in [&[][..], &["max-age=3"], &["no-cache-x"], &[""]] {
            assert_eq!(freshness(cached), Freshness::Cached, "{cached:?}");
        }
        for current in [&["no-cache"][..], &["max-age=0, No-Cache"], &["x", "no-cache"]] {
            assert_eq!(freshness(current), Freshness::Current, "{current:?}");
        }
    }
}
