//! Requests and problems of source maps, and the protocol of Sentry's tools.

use std::convert::Infallible;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use futures_util::stream;
use multer::bytes::Bytes;
use multer::{Field, Multipart};
use percent_encoding::percent_decode_str;
use serde_json::json;
use shared::http::{ApiRequest, ApiResponse, Problem, ProblemCode, Protocol, StatusCode};
use shared::json::{FieldError, ViolationCode, Violations};

use crate::bundle::Checksum;
use crate::{CHUNK_BYTES, CHUNKS_PER_REQUEST, MapKey};

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
    let status = match problem.code() {
        ProblemCode::Throttled | ProblemCode::Conflict => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    };
    let mut response = ApiResponse::json(status, &json!({"detail": problem.detail()}));
    if status == StatusCode::UNAUTHORIZED {
        response = response.and_then(|it| it.with_text("www-authenticate", "Bearer"));
    }
    problem.with_retry_after(response.unwrap_or_else(|_| ApiResponse::empty(status)))
}

/// Reads the chunks of a `multipart/form-data` body, and checks each against its checksum.
pub async fn read_chunks(incoming: &ApiRequest) -> Result<Vec<(Checksum, Bytes)>, Problem> {
    let content_type = incoming.header_texts("content-type").into_iter().next().unwrap_or_default();
    let boundary = multer::parse_boundary(content_type).map_err(|_| {
        let detail =
            "The body is not `multipart/form-data` with a boundary. Send the chunks as its parts.";
        Problem::new(ProblemCode::UnsupportedMediaType, detail)
    })?;
    let body = incoming.body().chunks(CHUNK_BYTES).map(|part| Ok::<_, Infallible>(part.to_vec()));
    let mut parts = Multipart::new(stream::iter(body), boundary);
    let mut chunks = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|error| malformed(&error))? {
        // Before the next chunk is decompressed, which can multiply its size.
        if chunks.len() == CHUNKS_PER_REQUEST {
            return Err(bad(format!("The body has more than {CHUNKS_PER_REQUEST} chunks.")));
        }
        chunks.push(read_chunk(part).await?);
    }
    Ok(chunks)
}

async fn read_chunk(part: Field<'_>) -> Result<(Checksum, Bytes), Problem> {
    let checksum = part.file_name().and_then(Checksum::parse).ok_or_else(|| {
        bad("A part has no SHA-1 as its filename. Name each chunk by its checksum.".to_owned())
    })?;
    let name = part.name().map(str::to_owned);
    let sent = part.bytes().await.map_err(|error| malformed(&error))?;
    let bytes = match name.as_deref() {
        Some("file") => sent,
        Some("file_gzip") => decompress(&sent).map_err(|error| {
            bad(format!("The chunk {checksum} cannot be decompressed: {error}. Send it again."))
        })?,
        _ => return Err(bad("A part is named neither `file` nor `file_gzip`.".to_owned())),
    };
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

/// Decompresses a chunk, up to one byte beyond the limit of chunks.
fn decompress(sent: &[u8]) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    GzDecoder::new(sent).take(CHUNK_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn malformed(error: &multer::Error) -> Problem {
    bad(format!("The multipart body cannot be read: {error}. Send it again."))
}

/// Reads the query parameters that select the maps to delete: `debugId` or `release`.
pub fn read_selection(
    incoming: &ApiRequest,
) -> Result<(Option<MapKey>, Option<String>), Violations> {
    let mut violations = Violations::default();
    let id = incoming.query_parameter("debugId", &mut violations, |text| {
        let fault = || FieldError::new(ViolationCode::InvalidFormat, "must be a UUID");
        MapKey::of_debug_id(text).ok_or_else(fault)
    });
    let release = incoming.query_parameter("release", &mut violations, |text| {
        let length = text.chars().count();
        let fault = || FieldError::new(ViolationCode::OutOfRange, "must have 1 to 200 characters");
        (1..=MAX_RELEASE_CHARS).contains(&length).then(|| text.to_owned()).ok_or_else(fault)
    });
    let selection = id.zip(release);
    if selection.as_ref().is_some_and(|(id, release)| id.is_some() == release.is_some()) {
        let message = "is needed, or else `release`, but not both";
        violations.note_query("debugId", FieldError::new(ViolationCode::Required, message));
    }
    violations.into_result(selection)
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
