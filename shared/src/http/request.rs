//! Requests from API Gateway (HTTP and REST APIs) and from the local gateway.

use std::borrow::Cow;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lambda_http::http::Method;
use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use percent_encoding::percent_decode_str;

use crate::idempotency::{IdempotencyKey, IdempotentRequest, RequestFingerprint};
use crate::json::{FieldError, Json, MAX_BODY_DEPTH, Violations};

use super::{IfMatch, Problem, ProblemCode};

/// Most bytes of a body: 256 KiB.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// Header with the base URL that the client used. Only the function itself sets it.
pub(crate) const BASE_URL: &str = "x-waymark-base-url";
/// Header with the secret of the stack's own distribution. Handlers get it only from there.
pub(crate) const EDGE: &str = "x-waymark-edge";
/// Header of requests from the console, with the value `1`.
const CONSOLE_HEADER: &str = "x-waymark-console";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A request, with the data for its line in the log.
pub struct ApiRequest {
    operation: &'static str,
    received: Instant,
    request: Request,
    request_id: String,
    key_id: OnceLock<String>,
    project_id: OnceLock<String>,
    is_from_distribution: OnceLock<()>,
}

impl ApiRequest {
    /// Creates a request for an operation, which starts now. Its id is that of the Lambda
    /// invocation, which AWS's own log lines and traces also contain.
    pub fn new(operation: &'static str, request: Request) -> Self {
        let context = request.lambda_context_ref();
        let request_id = context.map(|context| context.request_id.clone()).unwrap_or_default();
        Self {
            operation,
            received: Instant::now(),
            request,
            request_id,
            key_id: OnceLock::new(),
            project_id: OnceLock::new(),
            is_from_distribution: OnceLock::new(),
        }
    }

    /// Returns the name of the requested operation.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the time since the request was received, including authentication.
    pub fn elapsed(&self) -> Duration {
        self.received.elapsed()
    }

    /// Returns the id of the request in the log and in responses.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Returns the id of the trace that AWS started for the request, if any.
    pub fn trace_id(&self) -> Option<&str> {
        let context = self.request.lambda_context_ref()?;
        context.xray_trace_id.as_deref().and_then(root_of_trace)
    }

    /// Records the id of the authenticated key, for the log.
    pub(crate) fn note_key(&self, id: impl Display) {
        let _ = self.key_id.set(id.to_string());
    }

    /// Records the id of the request's project, for the log.
    pub fn note_project(&self, id: impl Display) {
        let _ = self.project_id.set(id.to_string());
    }

    /// Records that the request came through the distribution, which sets the headers
    /// `cloudfront-viewer-…` itself. Without this record they are ignored.
    pub(super) fn note_distribution(&self) {
        let _ = self.is_from_distribution.set(());
    }

