use serde_json::{Value, json};

use shared::timestamp::Timestamp;

use super::*;
use crate::evaluation::context::Context;
use crate::evaluation::segments::Segments;
use crate::evaluation::test_flags::{context, now};

/// A condition and the attribute that it uses.
#[derive(Debug)]
struct OnlyCondition(CompiledCondition, AttributePaths);

impl OnlyCondition {
    fn holds(&self, context: &Context<'_>, now: Timestamp) -> bool {
        let segments = Segments::default();
        let memberships = Memberships::new(&segments, context, now);
        let found = Found::new(&self.1, context.attributes());
        self.0.holds(&found, &memberships, &memberships.budget().of_flag())
    }
}

fn condition(attribute: &str, operator: &str, values: &[&str]) -> Result<OnlyCondition, String> {
    let operator = Operator::parse(operator).unwrap();
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    let condition = Condition { attribute: Some(attribute.to_owned()), operator, values };
    let mut paths = AttributePaths::default();
    let compiled = CompiledCondition::new(&condition, &mut paths, &mut Compiler::default())?;
    Ok(OnlyCondition(compiled, paths))
}

/// Returns whether the condition holds if the attribute `a` has this value.
#[track_caller]
fn holds_for(attribute: &Value, operator: &str, values: &[&str]) -> bool {
    let text = json!({"a": attribute}).to_string();
    condition("a", operator, values).unwrap().holds(&context(&text), now())
}

#[track_caller]
fn assert_holds(operator: &str, values: &[&str], attributes: &[Value]) {
    for attribute in attributes {
        assert!(holds_for(attribute, operator, values), "{attribute} {operator} {values:?}");
    }
}

#[track_caller]
fn assert_fails(operator: &str, values: &[&str], attributes: &[Value]) {
    for attribute in attributes {
        assert!(!holds_for(attribute, operator, values), "{attribute} {operator} {values:?}");
    }
}

/// Each operator with valid values.
const EVERY: [(&str, &[&str]); 26] = [
    ("equals", &["x"]),
    ("in", &["x"]),
    ("not_equals", &["x"]),
    ("not_in", &["x"]),
    ("contains", &["x"]),
    ("not_contains", &["x"]),
    ("starts_with", &["x"]),
    ("not_starts_with", &["x"]),
    ("ends_with", &["x"]),
    ("not_ends_with", &["x"]),
    ("matches", &["x"]),
    ("not_matches", &["x"]),
    ("exists", &[]),
    ("not_exists", &[]),
    ("greater_than", &["1"]),
    ("greater_than_or_equal", &["1"]),
    ("less_than", &["1"]),
    ("less_than_or_equal", &["1"]),
    ("before", &["2026-01-01T00:00:00Z"]),
    ("after", &["2026-01-01T00:00:00Z"]),
    ("semver_equals", &["1"]),
    ("semver_greater_than", &["1"]),
    ("semver_greater_than_or_equal", &["1"]),
    ("semver_less_than", &["1"]),
    ("semver_less_than_or_equal", &["1"]),
    ("in_cidr", &["0.0.0.0/0"]),
];

#[test]
fn only_not_exists_holds_for_missing_attributes() {
    for (operator, values) in EVERY {
        let compiled = condition("a", operator, values).unwrap();
        let expected = operator == "not_exists";
        for nothing in ["{}", r#"{"a": null}"#, r#"{"b": "x"}"#] {
            assert_eq!(compiled.holds(&context(nothing), now()), expected, "{operator} {nothing}");
        }
    }
}

#[test]
fn only_exists_holds_for_an_object() {
    for (operator, values) in EVERY {
        let object = json!({"a": "x"});
        assert_eq!(holds_for(&object, operator, values), operator == "exists", "{operator}");
    }
}

#[test]
fn arrays_match_if_any_element_matches() {
    for (positive, negative) in
        [("equals", "not_equals"), ("contains", "not_contains"), ("matches", "not_matches")]
    {
        for (items, any) in [
            (json!(["b", "x"]), true),
            (json!(["b", "c"]), false),
            (json!([]), false),
            // Elements of other types do not match.
            (json!([["x"], {"x": "x"}, null]), false),
        ] {
            assert_eq!(holds_for(&items, positive, &["x"]), any, "{positive} {items}");
            assert_eq!(holds_for(&items, negative, &["x"]), !any, "{negative} {items}");
        }
    }
    assert_holds("greater_than", &["5"], &[json!([1, "x", 6]), json!(["6"])]);
    assert_fails("greater_than", &["5"], &[json!([1, 5]), json!([]), json!([[6]])]);
    assert_holds("in_cidr", &["10.0.0.0/8"], &[json!(["x", "10.1.1.1"])]);
    assert_holds("exists", &[], &[json!([]), json!([null])]);
}

