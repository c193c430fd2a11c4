//! Path parameters and problems of feature flags.

use shared::http::{ApiRequest, Problem, ProblemCode, VersionTag, named_of};

use super::{FeatureFlag, FlagKey, ProjectLimit, Segment, SegmentKey};

/// Name of the path parameter with a flag's key.
pub(super) const FLAG_KEY: &str = "key";
/// Name of the path parameter with a segment's key.
const SEGMENT_KEY: &str = "key";

impl FeatureFlag {
    /// Returns the entity tag of the current version.
    pub fn tag(&self) -> VersionTag {
        VersionTag::new(self.version, self.id, self.is_successor)
    }
}

impl Segment {
    /// Returns the entity tag of the current version.
    pub fn tag(&self) -> VersionTag {
        VersionTag::new(self.version, self.id, self.is_successor)
    }
}

/// Returns the flag key in the path. A malformed key names no flag, so the response is 404.
pub fn flag_key(incoming: &ApiRequest) -> Result<FlagKey, Problem> {
    let key = incoming.path_parameter(FLAG_KEY);
    key.and_then(|key| FlagKey::parse(&key).ok()).ok_or_else(flag_not_found)
}

/// Returns the segment key in the path. A malformed key names no segment, so the response is 404.
pub fn segment_key(incoming: &ApiRequest) -> Result<SegmentKey, Problem> {
    let key = incoming.path_parameter(SEGMENT_KEY);
    key.and_then(|key| SegmentKey::parse(&key).ok()).ok_or_else(segment_not_found)
}

/// 404: the project has no such feature flag.
pub fn flag_not_found() -> Problem {
    Problem::new(ProblemCode::FlagNotFound, "The project has no flag with this key. Check the key.")
}

/// 404: unknown path below the path for flag evaluations.
pub fn unknown_evaluation() -> Problem {
    let detail = "The path does not exist. Evaluate all flags at `evaluate/flags`, or one flag at \
                  `evaluate/flags/{key}`.";
    Problem::new(ProblemCode::FlagNotFound, detail)
}

/// 409: an archived flag cannot be changed.
pub fn flag_archived() -> Problem {
    let detail = "The flag is archived and can only be unarchived or deleted. Send `\"archived\": \
                  false`, alone or with other changes.";
    Problem::new(ProblemCode::FlagArchived, detail)
}

/// 409: only an archived flag can be deleted.
pub fn flag_not_archived() -> Problem {
    let detail = "The flag is not archived. Archive it before you delete it.";
    Problem::new(ProblemCode::FlagNotArchived, detail)
}

/// 409: other flags depend on the flag to be archived, or on a removed variant.
pub fn flag_in_use(dependents: &[FlagKey]) -> Problem {
    let named = named_of(dependents);
    let detail = format!(
        "Other flags require this flag, or a variant that you remove: {named}. Change their \
         prerequisites first."
    );
    Problem::new(ProblemCode::FlagInUse, detail)
}

/// 409: the project would exceed a limit.
pub fn project_limit_reached(limit: ProjectLimit) -> Problem {
    let (code, remedy) = match limit {
        ProjectLimit::LiveFlags => (ProblemCode::FlagLimitReached, "Archive a flag first."),
        ProjectLimit::Segments => {
            (ProblemCode::SegmentLimitReached, "Delete an unused segment first.")
        }
        ProjectLimit::Bytes => (
            ProblemCode::FlagBytesLimitReached,
            "Delete archived flags, or replace repeated values with a segment.",
        ),
    };
    Problem::new(code, format!("The project {limit}. {remedy}"))
}

/// 404: the project has no such segment.
pub fn segment_not_found() -> Problem {
    Problem::new(
        ProblemCode::SegmentNotFound,
        "The project has no segment with this key. Check the key.",
    )
}

/// 409: a segment cannot be deleted while flags use it. `among` names some of them.
pub fn segment_in_use(count: u64, among: &[FlagKey]) -> Problem {
    let flags = if count == 1 { "1 flag uses" } else { &format!("{count} flags use") };
    let named: Vec<&str> = among.iter().map(FlagKey::as_str).collect();
    let named = if named.is_empty() { "" } else { &format!(": {}", named.join(", ")) };
    let detail = format!(
        "{flags} this segment, archived flags included{named}. Change or delete them first."
    );
    Problem::new(ProblemCode::SegmentInUse, detail)
}