    /// Returns the id of the authenticated key, once it is known.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.get().map(String::as_str)
    }

    /// Returns the id of the request's project, once it is known.
    pub fn project_id(&self) -> Option<&str> {
        self.project_id.get().map(String::as_str)
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        self.request.method()
    }

    /// Returns the path as sent.
    pub fn path(&self) -> &str {
        self.request.raw_http_path()
    }

    /// Returns all values of a header.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.request.headers().get_all(name).iter().map(lambda_http::http::HeaderValue::as_bytes)
    }

    /// Returns the base URL that the client used, such as `https://api.example.com`, if its host is
    /// well-formed. Never use it in text for other people.
    pub fn base_url(&self) -> Option<&str> {
        self.header_texts(BASE_URL).into_iter().next()
    }

    /// Returns `true` if the stack's own distribution sent the request.
    pub fn is_from_edge(&self) -> bool {
        self.header_values(EDGE).next().is_some()
    }

    /// Returns the body as sent.
    pub fn body(&self) -> &[u8] {
        self.request.body().as_ref()
    }

    /// Returns all values of a header that are UTF-8.
    pub fn header_texts(&self, name: &str) -> Vec<&str> {
        self.header_values(name).filter_map(|value| std::str::from_utf8(value).ok()).collect()
    }

    /// Returns the values of a cookie.
    pub fn cookies<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c str> {
        let pairs = self.header_texts("cookie").into_iter().flat_map(|text| text.split(';'));
        pairs.filter_map(move |pair| {
            let (named, value) = pair.trim().split_once('=')?;
            (named == name).then_some(value)
        })
    }

    /// Fails with 403 if the request can change something, and a page of another site could have
    /// caused it (`docs/security.md`, "Attackers of sign-in and sessions"). Browsers set `sec-fetch-site`
    /// themselves. Only pages of the same origin can set the other header, since
    /// preflights do not allow it.
    pub fn require_same_origin(&self) -> Result<(), Problem> {
        let is = |name, expected: &str| {
            let mut values = self.header_values(name).peekable();
            values.peek().is_some() && values.all(|value| value == expected.as_bytes())
        };
        let only_reads = [Method::GET, Method::HEAD].contains(self.method());
        if only_reads || is("sec-fetch-site", "same-origin") || is(CONSOLE_HEADER, "1") {
            return Ok(());
        }
        Err(Problem::cross_site_request())
    }

    /// Returns the network address of the sender, as a distribution or else API Gateway saw it.
    /// Clients can choose `x-forwarded-for`, so it is not used.
    pub fn source_address(&self) -> Option<String> {
        if let Some(viewer) = self.viewer_header("cloudfront-viewer-address").and_then(address_of) {
            return Some(viewer.to_string());
        }
        match self.request.request_context_ref()? {
            RequestContext::ApiGatewayV2(context) => context.http.source_ip.clone(),
            RequestContext::ApiGatewayV1(context) => context.identity.source_ip.clone(),
            #[allow(unreachable_patterns)] // The features of the library decide.
            _ => None,
        }
    }

    /// Returns the place of the sender's network address, if the distribution reports it: a city
    /// and a country.
    pub fn place(&self) -> Option<String> {
        const MAX_CHARACTERS: usize = 100;
        let country = self.viewer_header("cloudfront-viewer-country-name");
        let country = country.or_else(|| self.viewer_header("cloudfront-viewer-country"))?;
        let parts = self.viewer_header("cloudfront-viewer-city").into_iter().chain([country]);
        let place = parts.collect::<Vec<_>>().join(", ");
        Some(place.chars().take(MAX_CHARACTERS).collect())
    }

    /// Returns a header that the distribution sets, if the request came through it.
    fn viewer_header(&self, name: &str) -> Option<&str> {
        self.is_from_distribution.get()?;
        self.header_texts(name).first().copied().filter(|text| !text.is_empty())
    }

    /// Returns all values of a query parameter, decoded.
    pub fn query_texts(&self, name: &str) -> Vec<&str> {
        let parameters = self.request.query_string_parameters_ref();
        parameters.and_then(|parameters| parameters.all(name)).unwrap_or_default()
    }

    /// Returns a path parameter, decoded. HTTP APIs provide it decoded, others possibly as sent.
    /// Decoding twice is harmless, since no valid value in a path contains `%`.
    pub fn path_parameter(&self, name: &str) -> Option<String> {
        let parameters = self.request.path_parameters_ref()?;
        let decoded = percent_decode_str(parameters.first(name)?).decode_utf8().ok()?;
        Some(decoded.into_owned())
    }

    /// Returns the versions of a resource to which the request applies.
    pub fn if_match(&self) -> IfMatch {
        IfMatch::read(self.header_values("if-match"))
    }

    /// Parses a query parameter. Returns `Some(None)` if it is missing. If it is invalid, records a
    /// violation and returns `None`. If it is repeated, the first one counts.
    pub fn query_parameter<T>(
        &self,
        name: &str,
        violations: &mut Violations,
        parse: impl FnOnce(&str) -> Result<T, FieldError>,
    ) -> Option<Option<T>> {
        let parameters = self.request.query_string_parameters_ref();
        let Some(text) = parameters.and_then(|parameters| parameters.first(name)) else {
            return Some(None);
        };
        parse(text).map(Some).map_err(|error| violations.note_query(name, error)).ok()
    }

    /// Parses the body as JSON. Checks first its size, then its type, then its syntax.
    pub fn json(&self) -> Result<Json<'_>, Problem> {
        self.json_of(&[JSON], MAX_BODY_BYTES)
    }

    /// Like [`Self::json`], for a body of up to `max_bytes` bytes.
    pub fn large_json(&self, max_bytes: usize) -> Result<Json<'_>, Problem> {
        self.json_of(&[JSON], max_bytes)
    }

    /// Parses the body as a JSON Merge Patch (RFC 7396), which can also be sent as plain JSON.
    pub fn merge_patch(&self) -> Result<Json<'_>, Problem> {
        self.json_of(&[JSON, MERGE_PATCH], MAX_BODY_BYTES)
    }

    fn json_of(&self, media_types: &[&str], max_bytes: usize) -> Result<Json<'_>, Problem> {
        let body: &[u8] = self.request.body().as_ref();
        if body.len() > max_bytes {
            let length = body.len();
            let detail = format!(
                "The body has {length} bytes, but the limit is {max_bytes}. Send a smaller body."
            );
            return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
        }
        if let Some(other) = self.other_media_type(media_types) {
            let expected = media_types.join(" or ");
            let detail = format!("The content type {other} is not supported. Send {expected}.");
            return Err(Problem::new(ProblemCode::UnsupportedMediaType, detail));
        }
        let malformed = |detail: String| Problem::new(ProblemCode::MalformedJson, detail);
        if body.is_empty() {
            return Err(malformed("The body is empty. Send a JSON object.".to_owned()));
        }
        let text = std::str::from_utf8(body).map_err(|error| {
            malformed(format!(
                "The body is not valid UTF-8 at byte {}. Encode it as UTF-8.",
                error.valid_up_to()
            ))
        })?;
        Ok(Json::parse(text, MAX_BODY_DEPTH)?)
    }

    /// Returns the body's media type if it is set and not in `expected`.
    pub fn other_media_type(&self, expected: &[&str]) -> Option<Cow<'_, str>> {
        let value = self.request.headers().get(CONTENT_TYPE)?;
        let value = String::from_utf8_lossy(value.as_bytes());
        let media_type = value.split(';').next().unwrap_or_default().trim();
        let is_expected = media_type.is_empty()
            || expected.iter().any(|expected| media_type.eq_ignore_ascii_case(expected));
        (!is_expected).then_some(value)
    }

    /// Returns the request with its idempotency key, if it has one. The key applies to this
    /// operation and API key.
    pub fn idempotent(&self, api_key: &impl Display) -> Result<Option<IdempotentRequest>, Problem> {
        let mut violations = Violations::default();
        let request = self.read_idempotent(api_key, &mut violations);
        Ok(violations.into_result(request)?)
    }

    /// Like [`Self::idempotent`], but records violations, for requests with other parameters.
    pub fn read_idempotent(
        &self,
        api_key: &impl Display,
        violations: &mut Violations,
    ) -> Option<Option<IdempotentRequest>> {
        const NAME: &str = "idempotency-key";
        let Some(value) = self.header_values(NAME).next() else { return Some(None) };
        let key = IdempotencyKey::parse(value)
            .map_err(|error| violations.note_header(NAME, error))
            .ok()?;
        let fingerprint = RequestFingerprint::of(
            self.request.method().as_str(),
            self.request.raw_http_path(),
            self.request.body().as_ref(),
        );
        Some(Some(IdempotentRequest::new(api_key, self.operation, &key, fingerprint)))
    }
}

