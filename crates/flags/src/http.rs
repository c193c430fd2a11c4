//! Path parameters and problems of feature flags.

use shared::http::{ApiRequest, Problem, ProblemCode, VersionTag, named_of};

use super::{FeatureFlag, FlagKey, ProjectLimit, Segment, SegmentKey};

/// The path parameter that names a feature flag.
pub(super) const FLAG_KEY: &str = "key";
/// The path parameter that names a segment.
const SEGMENT_KEY: &str = "key";

impl FeatureFlag {
    /// The tag of its version.
    pub fn tag(&self) -> VersionTag {
        VersionTag::new(self.version, self.id, self.is_successor)
    }
}

impl Segment {
    /// The tag of its version.
    pub fn tag(&self) -> VersionTag {
        VersionTag::new(self.version, self.id, self.is_successor)
    }
}

/// The feature flag in the path. A malformed key names no flag, so it is a 404 as well.
pub fn flag_key(incoming: &ApiRequest) -> Result<FlagKey, Problem> {
    let key = incoming.path_parameter(FLAG_KEY);
    key.and_then(|key| FlagKey::parse(&key).ok()).ok_or_else(flag_not_found)
}

/// The segment in the path. A malformed key names no segment, so it is a 404 as well.
pub fn segment_key(incoming: &ApiRequest) -> Result<SegmentKey, Problem> {
    let key = incoming.path_parameter(SEGMENT_KEY);
    key.and_then(|key| SegmentKey::parse(&key).ok()).ok_or_else(segment_not_found)
}

/// 404: the project has no such feature flag.
pub fn flag_not_found() -> Problem {
    Problem::new(ProblemCode::FlagNotFound, "The project has no feature flag of this key.")
}

/// 404: below the path under which flags are evaluated, something else was asked for.
pub fn unknown_evaluation() -> Problem {
    let detail = "Evaluate all flags at flags, one at flags/ and its key.";
    Problem::new(ProblemCode::FlagNotFound, detail)
}

/// 409: an archived flag cannot be changed.
pub fn flag_archived() -> Problem {
    let detail = "The flag is archived, and can only be brought back or deleted. To change it, \
                  send \"archived\": false, alone or with the changes.";
    Problem::new(ProblemCode::FlagArchived, detail)
}

/// 409: only an archived flag can be deleted.
pub fn flag_not_archived() -> Problem {
    let detail = "The flag is not archived. Archive it first, then delete it.";
    Problem::new(ProblemCode::FlagNotArchived, detail)
}

/// 409: a flag cannot be archived, or lose variants, while others depend on that.
pub fn flag_in_use(dependents: &[FlagKey]) -> Problem {
    let named = named_of(dependents);
    let detail = format!(
        "Other flags have this one, or a variant that is removed, as a prerequisite: {named}. \
         Change them first."
    );
    Problem::new(ProblemCode::FlagInUse, detail)
}

/// 409: the project would exceed a limit.
pub fn project_limit_reached(limit: ProjectLimit) -> Problem {
    let (code, remedy) = match limit {
        ProjectLimit::LiveFlags => (ProblemCode::FlagLimitReached, "Archive one first."),
        ProjectLimit::Segments => {
            (ProblemCode::SegmentLimitReached, "Delete one that no flag uses first.")
        }
        ProjectLimit::Bytes => (
            ProblemCode::FlagBytesLimitReached,
            "Delete archived flags first, or name a segment where flags list the same values.",
        ),
    };
    Problem::new(code, format!("The project {limit}. {remedy}"))
}

/// 404: the project has no such segment.
pub fn segment_not_found() -> Problem {
    Problem::new(ProblemCode::SegmentNotFound, "The project has no segment of this key.")
}

/// 409: a segment cannot be deleted while flags use it, of which some are known.
pub fn segment_in_use(count: u64, among: &[FlagKey]) -> Problem {
    let flags = if count == 1 { "1 flag uses" } else { &format!("{count} flags use") };
    let named: Vec<&str> = among.iter().map(FlagKey::as_str).collect();
    let named = if named.is_empty() { "" } else { &format!(": {}", named.join(", ")) };
    let detail =
        format!("{flags} the segment, archived ones included{named}. Change or delete them first.");
    Problem::new(ProblemCode::SegmentInUse, detail)
}
