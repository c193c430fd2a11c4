//! Segments (`docs/semantics/feature-flags.md`, "Segments"): conditions with a name, which the rules of
//! several flags ask for.

use serde::Serialize;
use uuid::Uuid;

use shared::json::{Fields, Json, JsonPath, ViolationCode, Violations, array, text};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::SegmentKey;
use super::condition::{Condition, count_patterns, items, read_condition};
use super::draft::parse_name;

/// The most segments of a project.
pub const MAX_SEGMENTS: u32 = 100;
/// The most bytes of a segment in its JSON form: those of a project are read with its flags.
pub const MAX_SEGMENT_BYTES: usize = 50_000;
const MAX_CONDITIONS: usize = 50;
/// The most regular expressions of a segment. Whoever evaluates a flag compiles those of all segments
/// that the flag uses.
const MAX_PATTERNS: usize = 25;

/// A segment, with the members of `openapi.yaml` in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// Its identifier.
    pub id: Uuid,
    /// The project that owns it.
    pub project_id: ProjectId,
    /// Its key.
    pub key: SegmentKey,
    /// Its name for people.
    pub name: String,
    /// What must hold of whoever is in it, all of it; none of them about segments.
    pub conditions: Vec<Condition>,
    /// Counts its changes, from 1.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether its key was another segment's, which was deleted.
    #[serde(skip)]
    pub is_successor: bool,
}

/// The body of create-segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentDraft {
    key: SegmentKey,
    name: String,
    conditions: Vec<Condition>,
}

/// The body of update-segment, a JSON Merge Patch (RFC 7396); `None` leaves as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPatch {
    name: Option<String>,
    conditions: Option<Vec<Condition>>,
}

impl SegmentDraft {
    /// Reads the body of create-segment.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let draft = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let key = fields.required("key", violations, text(SegmentKey::parse));
            let name = fields.required("name", violations, text(parse_name));
            let conditions = fields.required("conditions", violations, read_conditions);
            Some(Self { key: key?, name: name?, conditions: conditions? })
        });
        violations.into_result(draft)
    }

    /// The segment, as it is created at `now`. Refuses one that is too large.
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
    /// Reads the body of update-segment. Neither member has a value that `null` could reset it to.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let patch = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let name = match fields.get("name") {
                None => Some(None),
                Some(_) => fields.required("name", violations, text(parse_name)).map(Some),
            };
            let conditions = match fields.get("conditions") {
                None => Some(None),
                Some(_) => fields.required("conditions", violations, read_conditions).map(Some),
            };
            Some(Self { name: name?, conditions: conditions? })
        });
        violations.into_result(patch)
    }

    /// The segment as the patch makes it at `now`. Its version is one more than before if anything is
    /// different, else the same. Refuses one that is too large.
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
        let message = format_args!("a segment has at most {MAX_PATTERNS} regular expressions");
        violations.note(path, ViolationCode::TooManyItems, message);
    }
    if let Json::Array(conditions) = json
        && conditions.is_empty()
    {
        let message = "a segment needs a condition";
        violations.note(path, ViolationCode::TooFewItems, message);
    }
    let read = |json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        let condition = read_condition(json, path, too_many_patterns, violations)?;
        if condition.operator.is_about_segments() {
            let message = "the conditions of a segment are about attributes, not about segments";
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