/// Parses an address with a port, such as `198.51.100.10:46532`. IPv6 addresses can have brackets.
fn address_of(text: &str) -> Option<IpAddr> {
    let (address, _) = text.rsplit_once(':')?;
    address.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns the part of a tracing header that identifies the whole trace, such as
/// `1-68a5e988-bd862e3fe1be46a994272793` of `Root=1-68a5e988-bd862e3fe1be46a994272793;Sampled=1`.
pub(crate) fn root_of_trace(header: &str) -> Option<&str> {
    header.split(';').find_map(|part| part.trim().strip_prefix("Root="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Body;
    use lambda_http::http;

    fn incoming(content_type: Option<&str>, body: impl Into<Body>) -> ApiRequest {
        let mut request = http::Request::builder().method("POST").uri("/");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        ApiRequest::new("an-operation", request.body(body.into()).unwrap())
    }

    fn code(incoming: &ApiRequest) -> Option<ProblemCode> {
        incoming.json().err().map(|problem| problem.code())
    }

    #[test]
    fn json_needs_its_media_type_or_none() {
        let json =
            [None, Some(""), Some("application/json"), Some("Application/JSON; charset=utf-8")];
        for content_type in json {
            assert_eq!(code(&incoming(content_type, "{}")), None, "{content_type:?}");
        }
        for content_type in ["text/plain", "application/jsonp", "application/x-ndjson", "json"] {
            let rejected = code(&incoming(Some(content_type), "{}"));
            assert_eq!(rejected, Some(ProblemCode::UnsupportedMediaType), "{content_type}");
        }
    }

    #[test]
    fn checks_size_then_type_then_form() {
        let full = format!("{{{}}}", " ".repeat(MAX_BODY_BYTES - 2));
        assert_eq!(code(&incoming(None, full.clone())), None);
        let rejected = code(&incoming(Some("text/plain"), format!("{full} ")));
        assert_eq!(rejected, Some(ProblemCode::BodyTooLarge));
        let rejected = code(&incoming(Some("text/plain"), "{"));
        assert_eq!(rejected, Some(ProblemCode::UnsupportedMediaType));
        for body in [&b""[..], b"{", b"{\"a\": \"\xff\"}", b"\xef\xbb\xbf{}"] {
            let rejected = code(&incoming(None, body.to_vec()));
            assert_eq!(rejected, Some(ProblemCode::MalformedJson), "{body:?}");
        }
    }

    #[test]
    fn large_json_extends_only_the_size_limit() {
        let large = |content_type, body: String| {
            let incoming = incoming(content_type, body);
            incoming.large_json(MAX_BODY_BYTES + 2).err().map(|problem| problem.code())
        };
        let full = format!("{{{}}}", " ".repeat(MAX_BODY_BYTES));
        assert_eq!(code(&incoming(None, full.clone())), Some(ProblemCode::BodyTooLarge));
        assert_eq!(large(None, full.clone()), None);
        assert_eq!(large(None, format!("{full} ")), Some(ProblemCode::BodyTooLarge));
        for content_type in ["text/plain", MERGE_PATCH] {
            let rejected = large(Some(content_type), full.clone());
            assert_eq!(rejected, Some(ProblemCode::UnsupportedMediaType));
        }
    }

    #[test]
    fn merge_patches_accept_both_media_types() {
        let patch = |content_type, body: &str| {
            let incoming = incoming(content_type, body);
            incoming.merge_patch().err().map(|problem| problem.code())
        };
        for content_type in [
            None,
            Some(JSON),
            Some(MERGE_PATCH),
            Some("Application/Merge-Patch+JSON; charset=utf-8"),
        ] {
            assert_eq!(patch(content_type, "{}"), None, "{content_type:?}");
        }
        for content_type in ["application/json-patch+json", "text/plain"] {
            let rejected = patch(Some(content_type), "{}");
            assert_eq!(rejected, Some(ProblemCode::UnsupportedMediaType), "{content_type}");
        }
        assert_eq!(
            code(&incoming(Some(MERGE_PATCH), "{}")),
            Some(ProblemCode::UnsupportedMediaType)
        );
        let large = format!("{{{}}}", " ".repeat(MAX_BODY_BYTES));
        assert_eq!(patch(None, &large), Some(ProblemCode::BodyTooLarge));
    }

    #[test]
    fn reads_path_parameters_encoded_or_decoded() {
        use std::collections::HashMap;
        for (sent, read) in [("a-b", "a-b"), ("a%2Db", "a-b"), ("%C3%A9", "é"), ("é", "é")] {
            let request = http::Request::new(Body::Empty);
            let parameters = HashMap::from([("idOrSlug".to_owned(), vec![sent.to_owned()])]);
            let incoming =
                ApiRequest::new("an-operation", request.with_path_parameters(parameters));
            assert_eq!(incoming.path_parameter("idOrSlug").as_deref(), Some(read));
            assert_eq!(incoming.path_parameter("other"), None);
        }
    }

    #[test]
    fn traces_are_identified_by_their_root() {
        let root = Some("1-68a5e988-bd862e3fe1be46a994272793");
        assert_eq!(root_of_trace("Root=1-68a5e988-bd862e3fe1be46a994272793;Sampled=1"), root);
        assert_eq!(root_of_trace("Self=1-2; Root=1-68a5e988-bd862e3fe1be46a994272793"), root);
        assert_eq!(root_of_trace("Sampled=1"), None);
    }
}
