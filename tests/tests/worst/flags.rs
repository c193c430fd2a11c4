//! Flags, segments, and their evaluation.

use regex::RegexBuilder;
use serde_json::{Value, json};
use tests::call::Call;

use super::hostile::BODY_BYTES;
use super::{Case, Field, Report, Visibility, padded};

/// How many flags a project has: as many as it may have, where that does not take minutes to make.
const FLAGS: usize = if cfg!(debug_assertions) { 30 } else { 2_000 };
/// How many of them are each nearly as much work as a flag may be: together more than a request may.
const HEAVY: usize = 12;
/// As many more segments, a quarter of a megabyte each: with the flags, what a project may have.
const SEGMENTS: usize = if cfg!(debug_assertions) { 10 } else { 40 };
/// How large a pattern may be, compiled.
const PATTERN_BYTES: usize = 64 * 1024;
/// The most of a flag's patterns; unoptimized, as many as can be compiled in a request's time.
const PATTERNS: usize = if cfg!(debug_assertions) { 40 } else { 250 };
/// The most of a segment's.
const PATTERNS_OF_SEGMENT: usize = 25;

/// What patterns repeat, as often as their size allows: of letters of any alphabet, which are many, and of few.
const REPEATED: [&str; 5] = ["[a-z]", "[^!]", "\\w", "(?i:k)", "(a|b|ab)"];

/// As many patterns as large as they may be. None matches a text without `!`, and of a text of `a`, every letter
/// may begin what matches.
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

/// A flag whose only rule has these conditions.
fn flag(key: &str, conditions: &Value) -> Value {
    let variants = json!([{"key": "a", "value": "a"}, {"key": "b", "value": "b"}]);
    let rules = json!([{"conditions": conditions, "serve": {"variant": "a"}}]);
    json!({
        "key": key, "name": key, "type": "string", "variants": variants, "rules": rules,
        "enabled": true, "fallthrough": {"variant": "b"},
    })
}

/// A flag that has the most of all but conditions.
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

/// Values of one letter: as many as a flag holds. Of two, three and more there are fewer.
fn short_values() -> Value {
    let values: Vec<String> = (0..250).map(|at| format!("!{at}")).collect();
    let of_rule = vec![condition("not_contains", &values); 30];
    json!(of_rule)
}

fn context(text: &Value) -> Value {
    json!({"context": {"targetingKey": "user", "text": text}})
}