#[test]
fn texts_are_compared_byte_by_byte() {
    let values = ["pro", "", "12", "é"];
    for operator in ["equals", "in"] {
        let equal = [json!("pro"), json!(""), json!("12"), json!("é")];
        assert_holds(operator, &values, &equal);
        let other = [json!("Pro"), json!(" pro"), json!("12.0"), json!("e\u{301}")];
        assert_fails(operator, &values, &other);
    }
    for operator in ["not_equals", "not_in"] {
        assert_holds(operator, &values, &[json!("Pro"), json!("12.0"), json!(13), json!(true)]);
        assert_fails(operator, &values, &[json!("pro"), json!(12)]);
    }
}

#[test]
fn booleans_equal_their_names() {
    assert_holds("equals", &["true", "x"], &[json!(true), json!("true")]);
    assert_fails("equals", &["true", "x"], &[json!(false), json!(1), json!("TRUE")]);
    assert_holds("equals", &["false"], &[json!(false)]);
    assert_fails("equals", &["False", "0", ""], &[json!(false)]);
}

#[test]
fn numbers_are_equal_in_all_notations() {
    for value in ["12", "12.0", "1.2e1", "120E-1"] {
        assert_holds("equals", &["x", value], &[json!(12), json!(12.0)]);
        assert_fails("equals", &["x", value], &[json!(-12), json!(12.5), json!("12.00")]);
    }
    // Neighboring numbers that are equal as binary floats.
    assert_holds("equals", &["9007199254740993"], &[json!(9_007_199_254_740_993_i64)]);
    assert_fails("equals", &["9007199254740993"], &[json!(9_007_199_254_740_992_i64)]);
    assert_fails("equals", &["012", "0x0c", " 12", "12abc"], &[json!(12)]);
    assert_holds("equals", &["0"], &[json!(-0.0)]);
}

#[test]
fn text_parts_are_case_sensitive() {
    assert_holds("contains", &["zz", "ell"], &[json!("hello"), json!("ell")]);
    assert_fails("contains", &["zz", "ell"], &[json!("HELLO"), json!("el"), json!(1), json!(true)]);
    assert_holds("starts_with", &["zz", "he"], &[json!("hello")]);
    assert_fails("starts_with", &["zz", "he"], &[json!("ahello"), json!("h")]);
    assert_holds("ends_with", &["zz", "lo"], &[json!("hello")]);
    assert_fails("ends_with", &["zz", "lo"], &[json!("hello!"), json!("o")]);
    assert_holds("not_contains", &["zz", "ell"], &[json!("HELLO"), json!("")]);
    assert_holds("not_starts_with", &["zz", "he"], &[json!("ahello")]);
    assert_holds("not_ends_with", &["zz", "lo"], &[json!("hello!")]);
    for operator in ["not_contains", "not_starts_with", "not_ends_with", "not_matches"] {
        assert_fails(operator, &["x"], &[json!("x"), json!(1), json!(true)]);
    }
}

#[test]
fn patterns_match_anywhere_in_the_text() {
    assert_holds("matches", &["^zz", "l+o"], &[json!("hello")]);
    assert_fails("matches", &["^ello", "(?-i)H"], &[json!("hello"), json!(1)]);
    assert_holds("matches", &["(?i)^HELLO$"], &[json!("hello")]);
    assert_holds("matches", &["^12$"], &[json!("12")]);
    assert_fails("matches", &["12"], &[json!(12)]);
    assert_holds("not_matches", &["^zz", "^ello"], &[json!("hello")]);
    assert_fails("not_matches", &["^zz", "l+o"], &[json!("hello")]);
}

#[test]
fn numbers_are_ordered_exactly() {
    assert_holds("greater_than", &["12"], &[json!(12.5), json!("13"), json!("1.3e1")]);
    assert_fails("greater_than", &["12"], &[json!(12), json!("12.0"), json!(-13)]);
    assert_holds("greater_than_or_equal", &["12"], &[json!(12), json!("12.0"), json!(13)]);
    assert_fails("greater_than_or_equal", &["12"], &[json!(11.999)]);
    assert_holds("less_than", &["9007199254740993"], &[json!(9_007_199_254_740_992_i64)]);
    assert_fails("less_than", &["9007199254740992"], &[json!(9_007_199_254_740_993_i64)]);
    assert_holds("less_than_or_equal", &["-1"], &[json!(-1), json!("-1.0"), json!(-2)]);
    let no_number =
        [json!(""), json!("abc"), json!(" 13"), json!("13 "), json!("0x20"), json!(true)];
    for operator in ["greater_than", "less_than"] {
        assert_fails(operator, &["12"], &no_number);
    }
}

