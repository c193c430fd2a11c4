use std::fmt;

use serde_json::{Value, json};

use shared::json::MAX_BODY_DEPTH;
use shared::json::ViolationCode::{
    Cycle, Duplicate, InvalidFormat, InvalidType, InvalidValue, OutOfRange, Required, TooFewItems,
    TooLong, TooManyItems, TooShort, UnknownField, UnknownVariant,
};

use super::*;

/// A body with every field.
fn full() -> Value {
    json!({
        "key": "new-checkout", "name": "New checkout", "type": "string",
        "description": "Line 1\nline 2", "enabled": true,
        "variants": [
            {"key": "b", "name": "Blue", "value": "#00f"},
            {"key": "a", "name": "Plain", "value": ""},
        ],
        "offVariant": "a",
        "fallthrough": {"variant": null, "rollout": [
            {"variant": "b", "weight": 33.3},
            {"variant": "a", "weight": 0},
            {"variant": "b", "weight": 66.7},
        ]},
        "rules": [
            {"id": "r.2", "name": "Staff", "conditions": [
                {"attribute": "plan", "operator": "equals", "values": ["pro", "", "beta"]},
                {"attribute": "$now", "operator": "after", "values": ["2026-12-01T00:00:00Z"]},
                {"attribute": "user.email", "operator": "exists", "values": []},
            ], "serve": {"variant": "b", "rollout": []}},
            {"id": "r.1", "name": "", "conditions": [], "serve": {"variant": null, "rollout": []}},
        ],
        "targets": [
            {"kind": "identifier", "value": "user-2", "variant": "a"},
            {"kind": "identifier", "value": "user-1", "variant": "b"},
        ],
        "prerequisites": [{"flagKey": "other", "variant": "on"}],
    })
}

const CONDITION: &str = "/rules/0/conditions/0";
const ATTRIBUTE: &str = "/rules/0/conditions/0/attribute";
const OPERATOR: &str = "/rules/0/conditions/0/operator";
const VALUE: &str = "/rules/0/conditions/0/values/0";

/// Each value in `full()`: its pointer, its JSON type, and the violation that `null` causes.
fn fields() -> impl Iterator<Item = (&'static str, &'static str, Option<ViolationCode>)> {
    [
        ("object", Some(InvalidType), " /variants/0 /fallthrough/rollout/0 /rules/0"),
        ("object", Some(InvalidType), "/rules/0/conditions/0 /targets/0 /prerequisites/0"),
        ("object", Some(Required), "/rules/0/serve"),
        ("object", None, "/fallthrough"),
        ("array", None, "/variants /fallthrough/rollout /rules /rules/0/conditions"),
        ("array", None, "/rules/0/conditions/0/values /targets /prerequisites"),
        ("boolean", None, "/enabled"),
        ("number", Some(Required), "/fallthrough/rollout/0/weight"),
        ("string", Some(Required), "/key /name /type /variants/0/key /variants/0/value"),
        ("string", Some(Required), "/fallthrough/rollout/0/variant"),
        ("string", Some(Required), "/rules/0/conditions/0/attribute"),
        ("string", Some(Required), "/rules/0/conditions/0/operator"),
        ("string", Some(Required), "/targets/0/kind /targets/0/value /targets/0/variant"),
        ("string", Some(Required), "/prerequisites/0/flagKey /prerequisites/0/variant"),
        ("string", Some(InvalidType), "/rules/0/conditions/0/values/0"),
        ("string", None, "/description /variants/0/name /offVariant"),
        ("string", None, "/rules/0/id /rules/0/name /rules/0/serve/variant"),
    ]
    .into_iter()
    .flat_map(|(kind, null, pointers)| pointers.split(' ').map(move |p| (p, kind, null)))
}

/// Returns `full()` with `value` at `pointer`.
fn with(pointer: &str, value: impl Into<Value>) -> Value {
    put(full(), pointer, value)
}

/// Returns `body` with `value` at `pointer`. The index after an array's last item appends.
fn put(mut body: Value, pointer: &str, value: impl Into<Value>) -> Value {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return value.into() };
    match body.pointer_mut(parent).unwrap() {
        Value::Array(items) => {
            let index: usize = name.parse().unwrap();
            items.splice(index..items.len().min(index + 1), [value.into()]);
        }
        object => object[name] = value.into(),
    }
    body
}

