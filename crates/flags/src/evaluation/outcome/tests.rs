use serde_json::{Value, json};

use super::*;
use crate::condition::Operator;
use crate::evaluation::test_flags::{context, flag, flags, now};
use crate::{FeatureFlag, Serve};

/// Variant, reason and metadata beyond `version` and `flagSetId`; or the error's code.
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

/// A flag in which each step of the order would decide.
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
fn a_disabled_flag_serves_its_off_variant_whatever_else_holds() {
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
fn the_first_rule_whose_conditions_all_hold_serves() {
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
fn a_rule_without_conditions_matches_everyone() {
    let rule = json!({"rules": [{"id": "all", "serve": {"variant": "off"}}]});
    let expected = json!(["off", "TARGETING_MATCH", {"ruleId": "all", "bucketed": false}]);
    assert_eq!(outcome_of(flag("f", &rule), "{}"), expected);
}

#[test]
fn a_fixed_fallthrough_is_static_only_without_targeting() {
    assert_eq!(outcome_of(flag("f", &json!({})), "{}"), json!(["on", "STATIC", {}]));
    for targeting in ["rules", "targets"] {
        let one = json!({targeting: full()[targeting]});
        assert_eq!(outcome_of(flag("f", &one), "{}"), json!(["on", "DEFAULT", {}]), "{targeting}");
    }
}

#[test]
fn a_fallthrough_splits_by_the_targeting_key() {
    let split = flag("new-checkout", &json!({"fallthrough": rollout(&[("on", 45), ("off", 55)])}));
    for (user, variant) in [("user-1", "off"), ("user-2", "on"), ("user-3", "off")] {
        let someone = json!({"targetingKey": user}).to_string();
        let expected = json!([variant, "SPLIT", {"bucketed": true}]);
        assert_eq!(outcome_of(split.clone(), &someone), expected, "{user}");
    }
    for nobody in ["{}", r#"{"targetingKey": ""}"#] {
        let expected = json!({"error": "TARGETING_KEY_MISSING"});
        assert_eq!(outcome_of(split.clone(), nobody), expected);
    }
}

#[test]
fn a_single_positive_weight_needs_no_targeting_key() {
    let alone = json!({"fallthrough": rollout(&[("off", 0), ("on", 3), ("off", 0)])});
    assert_eq!(outcome_of(flag("f", &alone), "{}"), json!(["on", "STATIC", {}]));
}

#[test]
fn without_a_variant_to_serve_it_is_the_default() {
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
fn what_does_not_exist_is_not_found() {
    let flags = flags([flag("f", &json!({}))]);
    for key in ["", "F", "g", "f ", "../f", "é"] {
        let error = flags.evaluate(key, &context("{}"), now()).unwrap_err();
        assert_eq!(error, EvaluationError::FlagNotFound, "{key:?}");
    }
}

#[test]
fn a_damaged_flag_fails_and_says_why() {
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
        assert!(error.to_string().starts_with("the stored flag f is damaged: "), "{error}");
    }
}

#[test]
fn all_flags_are_evaluated_in_the_order_of_their_keys() {
    let flags = flags(["b", "a.b", "B", "a", "a-b"].map(|key| flag(key, &json!({}))));
    let nobody = context("{}");
    let evaluated = flags.evaluate_all(&nobody, now());
    let keys: Vec<&str> =
        evaluated.filter_map(|(key, outcome)| outcome.is_ok().then_some(key.as_str())).collect();
    assert_eq!(keys, ["B", "a", "a-b", "a.b", "b"]);
}

#[test]
fn a_rule_may_ask_for_any_number_of_attributes() {
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

/// A flag whose conditions may do `tenths` of 50 ms of work with [`long`], and hold.
fn heavy(key: &str, tenths: usize) -> FeatureFlag {
    // 100 values, of which each looks at 50,000 bytes: 5 ms.
    let values: Vec<String> = (0..100).map(|at| format!("!{at}")).collect();
    let condition = json!({"attribute": "text", "operator": "not_contains", "values": values});
    let rule = json!({"conditions": vec![condition; tenths], "serve": {"variant": "off"}});
    flag(key, &json!({"rules": [rule]}))
}

fn long() -> String {
    json!({"text": "a".repeat(49_980)}).to_string()
}

#[test]
fn the_flags_of_a_request_do_so_much_work_and_no_more() {
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
    let refused: Vec<_> = evaluated().into_iter().filter(|(_, outcome)| outcome.is_err()).collect();
    // Of 150 ms the first takes its own 50, and two take 45 each.
    let keys: Vec<&str> = refused.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "f2", "f3", "f4", "f5", "f6", "f7", "f8"]);
    let said = |at: usize| refused[at].1.unwrap_err().to_string();
    assert!(said(0).ends_with("more than 50 ms, the most for a flag"), "{}", said(0));
    assert!(
        said(1).ends_with("more than 150 ms, the most for all flags of a request"),
        "{}",
        said(1)
    );
    assert!(refused.iter().all(|(_, it)| it.unwrap_err().code() == ErrorCode::InvalidContext));
    let shown = || format!("{:?}", evaluated());
    assert_eq!(shown(), shown(), "it is always the same");
}
