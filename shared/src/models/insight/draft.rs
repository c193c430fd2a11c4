//! The bodies of the operations on insights, read into types.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::json::{
    Fault, Fields, Json, Place, ViolationCode, Violations, array, boolean, note_duplicates, text,
};
use crate::models::text::{parse_label, parse_text, parse_time};

use super::{InsightId, InsightStatus, PainPoint, PainPointId};

/// The most bytes of a body with pain points: 1 MiB.
pub const MAX_PAIN_POINTS_BYTES: usize = 1024 * 1024;
/// The most pain points of one request.
const MAX_PAIN_POINTS_AT_ONCE: usize = 500;
const MAX_TITLE_CHARACTERS: usize = 200;
const MAX_DESCRIPTION_CHARACTERS: usize = 2_000;
const MAX_EXCERPT_CHARACTERS: usize = 2_000;
const MAX_SUBJECT_CHARACTERS: usize = 200;

/// A new insight as a client describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightDraft {
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Its pain points, each once.
    pub pain_points: Vec<PainPoint>,
}

impl InsightDraft {
    /// Reads the body of create-insight.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let known = ["title", "description", "painPoints"];
        let draft = Fields::open(body, &Place::Root, &known, &mut violations).and_then(|fields| {
            let title = fields.required("title", &mut violations, text(parse_title));
            let description =
                fields.optional("description", &mut violations, text(parse_description));
            let pain_points = fields.required("painPoints", &mut violations, read_pain_points);
            Some(Self {
                title: title?,
                description: description.or_default()?,
                pain_points: pain_points?,
            })
        });
        violations.into_result(draft)
    }
}

/// Reads the body of add-pain-points: the pain points, each once.
pub fn read_upload(body: &Json<'_>) -> Result<Vec<PainPoint>, Violations> {
    let mut violations = Violations::default();
    let pain_points = Fields::open(body, &Place::Root, &["painPoints"], &mut violations)
        .and_then(|fields| fields.required("painPoints", &mut violations, read_pain_points));
    violations.into_result(pain_points)
}

/// What a split moves, and how the new insight is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitRequest {
    /// The pain points to move, in the order of the request.
    pub pain_point_ids: Vec<PainPointId>,
    /// The new insight's title; that of the latest moved pain point if there is none.
    pub title: Option<String>,
    /// The new insight's description.
    pub description: String,
}

impl SplitRequest {
    /// Reads the body of split-insight.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let known = ["painPointIds", "title", "description"];
        let request =
            Fields::open(body, &Place::Root, &known, &mut violations).and_then(|fields| {
                let ids = fields.required("painPointIds", &mut violations, read_pain_point_ids);
                let title = fields.optional("title", &mut violations, text(parse_title));
                let description =
                    fields.optional("description", &mut violations, text(parse_description));
                Some(Self {
                    pain_point_ids: ids?,
                    title: title.map(Some).or_default()?,
                    description: description.or_default()?,
                })
            });
        violations.into_result(request)
    }

    /// What makes two splits of `source` the same: the set of pain points, title and description.
    /// 128 bits of a SHA-256.
    pub fn fingerprint(&self, source: InsightId) -> u128 {
        let ids: BTreeSet<_> = self.pain_point_ids.iter().collect();
        let mut hash = Sha256::new();
        hash.update(source.as_bytes());
        // No text can hold the NUL that ends the title, and ids have one length, so no two splits
        // share a text. A title can be anything but empty.
        hash.update(self.title.as_deref().unwrap_or_default());
        hash.update("\0");
        hash.update(&self.description);
        hash.update("\0");
        for id in ids {
            hash.update(id.as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first))
    }
}

/// Reads the body of merge-insights: the insight that receives the pain points.
pub fn read_merge(body: &Json<'_>) -> Result<InsightId, Violations> {
    let mut violations = Violations::default();
    let into = Fields::open(body, &Place::Root, &["into"], &mut violations)
        .and_then(|fields| fields.required("into", &mut violations, text(InsightId::parse)));
    violations.into_result(into)
}

/// What a client changes about an insight (JSON Merge Patch, RFC 7396); `None` leaves as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsightPatch {
    /// The new title.
    pub title: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// The new status, never merged.
    pub status: Option<InsightStatus>,
    /// Whether somebody has looked at it.
    pub viewed: Option<bool>,
}

impl InsightPatch {
    /// Reads the body of update-insight. `null` resets a field to what it is on creation.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let known = ["title", "description", "status", "viewed"];
        let patch = Fields::open(body, &Place::Root, &known, &mut violations).and_then(|fields| {
            let title = match fields.get("title") {
                None => Some(None),
                Some(_) => fields.required("title", &mut violations, text(parse_title)).map(Some),
            };
            let description =
                fields.optional("description", &mut violations, text(parse_description));
            let status = fields.optional("status", &mut violations, text(parse_status));
            let viewed = fields.optional("viewed", &mut violations, boolean);
            Some(Self {
                title: title?,
                description: description.or_reset_to(String::new())?,
                status: status.or_reset_to(InsightStatus::Open)?,
                viewed: viewed.or_reset_to(false)?,
            })
        });
        violations.into_result(patch)
    }
}

