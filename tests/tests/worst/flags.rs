//! Flags, segments, and their evaluation.

use regex::RegexBuilder;
use serde_json::{Value, json};
use tests::call::Call;

use super::hostile::BODY_BYTES;
use super::{Case, Fixture, Report, padded};

/// Flags of a project: the maximum, except in slow debug builds.
const FLAGS: usize = if cfg!(debug_assertions) { 30 } else { 2_000 };
/// Flags whose evaluation is nearly the maximum of a flag. Together they exceed the maximum of a
/// request.
const HEAVY: usize = 12;
/// Segments with a quarter of a megabyte each. With the flags, they fill the project's limit.
const SEGMENTS: usize = if cfg!(debug_assertions) { 10 } else { 40 };
/// Maximum size of a compiled pattern in bytes.
const PATTERN_BYTES: usize = 64 * 1024;
/// Maximum patterns of a flag. Debug builds compile fewer within a request's time.
const PATTERNS: usize = if cfg!(debug_assertions) { 40 } else { 250 };
/// Maximum patterns of a segment.
const SEGMENT_PATTERNS: usize = 25;

/// Repeated parts of patterns, repeated up to the size limit: of letters of all alphabets, and of
/// few.
const REPEATED: [&str; 5] = ["[a-z]", "[^!]", "\\w", "(?i:k)", "(a|b|ab)"];

/// Returns patterns of maximum size. None matches a text without `!`. In a text of `a`, a match can
/// begin at every letter.
fn patterns(repeated: &str, count: usize) -> Vec<String> {
    let written = |times: usize, at: usize| format!("{repeated}{{{times}}}!{at}");
    let fits = |times: usize| {
        let pattern = RegexBuilder::new(&written(times, count)).size_limit(PATTERN_BYTES).build();
        pattern.is_ok()
    };
    let (mut most, mut too_many) = (1, 3_000);
    while too_many - most > 1 {
        let middle = usize::midpoint(most, too_many);
        if fits(middle) { most = middle } else { too_many = middle }
    }
    (0..count).map(|at| written(most, at)).collect()
}

fn condition(operator: &str, values: &[String]) -> Value {
    json!({"attribute": "text", "operator": operator, "values": values})
}

/// Returns a flag with one rule with these conditions.
fn flag(key: &str, conditions: &Value) -> Value {
    let variants = json!([{"key": "a", "value": "a"}, {"key": "b", "value": "b"}]);
    let rules = json!([{"conditions": conditions, "serve": {"variant": "a"}}]);
    json!({
        "key": key, "name": key, "type": "string", "variants": variants, "rules": rules,
        "enabled": true, "fallthrough": {"variant": "b"},
    })
}

/// Returns a flag with the maximum of everything except conditions.
fn long_flag(key: &str) -> Value {
    let variants: Vec<Value> =
        (0..100).map(|at| json!({"key": format!("v{at}"), "value": "é".repeat(100)})).collect();
    let rollout: Vec<Value> = (0..1_000)
        .map(|at| json!({"variant": format!("v{}", at % 100), "weight": 0.001}))
        .collect();
    let targets: Vec<Value> = (0..1_000)
        .map(|at| {
            let value = format!("user-{at}-{}", "x".repeat(40));
            json!({"kind": "identifier", "value": value, "variant": format!("v{}", at % 100)})
        })
        .collect();
    json!({
        "key": key, "name": key, "type": "string", "variants": variants, "enabled": true,
        "fallthrough": {"rollout": rollout}, "targets": targets,
    })
}

/// Returns values of one letter, as many as a flag can have. Longer values exceed the flag's size.
fn short_values() -> Value {
    let values: Vec<String> = (0..250).map(|at| format!("!{at}")).collect();
    let of_rule = vec![condition("not_contains", &values); 30];
    json!(of_rule)
}

fn context(text: &Value) -> Value {
    json!({"context": {"targetingKey": "user", "text": text}})
}