/// Returns `base` with the fields of `more`.
fn merged(mut base: Value, more: &Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

fn minimal(flag_type: &str, more: &Value) -> Value {
    merged(json!({"key": "f", "name": "F", "type": flag_type}), more)
}

fn variant(key: &str, value: &str) -> Value {
    json!({"key": key, "name": key, "value": value})
}

fn read(body: &dyn fmt::Display) -> Result<FlagDraft, Violations> {
    FlagDraft::read(&Json::parse(&body.to_string(), MAX_BODY_DEPTH).unwrap())
}

fn create(body: &dyn fmt::Display) -> Result<FeatureFlag, Violations> {
    let project = ProjectId::new(Uuid::from_u128(0xa));
    let now = Timestamp::from_millis(1_795_234_560_007);
    let mut ids = (1..).map(Uuid::from_u128);
    read(body)?.into_flag(project, now, || ids.next().unwrap())
}

#[track_caller]
fn shown(body: &dyn fmt::Display) -> Value {
    serde_json::to_value(create(body).unwrap()).unwrap()
}

/// Returns the flag that `create` builds from a body with only these fields.
fn flag_of(members: &Value) -> Value {
    let others = json!({
        "id": "00000000-0000-0000-0000-000000000001",
        "projectId": "00000000-0000-0000-0000-00000000000a",
        "description": "", "enabled": false, "archivedAt": null, "version": 1,
        "variants": [], "offVariant": null, "fallthrough": {"variant": null, "rollout": []},
        "rules": [], "targets": [], "prerequisites": [],
        "createdAt": "2026-11-21T04:16:00.007Z", "updatedAt": "2026-11-21T04:16:00.007Z",
    });
    merged(others, members)
}

/// Returns the fields of a returned flag that a client can send back.
fn writable(mut flag: Value) -> Value {
    for name in ["id", "projectId", "archivedAt", "version", "createdAt", "updatedAt"] {
        flag.as_object_mut().unwrap().remove(name).unwrap();
    }
    flag
}

fn faults(violations: &Violations) -> Vec<(&str, ViolationCode)> {
    assert!(violations.listed().iter().all(|fault| !fault.message.is_empty()));
    violations.listed().iter().map(|fault| (fault.pointer.as_str(), fault.code)).collect()
}

#[track_caller]
fn assert_faults(body: &dyn fmt::Display, expected: &[(&str, ViolationCode)]) {
    let violations = match read(body) {
        Ok(_) => Violations::default(),
        Err(violations) if violations.is_empty() => {
            panic!("{body:.300} is rejected without violations")
        }
        Err(violations) => violations,
    };
    assert_eq!(faults(&violations), expected, "{body:.300}");
}

#[test]
fn omitted_fields_get_the_default_of_their_type() {
    let defaults = json!({
        "variants": [
            {"key": "on", "name": "On", "value": "true"},
            {"key": "off", "name": "Off", "value": "false"},
        ],
        "offVariant": "off", "fallthrough": {"variant": "on", "rollout": []},
    });
    let nulls = json!({
        "description": null, "enabled": null, "variants": null, "fallthrough": null, "rules": null,
        "targets": null, "prerequisites": null,
    });
    let (nothing, no_variants) = (json!({}), json!({"variants": []}));
    for (flag_type, defaults) in
        [("boolean", &defaults), ("string", &nothing), ("number", &nothing), ("json", &nothing)]
    {
        for (given, expected) in
            [(&nothing, defaults), (&nulls, defaults), (&no_variants, &nothing)]
        {
            assert_eq!(shown(&minimal(flag_type, given)), flag_of(&minimal(flag_type, expected)));
        }
    }
    for given in [
        json!({"offVariant": null}),
        json!({"offVariant": "on"}),
        json!({"fallthrough": {"variant": null, "rollout": []}}),
        json!({"fallthrough": {"variant": "off", "rollout": []}}),
    ] {
        let expected = minimal("boolean", &merged(defaults.clone(), &given));
        assert_eq!(shown(&minimal("boolean", &given)), flag_of(&expected));
    }
}

#[test]
fn given_variants_choose_the_default_serves() {
    for (flag_type, values, off, on) in [
        ("boolean", ["true", "false", "false"], "v1", "v0"),
        ("boolean", ["false", "true", "true"], "v0", "v1"),
        ("boolean", ["true", "true", "true"], "v0", "v0"),
        ("boolean", ["false", "false", "false"], "v0", "v0"),
        ("string", ["x", "true", "false"], "v0", "v0"),
        ("number", ["2", "1", "0"], "v0", "v0"),
        ("json", ["[]", "{}", "[true]"], "v0", "v0"),
    ] {
        let variants = [0, 1, 2].map(|i| variant(&format!("v{i}"), values[i]));
        let body = minimal(flag_type, &json!({"variants": variants}));
        let serves = json!({"offVariant": off, "fallthrough": {"variant": on, "rollout": []}});
        assert_eq!(shown(&body), flag_of(&merged(body.clone(), &serves)));
    }
}

#[test]
fn full_bodies_are_kept_and_can_be_resent() {
    let flag = shown(&full());
    assert_eq!(flag, flag_of(&full()));
    assert_eq!(shown(&writable(flag.clone())), flag);
}

#[test]
fn missing_names_and_rule_ids_are_generated() {
    let flag = create(&json!({
        "key": "f",
        "name": "\t Two  words \u{3000}",
        "type": "string",
        "variants": [
            {"key": "on", "value": ""},
            {"key": "off", "name": null, "value": ""},
            {"key": "mid", "name": "  ", "value": ""},
            {"key": "top", "name": " Top ", "value": ""},
        ],
        "rules": [
            {"serve": {"variant": "on"}},
            {"id": "mine", "name": " My\u{a0}rule\n", "serve": {"variant": "on"}},
            {"id": null, "name": null, "conditions": null, "serve": {"variant": "on"}},
        ],
    }));
    let flag = flag.unwrap();
    assert_eq!(flag.name, "Two  words");
    let names: Vec<&str> = flag.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["on", "off", "mid", "Top"]);
    let rules: Vec<_> = flag.rules.iter().map(|r| (r.id.as_str(), r.name.as_str())).collect();
    let (first, last) =
        ("00000000-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000003");
    assert_eq!(rules, [(first, ""), ("mine", "My\u{a0}rule"), (last, "")]);
    assert!(flag.rules.iter().all(|rule| rule.conditions.is_empty()));
}

