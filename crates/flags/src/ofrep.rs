//! The `OpenFeature` Remote Evaluation Protocol (OFREP 0.3.0), as its official providers need it.
//! Parses requests into contexts, and serializes evaluations as responses.

mod http;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use shared::entity_tag::EntityTag;
use shared::json::{Json, MAX_BODY_DEPTH, bytes_within_json};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::evaluation::context::Context;
use super::evaluation::outcome::{ErrorCode, Evaluation, EvaluationError, Metadata, Reason};
use super::evaluation::project_flags::Flags;
use crate::VariantKey;

pub use http::{OFREP, evaluated_key, evaluation_context, freshness, if_none_match};

/// Maximum size of a request body in bytes.
pub const MAX_BODY_BYTES: usize = 64_000;
/// Maximum size of a response in bytes: the limit of a Lambda response, less a reserve for its
/// envelope. A function returns the body as text within JSON.
pub(super) const MAX_RESPONSE_BYTES: usize = 6_000_000;

/// A response to an OFREP request. The body, if any, is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfrepResponse {
    /// The status code.
    pub status: u16,
    /// The body; `None` for 304.
    pub body: Option<String>,
    /// The entity tag of a bulk evaluation. It covers the body, not the flags' versions: providers
    /// keep a tag when the context changes, and then need a new body.
    pub etag: Option<EntityTag>,
}

/// The reason why a request cannot be evaluated or an evaluation failed, in OFREP's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationFailure {
    code: ErrorCode,
    details: String,
}

#[derive(Serialize)]
struct SuccessBody<'f> {
    key: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'f RawValue>,
    reason: Reason,
    variant: &'f str,
    metadata: Metadata<'f>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureBody<'f, D: fmt::Display> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'f str>,
    error_code: ErrorCode,
    #[serde(serialize_with = "displayed")]
    error_details: D,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ItemBody<'f> {
    Success(SuccessBody<'f>),
    EvaluationFailure(FailureBody<'f, EvaluationError<'f>>),
}

#[derive(Serialize)]
struct BulkBody<'f> {
    #[serde(serialize_with = "evaluated")]
    flags: Evaluated<'f>,
    metadata: FlagSetMetadata,
}

/// All flags of a project, evaluated one by one during serialization.
struct Evaluated<'f> {
    flags: &'f Flags,
    context: &'f Context<'f>,
    now: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlagSetMetadata {
    flag_set_id: ProjectId,
}

/// Parses a request body. A missing body, a missing context and a null context mean an empty
/// context. Ignores other fields.
pub fn read_context(body: &[u8]) -> Result<Context<'_>, EvaluationFailure> {
    if body.len() > MAX_BODY_BYTES {
        let details =
            format_args!("the body has {} bytes; at most {MAX_BODY_BYTES} are allowed", body.len());
        return Err(EvaluationFailure::new(ErrorCode::InvalidContext, details));
    }
    let malformed = |reason: &dyn fmt::Display| {
        EvaluationFailure::new(
            ErrorCode::ParseError,
            format_args!("the body cannot be parsed as JSON: {reason}"),
        )
    };
    let text = std::str::from_utf8(body).map_err(|error| malformed(&error))?;
    if text.trim_ascii().is_empty() {
        return Ok(Context::default());
    }
    let json = Json::parse(text, MAX_BODY_DEPTH).map_err(|error| malformed(&error))?;
    let Json::Object(members) = json else {
        let details = "the body must be a JSON object with a context";
        return Err(EvaluationFailure::new(ErrorCode::ParseError, details));
    };
    let mut contexts = members.into_iter().filter(|(name, _)| name == "context");
    let context = match (contexts.next(), contexts.next()) {
        (None | Some((_, Json::Null)), None) => return Ok(Context::default()),
        (Some((_, context)), None) => context,
        (_, Some(_)) => {
            return Err(EvaluationFailure::new(
                ErrorCode::InvalidContext,
                "the body has the field context twice; remove one",
            ));
        }
    };
    Context::read(context).map_err(|error| EvaluationFailure::new(ErrorCode::InvalidContext, error))
}

