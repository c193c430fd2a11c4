//! The body of update-feature-flag: a patch, or the version that the flag is to be again.

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, number};

use super::patch::FlagPatch;

/// The member that names a version to restore. It stands alone.
const RESTORE_VERSION: &str = "restoreVersion";
/// The largest integer that every client's number type holds exactly: 2^53 − 1.
const MAX_VERSION: u64 = 9_007_199_254_740_991;

/// What becomes of a flag.
#[derive(Debug, Clone, Copy)]
pub enum FlagUpdate<'j, 'a> {
    /// It is changed so.
    Patch(FlagPatch<'j, 'a>),
    /// It becomes again what it was in this version.
    Restore(u64),
}

impl<'j, 'a> FlagUpdate<'j, 'a> {
    /// Checks all that the body alone can tell.
    pub fn check(body: &'j Json<'a>) -> Result<Self, Violations> {
        if body.member(RESTORE_VERSION).is_none() {
            return FlagPatch::check(body).map(Self::Patch);
        }
        let mut violations = Violations::default();
        let version = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            fields.required(RESTORE_VERSION, violations, number(parse_version))
        });
        violations.into_result(version.map(Self::Restore))
    }
}

fn parse_version(written: &str) -> Result<u64, FieldError> {
    let version = written.parse().ok().filter(|version| (1..=MAX_VERSION).contains(version));
    version.ok_or_else(|| {
        let message = format_args!("must be a whole number from 1 to {MAX_VERSION}");
        FieldError::new(ViolationCode::OutOfRange, message)
    })
}

/// The violations of a body whose version is none that is remembered.
pub fn unknown_version() -> Violations {
    let mut violations = Violations::default();
    let place = JsonPath::Root.member(RESTORE_VERSION);
    let message = "the flag has no version of this number, or its change was over 400 days ago";
    violations.note(&place, ViolationCode::UnknownVersion, message);
    violations
}

/// The violations of a version that cannot be restored, since it names what is there no more: at the only
/// place that the body has, with where in the flag.
pub fn unrestorable(refused: &Violations) -> Violations {
    let mut violations = Violations::default();
    let place = JsonPath::Root.member(RESTORE_VERSION);
    for fault in refused.listed() {
        let message = format_args!("{} of that version: {}", fault.pointer, fault.message);
        violations.note(&place, fault.code, message);
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::json::MAX_BODY_DEPTH;

    fn checked(body: &str) -> Result<Option<u64>, Vec<(String, ViolationCode)>> {
        let body = Json::parse(body, MAX_BODY_DEPTH).unwrap();
        match FlagUpdate::check(&body) {
            Ok(FlagUpdate::Patch(_)) => Ok(None),
            Ok(FlagUpdate::Restore(version)) => Ok(Some(version)),
            Err(refused) => {
                Err(refused.listed().iter().map(|it| (it.pointer.clone(), it.code)).collect())
            }
        }
    }

    #[test]
    fn a_version_is_a_whole_number_from_1_and_stands_alone() {
        assert_eq!(checked("{}"), Ok(None));
        assert_eq!(checked(r#"{"enabled":true}"#), Ok(None));
        for (body, version) in [("1", 1), ("9007199254740991", MAX_VERSION)] {
            assert_eq!(checked(&format!(r#"{{"restoreVersion":{body}}}"#)), Ok(Some(version)));
        }
        for (body, pointer, code) in [
            (r#"{"restoreVersion":0}"#, "/restoreVersion", ViolationCode::OutOfRange),
            (r#"{"restoreVersion":-1}"#, "/restoreVersion", ViolationCode::OutOfRange),
            (r#"{"restoreVersion":1.5}"#, "/restoreVersion", ViolationCode::OutOfRange),
            (
                r#"{"restoreVersion":9007199254740992}"#,
                "/restoreVersion",
                ViolationCode::OutOfRange,
            ),
            (r#"{"restoreVersion":"1"}"#, "/restoreVersion", ViolationCode::InvalidType),
            (r#"{"restoreVersion":null}"#, "/restoreVersion", ViolationCode::Required),
            (r#"{"restoreVersion":1,"name":"n"}"#, "/name", ViolationCode::UnknownField),
            (r#"{"restoreVersion":1,"archived":false}"#, "/archived", ViolationCode::UnknownField),
        ] {
            assert_eq!(checked(body), Err(vec![(pointer.to_owned(), code)]), "{body}");
        }
    }
}