#[test]
fn fields_follow_the_order_of_openapi() {
    let text = serde_json::to_string(&create(&full()).unwrap()).unwrap();
    let name = regex::Regex::new("\"([A-Za-z]+)\":").unwrap();
    let names: Vec<&str> = name.captures_iter(&text).map(|c| c.extract::<1>().1[0]).collect();
    let expected = "id projectId key name description type enabled archivedAt version \
        variants key name value key name value offVariant \
        fallthrough variant rollout variant weight variant weight variant weight \
        rules id name conditions attribute operator values attribute operator values attribute \
        operator values serve variant rollout id name conditions serve variant rollout \
        targets kind value variant kind value variant prerequisites flagKey variant \
        createdAt updatedAt";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn wrong_json_types_are_one_violation_each() {
    let samples = json!({"boolean": true, "number": 1, "string": "x", "array": [], "object": {}});
    for (pointer, kind, null) in fields() {
        for (_, sample) in samples.as_object().unwrap().iter().filter(|(other, _)| *other != kind) {
            assert_faults(&with(pointer, sample.clone()), &[(pointer, InvalidType)]);
        }
        if let Some(code) = null {
            assert_faults(&with(pointer, Value::Null), &[(pointer, code)]);
        }
    }
}

#[test]
fn required_fields_cannot_be_omitted() {
    for (pointer, ..) in fields().filter(|(.., null)| *null == Some(Required)) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let mut body = full();
        body.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name).unwrap();
        assert_faults(&body, &[(pointer, Required)]);
    }
}

#[test]
fn unknown_fields_are_named() {
    for (object, ..) in fields().filter(|(_, kind, _)| *kind == "object") {
        let pointer = format!("{object}/valeu");
        assert_faults(&with(&pointer, 1), &[(&pointer, UnknownField)]);
    }
    // Also names with another case, and fields that only the server sets.
    for pointer in ["/Key", "/id", "/projectId", "/archivedAt", "/version", "/createdAt"] {
        assert_faults(&with(pointer, Value::Null), &[(pointer, UnknownField)]);
    }
}

