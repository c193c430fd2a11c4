//! The body of update-feature-flag: a patch, or the version to restore.

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, number};

use super::patch::FlagPatch;

/// The field that names a version to restore. It excludes all other fields.
const RESTORE_VERSION: &str = "restoreVersion";
/// The largest integer that every client's number type holds exactly: 2^53 − 1.
const MAX_VERSION: u64 = 9_007_199_254_740_991;

/// An update of a flag.
#[derive(Debug, Clone, Copy)]
pub enum FlagUpdate<'j, 'a> {
    /// A change of some fields.
    Patch(FlagPatch<'j, 'a>),
    /// A return to an earlier version.
    Restore(u64),
}

impl<'j, 'a> FlagUpdate<'j, 'a> {
    /// Validates the body without knowing the flag.
    pub fn check(body: &'j Json<'a>) -> Result<Self, Violations> {
        if body.member(RESTORE_VERSION).is_none() {
            return FlagPatch::check(body).map(Self::Patch);
        }
        Fields::of_body(body, |fields, violations| {
            fields.required(RESTORE_VERSION, violations, number(parse_version))
        })
        .map(Self::Restore)
    }
}

fn parse_version(written: &str) -> Result<u64, FieldError> {
    let version = written.parse().ok().filter(|version| (1..=MAX_VERSION).contains(version));
    version.ok_or_else(|| {
        let message = format_args!("must be a whole number from 1 to {MAX_VERSION}");
        FieldError::new(ViolationCode::OutOfRange, message)
    })
}

/// Returns the violation for an unknown or expired version.
pub fn unknown_version() -> Violations {
    let mut violations = Violations::default();
    let place = JsonPath::Root.member(RESTORE_VERSION);
    let message = "the flag has no such version, or the change is over 400 days old";
    violations.note(&place, ViolationCode::UnknownVersion, message);
    violations
}

/// Returns the violations for a version that cannot be restored because it refers to missing items.
/// The body has only one field, so each message names the place in the flag.
pub fn unrestorable(rejected: &Violations) -> Violations {
    let mut violations = Violations::default();
    let place = JsonPath::Root.member(RESTORE_VERSION);
    for fault in rejected.listed() {
        let message = format_args!("{} in that version: {}", fault.pointer, fault.message);
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
            Err(rejected) => {
                Err(rejected.listed().iter().map(|it| (it.pointer.clone(), it.code)).collect())
            }
        }
    }

    #[test]
    fn versions_are_positive_integers_without_other_fields() {
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
