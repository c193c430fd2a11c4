//! Parses the bodies of operations on insights.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use shared::json::{
    FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, boolean, note_duplicates,
    text,
};
use shared::text::{parse_label, parse_text, parse_time};

use super::replay_insight::read_id;
use super::{InsightId, InsightStatus, PainPoint, PainPointId};

/// Maximum size of a body with pain points: 1 MiB, in bytes.
pub const MAX_PAIN_POINTS_BYTES: usize = 1024 * 1024;
/// Maximum number of pain points per request.
const MAX_PAIN_POINTS_PER_REQUEST: usize = 500;
const MAX_TITLE_CHARACTERS: usize = 200;
const MAX_DESCRIPTION_CHARACTERS: usize = 2_000;
const MAX_EXCERPT_CHARACTERS: usize = 2_000;
const MAX_SUBJECT_CHARACTERS: usize = 200;

/// A new insight as a client describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightDraft {
    /// The title.
    pub title: String,
    /// The description.
    pub description: String,
    /// The pain points, without duplicates.
    pub pain_points: Vec<PainPoint>,
}

impl InsightDraft {
    /// Parses the body of create-insight.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let draft = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let title = fields.required("title", violations, text(parse_title));
            let description = fields.optional("description", violations, text(parse_description));
            let pain_points = fields.required("painPoints", violations, read_pain_points);
            Some(Self {
                title: title?,
                description: description.or_default()?,
                pain_points: pain_points?,
            })
        });
        violations.into_result(draft)
    }
}

/// Parses the body of add-pain-points. Returns the pain points without duplicates.
pub fn read_upload(body: &Json<'_>) -> Result<Vec<PainPoint>, Violations> {
    let mut violations = Violations::default();
    let pain_points = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
        fields.required("painPoints", violations, read_pain_points)
    });
    violations.into_result(pain_points)
}

/// The pain points to split off, and the texts of the new insight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitRequest {
    /// The pain points to move, in the order of the request.
    pub pain_point_ids: Vec<PainPointId>,
    /// The new insight's title; `None` for the title of the latest moved pain point.
    pub title: Option<String>,
    /// The new insight's description.
    pub description: String,
}

impl SplitRequest {
    /// Parses the body of split-insight.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let request = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let ids = fields.required("painPointIds", violations, read_pain_point_ids);
            let title = fields.optional("title", violations, text(parse_title));
            let description = fields.optional("description", violations, text(parse_description));
            Some(Self {
                pain_point_ids: ids?,
                title: title.map(Some).or_default()?,
                description: description.or_default()?,
            })
        });
        violations.into_result(request)
    }

    /// Returns a fingerprint of a split of `source`: 128 bits of a SHA-256. Splits with equal sets
    /// of pain points, titles and descriptions have equal fingerprints.
    pub fn fingerprint(&self, source: InsightId) -> u128 {
        let ids: BTreeSet<_> = self.pain_point_ids.iter().collect();
        let mut hash = Sha256::new();
        hash.update(source.as_bytes());
        // Texts cannot contain NUL, and all IDs have the same length. So different splits hash
        // different texts. A title is never empty, so an empty one means none.
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

/// Parses the body of merge-insights: the insight that receives the pain points.
pub fn read_merge(body: &Json<'_>) -> Result<InsightId, Violations> {
    let mut violations = Violations::default();
    let into = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
        fields.required("into", violations, text(read_id(InsightId::parse)))
    });
    violations.into_result(into)
}

/// A client's changes to an insight (JSON Merge Patch, RFC 7396). `None` keeps the current value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InsightPatch {
    /// The new title.
    pub title: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// The new status, never merged.
    pub status: Option<InsightStatus>,
    /// The new viewed state.
    pub viewed: Option<bool>,
}