fn parse_title(title: &str) -> Result<String, Fault> {
    parse_label(title, 1, MAX_TITLE_CHARACTERS)
}

fn parse_description(description: &str) -> Result<String, Fault> {
    parse_text(description, MAX_DESCRIPTION_CHARACTERS)
}

fn parse_status(status: &str) -> Result<InsightStatus, Fault> {
    match status {
        "open" => Ok(InsightStatus::Open),
        "resolved" => Ok(InsightStatus::Resolved),
        "ignored" => Ok(InsightStatus::Ignored),
        "merged" => {
            let message = "only merge-insights makes an insight merged";
            Err(Fault::new(ViolationCode::InvalidValue, message))
        }
        _ => {
            let message = "must be one of open, resolved, ignored";
            Err(Fault::new(ViolationCode::InvalidValue, message))
        }
    }
}

fn note_if_empty(json: &Json<'_>, place: &Place<'_>, violations: &mut Violations) {
    if matches!(json, Json::Array(items) if items.is_empty()) {
        let message = "at least one pain point is needed";
        violations.note(place, ViolationCode::TooFewItems, message);
    }
}

fn read_pain_point_ids(
    json: &Json<'_>,
    place: &Place<'_>,
    violations: &mut Violations,
) -> Option<Vec<PainPointId>> {
    note_if_empty(json, place, violations);
    let read_id = |item: &Json<'_>, place: &Place<'_>, violations: &mut Violations| {
        text(PainPointId::parse)(item, place, violations)
    };
    let ids = array(MAX_PAIN_POINTS_AT_ONCE, read_id)(json, place, violations);
    let id_of = |item: &Json<'_>| match item {
        // What is no UUID is a fault of its own.
        Json::String(text) => PainPointId::parse(text).ok().map(|id| id.to_string()),
        _ => None,
    };
    note_duplicates(json, place, MAX_PAIN_POINTS_AT_ONCE, None, id_of, violations);
    ids
}

/// Reads pain points. One that stands there twice, in all its members, counts once.
fn read_pain_points(
    json: &Json<'_>,
    place: &Place<'_>,
    violations: &mut Violations,
) -> Option<Vec<PainPoint>> {
    note_if_empty(json, place, violations);
    let read = array(MAX_PAIN_POINTS_AT_ONCE, read_pain_point)(json, place, violations)?;
    let mut first_of = BTreeMap::new();
    let mut distinct: Vec<PainPoint> = Vec::with_capacity(read.len());
    for (index, pain_point) in read.into_iter().enumerate() {
        let first = *first_of.entry(pain_point.id).or_insert(distinct.len());
        match distinct.get(first) {
            None => distinct.push(pain_point),
            Some(same) if *same == pain_point => {}
            Some(_) => {
                let message = "another pain point of the request has this id";
                let place = place.item(index);
                violations.note(&place.member("id"), ViolationCode::Duplicate, message);
            }
        }
    }
    Some(distinct)
}

fn read_pain_point(
    json: &Json<'_>,
    place: &Place<'_>,
    violations: &mut Violations,
) -> Option<PainPoint> {
    let known = ["id", "sessionId", "userId", "occurredAt", "title", "excerpt"];
    let fields = Fields::open(json, place, &known, violations)?;
    let id = fields.required("id", violations, text(PainPointId::parse));
    let session_id = fields.required("sessionId", violations, text(parse_subject));
    let user_id = fields.optional("userId", violations, text(parse_subject));
    let occurred_at = fields.required("occurredAt", violations, text(parse_time));
    let title = fields.required("title", violations, text(parse_title));
    let excerpt = fields.optional(
        "excerpt",
        violations,
        text(|text| parse_text(text, MAX_EXCERPT_CHARACTERS)),
    );
    Some(PainPoint {
        id: id?,
        session_id: session_id?,
        user_id: user_id.map(Some).or_default()?,
        occurred_at: occurred_at?,
        title: title?,
        excerpt: excerpt.or_default()?,
    })
}

/// Reads what a client calls a session or a user. It is compared byte for byte, so nothing of it is
/// trimmed.
fn parse_subject(subject: &str) -> Result<String, Fault> {
    if subject.is_empty() {
        return Err(Fault::new(ViolationCode::TooShort, "must have at least 1 character"));
    }
    parse_text(subject, MAX_SUBJECT_CHARACTERS)
}
