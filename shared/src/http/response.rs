//! Responses.

use lambda_http::Body;
use lambda_http::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, LOCATION, SET_COOKIE,
};
use lambda_http::http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::dynamodb::Replay;
use crate::idempotency::StoredResponse;

use super::{Problem, VersionTag, cors};

/// A response without the headers that all responses have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Option<Body>,
}

/// The response to a request, or the problem that prevents it.
pub type ApiResult = Result<ApiResponse, Problem>;

impl ApiResponse {
    /// Creates a response without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: None }
    }

    /// Creates a response with `value` as its JSON body.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_string(value)
            .map_err(|error| Problem::internal(format!("a response cannot be written: {error}")))?;
        Ok(Self { status, headers: HeaderMap::new(), body: Some(Body::Text(body)) })
    }

    /// Creates a response whose body, if any, is already JSON, or text of a type that a header
    /// names.
    pub fn of_json_text(status: StatusCode, body: Option<String>) -> Self {
        Self { status, headers: HeaderMap::new(), body: body.map(Body::Text) }
    }

    /// Creates a response whose body is bytes of a media type.
    pub fn bytes(status: StatusCode, media_type: &'static str, body: Vec<u8>) -> Self {
        Self { status, headers: HeaderMap::new(), body: Some(Body::Binary(body)) }
            .with_header(CONTENT_TYPE, HeaderValue::from_static(media_type))
    }

    /// Creates a 200 response with `value` as JSON.
    pub fn ok(value: &impl Serialize) -> Result<Self, Problem> {
        Self::json(StatusCode::OK, value)
    }

    /// Creates a 201 response with a new resource at `location`.
    pub fn created(location: &str, resource: &impl Serialize) -> Result<Self, Problem> {
        let response = Self::json(StatusCode::CREATED, resource)?;
        Ok(response.with_header(LOCATION, header_value(location)?))
    }

    /// Sets the version of the resource as the entity tag.
    pub fn with_version(self, version: impl Into<VersionTag>) -> Result<Self, Problem> {
        let etag = header_value(&version.into().to_string())?;
        Ok(self.with_header(ETAG, etag))
    }

    /// Sets a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets a header to a text. The header's name must be in lower case.
    pub fn with_text(self, name: &'static str, text: &str) -> Result<Self, Problem> {
        Ok(self.with_header(HeaderName::from_static(name), header_value(text)?))
    }

    /// Sets a header to a number. The header's name must be in lower case.
    #[must_use]
    pub fn with_number(self, name: &'static str, number: i64) -> Self {
        self.with_header(HeaderName::from_static(name), number.into())
    }

    /// Adds a cookie, the value of a header `set-cookie`.
    pub fn with_cookie(mut self, cookie: &str) -> Result<Self, Problem> {
        self.headers.append(SET_COOKIE, header_value(cookie)?);
        Ok(self)
    }

    /// Returns the status code.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the form of the response that is stored with an idempotency key.
    pub fn to_stored(&self) -> StoredResponse {
        let headers = self.headers.iter().filter_map(|(name, value)| {
            // Every value came from a string, so none is omitted.
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        StoredResponse {
            status: self.status.as_u16(),
            headers: headers.collect(),
            body: match &self.body {
                Some(Body::Text(text)) => text.clone(),
                // No operation with idempotency keys returns bytes.
                _ => String::new(),
            },
        }
    }

    /// Returns the response to a request whose idempotency key was used before.
    pub fn replay(replay: Replay) -> Result<Self, Problem> {
        match replay {
            Replay::Response(stored) => Self::replayed(stored),
            Replay::OtherRequest => Err(Problem::idempotency_conflict()),
            Replay::StillRunning => Err(Problem::idempotency_in_progress()),
        }
    }

    /// Returns a response that was stored with an idempotency key.
    fn replayed(stored: StoredResponse) -> Result<Self, Problem> {
        let damaged = || Problem::internal("a stored response is damaged");
        let status = StatusCode::from_u16(stored.status).map_err(|_| damaged())?;
        let body = Some(stored.body).filter(|body| !body.is_empty()).map(Body::Text);
        let mut response = Self { status, headers: HeaderMap::new(), body };
        for (name, value) in stored.headers {
            let name = HeaderName::try_from(name).map_err(|_| damaged())?;
            let value = HeaderValue::try_from(value).map_err(|_| damaged())?;
            response = response.with_header(name, value);
        }
        let replayed = HeaderName::from_static("idempotency-replayed");
        Ok(response.with_header(replayed, HeaderValue::from_static("true")))
    }

    /// Returns the HTTP response to the request `request_id`.
    pub fn into_response(self, request_id: &str) -> Response<Body> {
        let Self { status, mut headers, body } = self;
        cors::expose(&mut headers);
        // Browsers can only keep responses with an entity tag, and must revalidate each use.
        let caching = if headers.contains_key(ETAG) { "private, no-cache" } else { "no-store" };
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(caching));
        if let Ok(request_id) = HeaderValue::from_str(request_id) {
            headers.insert("x-request-id", request_id);
        }
        if body.is_some() {
            let media_type = headers.entry(CONTENT_TYPE);
            media_type.or_insert(HeaderValue::from_static("application/json"));
        }
        let mut response = Response::new(body.unwrap_or(Body::Empty));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// Returns the value of a header. Fails if the text has characters that headers cannot have.
pub fn header_value(text: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(text)
        .map_err(|error| Problem::internal(format!("a header cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_responses_are_replayed_unchanged() {
        let response =
            ApiResponse::created("/v0/x/1", &["é"]).and_then(|a| a.with_version(7)).unwrap();
        let replayed = ApiResponse::replayed(response.to_stored()).unwrap();
        let expected = response.with_header(
            HeaderName::from_static("idempotency-replayed"),
            HeaderValue::from_static("true"),
        );
        assert_eq!(replayed, expected);
        assert_eq!(replayed.headers["etag"], "\"7\"");
    }

    #[test]
    fn responses_have_request_id_and_cors_headers() {
        let response = ApiResponse::empty(StatusCode::NO_CONTENT).into_response("r-1");
        assert_eq!(response.headers()["x-request-id"], "r-1");
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert!(!response.headers().contains_key("content-type"));
        let response = ApiResponse::json(StatusCode::OK, &1).unwrap().into_response("r-2");
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.into_body(), Body::Text("1".to_owned()));
    }

    #[test]
    fn responses_are_not_stored_without_an_entity_tag() {
        let caching = |response: ApiResponse| {
            let response = response.into_response("r-1");
            response.headers()["cache-control"].to_str().unwrap().to_owned()
        };
        let empty = || ApiResponse::empty(StatusCode::OK);
        assert_eq!(caching(empty()), "no-store");
        assert_eq!(caching(empty().with_version(7).unwrap()), "private, no-cache");
        let public = empty().with_text("cache-control", "public, max-age=60").unwrap();
        assert_eq!(caching(public), "public, max-age=60");
    }
}
