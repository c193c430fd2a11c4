use serde_json::{Value, json};

use shared::json::MAX_BODY_DEPTH;

use super::*;

fn staff() -> Value {
    json!({"attribute": "email", "operator": "ends_with", "values": ["@example.com"]})
}

fn body(conditions: &Value) -> Value {
    json!({"key": "staff", "name": " Staff ", "conditions": conditions})
}

fn read(body: &Value) -> Result<Segment, Violations> {
    let text = body.to_string();
    let draft = SegmentDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap())?;
    draft.into_segment(ProjectId::new(Uuid::nil()), Timestamp::from_millis(7), Uuid::from_u128(1))
}

fn patch(body: &Value) -> Result<SegmentPatch, Violations> {
    let text = body.to_string();
    SegmentPatch::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap())
}

fn listed(violations: &Violations) -> Vec<(&str, ViolationCode)> {
    violations.listed().iter().map(|it| (it.pointer.as_str(), it.code)).collect()
}

#[test]
fn segments_have_a_key_a_name_and_conditions() {
    let segment = read(&body(&json!([staff()]))).unwrap();
    assert_eq!(
        (segment.key.as_str(), segment.name.as_str(), segment.version),
        ("staff", "Staff", 1)
    );
    assert_eq!(segment.conditions.len(), 1);
    let violations = read(&json!({"key": "no key", "more": 1})).unwrap_err();
    let expected = [
        ("/more", ViolationCode::UnknownField),
        ("/key", ViolationCode::InvalidFormat),
        ("/name", ViolationCode::Required),
        ("/conditions", ViolationCode::Required),
    ];
    assert_eq!(listed(&violations), expected);
}

#[test]
fn segments_have_1_to_50_attribute_conditions() {
    let of = |count: usize| read(&body(&json!(vec![staff(); count])));
    assert_eq!(listed(&of(0).unwrap_err()), [("/conditions", ViolationCode::TooFewItems)]);
    assert!(of(50).is_ok());
    assert_eq!(listed(&of(51).unwrap_err()), [("/conditions", ViolationCode::TooManyItems)]);
    let nested = json!({"operator": "in_segment", "values": ["other"]});
    let violations = read(&body(&json!([staff(), nested]))).unwrap_err();
    assert_eq!(listed(&violations), [("/conditions/1/operator", ViolationCode::InvalidValue)]);
}

#[test]
fn patterns_and_bytes_are_limited() {
    let matching = |count: usize| {
        let patterns = vec!["a"; count];
        read(&body(&json!([{"attribute": "a", "operator": "matches", "values": patterns}])))
    };
    assert!(matching(25).is_ok());
    assert_eq!(listed(&matching(26).unwrap_err()), [("/conditions", ViolationCode::TooManyItems)]);
    let long = json!({"attribute": "a", "operator": "in", "values": vec!["v".repeat(1_000); 49]});
    assert!(read(&body(&json!([long]))).is_ok());
    let more = json!({"attribute": "a", "operator": "in", "values": vec!["v".repeat(1_000); 50]});
    assert_eq!(listed(&read(&body(&json!([more]))).unwrap_err()), [("", ViolationCode::TooLong)]);
}

#[test]
fn patches_change_only_their_fields() {
    let segment = read(&body(&json!([staff()]))).unwrap();
    let now = Timestamp::from_millis(9);
    let same = patch(&json!({"name": "Staff", "conditions": [staff()]})).unwrap();
    assert_eq!(same.apply(&segment, now).unwrap(), segment);
    let renamed = patch(&json!({"name": "Team"})).unwrap().apply(&segment, now).unwrap();
    assert_eq!((renamed.name.as_str(), renamed.version, renamed.updated_at), ("Team", 2, now));
    assert_eq!(renamed.conditions, segment.conditions);
    let violations = patch(&json!({"key": "x", "name": null, "conditions": null})).unwrap_err();
    let expected = [
        ("/key", ViolationCode::UnknownField),
        ("/name", ViolationCode::Required),
        ("/conditions", ViolationCode::Required),
    ];
    assert_eq!(listed(&violations), expected);
}
