use super::*;
use crate::evaluation::test_flags::{flag, project, segment};

fn exported(flag: FeatureFlag) -> (Value, Vec<(String, bool)>) {
    let key = flag.key.clone();
    let FlagdExport { document, differences } = export(project(), &[flag], &[], Layout::Compact);
    let mut document: Value = serde_json::from_str(&document).unwrap();
    let found = document["flags"].as_object_mut().unwrap().remove(key.as_str());
    assert!(differences.iter().all(|d| d.flag_key == key && !d.reason.is_empty()));
    let left_out = differences.iter().any(|difference| difference.left_out);
    assert_eq!(found.is_none(), left_out);
    let places = differences.into_iter().map(|d| (d.pointer, d.left_out)).collect();
    (found.unwrap_or_default(), places)
}

#[track_caller]
fn assert_left_out(flag: FeatureFlag, pointers: &[&str]) {
    let expected: Vec<_> = pointers.iter().map(|pointer| ((*pointer).to_owned(), true)).collect();
    assert_eq!(exported(flag).1, expected);
}

/// Returns a condition's `JsonLogic`, if flagd can express it.
fn logic(operator: &str, values: &[&str]) -> Option<Value> {
    let condition = json!({"attribute": "a", "operator": operator, "values": values});
    json_logic::condition(&serde_json::from_value(condition).unwrap()).ok()
}

fn weights(weights: &[(&str, f64)]) -> Value {
    let entry = |(variant, weight): &(&str, f64)| json!({"variant": variant, "weight": weight});
    json!({"rollout": weights.iter().map(entry).collect::<Vec<_>>()})
}

#[test]
fn flags_without_targeting_have_a_default_variant() {
    let (found, differences) = exported(flag("f", &json!({})));
    let expected = json!({
        "state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": "on",
        "metadata": {"version": "1"},
    });
    assert_eq!((found, differences), (expected, vec![]));
    let document = export(project(), &[], &[], Layout::Compact).document;
    let expected = json!({
        "$schema": "https://flagd.dev/schema/v0/flags.json", "flags": {},
        "metadata": {"flagSetId": project()},
    });
    assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), expected);
}

#[test]
fn targets_and_rules_become_one_chain() {
    let member = |value: &str, variant: &str| json!({"kind": "identifier", "value": value, "variant": variant});
    let exists = json!({"attribute": "a", "operator": "exists"});
    let (found, _) = exported(flag(
        "f",
        &json!({
            "targets": [member("x", "on"), member("y", "off"), member("z", "on")],
            "rules": [
                {"conditions": [exists], "serve": {"variant": "off"}},
                {"conditions": [exists, exists], "serve": {"variant": "on"}},
                {"conditions": [], "serve": {"variant": "off"}},
            ],
        }),
    ));
    let present = json!({"!==": [{"var": "a"}, null]});
    let expected = json!({"if": [
        {"in": [{"var": "targetingKey"}, ["y"]]}, "off",
        {"in": [{"var": "targetingKey"}, ["x", "z"]]}, "on",
        present, "off",
        {"and": [present, present]}, "on",
        true, "off",
    ]});
    assert_eq!(found["targeting"], expected);
    assert_eq!(found["defaultVariant"], "on");
}

#[test]
fn possible_null_results_use_the_callers_default() {
    let code_default = json!({"variant": null, "rollout": []});
    let rule = json!({"conditions": [], "serve": code_default});
    let (found, _) = exported(flag("f", &json!({"rules": [rule]})));
    assert_eq!(found["defaultVariant"], Value::Null);
    assert_eq!(found["targeting"], json!({"if": [true, null, "on"]}));
    let (found, _) = exported(flag("f", &json!({"fallthrough": code_default})));
    assert_eq!(found["defaultVariant"], Value::Null);
    assert!(found.as_object().unwrap().contains_key("defaultVariant"));
    assert_eq!(found["targeting"], Value::Null);
    let half = weights(&[("on", 1.0), ("off", 1.0)]);
    let (found, _) = exported(flag("f", &json!({"fallthrough": half})));
    assert_eq!(found["defaultVariant"], Value::Null);
    assert_eq!(found["targeting"], json!({"fractional": [["on", 1], ["off", 1]]}));
}

#[test]
fn weights_become_integers_with_equal_shares() {
    let fractional = |entries: &[(&str, f64)]| {
        exported(flag("f", &json!({"fallthrough": weights(entries)}))).0["targeting"].clone()
    };
    let shares = |shares: Value| json!({"fractional": shares});
    let entries = [("on", 33.3), ("off", 66.7)];
    assert_eq!(fractional(&entries), shares(json!([["on", 333], ["off", 667]])));
    let entries = [("on", 1_000_000.0), ("off", 0.0), ("on", 500_000.0), ("off", 500_000.0)];
    assert_eq!(fractional(&entries), shares(json!([["on", 2], ["on", 1], ["off", 1]])));
    assert_eq!(fractional(&[("off", 0.0), ("on", 7.0)]), Value::Null);
    let large = weights(&[("on", 999_999.999), ("off", 1_000_000.0), ("on", 999_999.0)]);
    assert_left_out(flag("f", &json!({"fallthrough": large})), &["/fallthrough/rollout"]);
}

