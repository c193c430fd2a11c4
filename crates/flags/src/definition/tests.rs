use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::*;
use crate::condition::{Condition, Operator};
use crate::{FlagKey, FlagType, Prerequisite, RolloutEntry, RuleId, TargetKind, Weight};

fn full() -> Value {
    json!({
        "variants": [{"key": "on", "name": "On", "value": "true"}],
        "offVariant": null,
        "fallthrough": {"variant": null, "rollout": [{"variant": "on", "weight": 33.333}]},
        "rules": [{"id": "r", "name": "", "conditions": [
            {"attribute": "plan", "operator": "equals", "values": ["pro"]},
        ], "serve": {"variant": "on", "rollout": []}}],
        "targets": [{"kind": "identifier", "value": "u", "variant": "on"}],
    })
}

fn is_readable(stored: &Value) -> bool {
    Definition::parse(&stored.to_string()).is_ok()
}

#[test]
fn invalid_definitions_are_errors() {
    assert!(is_readable(&full()));
    for (pointer, damaged) in [
        ("", json!([])),
        ("", json!({})),
        ("/variants", json!(null)),
        ("/variants/0/key", json!("a/b")),
        ("/variants/0/value", json!(true)),
        ("/offVariant", json!("")),
        ("/offVariant", json!(1)),
        ("/fallthrough", json!({})),
        ("/fallthrough/variant", json!("on")),
        ("/fallthrough/rollout/0/weight", json!(0)),
        ("/fallthrough/rollout/0/weight", json!(-1)),
        ("/fallthrough/rollout/0/weight", json!(0.0001)),
        ("/fallthrough/rollout/0/weight", json!(1_000_001)),
        ("/fallthrough/rollout/0/weight", json!(1e300)),
        ("/fallthrough/rollout/0/weight", json!("1")),
        ("/rules/0/id", json!("")),
        ("/rules/0/conditions/0/attribute", json!("")),
        ("/rules/0/conditions/0/attribute", json!("$now")),
        ("/rules/0/conditions/0/operator", json!("like")),
        ("/rules/0/conditions/0/operator", json!("exists")),
        ("/rules/0/conditions/0/values", json!([])),
        ("/rules/0/conditions/0/values/0", json!(1)),
        ("/rules/0/conditions/0/negate", json!(true)),
        ("/rules/0/serve", json!({"variant": null})),
        ("/rules/0/serve", json!({"rollout": []})),
        ("/rules/0/serve/rollout", json!(null)),
        ("/targets/0/kind", json!("group")),
        ("/segments", json!([])),
    ] {
        let mut stored = full();
        if let Some(place) = stored.pointer_mut(pointer) {
            *place = damaged.clone();
        } else {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            stored.pointer_mut(parent).unwrap()[name] = damaged.clone();
        }
        assert!(!is_readable(&stored), "{damaged} at {pointer:?}");
    }
    for member in ["variants", "offVariant", "fallthrough", "rules", "targets"] {
        let mut stored = full();
        stored.as_object_mut().unwrap().remove(member);
        assert!(!is_readable(&stored), "without {member}");
    }
    for text in ["", "{", "null", &full().to_string()[1..]] {
        assert!(Definition::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn every_operator_can_be_read_back() {
    let names = Operator::parse("?").unwrap_err().message;
    let mut count = 0;
    for name in names.split('`').skip(1).step_by(2).filter(|name| *name != "?") {
        let (attribute, values) = match name {
            "exists" | "not_exists" => (json!("a"), json!([])),
            "before" | "after" => (json!("$now"), json!(["2026-01-01T00:00:00Z"])),
            "in_segment" | "not_in_segment" => (json!(null), json!(["beta"])),
            _ => (json!("a"), json!(["1"])),
        };
        let stored = json!({"attribute": attribute, "operator": name, "values": values});
        let condition: Condition = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(condition).unwrap(), stored);
        count += 1;
    }
    assert_eq!(count, 28);
}

fn key() -> impl Strategy<Value = String> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,20}"
}

fn variant_key() -> impl Strategy<Value = VariantKey> {
    key().prop_map(|text| VariantKey::parse(&text).unwrap())
}

