use serde_json::{Value, json};

use super::*;
use crate::condition::Operator;
use crate::evaluation::test_flags::{context, flag, flags, now};
use crate::{FeatureFlag, Serve};

/// Returns variant, reason, and metadata without `version` and `flagSetId`; or the error's code.
fn outcome_of(flag: FeatureFlag, of: &str) -> Value {
    let key = flag.key.clone();
    let flags = flags([flag]);
    let Ok(evaluation) = flags.evaluate(key.as_str(), &context(of), now()) else {
        let error = flags.evaluate(key.as_str(), &context(of), now()).unwrap_err();
        return json!({"error": error.code()});
    };
    let mut metadata = serde_json::to_value(evaluation.metadata()).unwrap();
    assert_eq!(metadata["version"], "1");
    assert_eq!(metadata["flagSetId"], "00000000-0000-0000-0000-00000000000a");
    metadata.as_object_mut().unwrap().retain(|name, _| name != "version" && name != "flagSetId");
    json!([evaluation.variant(), evaluation.reason(), metadata])
}

const ANYONE: &str = r#"{"targetingKey": "user-1"}"#;

fn rollout(weights: &[(&str, u32)]) -> Value {
    let entry = |(variant, weight): &(&str, u32)| json!({"variant": variant, "weight": weight});
    json!({"variant": null, "rollout": weights.iter().map(entry).collect::<Vec<_>>()})
}

/// Returns a flag in which each step of the order could decide.
fn full() -> Value {
    json!({
        "targets": [{"kind": "identifier", "value": "vip", "variant": "off"}],
        "rules": [
            {"id": "no", "conditions": [
                {"attribute": "plan", "operator": "equals", "values": ["pro"]},
                {"attribute": "beta", "operator": "equals", "values": ["true"]},
            ], "serve": {"variant": "off"}},
            {"id": "pro", "conditions": [
                {"attribute": "plan", "operator": "equals", "values": ["pro"]},
            ], "serve": {"variant": "on"}},
            {"id": "split", "conditions": [
                {"attribute": "plan", "operator": "equals", "values": ["team"]},
            ], "serve": rollout(&[("on", 1), ("off", 99)])},
        ],
        "fallthrough": {"variant": "on"},
    })
}

#[test]
fn disabled_flags_always_serve_their_off_variant() {
    let mut disabled = flag("f", &full());
    disabled.enabled = false;
    for someone in [ANYONE, "{}", r#"{"targetingKey": "vip", "plan": "pro"}"#] {
        assert_eq!(outcome_of(disabled.clone(), someone), json!(["off", "DISABLED", {}]));
    }
    disabled.off_variant = None;
    assert_eq!(outcome_of(disabled, ANYONE), json!([null, "DISABLED", {}]));
}

#[test]
fn targets_come_before_rules() {
    let vip = r#"{"targetingKey": "vip", "plan": "pro"}"#;
    let expected = json!(["off", "TARGETING_MATCH", {"targeted": true}]);
    assert_eq!(outcome_of(flag("f", &full()), vip), expected);
}