#[test]
fn single_variant_rollouts_become_variants() {
    let all = weights(&[("off", 0.0), ("on", 7.0)]);
    let (found, _) = exported(flag("f", &json!({"fallthrough": all})));
    assert_eq!((&found["defaultVariant"], found.get("targeting")), (&json!("on"), None));
    let rule = json!({"conditions": [], "serve": all});
    let (found, _) = exported(flag("f", &json!({"rules": [rule], "fallthrough": all})));
    assert_eq!(found["defaultVariant"], "on");
    assert_eq!(found["targeting"], json!({"if": [true, "on"]}));
}

#[test]
fn disabled_flags_are_exported_with_a_difference() {
    let rule = json!({"conditions": [
        {"attribute": "a", "operator": "matches", "values": ["x"]},
    ], "serve": {"variant": "on"}});
    let prerequisites = json!([{"flagKey": "g", "variant": "on"}]);
    let disabled =
        flag("f", &json!({"enabled": false, "rules": [rule], "prerequisites": prerequisites}));
    let (found, differences) = exported(disabled);
    assert_eq!((&found["state"], &found["defaultVariant"]), (&json!("DISABLED"), &json!("off")));
    assert_eq!(found["targeting"], Value::Null);
    assert_eq!(differences, [("/enabled".to_owned(), false)]);
}

#[test]
fn inexpressible_flags_are_omitted_with_all_reasons() {
    let condition = |attribute: &str, operator: &str, value: &str| json!({"attribute": attribute, "operator": operator, "values": [value]});
    let members = json!({
        "prerequisites": [{"flagKey": "g", "variant": "on"}],
        "rules": [
            {"conditions": [condition("a", "equals", "x")], "serve": {"variant": "on"}},
            {"conditions": [
                condition("a", "matches", "x"),
                condition("a", "contains", "x"),
                condition("a", "in_cidr", "10.0.0.0/8"),
                condition("a", "after", "2026-01-01T00:00:00Z"),
                condition("$now", "after", "2026-01-01T00:00:00Z"),
                condition("a", "less_than", "9007199254740993"),
            ], "serve": {"variant": "on"}},
        ],
    });
    let conditions = [0, 2, 3, 5].map(|index| format!("/rules/1/conditions/{index}"));
    let mut expected = vec!["/prerequisites"];
    expected.extend(conditions.iter().map(String::as_str));
    assert_left_out(flag("f", &members), &expected);
    assert_left_out(flag("f", &json!({"type": "string"})), &["/variants"]);
    let array = json!([{"key": "o", "value": "{}"}, {"key": "a", "value": " [1]"}]);
    let lists = flag("f", &json!({"type": "json", "variants": array}));
    assert_left_out(lists, &["/variants/1/value"]);
    let mut archived = flag("f", &json!({}));
    archived.archived_at = Some(archived.created_at);
    assert_left_out(archived, &["/archivedAt"]);
}