#[test]
fn dates_are_text_with_a_zone_or_milliseconds() {
    let at = "2026-01-01T00:00:00Z";
    assert_holds(
        "after",
        &[at],
        &[json!("2026-01-01T00:00:00.001Z"), json!(1_767_225_600_001_i64)],
    );
    assert_holds("before", &[at], &[json!("2025-12-31T23:59:59z"), json!(1_767_225_599_999.5)]);
    // The same moment in other notations.
    let same = [json!(at), json!("2026-01-01T02:00:00+02:00"), json!(1_767_225_600_000_i64)];
    assert_fails("after", &[at], &same);
    assert_fails("before", &[at], &same);
    let no_date = [json!("2026-06-01"), json!("1999999999999"), json!("tomorrow"), json!(true)];
    assert_fails("after", &[at], &no_date);
    assert_fails("before", &[at], &no_date);
}

#[test]
fn versions_follow_the_precedence_of_semver() {
    let precedence = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1",
        "1.0.1",
        "1.10",
        "2-rc",
        "2",
    ];
    for (index, value) in precedence.iter().enumerate() {
        for (other, attribute) in precedence.iter().enumerate() {
            let attribute = [json!(attribute)];
            for (operator, expected) in [
                ("semver_equals", other == index),
                ("semver_greater_than", other > index),
                ("semver_greater_than_or_equal", other >= index),
                ("semver_less_than", other < index),
                ("semver_less_than_or_equal", other <= index),
            ] {
                let found = holds_for(&attribute[0], operator, &[value]);
                assert_eq!(found, expected, "{attribute:?} {operator} {value}");
            }
        }
    }
    assert_holds("semver_equals", &["1.2.3+one"], &[json!("1.2.3"), json!("1.2.3+other")]);
    let no_version = [json!("v1.2.3"), json!("1.2.3.4"), json!(""), json!("18446744073709551616")];
    assert_fails("semver_less_than", &["999"], &no_version);
    assert_fails("semver_equals", &["1"], &[json!(1), json!(1.0)]);
}

#[test]
fn addresses_are_in_ranges() {
    let ranges = ["10.1.2.3/8", "192.168.0.1", "2001:db8::/32"];
    let inside = ["10.255.0.1", "192.168.0.1", "2001:db8:ffff::1", "::ffff:10.0.0.1"];
    assert_holds("in_cidr", &ranges, &inside.map(|address| json!(address)));
    let outside =
        ["11.0.0.0", "192.168.0.2", "2001:db9::", "::ffff:11.0.0.1", "10.0.0", "10.0.0.1:80"];
    assert_fails("in_cidr", &ranges, &outside.map(|address| json!(address)));
    assert_fails("in_cidr", &ranges, &[json!(167_772_161), json!("")]);
    // An IPv4 address in IPv6 notation is also in IPv6 ranges.
    assert_holds("in_cidr", &["::ffff:0:0/96"], &[json!("::ffff:11.0.0.1")]);
}

#[test]
fn now_is_the_evaluation_time() {
    let holds = |operator, value: &str| {
        let liar = context(r#"{"$now": "1999-01-01T00:00:00Z"}"#);
        condition("$now", operator, &[value]).unwrap().holds(&liar, now())
    };
    assert!(holds("after", "2026-11-21T04:16:00.006Z"));
    assert!(!holds("after", "2026-11-21T04:16:00.007Z"));
    assert!(!holds("before", "2026-11-21T04:16:00.007Z"));
    assert!(holds("before", "2026-11-21T04:16:00.008Z"));
}

#[test]
fn targeting_keys_are_attributes() {
    let someone = context(r#"{"targetingKey": "user-1"}"#);
    let compiled = condition("targetingKey", "starts_with", &["user-"]).unwrap();
    assert!(compiled.holds(&someone, now()));
}

#[test]
fn unusable_values_are_rejected() {
    for (operator, value) in [
        ("matches", "("),
        ("less_than", "x"),
        ("less_than", "1e999"),
        ("before", "2026-01-01"),
        ("semver_equals", "v1"),
        ("in_cidr", "10.0.0.0/33"),
    ] {
        let error = condition("a", operator, &[value]).unwrap_err();
        assert!(error.contains(value), "{error}");
    }
    for (operator, values) in
        [("equals", &["2026-01-01T00:00:00Z"][..]), ("after", &[]), ("after", &["x"])]
    {
        assert!(condition("$now", operator, values).is_err(), "{operator} {values:?}");
    }
}

#[test]
fn texts_are_parsed_independently_for_each_operator() {
    let someone = context(r#"{"a": "2"}"#);
    for (operator, value) in
        [("equals", "2"), ("less_than", "3"), ("semver_equals", "2.0.0"), ("equals", "2")]
    {
        assert!(condition("a", operator, &[value]).unwrap().holds(&someone, now()), "{operator}");
    }
}