fn weight() -> impl Strategy<Value = Weight> {
    (0_u32..=1_000_000_000).prop_map(|thousandths| {
        Weight::parse(&format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)).unwrap()
    })
}

fn serve() -> impl Strategy<Value = Serve> {
    let entry =
        (variant_key(), weight()).prop_map(|(variant, weight)| RolloutEntry { variant, weight });
    let is_positive =
        |entries: &Vec<RolloutEntry>| entries.iter().any(|entry| entry.weight.thousandths() > 0);
    let rollout = prop::collection::vec(entry, 1..5).prop_filter("a positive weight", is_positive);
    prop_oneof![
        Just(Serve::CodeDefault),
        variant_key().prop_map(Serve::Variant),
        rollout.prop_map(Serve::Rollout),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let texts = prop::collection::vec(any::<String>(), 1..4);
    prop_oneof![
        (Just(Operator::NotIn), texts.clone()),
        (Just(Operator::Matches), texts),
        (Just(Operator::Exists), Just(Vec::new())),
        (Just(Operator::NotInSegment), Just(vec!["beta".to_owned()])),
        (Just(Operator::SemverLessThan), Just(vec!["1.2".to_owned()])),
    ]
    .prop_flat_map(|(operator, values)| {
        r"[^\p{Cc}]{1,20}".prop_map(move |attribute| Condition {
            attribute: Some(attribute).filter(|_| !operator.is_about_segments()),
            operator,
            values: values.clone(),
        })
    })
}

prop_compose! {
    fn rule()(
        id in key(),
        name: String,
        conditions in prop::collection::vec(condition(), 0..4),
        serve in serve(),
    ) -> Rule {
        Rule { id: RuleId::parse(&id).unwrap(), name, conditions, serve }
    }
}

prop_compose! {
    fn flag()(
        variants in prop::collection::vec((variant_key(), any::<String>(), any::<String>()), 0..4),
        off_variant in prop::option::of(variant_key()),
        fallthrough in serve(),
        rules in prop::collection::vec(rule(), 0..4),
        targets in prop::collection::vec((any::<String>(), variant_key()), 0..4),
        prerequisite in (key(), variant_key()),
    ) -> FeatureFlag {
        let now = Timestamp::from_millis(0);
        FeatureFlag {
            id: Uuid::nil(),
            project_id: ProjectId::new(Uuid::nil()),
            key: FlagKey::parse("f").unwrap(),
            name: "F".to_owned(),
            description: String::new(),
            flag_type: FlagType::String,
            enabled: true,
            archived_at: None,
            version: 1,
            variants: variants
                .into_iter()
                .map(|(key, name, value)| Variant { key, name, value })
                .collect(),
            off_variant,
            fallthrough,
            rules,
            targets: targets
                .into_iter()
                .map(|(value, variant)| Target { kind: TargetKind::Identifier, value, variant })
                .collect(),
            prerequisites: vec![Prerequisite {
                flag_key: FlagKey::parse(&prerequisite.0).unwrap(),
                variant: prerequisite.1,
            }],
            created_at: now,
            updated_at: now,
            is_successor: false,
        }
    }
}

proptest! {
    #[test]
    fn stored_flags_are_read_back_unchanged(flag in flag()) {
        let stored = serde_json::to_string(&Definition::of(&flag)).unwrap();
        let read = Definition::parse(&stored).unwrap();
        let same = FeatureFlag {
            variants: read.variants.into_owned(),
            off_variant: read.off_variant.map(Cow::into_owned),
            fallthrough: read.fallthrough.into_owned(),
            rules: read.rules.into_owned(),
            targets: read.targets.into_owned(),
            ..flag.clone()
        };
        prop_assert_eq!(same, flag.clone());
        let prerequisites = serde_json::to_string(&flag.prerequisites).unwrap();
        let read: Vec<Prerequisite> = serde_json::from_str(&prerequisites).unwrap();
        prop_assert_eq!(read, flag.prerequisites);
    }

    #[test]
    fn parser_never_panics(stored: String) {
        let _ = Definition::parse(&stored);
    }
}
