use serde_json::{Value, json};

use shared::json::MAX_BODY_DEPTH;
use shared::projects::project::ProjectId;

use super::*;
use crate::draft::FlagDraft;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_234_560_000 + seconds * 1_000)
}

/// Returns a flag with these fields, created as by a client.
fn flag(members: &Value) -> FeatureFlag {
    let mut body = json!({"key": "f", "name": "F", "type": "string"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let text = body.to_string();
    let draft = FlagDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    let mut ids = (1..).map(Uuid::from_u128);
    draft.into_flag(ProjectId::new(Uuid::from_u128(7)), at(0), || ids.next().unwrap()).unwrap()
}

/// Returns a flag of texts with all optional fields.
fn full() -> FeatureFlag {
    flag(&json!({
        "description": "d",
        "enabled": true,
        "variants": [
            {"key": "a", "value": "A"}, {"key": "b", "value": "B"}, {"key": "c", "value": "C"}
        ],
        "offVariant": "c",
        "fallthrough": {"rollout": [{"variant": "a", "weight": 1}, {"variant": "b", "weight": 2}]},
        "rules": [{"id": "r", "serve": {"variant": "b"}}],
        "targets": [{"kind": "identifier", "value": "u", "variant": "a"}],
        "prerequisites": [{"flagKey": "other", "variant": "on"}],
    }))
}

type Rejections = Vec<(String, ViolationCode)>;

fn listed(violations: &Violations) -> Rejections {
    violations.listed().iter().map(|it| (it.pointer.clone(), it.code)).collect()
}

fn patched(flag: &FeatureFlag, patch: &Value) -> Result<FeatureFlag, Rejections> {
    let text = patch.to_string();
    let body = Json::parse(&text, MAX_BODY_DEPTH).unwrap();
    let patch = FlagPatch::check(&body).map_err(|violations| listed(&violations))?;
    let mut ids = (100..).map(Uuid::from_u128);
    patch.apply(flag, at(60), || ids.next().unwrap()).map_err(|violations| listed(&violations))
}

/// Returns the patched flag as in a response.
fn shown(flag: &FeatureFlag, patch: &Value) -> Value {
    serde_json::to_value(patched(flag, patch).unwrap()).unwrap()
}

fn rejected(flag: &FeatureFlag, patch: &Value) -> Rejections {
    patched(flag, patch).unwrap_err()
}

fn one(pointer: &str, code: ViolationCode) -> Rejections {
    vec![(pointer.to_owned(), code)]
}

#[test]
fn each_field_can_be_changed_alone() {
    let flag = full();
    let before = serde_json::to_value(&flag).unwrap();
    for (field, sent, expected_value) in [
        ("name", json!("  N "), json!("N")),
        ("description", json!(" x "), json!(" x ")),
        ("enabled", json!(false), json!(false)),
        ("offVariant", json!("a"), json!("a")),
        ("offVariant", json!(null), json!(null)),
        ("fallthrough", json!({"variant": "c"}), json!({"variant": "c", "rollout": []})),
        (
            "rules",
            json!([{"id": "q", "serve": {"variant": "a"}}]),
            json!([{"id": "q", "name": "", "conditions": [],
                "serve": {"variant": "a", "rollout": []}}]),
        ),
        ("targets", json!([]), json!([])),
        (
            "prerequisites",
            json!([{"flagKey": "p", "variant": "x"}]),
            json!([{"flagKey": "p", "variant": "x"}]),
        ),
    ] {
        let mut expected = before.clone();
        expected[field] = expected_value;
        expected["version"] = json!(2);
        expected["updatedAt"] = json!(at(60));
        assert_eq!(shown(&flag, &json!({field: sent})), expected, "{field}");
    }
    let added = shown(
        &flag,
        &json!({"variants": [
            {"key": "c", "value": "C"}, {"key": "a", "value": "A"}, {"key": "b", "value": "new"}
        ]}),
    );
    assert_eq!(added["variants"][2], json!({"key": "b", "name": "b", "value": "new"}));
}

#[test]
fn empty_changes_keep_version_and_time() {
    let flag = full();
    for patch in [
        json!({}),
        json!({"name": " F "}),
        json!({"enabled": true, "description": "d", "offVariant": "c"}),
        json!({"archived": false}),
        json!({"archived": null}),
        json!({"fallthrough": {}}),
        json!({"fallthrough": {"variant": null}}),
        json!({"fallthrough": {"rollout": [
            {"variant": "a", "weight": 1.0}, {"variant": "b", "weight": 2}
        ]}}),
        json!({"rules": [{"id": "r", "serve": {"variant": "b"}}]}),
    ] {
        assert_eq!(patched(&flag, &patch), Ok(flag.clone()), "{patch}");
    }
}

#[test]
fn null_resets_fields_to_defaults() {
    let nulls = json!({
        "description": null, "enabled": null, "rules": null, "targets": null, "prerequisites": null
    });
    let flag = full();
    let reset = shown(&flag, &nulls);
    for (field, value) in [
        ("description", json!("")),
        ("enabled", json!(false)),
        ("rules", json!([])),
        ("targets", json!([])),
        ("prerequisites", json!([])),
    ] {
        assert_eq!(reset[field], value, "{field}");
    }
    let first = json!({"variant": "a", "rollout": []});
    assert_eq!(shown(&flag, &json!({"fallthrough": null}))["fallthrough"], first);
    assert_eq!(rejected(&flag, &json!({"name": null})), one("/name", ViolationCode::Required));

    let switch = flag_with_own_variants();
    let reset =
        shown(&switch, &json!({"variants": null, "fallthrough": null, "offVariant": "off"}));
    assert_eq!(reset["variants"][0], json!({"key": "on", "name": "On", "value": "true"}));
    assert_eq!(reset["fallthrough"], json!({"variant": "on", "rollout": []}));
}

fn flag_with_own_variants() -> FeatureFlag {
    flag(&json!({"type": "boolean", "variants": [
        {"key": "no", "value": "false"}, {"key": "yes", "value": "true"}
    ]}))
}

#[test]
fn fallthroughs_are_variant_rollout_or_default() {
    let flag = full();
    let fallthrough = |patch: Value| patched(&flag, &json!({"fallthrough": patch}));
    let serve = |patch: Value| fallthrough(patch).map(|flag| flag.fallthrough);
    let variant = |key| Serve::Variant(VariantKey::parse(key).unwrap());
    assert_eq!(serve(json!({"variant": "b"})), Ok(variant("b")));
    assert_eq!(serve(json!({"variant": null, "rollout": []})), Ok(Serve::CodeDefault));
    // Removing the rollout leaves nothing to serve.
    for nothing in [json!({"rollout": []}), json!({"rollout": null})] {
        let expected = one("/fallthrough", ViolationCode::InvalidValue);
        assert_eq!(serve(nothing), Err(expected));
    }
    let fixed = patched(&flag, &json!({"fallthrough": {"variant": "b"}})).unwrap();
    let rollout = json!([{"variant": "c", "weight": 5}]);
    let patch = json!({"fallthrough": {"rollout": rollout}});
    assert_eq!(
        shown(&fixed, &patch)["fallthrough"],
        json!({"variant": null, "rollout": [{"variant": "c", "weight": 5}]})
    );
    let removed = json!({"fallthrough": {"variant": null}});
    assert_eq!(rejected(&fixed, &removed), one("/fallthrough", ViolationCode::InvalidValue));
    let both = json!({"fallthrough": {"variant": "a", "rollout": rollout}});
    assert_eq!(rejected(&fixed, &both), one("/fallthrough", ViolationCode::InvalidValue));
}

#[test]
fn immutable_fields_cannot_be_changed() {
    for field in [
        "key",
        "type",
        "id",
        "projectId",
        "version",
        "archivedAt",
        "createdAt",
        "updatedAt",
        "tags",
    ] {
        let expected = one(&format!("/{field}"), ViolationCode::UnknownField);
        assert_eq!(rejected(&full(), &json!({field: "f"})), expected, "{field}");
    }
    assert_eq!(rejected(&full(), &json!([])), one("", ViolationCode::InvalidType));
}

#[test]
fn values_must_fit_the_type_of_the_flag() {
    let number = flag(&json!({"type": "number", "variants": [{"key": "n", "value": "1"}]}));
    let patch = |value: &str| json!({"variants": [{"key": "n", "value": value}]});
    assert!(patched(&number, &patch("1.5")).is_ok());
    let expected = one("/variants/0/value", ViolationCode::InvalidFormat);
    assert_eq!(rejected(&number, &patch("one")), expected);
    let switch = flag_with_own_variants();
    let patch =
        json!({"variants": [{"key": "no", "value": "false"}, {"key": "yes", "value": "1"}]});
    assert_eq!(rejected(&switch, &patch), one("/variants/1/value", ViolationCode::InvalidValue));
}

#[test]
fn only_variants_of_the_flag_can_be_named() {
    use ViolationCode::UnknownVariant;
    let patch = json!({
        "offVariant": "x",
        "fallthrough": {"rollout": [{"variant": "y", "weight": 1}]},
        "rules": [{"serve": {"variant": "a"}}, {"serve": {"variant": "z"}}],
        "targets": [{"kind": "identifier", "value": "u", "variant": "x"}],
    });
    let expected = [
        "/offVariant",
        "/fallthrough/rollout/0/variant",
        "/rules/1/serve/variant",
        "/targets/0/variant",
    ];
    let expected: Rejections =
        expected.iter().map(|pointer| ((*pointer).to_owned(), UnknownVariant)).collect();
    assert_eq!(rejected(&full(), &patch), expected);
    // Variants in the same patch count too.
    let patch = json!({
        "variants": [{"key": "x", "value": "X"}], "offVariant": "x",
        "fallthrough": {"variant": "x"}, "rules": [], "targets": null
    });
    assert_eq!(shown(&full(), &patch)["offVariant"], "x");
}

#[test]
fn variants_in_use_cannot_be_removed() {
    let without = |keys: &[&str]| {
        let variants: Vec<Value> =
            keys.iter().map(|key| json!({"key": key, "value": "v"})).collect();
        json!({ "variants": variants })
    };
    let rejected = |keys: &[&str]| rejected(&full(), &without(keys)).len();
    // The off variant uses c, the fallthrough and a rule use b, the fallthrough and a target use a.
    assert_eq!((rejected(&["a", "b"]), rejected(&["a", "c"]), rejected(&["b", "c"])), (1, 2, 2));
    assert_eq!(rejected(&[]), 5);
    let lost = super::tests::rejected(&full(), &without(&["a", "b"]));
    assert_eq!(lost, one("/variants", ViolationCode::UnknownVariant));
}

#[test]
fn flags_cannot_be_their_own_prerequisite() {
    let patch = json!({"prerequisites": [{"flagKey": "f", "variant": "a"}]});
    let expected = one("/prerequisites/0/flagKey", ViolationCode::Cycle);
    assert_eq!(rejected(&full(), &patch), expected);
}

#[test]
fn archiving_and_unarchiving_are_idempotent() {
    let flag = full();
    let archived = patched(&flag, &json!({"archived": true})).unwrap();
    assert_eq!((archived.archived_at, archived.version), (Some(at(60)), 2));
    assert_eq!(patched(&archived, &json!({"archived": true})), Ok(archived.clone()));
    let back = patched(&archived, &json!({"archived": false, "name": "G"})).unwrap();
    assert_eq!((back.archived_at, back.version, back.name.as_str()), (None, 3, "G"));
    let back = patched(&archived, &json!({"archived": null})).unwrap();
    assert_eq!(back.archived_at, None);
}

#[test]
fn rules_without_an_id_get_one() {
    let serve = json!({"variant": "a"});
    let patch = json!({"rules": [{"serve": serve}, {"id": "r", "serve": serve}]});
    let rules = patched(&full(), &patch).unwrap().rules;
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(ids, ["00000000-0000-0000-0000-000000000064", "r"]);
}

#[test]
fn equal_rules_without_ids_change_nothing() {
    let serve = json!({"variant": "a"});
    // Two equal rules, and a different one.
    let rules =
        json!({"rules": [{"serve": serve}, {"serve": serve}, {"name": "n", "serve": serve}]});
    let first = patched(&full(), &rules).unwrap();
    assert_eq!(patched(&first, &rules), Ok(first.clone()));
    let fewer = patched(&first, &json!({"rules": [{"name": "n", "serve": serve}]})).unwrap();
    assert_eq!(fewer.rules, [first.rules[2].clone()]);
}

#[test]
fn oversized_flags_cannot_grow_but_can_be_disabled() {
    let value = |length: usize| json!({"key": "a", "value": "x".repeat(length)});
    let variants = |count: usize, last: usize| {
        let mut variants: Vec<Value> = (0..count)
            .map(|index| json!({"key": format!("v{index}"), "value": "x".repeat(20_000)}))
            .collect();
        variants.push(value(last));
        variants
    };
    let small = flag(&json!({"enabled": true, "variants": variants(9, 1)}));
    let capacity = MAX_FLAG_BYTES - flag_bytes(&small);
    let full = flag(&json!({"enabled": true, "variants": variants(9, 1 + capacity)}));
    assert_eq!(flag_bytes(&full), MAX_FLAG_BYTES);
    let off = patched(&full, &json!({"enabled": false})).unwrap();
    assert!(flag_bytes(&off) > MAX_FLAG_BYTES);
    let archived = patched(&off, &json!({"archived": true})).unwrap();
    assert!(patched(&archived, &json!({"archived": false, "enabled": true})).is_ok());
    assert!(patched(&off, &json!({"name": "G"})).is_ok());
    let grown = rejected(&off, &json!({"name": "GG"}));
    assert_eq!(grown, one("", ViolationCode::TooLong));
    let disabled_and_grown = rejected(&full, &json!({"enabled": false, "name": "GG"}));
    assert_eq!(disabled_and_grown, one("", ViolationCode::TooLong));
    assert!(patched(&off, &json!({"variants": variants(9, capacity)})).is_ok());
}