#[test]
fn duplicate_fields_are_rejected() {
    for (member, pointer) in [
        (r#""enabled":true"#, "/enabled"),
        (r##""value":"#00f""##, "/variants/0/value"),
        (r#""variant":null"#, "/fallthrough/variant"),
        (r#""weight":33.3"#, "/fallthrough/rollout/0/weight"),
        (r#""id":"r.2""#, "/rules/0/id"),
        (r#""attribute":"plan""#, ATTRIBUTE),
        (r#""rollout":[]"#, "/rules/0/serve/rollout"),
        (r#""kind":"identifier""#, "/targets/0/kind"),
        (r#""flagKey":"other""#, "/prerequisites/0/flagKey"),
    ] {
        let text = full().to_string().replacen(member, &format!("{member},{member}"), 1);
        assert_faults(&text, &[(pointer, Duplicate)]);
    }
    let escaped = full().to_string().replacen('{', r#"{"k\u0065y":"k","#, 1);
    assert_faults(&escaped, &[("/key", Duplicate)]);
}

#[test]
fn nul_is_rejected_in_all_texts() {
    for (pointer, ..) in fields().filter(|(_, kind, _)| *kind == "string") {
        assert_faults(&with(pointer, "a\0b"), &[(pointer, InvalidFormat)]);
    }
}

#[test]
fn all_violations_are_listed_in_field_order() {
    let body = r#"{
        "surprise": 1, "key": "a/b", "type": "boolean", "description": 5, "enabled": "yes",
        "variants": [{"key": "on", "value": "true"}, {"key": "off", "valeu": 1, "value": "false"}],
        "offVariant": "of",
        "fallthrough": {"variant": "on", "rollout": [{"variant": "on", "weight": 1}]},
        "rules": [{"conditions": [
            {"attribute": "plan", "operator": "eq", "values": ["x"]},
            {"attribute": "", "operator": "less_than", "values": ["1x"]}
        ], "serve": {}}],
        "targets": [
            {"kind": "identifier", "value": "u", "variant": "on"},
            {"kind": "identifier", "value": "u", "variant": "off"}
        ],
        "prerequisites": [{"flagKey": "p"}]
    }"#;
    let expected = [
        ("/surprise", UnknownField),
        ("/key", InvalidFormat),
        ("/name", Required),
        ("/description", InvalidType),
        ("/enabled", InvalidType),
        ("/variants/1/valeu", UnknownField),
        ("/offVariant", UnknownVariant),
        ("/fallthrough", InvalidValue),
        ("/rules/0/conditions/0/operator", InvalidValue),
        ("/rules/0/conditions/1/attribute", TooShort),
        ("/rules/0/conditions/1/values/0", InvalidFormat),
        ("/rules/0/serve", InvalidValue),
        ("/targets/1", Duplicate),
        ("/prerequisites/0/variant", Required),
    ];
    assert_faults(&body, &expected);
}

#[test]
fn invalid_values_do_not_hide_unknown_variants() {
    let body = put(with("/variants/0/value", 5), "/offVariant", "c");
    assert_faults(&body, &[("/variants/0/value", InvalidType), ("/offVariant", UnknownVariant)]);
}

#[test]
fn all_invalid_condition_values_are_listed() {
    let condition = json!({"attribute": "plan", "operator": "matches", "values": ["x", 5, "("]});
    let [second, third] = [1, 2].map(|i| format!("{CONDITION}/values/{i}"));
    let expected = [(&*second, InvalidType), (&*third, InvalidFormat)];
    assert_faults(&with(CONDITION, condition), &expected);
}

#[test]
fn unknown_variants_do_not_hide_zero_weights() {
    let body = with("/fallthrough/rollout", json!([{"variant": "c", "weight": 0}]));
    let unknown = ("/fallthrough/rollout/0/variant", UnknownVariant);
    assert_faults(&body, &[unknown, ("/fallthrough/rollout", OutOfRange)]);
}

#[test]
fn invalid_flag_types_are_the_only_violation() {
    let body = minimal("bool", &json!({"offVariant": "on", "fallthrough": {"variant": "off"}}));
    assert_faults(&body, &[("/type", InvalidValue)]);
}

#[test]
fn texts_are_accepted_up_to_their_limits() {
    let e = |count: usize| "é".repeat(count);
    let key = |count: usize| "k".repeat(count);
    for (pointer, longest, beyond, code) in [
        ("/key", key(128), key(129), InvalidFormat),
        ("/name", e(200), e(201), TooLong),
        ("/description", e(2_000), e(2_001), TooLong),
        ("/variants/0/name", e(200), e(201), TooLong),
        ("/variants/0/value", e(10_000), e(10_000) + "x", TooLong),
        ("/rules/0/id", key(64), key(65), InvalidFormat),
        ("/rules/0/name", e(200), e(201), TooLong),
        (ATTRIBUTE, e(128), e(129), TooLong),
        (VALUE, e(500), e(500) + "x", TooLong),
        ("/targets/0/value", e(500), e(500) + "x", TooLong),
        ("/prerequisites/0/flagKey", key(128), key(129), InvalidFormat),
        ("/prerequisites/0/variant", key(128), key(129), InvalidFormat),
    ] {
        let flag = shown(&with(pointer, longest.as_str()));
        assert_eq!(flag.pointer(pointer), Some(&json!(longest)), "{pointer}");
        assert_faults(&with(pointer, beyond), &[(pointer, code)]);
    }
    assert_faults(&with("/name", format!(" {} ", e(200))), &[]);
    assert_faults(&with("/variants/2", variant(&key(128), "")), &[]);
    let too_long = json!({"key": key(129), "value": ""});
    assert_faults(&with("/variants/2", too_long), &[("/variants/2/key", InvalidFormat)]);
    let matching = with(OPERATOR, "matches");
    assert_faults(&put(matching.clone(), VALUE, key(512)), &[]);
    assert_faults(&put(matching, VALUE, key(513)), &[(VALUE, TooLong)]);
}

#[test]
fn keys_and_enumerated_values_have_a_form() {
    let keys = "/key /rules/0/id /prerequisites/0/flagKey /prerequisites/0/variant";
    for key in ["", "-a", ".a", "_a", "..", "a/b", "a:b", "a b", " a", "é", "a\n"] {
        for pointer in keys.split(' ') {
            assert_faults(&with(pointer, key), &[(pointer, InvalidFormat)]);
        }
        let third = with("/variants/2", json!({"key": key, "value": ""}));
        assert_faults(&third, &[("/variants/2/key", InvalidFormat)]);
    }
    for pointer in ["/name", "/variants/0/name", "/rules/0/name", ATTRIBUTE] {
        for text in ["a\nb", "a\u{7f}b", "a\u{85}b"] {
            assert_faults(&with(pointer, text), &[(pointer, InvalidFormat)]);
        }
    }
    for (pointer, empty) in
        [("/name", ""), ("/name", " \n"), (ATTRIBUTE, ""), ("/targets/0/value", "")]
    {
        assert_faults(&with(pointer, empty), &[(pointer, TooShort)]);
    }
    for (pointer, names) in [
        ("/type", ["", "Boolean", "bool", "string "]),
        (OPERATOR, ["", "Equals", "eq", "notEquals"]),
        ("/targets/0/kind", ["", "Identifier", "email", "targetingKey"]),
    ] {
        for name in names {
            assert_faults(&with(pointer, name), &[(pointer, InvalidValue)]);
        }
    }
}

#[test]
fn lists_are_accepted_up_to_their_limits() {
    type Item = fn(usize) -> Value;
    fn key(i: usize) -> String {
        ["a", "b"].get(i).map_or_else(|| i.to_string(), ToString::to_string)
    }
    let limits: [(&str, usize, Item); 7] = [
        ("/variants", 100, |i| variant(&key(i), "")),
        ("/fallthrough/rollout", 1_000, |_| json!({"variant": "a", "weight": 1})),
        ("/rules", 100, |_| json!({"serve": {"variant": "a"}})),
        ("/rules/0/conditions", 30, |_| json!({"attribute": "plan", "operator": "exists"})),
        ("/rules/0/conditions/0/values", 250, |i| json!(i.to_string())),
        ("/targets", 1_000, |i| json!({"kind": "identifier", "value": key(i), "variant": "a"})),
        ("/prerequisites", 20, |i| json!({"flagKey": key(i), "variant": "on"})),
    ];
    for (pointer, most, item) in limits {
        let items = |count: usize| Value::Array((0..count).map(item).collect());
        let flag = shown(&with(pointer, items(most)));
        assert_eq!(flag.pointer(pointer).and_then(Value::as_array).map(Vec::len), Some(most));
        assert_faults(&with(pointer, items(most + 1)), &[(pointer, TooManyItems)]);
    }
}

#[test]
fn oversized_flags_are_rejected() {
    let body = |padding: usize| {
        let mut variants = vec![variant("padding", &"x".repeat(padding))];
        variants.extend((0..9).map(|i| variant(&i.to_string(), &"x".repeat(20_000))));
        minimal("string", &json!({"variants": variants}))
    };
    let length = |flag: &FeatureFlag| serde_json::to_string(flag).unwrap().len();
    let padding = 200_000 - length(&create(&body(0)).unwrap());
    assert_eq!(length(&create(&body(padding)).unwrap()), 200_000);
    assert_eq!(faults(&create(&body(padding + 1)).unwrap_err()), [("", TooLong)]);
}

#[test]
fn values_fit_their_type_and_stay_unchanged() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let (deepest, too_deep) = (nested(20), nested(21));
    for (flag_type, accepted, rejected, code) in [
        ("boolean", "true|false", r#"|True|TRUE|1|null| true|false |"true""#, InvalidValue),
        (
            "number",
            "0|-0|12|1.0|0.1|-0.5e-3|1e5|1E+5|123456789.123456789",
            "| 1|1 |01|+1|-|.5|1.",
            InvalidFormat,
        ),
        (
            "number",
            "9007199254740991|-9007199254740991|123456789012345678901234.5",
            "9007199254740992|-9007199254740992|123456789012345678901234",
            OutOfRange,
        ),
        ("number", "0.0", "1e|1e400|0x10|1,5|NaN|Infinity|\"1\"|true|null|[1]|1 2", InvalidFormat),
        (
            "json",
            r#"{}|[]| [1.50, null]|{"a":{"b":"é"},"b":{"b":2}}"#,
            "|1|\"x\"|true|null|{|[1,]",
            InvalidFormat,
        ),
        (
            "json",
            &deepest,
            r#"{'a':1}|{} {}|[NaN]|["\ud800"]|{"a":1,"a":1}|[{"b":{"a":1,"\u0061":2}}]"#,
            InvalidFormat,
        ),
        ("json", "[[]]", &too_deep, InvalidFormat),
    ] {
        let value = |value: &str| json!({"variants": [variant("x", value), variant("y", value)]});
        for accepted in accepted.split('|') {
            let flag = shown(&minimal(flag_type, &value(accepted)));
            assert_eq!(flag["variants"], value(accepted)["variants"]);
        }
        for rejected in rejected.split('|') {
            let places = ["/variants/0/value", "/variants/1/value"].map(|p| (p, code));
            assert_faults(&minimal(flag_type, &value(rejected)), &places);
        }
    }
    for text in ["", "  ", " kept\tas\r\nis ", "01", "é😀\u{feff}\u{7f}\u{1}", "{\"a\":"] {
        let flag = shown(&with("/variants/1/value", text));
        assert_eq!(flag["variants"][1]["value"], text);
    }
}

#[test]
fn duplicates_are_violations_at_the_later_item() {
    let other = |key: &str| json!({"flagKey": key, "variant": "off"});
    for (pointer, same, place, in_another_case) in [
        ("/variants/2", variant("b", "x"), "/variants/2/key", variant("B", "#00f")),
        ("/rules/1/id", json!("r.2"), "/rules/1/id", json!("R.2")),
        ("/targets/1/value", json!("user-2"), "/targets/1", json!("User-2")),
        ("/prerequisites/1", other("other"), "/prerequisites/1/flagKey", other("Other")),
    ] {
        assert_faults(&with(pointer, same), &[(place, Duplicate)]);
        assert_faults(&with(pointer, in_another_case), &[]);
    }
    let own = other("new-checkout");
    assert_faults(&with("/prerequisites/1", own), &[("/prerequisites/1/flagKey", Cycle)]);
}

#[test]
fn only_variants_of_the_flag_can_be_named() {
    let pointers = "/offVariant /fallthrough/rollout/1/variant /rules/0/serve/variant";
    for key in ["c", "A", " a"] {
        for pointer in pointers.split(' ').chain(["/targets/1/variant"]) {
            assert_faults(&with(pointer, key), &[(pointer, UnknownVariant)]);
        }
        let body = with("/fallthrough", json!({"variant": key}));
        assert_faults(&body, &[("/fallthrough/variant", UnknownVariant)]);
    }
    for (flag_type, key) in [("boolean", "true"), ("json", "on"), ("json", "")] {
        let body = minimal(flag_type, &json!({"offVariant": key}));
        assert_faults(&body, &[("/offVariant", UnknownVariant)]);
    }
}

#[test]
fn serves_are_variant_rollout_or_explicit_default() {
    let zero_beside = json!([{"variant": "a", "weight": 0}, {"variant": "b", "weight": 0.001}]);
    let twice = json!([{"variant": "a", "weight": 1}, {"variant": "a", "weight": 2}]);
    let all_zero = json!([{"variant": "a", "weight": 0}, {"variant": "b", "weight": 0}]);
    for place in ["/fallthrough", "/rules/0/serve"] {
        for (given, expected) in [
            (json!({"variant": "b"}), json!({"variant": "b", "rollout": []})),
            (json!({"variant": "b", "rollout": null}), json!({"variant": "b", "rollout": []})),
            (json!({"rollout": zero_beside}), json!({"variant": null, "rollout": zero_beside})),
            (json!({"variant": "", "rollout": twice}), json!({"variant": null, "rollout": twice})),
        ] {
            for given in [given, expected.clone()] {
                assert_eq!(shown(&with(place, given)).pointer(place), Some(&expected));
            }
        }
        let neither_or_both = json!([
            {}, {"variant": null}, {"variant": ""}, {"rollout": null}, {"rollout": []},
            {"variant": null, "rollout": null}, {"variant": "", "rollout": []},
            {"variant": "b", "rollout": twice},
        ]);
        for serve in neither_or_both.as_array().unwrap() {
            assert_faults(&with(place, serve.clone()), &[(place, InvalidValue)]);
        }
        let body = with(place, json!({"rollout": all_zero}));
        assert_faults(&body, &[(&format!("{place}/rollout"), OutOfRange)]);
    }
}

#[test]
fn weights_are_checked_as_written() {
    let body = |weight: &str| full().to_string().replacen("33.3", weight, 1);
    let place = "/fallthrough/rollout/0/weight";
    for (written, weight) in [("0.001", 0.001), ("33.330", 33.33), ("1e-3", 0.001)] {
        assert_eq!(shown(&body(written)).pointer(place), Some(&json!(weight)));
    }
    assert_eq!(shown(&body("1000000.000")).pointer(place), Some(&json!(1_000_000)));
    for written in ["-1", "0.0001", "33.3330", "1000000.001", "1000001", "1e400"] {
        assert_faults(&body(written), &[(place, OutOfRange)]);
    }
}

#[test]
fn operators_accept_values_of_their_type() {
    let mut count = 0;
    for (operators, values) in [
        ("equals not_equals in not_in", json!(["", "x", "x"])),
        ("contains starts_with ends_with", json!(["x", " "])),
        ("not_contains not_starts_with not_ends_with", json!(["x"])),
        ("matches not_matches", json!(["^(?i)a+$", r"\d"])),
        ("exists not_exists", json!([])),
        ("greater_than greater_than_or_equal less_than less_than_or_equal", json!(["-1.5e3"])),
        ("before after", json!(["2026-12-01t00:00:00.1234567+01:00"])),
        ("semver_equals semver_greater_than semver_greater_than_or_equal", json!(["2.1.0-rc.1"])),
        ("semver_less_than semver_less_than_or_equal", json!(["2-rc"])),
        ("in_cidr", json!(["10.0.0.0/8", "2001:db8::/32"])),
    ] {
        for operator in operators.split(' ') {
            count += 1;
            let condition = json!({"attribute": "id", "operator": operator, "values": values});
            let flag = shown(&with(CONDITION, condition.clone()));
            assert_eq!(flag.pointer(CONDITION), Some(&condition));
        }
    }
    assert_eq!(count, 26);
}

#[test]
fn conditions_have_the_values_of_their_operator() {
    for (operator, values, pointer, code) in [
        ("equals", json!([]), "", TooFewItems),
        ("in", json!(null), "", TooFewItems),
        ("exists", json!(["x"]), "", TooManyItems),
        ("greater_than", json!(["1", "2"]), "", TooManyItems),
        ("less_than", json!([" 1"]), "/0", InvalidFormat),
        ("contains", json!(["x", ""]), "/1", TooShort),
        ("after", json!(["2026-12-31"]), "/0", InvalidFormat),
        ("semver_equals", json!(["v2"]), "/0", InvalidFormat),
    ] {
        let condition = json!({"attribute": "plan", "operator": operator, "values": values});
        let pointer = format!("{CONDITION}/values{pointer}");
        assert_faults(&with(CONDITION, condition), &[(&pointer, code)]);
    }
    for mut condition in [json!({}), json!({"values": null})] {
        condition = merged(condition, &json!({"attribute": "plan", "operator": "not_exists"}));
        let flag = create(&with(CONDITION, condition)).unwrap();
        assert!(flag.rules[0].conditions[0].values.is_empty());
    }
    assert_faults(&with("/rules/0/conditions/1/operator", "before"), &[]);
    assert_faults(&with(ATTRIBUTE, "$now"), &[(ATTRIBUTE, InvalidValue)]);
}

#[test]
fn attribute_names_are_kept_as_sent() {
    // Evaluations look up the exact name, so surrounding spaces are part of it.
    for name in ["user.plan", "$Now", " plan", "plan ", " "] {
        let flag = create(&with(ATTRIBUTE, name)).unwrap();
        assert_eq!(flag.rules[0].conditions[0].attribute.as_deref(), Some(name));
    }
    assert_faults(&with(ATTRIBUTE, "plan\n"), &[(ATTRIBUTE, InvalidFormat)]);
}

mod properties {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// JSON texts with real names and values mixed in, including duplicate fields.
    fn any_json() -> impl Strategy<Value = String> {
        let words = "a b on off true 1e5 {} boolean number json string identifier equals matches \
                     $now r.1 new-checkout \0";
        let names = fields().filter_map(|(pointer, ..)| pointer.rsplit('/').next());
        let words: Vec<String> =
            names.chain(words.split(' ')).map(|w| json!(w).to_string()).collect();
        let text = any::<String>().prop_map(|text| json!(text).to_string());
        let string = prop_oneof![4 => select(words), 1 => text];
        let other = select(vec!["null", "true", "0", "-0.5", "100", "1e999", "[]", "{}"]);
        let leaf = prop_oneof![string.clone(), other.prop_map(str::to_owned)];
        leaf.prop_recursive(5, 48, 6, move |inner| {
            let member = (string.clone(), inner.clone()).prop_map(|(n, v)| format!("{n}:{v}"));
            prop_oneof![
                vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn parser_never_panics_and_accepts_its_output(
            (pointer, ..) in select(fields().collect::<Vec<_>>()),
            replacement in any_json(),
        ) {
            let body = with(pointer, "@@").to_string().replacen("\"@@\"", &replacement, 1);
            match create(&body) {
                Ok(flag) => {
                    let again = create(&writable(serde_json::to_value(&flag).unwrap()));
                    prop_assert_eq!(again, Ok(flag));
                }
                Err(violations) => prop_assert!(!violations.is_empty()),
            }
        }
    }
}

#[test]
fn flags_have_at_most_250_patterns_in_total() {
    let rule = |operator: &str, count: usize| {
        let values = vec!["^a"; count];
        let condition = json!({"attribute": "x", "operator": operator, "values": values});
        json!({"conditions": [condition], "serve": {"variant": "on"}})
    };
    let rules = |extra: usize| json!({"rules": [rule("matches", 125), rule("equals", 250), rule("not_matches", extra)]});
    assert_faults(&minimal("boolean", &rules(125)), &[]);
    assert_faults(&minimal("boolean", &rules(126)), &[("/rules", TooManyItems)]);
}