/// Evaluates one flag.
pub fn evaluate_one(
    flags: &Flags,
    key: &str,
    context: &Context<'_>,
    now: Timestamp,
) -> OfrepResponse {
    match flags.evaluate(key, context, now) {
        Ok(evaluation) => OfrepResponse::new(200, &success_body(key, &evaluation)),
        Err(error) => EvaluationFailure::new(error.code(), error).for_flag(key),
    }
}

/// Evaluates all flags of a project. A flag that cannot be evaluated is an item with its error.
/// Returns 304 if `if_none_match` (the values of that header) names the response.
pub fn evaluate_all<'v>(
    flags: &Flags,
    context: &Context<'_>,
    now: Timestamp,
    if_none_match: impl IntoIterator<Item = &'v [u8]>,
) -> OfrepResponse {
    let body = BulkBody {
        flags: Evaluated { flags, context, now },
        metadata: FlagSetMetadata { flag_set_id: flags.project_id() },
    };
    let Ok(body) = serde_json::to_string(&body) else { return OfrepResponse::unwritable() };
    let bytes = bytes_within_json(&body);
    if bytes > MAX_RESPONSE_BYTES {
        let details = format!(
            "the response has {bytes} bytes, but the limit is {MAX_RESPONSE_BYTES}; evaluate the \
             flags one by one"
        );
        return EvaluationFailure::new(ErrorCode::General, details).for_all_flags();
    }
    let etag = EntityTag::of(&body);
    if etag.is_named_by(if_none_match) {
        return OfrepResponse { status: 304, body: None, etag: Some(etag) };
    }
    OfrepResponse { status: 200, body: Some(body), etag: Some(etag) }
}

impl OfrepResponse {
    fn new(status: u16, body: &impl Serialize) -> Self {
        match serde_json::to_string(body) {
            Ok(body) => Self { status, body: Some(body), etag: None },
            Err(_) => Self::unwritable(),
        }
    }

    /// Returns the response if serialization fails, which no response can cause.
    fn unwritable() -> Self {
        let body = r#"{"errorCode":"GENERAL","errorDetails":"the response cannot be written"}"#;
        Self { status: 500, body: Some(body.to_owned()), etag: None }
    }
}

impl EvaluationFailure {
    /// Returns a failure with details for the client.
    pub fn new(code: ErrorCode, details: impl fmt::Display) -> Self {
        Self { code, details: details.to_string() }
    }

    /// Returns the failure's code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the response to the evaluation of one flag. `key` is the requested text.
    pub fn for_flag(&self, key: &str) -> OfrepResponse {
        self.response(Some(key))
    }

    /// Returns the response to the evaluation of all flags.
    pub fn for_all_flags(&self) -> OfrepResponse {
        self.response(None)
    }

    fn response(&self, key: Option<&str>) -> OfrepResponse {
        let status = match self.code {
            ErrorCode::FlagNotFound => 404,
            ErrorCode::General => 500,
            ErrorCode::TargetingKeyMissing | ErrorCode::InvalidContext | ErrorCode::ParseError => {
                400
            }
        };
        let body = FailureBody { key, error_code: self.code, error_details: &self.details };
        OfrepResponse::new(status, &body)
    }
}

fn item_body<'f>(
    key: &'f str,
    outcome: Result<Evaluation<'f>, EvaluationError<'f>>,
) -> ItemBody<'f> {
    match outcome {
        Ok(evaluation) => ItemBody::Success(success_body(key, &evaluation)),
        Err(error) => ItemBody::EvaluationFailure(FailureBody {
            key: Some(key),
            error_code: error.code(),
            error_details: error,
        }),
    }
}

fn success_body<'f>(key: &'f str, evaluation: &Evaluation<'f>) -> SuccessBody<'f> {
    SuccessBody {
        key,
        value: evaluation.value(),
        reason: evaluation.reason(),
        // Python's provider fails without a variant.
        variant: evaluation.variant().map_or("", VariantKey::as_str),
        metadata: *evaluation.metadata(),
    }
}

fn evaluated<S: Serializer>(all: &Evaluated<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let evaluations = all.flags.evaluate_all(all.context, all.now);
    serializer.collect_seq(evaluations.map(|(key, outcome)| item_body(key.as_str(), outcome)))
}

fn displayed<S: Serializer>(details: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(details)
}
