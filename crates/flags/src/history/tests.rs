use serde_json::{Value, json};
use uuid::Uuid;

use shared::json::{Json, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;

use super::*;
use crate::draft::FlagDraft;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_234_560_000 + seconds * 1_000)
}

fn flag(members: &Value) -> FeatureFlag {
    let mut body = json!({"key": "f", "name": "F", "type": "string"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let text = body.to_string();
    let draft = FlagDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    draft.into_flag(ProjectId::new(Uuid::from_u128(7)), at(0), || Uuid::from_u128(8)).unwrap()
}

/// Returns a flag in which each field differs from an empty flag's.
fn full() -> FeatureFlag {
    flag(&json!({
        "name": "Full",
        "description": "d",
        "enabled": true,
        "variants": [{"key": "b", "value": "B"}, {"key": "a", "value": "A"}],
        "offVariant": "a",
        "fallthrough": {"rollout": [{"variant": "a", "weight": 0.125}, {"variant": "b", "weight": 2}]},
        "rules": [{"id": "r", "serve": {"variant": "b"}, "conditions": [
            {"attribute": "plan", "operator": "in", "values": ["z", "a"]}]}],
        "targets": [{"kind": "identifier", "value": "u", "variant": "a"}],
        "prerequisites": [{"flagKey": "other", "variant": "on"}],
    }))
}

/// Returns the changes of a record that was serialized and parsed.
fn changes(stored: Option<&FeatureFlag>, flag: &FeatureFlag) -> Value {
    let record = ChangeRecord::of(stored, flag).unwrap();
    let text = serde_json::to_string(&record).unwrap();
    let read: ChangeRecord = serde_json::from_str(&text).unwrap();
    serde_json::to_value(read.changes()).unwrap()
}

#[test]
fn new_flags_list_all_their_fields() {
    let shown = serde_json::to_value(full()).unwrap();
    let changes = changes(None, &full());
    let members: Vec<&str> =
        changes.as_array().unwrap().iter().map(|it| it["member"].as_str().unwrap()).collect();
    let live_fields: Vec<&str> =
        FIELDS.into_iter().filter(|member| *member != "archivedAt").collect();
    assert_eq!(members, live_fields);
    for change in changes.as_array().unwrap() {
        assert_eq!(change["from"], Value::Null);
        assert_eq!(change["to"], shown[change["member"].as_str().unwrap()]);
    }
}

#[test]
fn changes_have_previous_and_new_values() {
    let (before, mut after) = (full(), full());
    after.version = 2;
    after.updated_at = at(5);
    assert_eq!(changes(Some(&before), &after), json!([]));
    after.off_variant = None;
    after.name = "N".to_owned();
    after.archived_at = Some(at(5));
    let expected = json!([
        {"member": "name", "from": "Full", "to": "N"},
        {"member": "archivedAt", "from": null, "to": at(5)},
        {"member": "offVariant", "from": "a", "to": null},
    ]);
    assert_eq!(changes(Some(&before), &after), expected);
}

#[test]
fn restoration_keeps_only_the_archive_state() {
    let wanted = full();
    let record = ChangeRecord::of(None, &wanted).unwrap();
    let mut now = flag(&json!({}));
    now.version = 7;
    let restored = record.state().unwrap().restored(&now, at(9));
    assert_eq!(restored, FeatureFlag { version: 8, updated_at: at(9), ..wanted });
    let again = record.state().unwrap().restored(&restored, at(11));
    assert_eq!(again, restored, "the second restoration changes nothing");

    let archived = FeatureFlag { archived_at: Some(at(1)), ..full() };
    let record = ChangeRecord::of(Some(&full()), &archived).unwrap();
    assert_eq!(record.state().unwrap().restored(&now, at(9)).archived_at, None);
}

#[test]
fn change_kinds_follow_from_the_archive_state() {
    let live = full();
    let archived = FeatureFlag { archived_at: Some(at(1)), ..full() };
    for (stored, flag, kind) in [
        (&live, &live, ChangeKind::Updated),
        (&live, &archived, ChangeKind::Archived),
        (&archived, &live, ChangeKind::Unarchived),
    ] {
        assert_eq!(ChangeKind::of(stored, flag), kind);
        assert_eq!(ChangeKind::named(kind.as_str()), Some(kind));
    }
}