impl InsightPatch {
    /// Parses the body of update-insight. `null` resets a field to its initial value.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let patch = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
            let title = match fields.get("title") {
                None => Some(None),
                Some(_) => fields.required("title", violations, text(parse_title)).map(Some),
            };
            let description = fields.optional("description", violations, text(parse_description));
            let status = fields.optional("status", violations, text(parse_status));
            let viewed = fields.optional("viewed", violations, boolean);
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

fn parse_title(title: &str) -> Result<String, FieldError> {
    parse_label(title, 1, MAX_TITLE_CHARACTERS)
}

fn parse_description(description: &str) -> Result<String, FieldError> {
    parse_text(description, MAX_DESCRIPTION_CHARACTERS)
}

fn parse_status(status: &str) -> Result<InsightStatus, FieldError> {
    match status {
        "open" => Ok(InsightStatus::Open),
        "resolved" => Ok(InsightStatus::Resolved),
        "ignored" => Ok(InsightStatus::Ignored),
        "merged" => {
            let message = "only merge-insights sets this status";
            Err(FieldError::new(ViolationCode::InvalidValue, message))
        }
        _ => {
            let message = "must be one of open, resolved, ignored";
            Err(FieldError::new(ViolationCode::InvalidValue, message))
        }
    }
}

fn note_if_empty(json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations) {
    if matches!(json, Json::Array(items) if items.is_empty()) {
        let message = "at least one pain point is required";
        violations.note(path, ViolationCode::TooFewItems, message);
    }
}

fn read_pain_point_ids(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<PainPointId>> {
    note_if_empty(json, path, violations);
    let read_id = |item: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        text(read_id(PainPointId::parse))(item, path, violations)
    };
    let ids = array(MAX_PAIN_POINTS_PER_REQUEST, read_id)(json, path, violations);
    let id_of = |item: &Json<'_>| match item {
        // An invalid UUID is a separate violation.
        Json::String(text) => PainPointId::parse(text).map(|id| id.to_string()),
        _ => None,
    };
    note_duplicates(json, path, MAX_PAIN_POINTS_PER_REQUEST, None, id_of, violations);
    ids
}

/// Parses pain points. Identical pain points count once.
fn read_pain_points(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<PainPoint>> {
    note_if_empty(json, path, violations);
    // An invalid pain point must not hide the violations of others.
    let read_one = |item: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        Some(read_pain_point(item, path, violations))
    };
    let read = array(MAX_PAIN_POINTS_PER_REQUEST, read_one)(json, path, violations)?;
    let all_are_valid = read.iter().all(Option::is_some);
    let mut first_of = BTreeMap::new();
    let mut distinct: Vec<PainPoint> = Vec::with_capacity(read.len());
    for (index, pain_point) in read.into_iter().enumerate() {
        let Some(pain_point) = pain_point else { continue };
        let first = *first_of.entry(pain_point.id).or_insert(distinct.len());
        match distinct.get(first) {
            None => distinct.push(pain_point),
            Some(same) if *same == pain_point => {}
            Some(_) => {
                let message = "another pain point in the request has this ID but other content";
                let path = path.item(index);
                violations.note(&path.member("id"), ViolationCode::Duplicate, message);
            }
        }
    }
    all_are_valid.then_some(distinct)
}

fn read_pain_point(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<PainPoint> {
    Fields::read(json, path, violations, |fields, violations| {
        let id = fields.required("id", violations, text(read_id(PainPointId::parse)));
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
            evidence: None,
        })
    })
}