#[test]
fn values_keep_their_type() {
    let variants = json!([{"key": "a", "value": "1"}, {"key": "b", "value": "0.1"}]);
    let numbers = flag("f", &json!({"type": "number", "variants": variants}));
    let document = export(project(), &[numbers], &[], Layout::Indented).document;
    assert!(document.contains(r#""a": 1.0"#) && document.contains(r#""b": 0.1"#), "{document}");
}

#[test]
fn conditions_fail_for_missing_or_mistyped_attributes() {
    let var = json!({"var": "a"});
    let present = json!({"!==": [var, null]});
    let text = json!({"===": [{"cat": [var]}, var]});
    let not = |other: Value| json!({"!==": [var, other]});
    for (operator, values, expected) in [
        ("not_exists", &[][..], json!({"===": [var, null]})),
        ("in", &["x", "12.0", "true"], json!({"in": [var, ["x", "12.0", 12.0, "true", true]]})),
        ("not_equals", &["x"], json!({"and": [present, {"!": [{"in": [var, ["x"]]}]}]})),
        ("contains", &["x"], json!({"and": [present, text, {"in": ["x", var]}]})),
        (
            "not_starts_with",
            &["x", "y"],
            json!({"and": [present, text, {"!": [{"or": [
                {"starts_with": [var, "x"]}, {"starts_with": [var, "y"]},
            ]}]}]}),
        ),
        ("ends_with", &["x"], json!({"ends_with": [var, "x"]})),
        (
            "less_than",
            &["5"],
            json!({"and": [
                present, not(json!("")), not(json!(true)), not(json!(false)), {"<": [var, 5]},
            ]}),
        ),
        (
            "semver_less_than_or_equal",
            &["2-rc"],
            json!({"and": [present, text, {"sem_ver": [var, "<=", "2.0.0-rc"]}]}),
        ),
    ] {
        assert_eq!(logic(operator, values), Some(expected), "{operator}");
    }
    for operator in ["matches", "not_matches"] {
        assert_eq!(logic(operator, &["x"]), None);
    }
}

#[test]
fn scheduled_releases_follow_flagds_clock() {
    let at = |operator: &str, value: &str| {
        let condition = json!({"attribute": "$now", "operator": operator, "values": [value]});
        json_logic::condition(&serde_json::from_value(condition).unwrap()).unwrap()
    };
    let clock = json!({"var": "$flagd.timestamp"});
    assert_eq!(at("after", "1970-01-01T00:01:00Z"), json!({">=": [clock, 60]}));
    assert_eq!(at("before", "1970-01-01T00:01:00.5Z"), json!({"<": [clock, 61]}));
    assert_eq!(at("before", "1969-12-31T23:59:59.5Z"), json!({"<": [clock, 0]}));
}

/// Exports an enabled flag with one rule for this condition. Returns the condition's targeting, the
/// document and the differences.
fn exported_condition(condition: &Value, segments: &[Segment]) -> (Value, Value, Vec<ExportGap>) {
    let rules = json!([{"conditions": [condition], "serve": {"variant": "off"}}]);
    let enabled = flag("f", &json!({"rules": rules}));
    let exported = export(project(), &[enabled], segments, Layout::Compact);
    let document: Value = serde_json::from_str(&exported.document).unwrap();
    let targeting = document["flags"]["f"]["targeting"]["if"][0].clone();
    (targeting, document, exported.differences)
}

#[test]
fn segments_become_evaluators_that_flags_refer_to() {
    let exists = |attribute: &str| json!({"attribute": attribute, "operator": "exists"});
    let segments = [
        segment("staff", &json!([exists("a"), exists("b")])),
        segment("beta", &json!([exists("a")])),
        segment("unused", &json!([exists("c")])),
    ];
    let present = |attribute: &str| json!({"!==": [{"var": attribute}, null]});
    let is_in = json!({"operator": "in_segment", "values": ["staff"]});
    let (targeting, document, differences) = exported_condition(&is_in, &segments);
    assert_eq!(targeting, json!({"$ref": "staff"}));
    let evaluators = json!({"staff": {"and": [present("a"), present("b")]}});
    assert_eq!(document["$evaluators"], evaluators);
    assert_eq!(differences, []);
    let is_in_none = json!({"operator": "not_in_segment", "values": ["staff", "beta"]});
    let (targeting, document, _) = exported_condition(&is_in_none, &segments);
    assert_eq!(targeting, json!({"!": [{"or": [{"$ref": "staff"}, {"$ref": "beta"}]}]}));
    let names: Vec<_> = document["$evaluators"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["beta", "staff"]);
    assert_eq!(exported_condition(&exists("a"), &segments).1.get("$evaluators"), None);
}

#[test]
fn segments_with_special_characters_are_copied() {
    for value in ["é", "\"", "\\", "$&", "\u{7f}"] {
        let starts = json!({"attribute": "a", "operator": "starts_with", "values": [value]});
        let segments = [segment("s", &json!([starts]))];
        let is_in = json!({"operator": "in_segment", "values": ["s"]});
        let (targeting, document, _) = exported_condition(&is_in, &segments);
        assert_eq!(targeting, json!({"starts_with": [{"var": "a"}, value]}), "{value:?}");
        assert_eq!(document.get("$evaluators"), None, "{value:?}");
    }
}

#[test]
fn flags_with_inexpressible_segments_are_omitted() {
    let matches = json!({"attribute": "a", "operator": "matches", "values": ["x"]});
    let segments = [segment("s", &json!([matches]))];
    let is_in = json!({"operator": "in_segment", "values": ["s"]});
    let (_, document, differences) = exported_condition(&is_in, &segments);
    assert_eq!((&document["flags"], document.get("$evaluators")), (&json!({}), None));
    let [difference] = differences.as_slice() else { panic!("{differences:?}") };
    assert_eq!((difference.pointer.as_str(), difference.left_out), ("/rules/0/conditions/0", true));
    assert_eq!(difference.reason, "the segment s: flagd has no regular expressions");
}

#[test]
fn values_that_look_like_references_are_omitted() {
    let theme = |value: &str| {
        flag("f", &json!({"type": "json", "variants": [{"key": "a", "value": value}]}))
    };
    for value in [r#"{"$ref": "s"}"#, r#"{"a": [{"\u0024ref": "s"}]}"#] {
        assert_left_out(theme(value), &["/variants/0/value"]);
    }
    assert!(exported(theme(r#"{"a": "$ref"}"#)).1.is_empty());
}