/// Returns a context with the longest text, and one with the longest list.
fn contexts() -> [(&'static str, Value); 2] {
    let items = vec!["a"; 15_000];
    [("a long text", context(&json!("a".repeat(63_000)))), ("a long list", context(&json!(items)))]
}

#[tokio::test]
async fn flags_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let create = |body: &Value| fixture.call("create-feature-flag").json(body);

    let add = |name: &str, body: &Value| {
        let bytes = padded(body, BODY_BYTES);
        let call = fixture.call("create-feature-flag").header("content-type", "application/json");
        Case::once(name, 201, call.bytes(bytes).header("idempotency-key", name))
    };
    let matching = |at: usize| json!([condition("matches", &patterns(REPEATED[at], PATTERNS))]);
    let mut cases = vec![
        Case::once("much of all", 201, create(&long_flag("long"))),
        add("many values", &flag("values", &short_values())),
    ];
    for (at, repeated) in REPEATED.iter().enumerate() {
        let name = format!("patterns of {repeated}");
        cases.push(add(&name, &flag(&format!("patterns-{at}"), &matching(at))));
    }
    fixture.measure("create-feature-flag", cases, report).await;

    let keyed = |id: &str, key: &str| fixture.call(id).parameter("key", key);
    let mut patch = flag("patterns-2", &matching(2));
    patch.as_object_mut().unwrap().retain(|name, _| name != "key" && name != "type");
    patch["name"] = json!("other");
    let cases = vec![
        Case::of("many patterns", 200, keyed("update-feature-flag", "patterns-2").json(&patch)),
        Case::of(
            "many values",
            200,
            keyed("update-feature-flag", "patterns-0").json(&json!({"rules": [
                {"conditions": short_values(), "serve": {"variant": "b"}}
            ]})),
        ),
        Case::of(
            "an old version",
            200,
            keyed("update-feature-flag", "patterns-2").json(&json!({"restoreVersion": 1})),
        ),
    ];
    fixture.measure("update-feature-flag", cases, report).await;

    for key in ["long", "patterns-2"] {
        for at in 0..5 {
            let change = json!({"name": format!("{key} {at}")});
            fixture.make(keyed("update-feature-flag", key).json(&change)).await;
        }
    }
    let changes =
        vec![Case::of("large flags", 200, keyed("list-flag-changes", "long").query("limit", 100))];
    fixture.measure("list-flag-changes", changes, report).await;
    let one = vec![Case::of("a large flag", 200, keyed("get-feature-flag", "long"))];
    fixture.measure("get-feature-flag", one, report).await;
    let tested = json!({"context": {"text": "a".repeat(60_000)}, "changes": {"enabled": true}});
    let tested = keyed("test-feature-flag", "long").json(&tested);
    let tested = vec![Case::of("a large flag", 200, tested)];
    fixture.measure("test-feature-flag", tested, report).await;

    measure_segments(&fixture, report).await;

    // Evaluates each flag with its most expensive context.
    let evaluate = |id: &str, body: &Value| fixture.call(id).json(body);
    let mut cases = Vec::new();
    for (name, body) in contexts() {
        for key in
            ["patterns-0", "patterns-1", "patterns-2", "patterns-3", "patterns-4", "values", "long"]
        {
            let call = evaluate("evaluate-feature-flag", &body).parameter("key", key);
            cases.push(Case::hostile(&format!("{key} of {name}"), super::Expected::Anything, call));
        }
    }
    fixture.measure("evaluate-feature-flag", cases, report).await;

    fill(&fixture).await;
    let [(_, long), _] = contexts();
    let heavy = evaluate("evaluate-feature-flag", &long).parameter("key", "heavy-0");
    assert_eq!(fixture.make(heavy).await.status, 200, "each flag alone is within the limit");
    for id in ["evaluate-feature-flags", "evaluate-feature-flags-with-slash"] {
        let mut cases = Vec::new();
        for (name, body) in contexts() {
            cases.push(Case::of(&format!("all of {name}"), 200, evaluate(id, &body)));
        }
        fixture.measure(id, cases, report).await;
    }
    let all = vec![Case::of("all flags", 200, fixture.call("get-flagd-configuration"))];
    fixture.measure("get-flagd-configuration", all, report).await;
    let page = fixture.call("list-feature-flags").query("limit", 100);
    fixture.measure("list-feature-flags", vec![Case::of("a page", 200, page)], report).await;
    let archive = keyed("update-feature-flag", "long").json(&json!({"archived": true}));
    fixture.make(archive).await;
    let deletion = Case::once("a large flag", 204, keyed("delete-feature-flag", "long"));
    fixture.measure("delete-feature-flag", vec![deletion], report).await;
    report.finish("Feature flags");
}

async fn measure_segments(fixture: &Fixture, report: &mut Report) {
    let named =
        |key: &str, conditions: &Value| json!({"key": key, "name": key, "conditions": conditions});
    let matching = json!([condition("not_matches", &patterns("\\w", SEGMENT_PATTERNS))]);
    let values: Vec<String> = (0..250).map(|at| format!("!{at}")).collect();
    let many = json!(vec![condition("not_contains", &values); 20]);
    let create = |body: &Value| fixture.call("create-segment").json(body);
    let cases = vec![
        Case::once("many patterns", 201, create(&named("patterns", &matching))),
        Case::once("many values", 201, create(&named("values", &many))),
    ];
    fixture.measure("create-segment", cases, report).await;
    let keyed = |id: &str, key: &str| fixture.call(id).parameter("key", key);
    let patch = json!({"conditions": matching, "name": "other"});
    let cases =
        vec![Case::of("many patterns", 200, keyed("update-segment", "patterns").json(&patch))];
    fixture.measure("update-segment", cases, report).await;
    let one = vec![Case::of("a large segment", 200, keyed("get-segment", "values"))];
    fixture.measure("get-segment", one, report).await;
    for at in 0..SEGMENTS {
        fixture.make(create(&named(&format!("s{at}"), &many))).await;
    }
    let page = fixture.call("list-segments").query("limit", 100);
    fixture.measure("list-segments", vec![Case::of("a page", 200, page)], report).await;
    let unused = Case::once("a large segment", 204, keyed("delete-segment", "s0"));
    fixture.measure("delete-segment", vec![unused], report).await;
}

/// Fills the project with flags that use segments.
async fn fill(fixture: &Fixture) {
    let segments = json!([{"operator": "in_segment", "values": ["s1", "s2", "s3"]}]);
    let create = async |key: &str, conditions: &Value| {
        let call: Call = fixture.call("create-feature-flag").json(&flag(key, conditions));
        fixture.make(call).await;
    };
    for at in 0..FLAGS.saturating_sub(10 + HEAVY) {
        create(&format!("flag-{at}"), &segments).await;
    }
    // Slow for its size, with a state small enough that a page's context is compared within a
    // flag's time.
    for at in 0..HEAVY {
        let pattern = format!("(?:a?){{60}}!{at}");
        create(&format!("heavy-{at}"), &json!([condition("matches", &[pattern])])).await;
    }
}