#[test]
fn first_matching_rule_serves() {
    let outcome = |of: &str| outcome_of(flag("f", &full()), of);
    let matched = |variant: &str, rule: &str, bucketed: bool| json!([variant, "TARGETING_MATCH", {"ruleId": rule, "bucketed": bucketed}]);
    assert_eq!(outcome(r#"{"plan": "pro"}"#), matched("on", "pro", false));
    assert_eq!(outcome(r#"{"plan": "pro", "beta": true}"#), matched("off", "no", false));
    assert_eq!(
        outcome(r#"{"plan": "team", "targetingKey": "user-1"}"#),
        matched("off", "split", true)
    );
    assert_eq!(outcome(r#"{"plan": "team"}"#), json!({"error": "TARGETING_KEY_MISSING"}));
    assert_eq!(outcome(r#"{"plan": "free"}"#), json!(["on", "DEFAULT", {}]));
}

#[test]
fn rules_without_conditions_always_match() {
    let rule = json!({"rules": [{"id": "all", "serve": {"variant": "off"}}]});
    let expected = json!(["off", "TARGETING_MATCH", {"ruleId": "all", "bucketed": false}]);
    assert_eq!(outcome_of(flag("f", &rule), "{}"), expected);
}

#[test]
fn fixed_fallthroughs_are_static_without_targeting() {
    assert_eq!(outcome_of(flag("f", &json!({})), "{}"), json!(["on", "STATIC", {}]));
    for targeting in ["rules", "targets"] {
        let one = json!({targeting: full()[targeting]});
        assert_eq!(outcome_of(flag("f", &one), "{}"), json!(["on", "DEFAULT", {}]), "{targeting}");
    }
}

#[test]
fn fallthroughs_split_by_targeting_key() {
    let split = flag("new-checkout", &json!({"fallthrough": rollout(&[("on", 45), ("off", 55)])}));
    for (user, variant) in [("user-1", "off"), ("user-2", "on"), ("user-3", "off")] {
        let someone = json!({"targetingKey": user}).to_string();
        let expected = json!([variant, "SPLIT", {"bucketed": true}]);
        assert_eq!(outcome_of(split.clone(), &someone), expected, "{user}");
    }
    for absent in ["{}", r#"{"targetingKey": ""}"#] {
        let expected = json!({"error": "TARGETING_KEY_MISSING"});
        assert_eq!(outcome_of(split.clone(), absent), expected);
    }
}

#[test]
fn single_positive_weights_need_no_targeting_key() {
    let alone = json!({"fallthrough": rollout(&[("off", 0), ("on", 3), ("off", 0)])});
    assert_eq!(outcome_of(flag("f", &alone), "{}"), json!(["on", "STATIC", {}]));
}

#[test]
fn missing_variants_have_the_default_reason() {
    let code_default = json!({"variant": null, "rollout": []});
    let fallthrough = flag("f", &json!({"fallthrough": code_default}));
    assert_eq!(outcome_of(fallthrough, "{}"), json!([null, "DEFAULT", {}]));
    let draft = flag("f", &json!({"type": "string"}));
    assert_eq!(outcome_of(draft, "{}"), json!([null, "DEFAULT", {}]));
    let rule = flag("f", &json!({"rules": [{"id": "r", "serve": code_default}]}));
    let expected = json!([null, "DEFAULT", {"ruleId": "r", "bucketed": false}]);
    assert_eq!(outcome_of(rule, "{}"), expected);
}

#[test]
fn unknown_flags_are_not_found() {
    let flags = flags([flag("f", &json!({}))]);
    for key in ["", "F", "g", "f ", "../f", "é"] {
        let error = flags.evaluate(key, &context("{}"), now()).unwrap_err();
        assert_eq!(error, EvaluationError::FlagNotFound, "{key:?}");
    }
}

#[test]
fn unreadable_flags_fail_with_details() {
    type Damage = fn(&mut FeatureFlag, VariantKey);
    const DAMAGES: [Damage; 6] = [
        |flag, key| flag.off_variant = Some(key),
        |flag, key| flag.fallthrough = Serve::Variant(key),
        |flag, key| flag.rules[1].serve = Serve::Variant(key),
        |flag, key| flag.targets[0].variant = key,
        |flag, _| flag.variants[0].value = "gone".to_owned(),
        |flag, _| {
            flag.rules[0].conditions[0].operator = Operator::LessThan;
        },
    ];
    for (index, damage) in DAMAGES.into_iter().enumerate() {
        let mut flag = flag("f", &full());
        damage(&mut flag, VariantKey::parse("gone").unwrap());
        let flags = flags([flag]);
        let error = flags.evaluate("f", &context(ANYONE), now()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ParseError, "{index}");
        assert!(error.to_string().starts_with("the stored flag f is corrupted: "), "{error}");
    }
}

#[test]
fn flags_are_evaluated_in_key_order() {
    let flags = flags(["b", "a.b", "B", "a", "a-b"].map(|key| flag(key, &json!({}))));
    let absent = context("{}");
    let evaluated = flags.evaluate_all(&absent, now());
    let keys: Vec<&str> =
        evaluated.filter_map(|(key, outcome)| outcome.is_ok().then_some(key.as_str())).collect();
    assert_eq!(keys, ["B", "a", "a-b", "a.b", "b"]);
}

#[test]
fn rules_can_use_any_number_of_attributes() {
    let names: Vec<String> = (0..30).map(|index| format!("a{index}")).collect();
    let exists = |name: &String| json!({"attribute": name, "operator": "exists"});
    let conditions: Vec<Value> = names.iter().map(exists).collect();
    let rule = json!({"id": "r", "conditions": conditions, "serve": {"variant": "off"}});
    let wide = flag("f", &json!({"rules": [rule]}));
    let mut all: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!(1))).collect();
    let outcome = outcome_of(wide.clone(), &json!(all).to_string());
    assert_eq!(outcome, json!(["off", "TARGETING_MATCH", {"ruleId": "r", "bucketed": false}]));
    all.remove("a29");
    assert_eq!(outcome_of(wide, &json!(all).to_string()), json!(["on", "DEFAULT", {}]));
}

/// Returns a flag whose conditions hold and use `tenths` of 50 ms of work with [`long`].
fn heavy(key: &str, tenths: usize) -> FeatureFlag {
    // 100 values, each compared with 50,000 bytes: 5 ms.
    let values: Vec<String> = (0..100).map(|at| format!("!{at}")).collect();
    let condition = json!({"attribute": "text", "operator": "not_contains", "values": values});
    let rule = json!({"conditions": vec![condition; tenths], "serve": {"variant": "off"}});
    flag(key, &json!({"rules": [rule]}))
}

fn long() -> String {
    json!({"text": "a".repeat(49_980)}).to_string()
}

#[test]
fn flags_of_a_request_share_a_work_limit() {
    let light = json!([{"attribute": "text", "operator": "equals", "values": ["b"]}]);
    let light = json!({"rules": [{"conditions": light, "serve": {"variant": "off"}}]});
    let mut all: Vec<_> = (0..9).map(|at| heavy(&format!("f{at}"), 9)).collect();
    all.extend([heavy("a", 11), flag("z", &light)]);
    let flags = flags(all);
    let text = long();
    let context = context(&text);
    let too_much = |key: &str| match flags.evaluate(key, &context, now()) {
        Err(EvaluationError::TooMuchWork(_, limit)) => Some(limit),
        outcome => outcome.map(|_| None).unwrap(),
    };
    assert_eq!((too_much("f8"), too_much("a")), (None, Some(WorkLimit::Flag)));
    let evaluated = || {
        let outcomes = flags.evaluate_all(&context, now());
        outcomes.map(|(key, outcome)| (key.to_string(), outcome)).collect::<Vec<_>>()
    };
    let rejected: Vec<_> =
        evaluated().into_iter().filter(|(_, outcome)| outcome.is_err()).collect();
    // The first flag uses its 50 ms of the 150 ms, and two more use 45 ms each.
    let keys: Vec<&str> = rejected.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "f2", "f3", "f4", "f5", "f6", "f7", "f8"]);
    let message = |at: usize| rejected[at].1.unwrap_err().to_string();
    assert!(message(0).ends_with("more than 50 ms, the limit for a flag"), "{}", message(0));
    assert!(
        message(1).ends_with("more than 150 ms, the limit for all flags of a request"),
        "{}",
        message(1)
    );
    assert!(rejected.iter().all(|(_, it)| it.unwrap_err().code() == ErrorCode::InvalidContext));
    let shown = || format!("{:?}", evaluated());
    assert_eq!(shown(), shown(), "results are deterministic");
}