/// Parses a client's name for a session or user. Names are compared byte by byte, so they are not
/// trimmed.
fn parse_subject(subject: &str) -> Result<String, FieldError> {
    if subject.is_empty() {
        return Err(FieldError::new(ViolationCode::TooShort, "must have at least 1 character"));
    }
    parse_text(subject, MAX_SUBJECT_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use shared::json::MAX_BODY_DEPTH;
    use shared::timestamp::Timestamp;
    use uuid::Uuid;

    const A: &str = "0b24dd5a-0000-4000-8000-00000000000a";
    const B: &str = "0b24dd5a-0000-4000-8000-00000000000b";

    fn json(text: &str) -> Json<'_> {
        Json::parse(text, MAX_BODY_DEPTH).unwrap()
    }

    fn faults<T: std::fmt::Debug>(result: Result<T, Violations>) -> Vec<(String, ViolationCode)> {
        let violations = result.unwrap_err();
        violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
    }

    /// Returns a pain point with these fields instead of the usual ones.
    fn pain_point(id: &str, others: &str) -> String {
        let members = [
            ("sessionId", "\"s\""),
            ("occurredAt", "\"2026-11-21T04:16:00Z\""),
            ("title", "\"Rage click\""),
        ];
        let usual = members.iter().filter(|(name, _)| !others.contains(name));
        let usual = usual.map(|(name, value)| format!("\"{name}\": {value}"));
        let others = (!others.is_empty()).then(|| others.to_owned());
        let all: Vec<String> =
            [format!("\"id\": \"{id}\"")].into_iter().chain(usual).chain(others).collect();
        format!("{{{}}}", all.join(", "))
    }

    fn upload(pain_points: &[String]) -> Result<Vec<PainPoint>, Violations> {
        read_upload(&json(&format!("{{\"painPoints\": [{}]}}", pain_points.join(","))))
    }

    #[test]
    fn parses_pain_points_with_all_fields() {
        let full = r#"{"id": "0B24DD5A-0000-4000-8000-00000000000A", "sessionId": " s ",
            "userId": "ann", "occurredAt": "2026-11-21T05:16:00.0079+01:00",
            "title": " Rage click ", "excerpt": " Five clicks\n"}"#;
        let expected = PainPoint {
            id: PainPointId::parse(A).unwrap(),
            session_id: " s ".to_owned(),
            user_id: Some("ann".to_owned()),
            occurred_at: Timestamp::from_millis(1_795_234_560_007),
            title: "Rage click".to_owned(),
            excerpt: " Five clicks\n".to_owned(),
            evidence: None,
        };
        assert_eq!(upload(&[full.to_owned()]), Ok(vec![expected]));
        for others in ["", "\"userId\": null, \"excerpt\": null"] {
            let read = upload(&[pain_point(A, others)]).unwrap();
            assert_eq!((&read[0].user_id, read[0].excerpt.as_str()), (&None, ""));
        }
    }

    #[test]
    fn all_violations_of_a_pain_point_are_listed() {
        use ViolationCode as V;
        let long = |count| "\u{e9}".repeat(count);
        for (others, expected) in [
            ("\"sessionId\": \"\"".to_owned(), vec![("sessionId", V::TooShort)]),
            (format!("\"sessionId\": \"{}\"", long(201)), vec![("sessionId", V::TooLong)]),
            ("\"sessionId\": \"a\\u0000\"".to_owned(), vec![("sessionId", V::InvalidFormat)]),
            ("\"sessionId\": null".to_owned(), vec![("sessionId", V::Required)]),
            ("\"userId\": \"\"".to_owned(), vec![("userId", V::TooShort)]),
            ("\"userId\": 5".to_owned(), vec![("userId", V::InvalidType)]),
            (format!("\"userId\": \"{}\"", long(201)), vec![("userId", V::TooLong)]),
            ("\"occurredAt\": \"2026-11-21\"".to_owned(), vec![("occurredAt", V::InvalidFormat)]),
            ("\"occurredAt\": 1795234560".to_owned(), vec![("occurredAt", V::InvalidType)]),
            ("\"title\": \"  \"".to_owned(), vec![("title", V::TooShort)]),
            ("\"title\": \"a\\nb\"".to_owned(), vec![("title", V::InvalidFormat)]),
            (format!("\"title\": \"{}\"", long(201)), vec![("title", V::TooLong)]),
            (format!("\"excerpt\": \"{}\"", long(2_001)), vec![("excerpt", V::TooLong)]),
            ("\"kind\": \"rage\"".to_owned(), vec![("kind", V::UnknownField)]),
            (
                "\"title\": [], \"userId\": {}, \"excerpt\": 1".to_owned(),
                vec![
                    ("userId", V::InvalidType),
                    ("title", V::InvalidType),
                    ("excerpt", V::InvalidType),
                ],
            ),
        ] {
            let found = faults(upload(&[pain_point(A, ""), pain_point(B, &others)]));
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, code)| (format!("/painPoints/1/{name}"), code))
                .collect();
            assert_eq!(found, expected, "{others}");
        }
        let longest = format!(
            "\"sessionId\": \"{0}\", \"userId\": \"{0}\", \"title\": \"{0}\", \"excerpt\": \"{1}\"",
            long(200),
            long(2_000)
        );
        assert!(upload(&[pain_point(A, &longest)]).is_ok());
        let found = faults(upload(&["5".to_owned(), "{}".to_owned()]));
        let missing = ["id", "sessionId", "occurredAt", "title"];
        let mut expected = vec![("/painPoints/0".to_owned(), V::InvalidType)];
        expected.extend(missing.map(|name| (format!("/painPoints/1/{name}"), V::Required)));
        assert_eq!(found, expected);
    }

    #[test]
    fn accepts_1_to_500_pain_points() {
        let numbered = |count: u128| -> Vec<String> {
            let id = |n| Uuid::from_u128(0x4000_8000_0000_0000_0000 + n).to_string();
            (0..count).map(|n| pain_point(&id(n), "")).collect()
        };
        assert_eq!(upload(&numbered(500)).unwrap().len(), 500);
        let path = "/painPoints".to_owned();
        let found = faults(upload(&numbered(501)));
        assert_eq!(found, [(path.clone(), ViolationCode::TooManyItems)]);
        assert_eq!(faults(upload(&[])), [(path.clone(), ViolationCode::TooFewItems)]);
        for (body, pointer, code) in [
            ("{}", "/painPoints", ViolationCode::Required),
            (r#"{"painPoints": null}"#, "/painPoints", ViolationCode::Required),
            (r#"{"painPoints": {}}"#, "/painPoints", ViolationCode::InvalidType),
            ("[]", "", ViolationCode::InvalidType),
        ] {
            assert_eq!(faults(read_upload(&json(body))), [(pointer.to_owned(), code)], "{body}");
        }
    }

    #[test]
    fn duplicates_count_once_and_conflicting_ids_are_rejected() {
        let upper = A.to_uppercase();
        let same = [pain_point(A, ""), pain_point(B, ""), pain_point(&upper, "\"userId\": null")];
        let read: Vec<_> = upload(&same).unwrap().iter().map(|p| p.id.to_string()).collect();
        assert_eq!(read, [A, B]);
        let differing = [
            pain_point(A, ""),
            pain_point(B, ""),
            pain_point(&upper, "\"title\": \"x\""),
            pain_point(A, "\"userId\": \"u\""),
        ];
        let found = faults(upload(&differing));
        let expected = ["/painPoints/2/id", "/painPoints/3/id"];
        assert_eq!(found, expected.map(|at| (at.to_owned(), ViolationCode::Duplicate)));
    }

    #[test]
    fn parses_new_insights() {
        let body = format!(
            r#"{{"title": " Checkout ", "description": " d ", "painPoints": [{}]}}"#,
            pain_point(A, "")
        );
        let draft = InsightDraft::read(&json(&body)).unwrap();
        assert_eq!((draft.title.as_str(), draft.description.as_str()), ("Checkout", " d "));
        let body = r#"{"title": "", "description": 1, "status": "open", "painPoints": []}"#;
        let mut found = faults(InsightDraft::read(&json(body)));
        found.sort();
        let expected = [
            ("/description", ViolationCode::InvalidType),
            ("/painPoints", ViolationCode::TooFewItems),
            ("/status", ViolationCode::UnknownField),
            ("/title", ViolationCode::TooShort),
        ];
        assert_eq!(found, expected.map(|(at, code)| (at.to_owned(), code)));
    }

    fn split(body: &str) -> Result<SplitRequest, Violations> {
        SplitRequest::read(&json(body))
    }

    #[test]
    fn parses_splits() {
        let read = split(&format!(r#"{{"painPointIds": ["{B}", "{}"]}}"#, A.to_uppercase()));
        let expected = SplitRequest {
            pain_point_ids: [B, A].map(|id| PainPointId::parse(id).unwrap()).into(),
            title: None,
            description: String::new(),
        };
        assert_eq!(read.as_ref(), Ok(&expected));
        let body =
            format!(r#"{{"painPointIds": ["{B}", "{A}"], "title": null, "description": null}}"#);
        assert_eq!(split(&body), Ok(expected));
        for (body, pointer, code) in [
            (r#"{"painPointIds": []}"#.to_owned(), "/painPointIds", ViolationCode::TooFewItems),
            ("{}".to_owned(), "/painPointIds", ViolationCode::Required),
            (
                format!(r#"{{"painPointIds": ["{A}", "{B}", "{}"]}}"#, A.to_uppercase()),
                "/painPointIds/2",
                ViolationCode::Duplicate,
            ),
            (
                format!(r#"{{"painPointIds": ["{A}", "{{{B}}}"]}}"#),
                "/painPointIds/1",
                ViolationCode::InvalidFormat,
            ),
            (
                format!(r#"{{"painPointIds": ["{A}", 7]}}"#),
                "/painPointIds/1",
                ViolationCode::InvalidType,
            ),
            (
                format!(r#"{{"painPointIds": ["{A}"], "title": " "}}"#),
                "/title",
                ViolationCode::TooShort,
            ),
            (
                format!(r#"{{"painPointIds": ["{A}"], "description": "{}"}}"#, "x".repeat(2_001)),
                "/description",
                ViolationCode::TooLong,
            ),
        ] {
            assert_eq!(faults(split(&body)), [(pointer.to_owned(), code)], "{body}");
        }
    }

    #[test]
    fn equal_splits_have_equal_fingerprints() {
        let source = InsightId::parse(A).unwrap();
        let other = InsightId::parse(B).unwrap();
        let fingerprint = |ids: [&str; 2], texts: &str, source| {
            let body = format!(r#"{{"painPointIds": ["{}", "{}"]{texts}}}"#, ids[0], ids[1]);
            split(&body).unwrap().fingerprint(source)
        };
        let usual = fingerprint([A, B], "", source);
        for (ids, texts) in [
            ([B, A], ""),
            ([&A.to_uppercase(), B], ""),
            ([A, B], r#", "title": null, "description": """#),
        ] {
            assert_eq!(fingerprint(ids, texts, source), usual, "{ids:?} {texts}");
        }
        let c = "0b24dd5a-0000-4000-8000-00000000000c";
        let mut all = vec![
            usual,
            fingerprint([A, B], "", other),
            fingerprint([A, c], "", source),
            fingerprint([A, B], r#", "title": "t""#, source),
            fingerprint([A, B], r#", "description": "t""#, source),
            fingerprint([A, B], r#", "title": "t", "description": "t""#, source),
            fingerprint([A, B], r#", "title": "tt""#, source),
        ];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn merges_name_one_other_insight() {
        let read = read_merge(&json(&format!(r#"{{"into": "{}"}}"#, A.to_uppercase())));
        assert_eq!(read.map(|into| into.to_string()), Ok(A.to_owned()));
        for (body, pointer, code) in [
            ("{}", "/into", ViolationCode::Required),
            (r#"{"into": null}"#, "/into", ViolationCode::Required),
            (r#"{"into": "checkout"}"#, "/into", ViolationCode::InvalidFormat),
            (r#"{"into": []}"#, "/into", ViolationCode::InvalidType),
            ("7", "", ViolationCode::InvalidType),
        ] {
            assert_eq!(faults(read_merge(&json(body))), [(pointer.to_owned(), code)], "{body}");
        }
    }

    #[test]
    fn null_resets_fields_to_initial_values() {
        let patch = |body: &str| InsightPatch::read(&json(body));
        assert_eq!(patch("{}"), Ok(InsightPatch::default()));
        let full = r#"{"title": " t ", "description": "d", "status": "ignored", "viewed": true}"#;
        let expected = InsightPatch {
            title: Some("t".to_owned()),
            description: Some("d".to_owned()),
            status: Some(InsightStatus::Ignored),
            viewed: Some(true),
        };
        assert_eq!(patch(full), Ok(expected));
        let expected = InsightPatch {
            title: None,
            description: Some(String::new()),
            status: Some(InsightStatus::Open),
            viewed: Some(false),
        };
        let nulls = r#"{"description": null, "status": null, "viewed": null}"#;
        assert_eq!(patch(nulls), Ok(expected));
        for (body, pointer, code) in [
            (r#"{"title": null}"#, "/title", ViolationCode::Required),
            (r#"{"title": " "}"#, "/title", ViolationCode::TooShort),
            (r#"{"status": "merged"}"#, "/status", ViolationCode::InvalidValue),
            (r#"{"status": "Open"}"#, "/status", ViolationCode::InvalidValue),
            (r#"{"viewed": "true"}"#, "/viewed", ViolationCode::InvalidType),
            (r#"{"mergedInto": null}"#, "/mergedInto", ViolationCode::UnknownField),
        ] {
            assert_eq!(faults(patch(body)), [(pointer.to_owned(), code)], "{body}");
        }
    }

    /// Almost valid bodies.
    fn any_body() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just(format!("\"{A}\"")),
            Just("\"2026-11-21T04:16:00Z\"".to_owned()),
            Just("[]".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            "\\PC{0,4}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        let names = ["title", "description", "painPoints", "painPointIds", "into", "status", "id"];
        let object = |value: BoxedStrategy<String>| {
            vec((proptest::sample::select(names.to_vec()), value), 0..6).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
                format!("{{{}}}", members.join(","))
            })
        };
        let list = vec(prop_oneof![value.clone(), object(value.clone().boxed())], 0..4)
            .prop_map(|items| format!("[{}]", items.join(",")));
        object(prop_oneof![value, list].boxed())
    }

    proptest! {
        #[test]
        fn bodies_are_parsed_or_rejected_with_violations(body in any_body()) {
            let body = json(&body);
            let rejections = [
                InsightDraft::read(&body).err(),
                read_upload(&body).err(),
                SplitRequest::read(&body).err(),
                read_merge(&body).err(),
                InsightPatch::read(&body).err(),
            ];
            prop_assert!(rejections.iter().flatten().all(|violations| !violations.is_empty()));
        }
    }
}
