//! Segments (`docs/semantics/feature-flags.md`, "Segments"): named sets of conditions that the
//! rules of several flags can use.

use serde::Serialize;
use uuid::Uuid;

use shared::audit::AuditTarget;
use shared::json::{Fields, Json, JsonPath, ViolationCode, Violations, array, text};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::SegmentKey;
use super::condition::{Condition, count_patterns, items, read_condition};
use super::draft::parse_name;

/// Maximum number of segments per project.
pub const MAX_SEGMENTS: u32 = 100;
/// Maximum size of a segment in its JSON form, in bytes. A project's segments are read with its
/// flags.
pub const MAX_SEGMENT_BYTES: usize = 50_000;
const MAX_CONDITIONS: usize = 50;
/// Maximum number of regular expressions per segment. Evaluating a flag can compile those of
/// all its segments.
const MAX_PATTERNS: usize = 25;

/// A segment, with the fields of `openapi.yaml` in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// The segment's ID.
    pub id: Uuid,
    /// The project that owns the segment.
    pub project_id: ProjectId,
    /// The segment's key.
    pub key: SegmentKey,
    /// A display name.
    pub name: String,
    /// Conditions that must all hold for a context in the segment. None is about segments.
    pub conditions: Vec<Condition>,
    /// Number of the current version, starting at 1.
    pub version: u64,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// `true` if a deleted segment had this key before.
    #[serde(skip)]
    pub is_successor: bool,
}

impl Segment {
    /// Returns the segment as the target of an audit entry.
    pub fn audit_target(&self) -> AuditTarget {
        AuditTarget::new("segment", self.id, self.key.to_string())
    }
}

/// The body of create-segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentDraft {
    key: SegmentKey,
    name: String,
    conditions: Vec<Condition>,
}

/// The body of update-segment, a JSON Merge Patch (RFC 7396). `None` keeps the current value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPatch {
    name: Option<String>,
    conditions: Option<Vec<Condition>>,
}

impl SegmentDraft {
    /// Reads the body of create-segment.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let key = fields.required("key", violations, text(SegmentKey::parse));
            let name = fields.required("name", violations, text(parse_name));
            let conditions = fields.required("conditions", violations, read_conditions);
            Some(Self { key: key?, name: name?, conditions: conditions? })
        })
    }

    /// Returns the new segment, created at `now`. Rejects a segment that is too large.
    pub fn into_segment(
        self,
        project_id: ProjectId,
        now: Timestamp,
        id: Uuid,
    ) -> Result<Segment, Violations> {
        let Self { key, name, conditions } = self;
        let (created_at, updated_at) = (now, now);
        checked(Segment {
            id,
            project_id,
            key,
            name,
            conditions,
            version: 1,
            created_at,
            updated_at,
            is_successor: false,
        })
    }
}

impl SegmentPatch {
    /// Reads the body of update-segment. Both fields reject `null`, since neither has a default.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let name = match fields.get("name") {
                None => Some(None),
                Some(_) => fields.required("name", violations, text(parse_name)).map(Some),
            };
            let conditions = match fields.get("conditions") {
                None => Some(None),
                Some(_) => fields.required("conditions", violations, read_conditions).map(Some),
            };
            Some(Self { name: name?, conditions: conditions? })
        })
    }

    /// Returns the segment with the patch applied at `now`. If anything differs, the version is
    /// incremented. Rejects a segment that is too large.
    pub fn apply(&self, segment: &Segment, now: Timestamp) -> Result<Segment, Violations> {
        let mut patched = segment.clone();
        patched.name.clone_from(self.name.as_ref().unwrap_or(&segment.name));
        patched.conditions.clone_from(self.conditions.as_ref().unwrap_or(&segment.conditions));
        if patched != *segment {
            patched.version = segment.version.saturating_add(1);
            patched.updated_at = now;
        }
        checked(patched)
    }
}

fn read_conditions(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<Condition>> {
    let conditions = items(Some(json));
    let too_many_patterns = count_patterns(conditions.iter()) > MAX_PATTERNS;
    if too_many_patterns {
        let message = format_args!("a segment can have at most {MAX_PATTERNS} regular expressions");
        violations.note(path, ViolationCode::TooManyItems, message);
    }
    if let Json::Array(conditions) = json
        && conditions.is_empty()
    {
        let message = "at least one condition is required";
        violations.note(path, ViolationCode::TooFewItems, message);
    }
    let read = |json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        let condition = read_condition(json, path, too_many_patterns, violations)?;
        if condition.operator.is_about_segments() {
            let message = "a segment's conditions cannot refer to segments";
            violations.note(&path.member("operator"), ViolationCode::InvalidValue, message);
            return None;
        }
        Some(condition)
    };
    array(MAX_CONDITIONS, read)(json, path, violations)
}

fn checked(segment: Segment) -> Result<Segment, Violations> {
    let mut violations = Violations::default();
    let bytes = serde_json::to_vec(&segment).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_SEGMENT_BYTES {
        let message = format_args!(
            "the segment has {bytes} bytes as JSON; at most {MAX_SEGMENT_BYTES} are allowed"
        );
        violations.note(&JsonPath::Root, ViolationCode::TooLong, message);
    }
    violations.into_result(Some(segment))
}

#[cfg(test)]
mod tests;