/// The longest text, and the longest list, of a context.
fn contexts() -> [(&'static str, Value); 2] {
    let items = vec!["a"; 15_000];
    [("a long text", context(&json!("a".repeat(63_000)))), ("a long list", context(&json!(items)))]
}

#[tokio::test]
async fn flags_cost_little() {
    let scene = Visibility::start().await;
    let report = &mut Report::default();
    let create = |body: &Value| scene.call("create-feature-flag").json(body);

    let made = |name: &str, body: &Value| {
        let bytes = padded(body, BODY_BYTES);
        let call = scene.call("create-feature-flag").header("content-type", "application/json");
        Case::once(name, 201, call.bytes(bytes).header("idempotency-key", name))
    };
    let matching = |at: usize| json!([condition("matches", &patterns(REPEATED[at], PATTERNS))]);
    let mut cases = vec![
        Case::once("much of all", 201, create(&long_flag("long"))),
        made("many values", &flag("values", &short_values())),
    ];
    for (at, repeated) in REPEATED.iter().enumerate() {
        let name = format!("patterns of {repeated}");
        cases.push(made(&name, &flag(&format!("patterns-{at}"), &matching(at))));
    }
    scene.measure("create-feature-flag", cases, report).await;

    let keyed = |id: &str, key: &str| scene.call(id).parameter("key", key);
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
    scene.measure("update-feature-flag", cases, report).await;

    for key in ["long", "patterns-2"] {
        for at in 0..5 {
            let change = json!({"name": format!("{key} {at}")});
            scene.make(keyed("update-feature-flag", key).json(&change)).await;
        }
    }
    let changes =
        vec![Case::of("large flags", 200, keyed("list-flag-changes", "long").query("limit", 100))];
    scene.measure("list-flag-changes", changes, report).await;
    let one = vec![Case::of("a large flag", 200, keyed("get-feature-flag", "long"))];
    scene.measure("get-feature-flag", one, report).await;

    measure_segments(&scene, report).await;

    // Every flag that was made is asked for with what costs it most.
    let evaluate = |id: &str, body: &Value| scene.call(id).json(body);
    let mut cases = Vec::new();
    for (name, body) in contexts() {
        for key in
            ["patterns-0", "patterns-1", "patterns-2", "patterns-3", "patterns-4", "values", "long"]
        {
            let call = evaluate("evaluate-feature-flag", &body).parameter("key", key);
            cases.push(Case::hostile(&format!("{key} of {name}"), super::Expected::Anything, call));
        }
    }
    scene.measure("evaluate-feature-flag", cases, report).await;

    fill(&scene).await;
    let [(_, long), _] = contexts();
    let heavy = evaluate("evaluate-feature-flag", &long).parameter("key", "heavy-0");
    assert_eq!(scene.make(heavy).await.status, 200, "each by itself is little enough");
    for id in ["evaluate-feature-flags", "evaluate-feature-flags-with-slash"] {
        let mut cases = Vec::new();
        for (name, body) in contexts() {
            cases.push(Case::of(&format!("all of {name}"), 200, evaluate(id, &body)));
        }
        scene.measure(id, cases, report).await;
    }
    let all = vec![Case::of("all flags", 200, scene.call("get-flagd-configuration"))];
    scene.measure("get-flagd-configuration", all, report).await;
    let page = scene.call("list-feature-flags").query("limit", 100);
    scene.measure("list-feature-flags", vec![Case::of("a page", 200, page)], report).await;
    let archive = keyed("update-feature-flag", "long").json(&json!({"archived": true}));
    scene.make(archive).await;
    let deletion = Case::once("a large flag", 204, keyed("delete-feature-flag", "long"));
    scene.measure("delete-feature-flag", vec![deletion], report).await;
    report.finish(Field::Flags);
}

async fn measure_segments(scene: &Visibility, report: &mut Report) {
    let named =
        |key: &str, conditions: &Value| json!({"key": key, "name": key, "conditions": conditions});
    let matching = json!([condition("not_matches", &patterns("\\w", PATTERNS_OF_SEGMENT))]);
    let values: Vec<String> = (0..250).map(|at| format!("!{at}")).collect();
    let many = json!(vec![condition("not_contains", &values); 20]);
    let create = |body: &Value| scene.call("create-segment").json(body);
    let cases = vec![
        Case::once("many patterns", 201, create(&named("patterns", &matching))),
        Case::once("many values", 201, create(&named("values", &many))),
    ];
    scene.measure("create-segment", cases, report).await;
    let keyed = |id: &str, key: &str| scene.call(id).parameter("key", key);
    let patch = json!({"conditions": matching, "name": "other"});
    let cases =
        vec![Case::of("many patterns", 200, keyed("update-segment", "patterns").json(&patch))];
    scene.measure("update-segment", cases, report).await;
    let one = vec![Case::of("a large segment", 200, keyed("get-segment", "values"))];
    scene.measure("get-segment", one, report).await;
    for at in 0..SEGMENTS {
        scene.make(create(&named(&format!("s{at}"), &many))).await;
    }
    let page = scene.call("list-segments").query("limit", 100);
    scene.measure("list-segments", vec![Case::of("a page", 200, page)], report).await;
    let unused = Case::once("a large segment", 204, keyed("delete-segment", "s0"));
    scene.measure("delete-segment", vec![unused], report).await;
}

/// Fills the project with flags that ask for segments.
async fn fill(scene: &Visibility) {
    let segments = json!([{"operator": "in_segment", "values": ["s1", "s2", "s3"]}]);
    let create = async |key: &str, conditions: &Value| {
        let call: Call = scene.call("create-feature-flag").json(&flag(key, conditions));
        scene.make(call).await;
    };
    for at in 0..FLAGS.saturating_sub(10 + HEAVY) {
        create(&format!("flag-{at}"), &segments).await;
    }
    // Slow for its size, in no larger a state than a page's context is compared with in a flag's time.
    for at in 0..HEAVY {
        let pattern = format!("(?:a?){{60}}!{at}");
        create(&format!("heavy-{at}"), &json!([condition("matches", &[pattern])])).await;
    }
}
