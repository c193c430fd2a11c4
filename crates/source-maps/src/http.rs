//! Requests and problems of source maps, and the protocol of Sentry's tools.

use std::io::Read;

use flate2::read::GzDecoder;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use shared::http::{ApiRequest, ApiResponse, Problem, ProblemCode, Protocol, StatusCode};
use shared::json::{FieldError, ViolationCode, Violations};

use crate::bundle::Checksum;
use crate::{CHUNK_BYTES, MapKey};

/// Maximum characters of a release.
pub const MAX_RELEASE_CHARS: usize = 200;

/// The protocol of `sentry-cli` and Sentry's bundler plugins.
pub const SENTRY_TOOLS: Protocol = Protocol {
    name: "Sentry tools",
    problem_response: |problem, _| to_response(problem),
    request_headers: &[],
};

/// Returns a problem as the tools show it, with a `detail`.
///
/// The tools try 503 again, but neither 409 of concurrent changes nor 429.
fn to_response(problem: &Problem) -> ApiResponse {
    #[derive(Serialize)]
    struct Body<'p> {
        detail: &'p str,
    }
    let status = match problem.code() {
        ProblemCode::Throttled | ProblemCode::Conflict => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    };
    let response = ApiResponse::json(status, &Body { detail: problem.detail() });
    let response = match status {
        StatusCode::UNAUTHORIZED => {
            response.and_then(|response| response.with_text("www-authenticate", "Bearer"))
        }
        _ => response,
    };
    problem.with_retry_after(response.unwrap_or_else(|_| ApiResponse::empty(status)))
}

/// Reads the chunks of a `multipart/form-data` body, and checks each against its checksum.
pub fn read_chunks(incoming: &ApiRequest) -> Result<Vec<(Checksum, Vec<u8>)>, Problem> {
    let content_type = incoming.header_texts("content-type").into_iter().next().unwrap_or_default();
    let boundary = content_type.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
    let boundary = boundary.map(|it| it.trim_matches('"')).filter(|it| !it.is_empty());
    let boundary = boundary.ok_or_else(|| {
        let detail =
            "The body is not `multipart/form-data` with a boundary. Send the chunks as its parts.";
        Problem::new(ProblemCode::UnsupportedMediaType, detail)
    })?;
    let parts = multipart(incoming.body(), boundary)
        .ok_or_else(|| bad("The multipart body ends within a part. Send it again.".to_owned()))?;
    parts.into_iter().map(read_chunk).collect()
}

/// A part of a multipart body.
#[derive(Clone, Copy)]
struct Part<'b> {
    headers: &'b str,
    body: &'b [u8],
}

/// Returns the parts of a multipart body, or `None` if it is malformed.
fn multipart<'b>(body: &'b [u8], boundary: &str) -> Option<Vec<Part<'b>>> {
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(delimiter.as_bytes().get(2..)?)?;
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let end_of_headers = find(rest, b"\r\n\r\n")?;
        let headers = std::str::from_utf8(rest.get(..end_of_headers)?).ok()?;
        rest = rest.get(end_of_headers + 4..)?;
        let end = find(rest, delimiter.as_bytes())?;
        parts.push(Part { headers, body: rest.get(..end)? });
        rest = rest.get(end + delimiter.len()..)?;
    }
}

/// Returns the place of a text. Looks at its first byte only, mostly.
fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(text) {
            return Some(at);
        }
        from = at + 1;
    }
}

impl Part<'_> {
    /// Returns a parameter of the header `content-disposition`.
    fn parameter(&self, name: &str) -> Option<&str> {
        let lines = self.headers.split("\r\n");
        let disposition =
            lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
                name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
            })?;
        let mut parameters = disposition.split(';').filter_map(|it| it.trim().split_once('='));
        parameters.find_map(|(it, value)| (it == name).then(|| value.trim_matches('"')))
    }
}

fn read_chunk(part: Part<'_>) -> Result<(Checksum, Vec<u8>), Problem> {
    let name = part.parameter("filename").unwrap_or_default();
    let checksum = Checksum::parse(name).ok_or_else(|| {
        bad("A part has no SHA-1 as its filename. Name each chunk by its checksum.".to_owned())
    })?;
    let limit = CHUNK_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match part.parameter("name") {
        Some("file_gzip") => GzDecoder::new(part.body).take(limit).read_to_end(&mut bytes),
        Some("file") => part.body.take(limit).read_to_end(&mut bytes),
        _ => return Err(bad("A part is named neither `file` nor `file_gzip`.".to_owned())),
    };
    if let Err(error) = read {
        return Err(bad(format!(
            "The chunk {checksum} cannot be decompressed: {error}. Send it again."
        )));
    }
    if bytes.len() > CHUNK_BYTES {
        let detail = format!(
            "The chunk {checksum} has more than {CHUNK_BYTES} bytes. Send chunks of `chunkSize`."
        );
        return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
    }
    if Checksum::of(&bytes) != checksum {
        return Err(bad(format!("The chunk {checksum} has another checksum. Send it again.")));
    }
    Ok((checksum, bytes))
}

/// The maps to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The map of a debug ID.
    DebugId(MapKey),
    /// All maps of a release.
    Release(String),
}

/// Reads the query parameters `debugId` and `release`, of which exactly one is needed.
pub fn selection(incoming: &ApiRequest, violations: &mut Violations) -> Option<Selection> {
    let id = incoming.query_parameter("debugId", violations, |text| {
        let fault = || FieldError::new(ViolationCode::InvalidFormat, "must be a UUID");
        MapKey::of_debug_id(text).ok_or_else(fault)
    })?;
    let release = incoming.query_parameter("release", violations, |text| {
        let length = text.chars().count();
        let fault = || FieldError::new(ViolationCode::OutOfRange, "must have 1 to 200 characters");
        (1..=MAX_RELEASE_CHARS).contains(&length).then(|| text.to_owned()).ok_or_else(fault)
    })?;
    match (id, release) {
        (Some(id), None) => Some(Selection::DebugId(id)),
        (None, Some(release)) => Some(Selection::Release(release)),
        _ => {
            let message = "is needed, or else `release`, but not both";
            violations.note_query("debugId", FieldError::new(ViolationCode::Required, message));
            None
        }
    }
}

/// Returns the decoded segments of a path after `/api/0/`.
pub fn segments(path: &str) -> Vec<String> {
    let rest = path.trim_matches('/').strip_prefix("api/0").unwrap_or_default();
    let segments = rest.split('/').filter(|segment| !segment.is_empty());
    segments.map(|it| percent_decode_str(it).decode_utf8_lossy().into_owned()).collect()
}

/// 400: the request is invalid.
pub fn bad(detail: String) -> Problem {
    Problem::new(ProblemCode::MalformedJson, detail)
}
