//! Feature flags: management, and evaluation through OFREP.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::recording::{Recording, Request, delete, get, patch, post};

const FLAGS: &str = "/v0/project/shop/feature-flags";
const EVALUATE: &str = "/v0/project/shop/ofrep/v1/evaluate/flags";

fn flag(key: &str) -> String {
    format!("{FLAGS}/{key}")
}

fn evaluate(key: &str, context: &str) -> Request {
    post(format!("{EVALUATE}/{key}")).text(format!(r#"{{"context":{context}}}"#))
}

/// Returns a flag with one rule with one condition.
fn conditional(attribute: &str, operator: &str, values: &Value) -> Value {
    let condition = json!({"attribute": attribute, "operator": operator, "values": values});
    json!({
        "key": "conditional", "name": "Conditional", "type": "boolean", "enabled": true,
        "rules": [{"id": "r", "conditions": [condition], "serve": {"variant": "on"}}],
    })
}

/// Bodies that create a flag.
const CREATIONS: [(&str, &str); 10] = [
    ("create: the smallest flag", r#"{"key":"smallest","name":"Smallest","type":"boolean"}"#),
    (
        "create: a flag that is on",
        r#"{"key":"base","name":"Base","type":"boolean","enabled":true}"#,
    ),
    (
        "create: a flag with everything",
        r##"{"key":"checkout-button","name":"Checkout button","description":"Which colour sells more?",
        "type":"string","enabled":true,"variants":[{"key":"green","name":"Green","value":"#1a7f37"},
        {"key":"blue","value":"#0969da"}],"offVariant":"green","fallthrough":{"rollout":[
        {"variant":"green","weight":90},{"variant":"blue","weight":10.5}]},"rules":[{"id":"staff",
        "name":"Staff","conditions":[{"attribute":"email","operator":"ends_with","values":["@example.com"]},
        {"attribute":"age","operator":"greater_than_or_equal","values":["18"]}],"serve":{"variant":"blue"}},
        {"conditions":[{"attribute":"version","operator":"semver_less_than","values":["2.0.0"]}],
        "serve":{"rollout":[{"variant":"green","weight":1},{"variant":"blue","weight":1}]}}],
        "targets":[{"kind":"identifier","value":"user-42","variant":"green"}],
        "prerequisites":[{"flagKey":"base","variant":"on"}]}"##,
    ),
    (
        "create: a number flag",
        r#"{"key":"limit","name":"Limit","type":"number","enabled":true,"variants":[
        {"key":"low","value":"10"},{"key":"high","name":"High","value":"1.5e3"}],"offVariant":"low",
        "fallthrough":{"variant":"high"}}"#,
    ),
    (
        "create: a json flag",
        r##"{"key":"theme","name":"Theme","type":"json","enabled":true,"variants":[
        {"key":"dark","value":"{\"colors\": [\"#000\", {\"a\": null}]}"},{"key":"list","value":"[1.0, \"é\"]"}],
        "fallthrough":{"variant":"dark"}}"##,
    ),
    (
        "create: a string flag without variants",
        r#"{"key":"empty","name":"Empty","type":"string","enabled":true,"variants":[]}"#,
    ),
    (
        "create: null in every optional field",
        r#"{"key":"nulls","name":"Nulls","description":null,"type":"boolean","enabled":null,
        "variants":null,"offVariant":null,"fallthrough":null,"rules":null,"targets":null,"prerequisites":null}"#,
    ),
    (
        "create: text beyond ASCII",
        r#"{"key":"Text.1_a-b","name":"Überschrift 💥 \"q\"","description":"line\nbreak\ttab","type":"boolean"}"#,
    ),
    (
        "create: a flag that is off, with a rule",
        r#"{"key":"off","name":"Off","type":"boolean","offVariant":"off","rules":[{"serve":{"variant":"on"}}]}"#,
    ),
    (
        "create: a dependent of a dependent",
        r#"{"key":"dependent","name":"Dependent","type":"boolean","enabled":true,"offVariant":"off",
        "fallthrough":{"variant":"on"},"prerequisites":[{"flagKey":"checkout-button","variant":"blue"}]}"#,
    ),
];

/// Bodies that are rejected.
const REJECTED_CREATIONS: [(&str, &str); 40] = [
    ("no body", ""),
    ("half an object", "{"),
    ("not JSON", "key=a"),
    ("a trailing comma", r#"{"key":"a",}"#),
    ("a lone surrogate", r#"{"key":"\ud800"}"#),
    ("text behind the object", "{} x"),
    ("on the third line", "{\n\"key\": \"a\",\n\"name\": nope}"),
    ("an array", "[]"),
    ("text", r#""flag""#),
    ("null", "null"),
    ("an empty object", "{}"),
    ("null in required fields", r#"{"key":null,"name":null,"type":null}"#),
    ("unknown fields", r#"{"key":"a","name":"a","type":"boolean","nmae":1,"":2,"a/b~c":3}"#),
    ("a field twice", r#"{"key":"a","key":"b","name":"a","type":"boolean"}"#),
    (
        "wrong types",
        r#"{"key":1,"name":[],"description":{},"type":true,"enabled":"yes","variants":{},
        "offVariant":1,"fallthrough":"on","rules":"","targets":1,"prerequisites":false}"#,
    ),
    ("an empty key and name", r#"{"key":"","name":"","type":"boolean"}"#),
    ("a key of other letters", r#"{"key":"ä b","name":"a","type":"boolean"}"#),
    ("a key that starts with a hyphen", r#"{"key":"-a","name":"a","type":"boolean"}"#),
    ("NUL", r#"{"key":"a","name":"a\u0000b","description":"\u0000","type":"boolean"}"#),
    ("a control character in the name", r#"{"key":"a","name":"a\u0007b","type":"boolean"}"#),
    ("another type of flag", r#"{"key":"a","name":"a","type":"Boolean"}"#),
    (
        "values of a boolean",
        r#"{"key":"a","name":"a","type":"boolean","variants":[{"key":"a","value":"True"},
        {"key":"b","value":"1"},{"key":"c","value":""}]}"#,
    ),
    (
        "values of a number",
        r#"{"key":"a","name":"a","type":"number","variants":[{"key":"a","value":"01"},
        {"key":"b","value":"1e999"},{"key":"c","value":"9007199254740993"},{"key":"d","value":"NaN"}]}"#,
    ),
    (
        "values of JSON",
        r#"{"key":"a","name":"a","type":"json","variants":[{"key":"a","value":"{"},
        {"key":"b","value":"[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]"},{"key":"c","value":""},
        {"key":"d","value":"{\"a\":1,\"a\":2}"}]}"#,
    ),
    (
        "variants without members",
        r#"{"key":"a","name":"a","type":"boolean","variants":[{},1,null,
        {"key":"on","value":"true","extra":1}]}"#,
    ),
    (
        "a variant twice",
        r#"{"key":"a","name":"a","type":"boolean","variants":[{"key":"a","value":"true"},
        {"key":"a","value":"false"}]}"#,
    ),
    (
        "unknown variants",
        r#"{"key":"a","name":"a","type":"boolean","offVariant":"x","fallthrough":{"variant":"y"},
        "rules":[{"serve":{"variant":"z"}},{"serve":{"rollout":[{"variant":"w","weight":1}]}}],
        "targets":[{"kind":"identifier","value":"u","variant":"v"}]}"#,
    ),
    (
        "a serve of both kinds",
        r#"{"key":"a","name":"a","type":"boolean","fallthrough":{"variant":"on",
        "rollout":[{"variant":"on","weight":1}]}}"#,
    ),
    (
        "a rule that serves nothing",
        r#"{"key":"a","name":"a","type":"boolean","rules":[{"serve":{}},{},
        {"serve":{"variant":null,"rollout":[]}}]}"#,
    ),
    (
        "weights out of range",
        r#"{"key":"a","name":"a","type":"boolean","fallthrough":{"rollout":[
        {"variant":"on","weight":-1},{"variant":"off","weight":1000001},{"variant":"on","weight":"1"}]}}"#,
    ),
    (
        "weights of nothing",
        r#"{"key":"a","name":"a","type":"boolean","fallthrough":{"rollout":[
        {"variant":"on","weight":0},{"variant":"off","weight":0}]}}"#,
    ),
    (
        "a rule's id twice, and a bad one",
        r#"{"key":"a","name":"a","type":"boolean","rules":[
        {"id":"r","serve":{"variant":"on"}},{"id":"r","serve":{"variant":"on"}},{"id":"ä","serve":{"variant":"on"}}]}"#,
    ),
    (
        "conditions",
        r#"{"key":"a","name":"a","type":"boolean","rules":[{"serve":{"variant":"on"},"conditions":[{},
        {"attribute":"","operator":"equals","values":["a"]},{"attribute":"a\u0001","operator":"equals","values":["a"]},
        {"attribute":"a","operator":"like","values":["a"]},{"attribute":"a","operator":"equals"},
        {"attribute":"a","operator":"exists","values":["a"]},{"attribute":"a","operator":"before","values":["a","b"]},
        {"attribute":"$now","operator":"equals","values":["a"]},{"attribute":"a","operator":"in","values":[1,null]}]}]}"#,
    ),
    (
        "values of conditions",
        r#"{"key":"a","name":"a","type":"boolean","rules":[{"serve":{"variant":"on"},"conditions":[
        {"attribute":"a","operator":"contains","values":[""]},{"attribute":"a","operator":"matches","values":["("]},
        {"attribute":"a","operator":"matches","values":["(((a{100}){100}){100})"]},
        {"attribute":"a","operator":"greater_than","values":["1,5"]},{"attribute":"a","operator":"after","values":["today"]},
        {"attribute":"a","operator":"semver_equals","values":["v1.0.0"]},{"attribute":"a","operator":"in_cidr","values":["10.0.0.0/33"]}]}]}"#,
    ),
    (
        "targets",
        r#"{"key":"a","name":"a","type":"boolean","targets":[{},{"kind":"segment","value":"","variant":"on"},
        {"kind":"identifier","value":"u","variant":"on"},{"kind":"identifier","value":"u","variant":"off"}]}"#,
    ),
    (
        "prerequisites",
        r#"{"key":"a","name":"a","type":"boolean","prerequisites":[{},{"flagKey":"a","variant":"on"},
        {"flagKey":"base","variant":"on"},{"flagKey":"base","variant":"off"},{"flagKey":"ä","variant":""}]}"#,
    ),
    (
        "unknown prerequisites",
        r#"{"key":"a","name":"a","type":"boolean","prerequisites":[
        {"flagKey":"missing","variant":"on"},{"flagKey":"base","variant":"blue"}]}"#,
    ),
    ("a key that is taken", r#"{"key":"base","name":"Base","type":"boolean"}"#),
    ("deep nesting", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
    ("a name of spaces", r#"{"key":"spaces here","name":"   ","type":"boolean"}"#),
];

/// Patches of the flag `checkout-button`, in order.
const PATCHES: [(&str, &str); 18] = [
    ("patch: nothing", "{}"),
    ("patch: a name", r#"{"name":"Button"}"#),
    ("patch: the same name", r#"{"name":"Button"}"#),
    ("patch: off", r#"{"enabled":false}"#),
    ("patch: on, with a description", r#"{"enabled":true,"description":"d"}"#),
    ("patch: null resets", r#"{"description":null,"rules":null,"targets":null}"#),
    (
        "patch: rules and targets",
        r#"{"rules":[{"id":"staff","conditions":[{"attribute":"email",
        "operator":"matches","values":["@example\\.com$"]}],"serve":{"variant":"blue"}}],
        "targets":[{"kind":"identifier","value":"user-7","variant":"blue"}]}"#,
    ),
    (
        "patch: one variant more",
        r##"{"variants":[{"key":"green","value":"#1a7f37"},{"key":"blue","value":"#0969da"},
        {"key":"red","name":"Red","value":"#f00"}]}"##,
    ),
    ("patch: the fallthrough", r#"{"fallthrough":{"variant":"red"}}"#),
    ("patch: no off variant", r#"{"offVariant":null}"#),
    (
        "patch rejected: a variant in use by itself",
        r##"{"variants":[{"key":"blue","value":"#0969da"}]}"##,
    ),
    (
        "patch rejected: a variant in use by another flag",
        r##"{"variants":[{"key":"green","value":"#1a7f37"},
        {"key":"red","value":"#f00"}],"rules":[],"targets":[],"fallthrough":{"variant":"red"}}"##,
    ),
    (
        "patch rejected: what cannot be changed",
        r#"{"key":"b","type":"number","id":"x","version":3}"#,
    ),
    ("patch rejected: null where it cannot be", r#"{"name":null,"variants":null}"#),
    ("patch rejected: wrong types", r#"{"name":1,"archived":"no","rules":{}}"#),
    ("patch rejected: a circle", r#"{"prerequisites":[{"flagKey":"dependent","variant":"on"}]}"#),
    (
        "patch rejected: itself as prerequisite",
        r#"{"prerequisites":[{"flagKey":"checkout-button","variant":"red"}]}"#,
    ),
    ("patch rejected: not an object", "[]"),
];

/// Evaluations: flag and context.
const EVALUATIONS: [(&str, &str, &str); 16] = [
    ("evaluate: static", "base", "{}"),
    ("evaluate: disabled", "smallest", r#"{"targetingKey":"ann"}"#),
    ("evaluate: the caller's default", "empty", "{}"),
    ("evaluate: a number", "limit", "null"),
    ("evaluate: JSON", "theme", r#"{"targetingKey":"ann"}"#),
    ("evaluate: a target", "checkout-button", r#"{"targetingKey":"user-42"}"#),
    (
        "evaluate: a rule",
        "checkout-button",
        r#"{"targetingKey":"ann","email":"a@example.com","age":18}"#,
    ),
    (
        "evaluate: a rule with a rollout",
        "checkout-button",
        r#"{"targetingKey":"bob","version":"1.9.9"}"#,
    ),
    (
        "evaluate: a rollout",
        "checkout-button",
        r#"{"targetingKey":"ann","age":"17","email":["x"]}"#,
    ),
    ("evaluate: a prerequisite that is not met", "dependent", r#"{"targetingKey":"ann"}"#),
    (
        "evaluate: a prerequisite that is met",
        "dependent",
        r#"{"targetingKey":"a","email":"a@example.com","age":18}"#,
    ),
    ("evaluate: no targeting key", "checkout-button", r#"{"email":"b@example.org"}"#),
    ("evaluate: an unknown flag", "missing", "{}"),
    ("evaluate: a key of other letters", "ä", "{}"),
    ("evaluate: a targeting key that is a number", "base", r#"{"targetingKey":7}"#),
    ("evaluate: a member twice", "base", r#"{"a":1,"a":2}"#),
];

/// Evaluation bodies that are invalid contexts, or just valid.
const CONTEXTS: [(&str, &str); 9] = [
    ("no body", ""),
    ("an empty object", "{}"),
    ("not JSON", "{"),
    ("an array", "[]"),
    ("two contexts", r#"{"context":{},"context":{}}"#),
    ("a context that is text", r#"{"context":"ann"}"#),
    ("more members", r#"{"context":{},"more":[1]}"#),
    ("a targeting key that is null", r#"{"context":{"targetingKey":null}}"#),
    ("a context that is null", r#"{"context":null}"#),
];

/// Returns conditions, each with a context that matches.
fn conditions() -> [(&'static str, Value, &'static str); 17] {
    let of = conditional;
    [
        ("equals", of("plan", "equals", &json!(["pro"])), r#""pro""#),
        ("not_equals", of("plan", "not_equals", &json!(["pro"])), r#""free""#),
        ("in", of("plan", "in", &json!(["a", "b"])), r#""b""#),
        ("not_in, of a list", of("plan", "not_in", &json!(["a", "b"])), r#"["c","b"]"#),
        ("contains", of("plan", "contains", &json!(["r"])), r#""pro""#),
        ("not_starts_with", of("plan", "not_starts_with", &json!(["p"])), r#""free""#),
        ("not_ends_with", of("plan", "not_ends_with", &json!(["o"])), r#""pro""#),
        ("not_matches", of("plan", "not_matches", &json!(["^p.o$"])), r#""pro""#),
        ("exists", of("plan", "exists", &json!([])), "false"),
        ("not_exists", of("plan", "not_exists", &json!(null)), "null"),
        ("less_than", of("plan", "less_than", &json!(["1e2"])), "99.5"),
        (
            "before",
            of("plan", "before", &json!(["2026-01-01T00:00:00Z"])),
            r#""2025-12-31T23:59:59+00:00""#,
        ),
        ("after now", of("$now", "after", &json!(["2026-01-01T00:00:00Z"])), "1"),
        ("semver_equals", of("plan", "semver_equals", &json!(["1.2.3"])), r#""1.2.3+build""#),
        (
            "semver_greater_than_or_equal",
            of("plan", "semver_greater_than_or_equal", &json!(["1.0.0-rc.1"])),
            r#""1.0.0""#,
        ),
        (
            "in_cidr",
            of("plan", "in_cidr", &json!(["10.0.0.0/8", "2001:db8::/32"])),
            r#""2001:db8::1""#,
        ),
        ("a nested attribute", of("plan.name", "equals", &json!(["pro"])), r#"{"name":"pro"}"#),
    ]
}

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("flags").await;
    let r = &mut recording;

    r.send("list: nothing", get(FLAGS)).await;
    r.send("evaluate all: nothing", post(EVALUATE).text(r#"{"context":{}}"#)).await;
    r.send_all(CREATIONS, |body| post(FLAGS).text(body)).await;
    for (name, body) in REJECTED_CREATIONS {
        r.send(&format!("create rejected: {name}"), post(FLAGS).text(body)).await;
    }
    limits(r).await;
    idempotency(r).await;

    r.send("get", get(flag("checkout-button"))).await;
    r.send("get: the smallest", get(flag("smallest"))).await;
    r.send("get: by the project's id", get("/v0/project/<project>/feature-flags/limit")).await;
    r.send("get: an unknown flag", get(flag("missing"))).await;
    r.send("get: a key of other letters", get(flag("%C3%A4"))).await;

    for (name, key, context) in EVALUATIONS {
        r.send(name, evaluate(key, context)).await;
    }
    for (name, body) in CONTEXTS {
        let key = format!("{EVALUATE}/base");
        r.send(&format!("evaluate, {name}"), post(key).text(body)).await;
        r.send(&format!("evaluate all, {name}"), post(EVALUATE).text(body)).await;
    }
    let ann = r#"{"context":{"targetingKey":"ann","email":"ann@example.com","age":40}}"#;
    let all = r.send("evaluate all: ann", post(EVALUATE).text(ann)).await;
    r.send("evaluate all: with a slash", post(format!("{EVALUATE}/")).text(ann)).await;
    let etag = all.headers["etag"].to_str().unwrap();
    let unchanged = post(EVALUATE).text(ann).header("if-none-match", etag);
    r.send("evaluate all: unchanged", unchanged).await;
    let star = post(EVALUATE).text(ann).header("if-none-match", "\"x\", *");
    r.send("evaluate all: any etag", star).await;
    let slash = || post(format!("{EVALUATE}/")).text(ann);
    r.send("evaluate all: with a slash, unchanged", slash().header("if-none-match", etag)).await;
    r.send("evaluate all: with a slash, no key", slash().key(None)).await;
    r.send(
        "evaluate all: with a slash, two contexts",
        post(format!("{EVALUATE}/")).text(CONTEXTS[4].1),
    )
    .await;
    let missing = post("/v0/project/missing/ofrep/v1/evaluate/flags/").text(ann);
    r.send("evaluate all: with a slash, an unknown project", missing).await;
    let other = post(EVALUATE).text(ann).header("if-none-match", "\"x\"");
    r.send("evaluate all: another etag", other.header("cache-control", "no-cache")).await;
    let plain = post(EVALUATE).bytes(ann).header("content-type", "text/plain");
    r.send("evaluate all: plain text", plain).await;
    let large = format!(r#"{{"context":{{"a":"{}"}}}}"#, "a".repeat(64_000));
    r.send("evaluate all: a large context", post(EVALUATE).text(&large)).await;
    r.send("evaluate: a large context", post(format!("{EVALUATE}/base")).text(&large)).await;
    let long = format!(r#"{{"targetingKey":"{}"}}"#, "k".repeat(1_001));
    r.send("evaluate: a long targeting key", evaluate("base", &long)).await;

    patches(r).await;
    listing(r).await;
    for (name, flag_of_it, value) in conditions() {
        r.send(&format!("condition: {name}"), post(FLAGS).json(&flag_of_it)).await;
        for (outcome, value) in [("passes or not", value), ("another type", "true")] {
            let context = format!(r#"{{"plan":{value}}}"#);
            let name = format!("condition: {name}, {outcome}");
            r.send(&name, evaluate("conditional", &context)).await;
        }
        r.send(&format!("condition: {name}, archived"), archive("conditional")).await;
        r.send(&format!("condition: {name}, deleted"), delete(flag("conditional"))).await;
    }
    archiving(r).await;
    damage(r).await;
    recording.finish();
}

fn archive(key: &str) -> Request {
    patch(flag(key)).text(r#"{"archived":true}"#)
}

/// Values beyond the limits.
async fn limits(r: &mut Recording) {
    let smallest = |field: &str, value: Value| {
        let mut body = json!({"key": "large", "name": "Large", "type": "boolean"});
        body[field] = value;
        post(FLAGS).json(&body)
    };
    let target =
        |n: usize| json!({"kind": "identifier", "value": format!("u{n}"), "variant": "on"});
    let rule = json!({"serve": {"variant": "on"}});
    let pattern = json!({"attribute": "a", "operator": "matches", "values": vec!["a"; 26]});
    let patterns = vec![json!({"serve": {"variant": "on"}, "conditions": [pattern]}); 10];
    let long = |operator: &str, bytes: usize| {
        let values = json!(["a".repeat(bytes)]);
        let condition = json!({"attribute": "a", "operator": operator, "values": values});
        json!([{"serve": {"variant": "on"}, "conditions": [condition]}])
    };
    let on = |n: usize| json!({"flagKey": format!("f{n}"), "variant": "on"});
    let variant = |n: usize| json!({"key": format!("v{n}"), "value": "true"});
    for (name, field, value) in [
        ("key", "key", json!("k".repeat(129))),
        ("name", "name", json!("é".repeat(201))),
        ("description", "description", json!("é".repeat(2_001))),
        ("value of a variant", "variants", json!([{"key": "a", "value": "1".repeat(20_001)}])),
        ("variants", "variants", json!((0..101).map(variant).collect::<Vec<_>>())),
        ("rules", "rules", json!(vec![rule; 101])),
        (
            "conditions",
            "rules",
            json!([{"serve": {"variant": "on"}, "conditions": vec![json!({}); 31]}]),
        ),
        ("patterns", "rules", json!(patterns)),
        ("value of a condition", "rules", long("equals", 1_001)),
        ("pattern", "rules", long("matches", 513)),
        ("targets", "targets", json!((0..1_001).map(target).collect::<Vec<_>>())),
        (
            "value of a target",
            "targets",
            json!([{"kind": "identifier", "value": "u".repeat(1_001), "variant": "on"}]),
        ),
        ("prerequisites", "prerequisites", json!((0..21).map(on).collect::<Vec<_>>())),
        (
            "name of an attribute",
            "rules",
            json!([{"serve": {"variant": "on"}, "conditions": [
            {"attribute": "a".repeat(129), "operator": "exists"}]}]),
        ),
        (
            "flag in all",
            "targets",
            json!(
                (0..1_000)
                    .map(|n| json!({"kind": "identifier",
            "value": format!("{n:0>200}"), "variant": "on"}))
                    .collect::<Vec<_>>()
            ),
        ),
    ] {
        r.send(&format!("create rejected, too much: {name}"), smallest(field, value)).await;
    }
    let many = smallest("targets", json!(vec![json!({}); 400]));
    r.send("create rejected: more violations than are listed", many).await;
    r.send("create rejected: a large body", post(FLAGS).text(" ".repeat(262_145))).await;
    let plain = post(FLAGS).bytes("{}").header("content-type", "text/plain; charset=utf-8");
    r.send("create rejected: plain text", plain).await;
    let patch_type = post(FLAGS).bytes("{}").header("content-type", "application/merge-patch+json");
    r.send("create rejected: a merge patch", patch_type).await;
    let latin = post(FLAGS).bytes(b"{\"name\": \"\xe9\"}".as_slice());
    r.send("create rejected: Latin-1", latin).await;
    let untyped = post(FLAGS).bytes(r#"{"key":"untyped","name":"Untyped","type":"boolean"}"#);
    r.send("create: a body of no type", untyped).await;
    let unknown = post("/v0/project/missing/feature-flags").text("{");
    r.send("create rejected: an unknown project", unknown).await;
}

async fn idempotency(r: &mut Recording) {
    let create = |name: &str, key: &str| {
        let body = format!(r#"{{"key":"once","name":"{name}","type":"boolean"}}"#);
        post(FLAGS).text(body).header("idempotency-key", key)
    };
    r.send("create once", create("Once", "key 1")).await;
    r.send("create once: again", create("Once", "key 1")).await;
    r.send("create once: another body", create("Twice", "key 1")).await;
    r.send("create once: another key", create("Once", "key 2")).await;
    r.send("create once: an empty key", create("Once", "")).await;
    r.send("create once: a key of other letters", create("Once", "ключ")).await;
    r.send("create once: a long key", create("Once", &"k".repeat(256))).await;
    r.test.pass(Duration::from_hours(24));
    r.send("create once: another body a day later", create("Twice", "key 1")).await;
}

async fn patches(r: &mut Recording) {
    let button = || patch(flag("checkout-button"));
    for (name, body) in PATCHES {
        r.send(name, button().text(body)).await;
    }
    let typed = button().bytes(r#"{"name":"Typed"}"#);
    let typed = typed.header("content-type", "application/merge-patch+json");
    r.send("patch: a merge patch", typed).await;
    let etag = |tag: &str| button().text(r#"{"enabled":true}"#).header("if-match", tag);
    r.send_all(
        [
            ("patch: the version of before", "\"1\""),
            ("patch: any version", "*"),
            ("patch: a list of versions", "\"3\", \"1\""),
            ("patch: a weak tag", "W/\"9\""),
            ("patch: no tag", "nonsense"),
        ],
        etag,
    )
    .await;
    r.send("patch: an unknown flag", patch(flag("missing")).text("{}")).await;
    r.send("patch rejected: plain text", button().bytes("{}").header("content-type", "text/csv"))
        .await;
    r.send("patch rejected: no body", button()).await;
    r.send("patch rejected: a large body", button().text(" ".repeat(262_145))).await;
    r.send("get: after all patches", get(flag("checkout-button"))).await;
}

async fn listing(r: &mut Recording) {
    r.send("list: all", get(FLAGS)).await;
    r.send("list: none is archived", get(FLAGS).query("archived", "true")).await;
    let first = r.send("list: the first page", get(FLAGS).query("limit", 4)).await;
    let next = first.body["nextCursor"].as_str().unwrap();
    let page = get(FLAGS).query("limit", 4).query("cursor", next);
    r.send("list: the second page", page).await;
    let elsewhere = get("/v0/project/<project>/feature-flags").query("cursor", next);
    r.send("list rejected: the cursor of another path", elsewhere).await;
    for (name, parameter, value) in [
        ("limit 0", "limit", "0"),
        ("limit 101", "limit", "101"),
        ("limit of text", "limit", "ten"),
        ("no limit", "limit", ""),
        ("archived of text", "archived", "yes"),
        ("cursor of text", "cursor", "abc"),
        ("no cursor", "cursor", ""),
    ] {
        r.send(&format!("list rejected: {name}"), get(FLAGS).query(parameter, value)).await;
    }
    let all_wrong = get(FLAGS).query("archived", "1").query("limit", "-1").query("cursor", "é");
    r.send("list rejected: everything", all_wrong).await;
    let unknown = get(FLAGS).query("sort", "name").query("limit", 1).query("limit", 0);
    r.send("list: what is unknown, and a parameter twice", unknown).await;
}

async fn archiving(r: &mut Recording) {
    r.send("delete rejected: not archived", delete(flag("smallest"))).await;
    r.send("archive rejected: in use", archive("base")).await;
    r.send("archive", archive("smallest")).await;
    r.send("archive: again", archive("smallest")).await;
    r.send("get: archived", get(flag("smallest"))).await;
    r.send("list: the archived", get(FLAGS).query("archived", "true")).await;
    r.send("list: the others", get(FLAGS).query("archived", "false").query("limit", 100)).await;
    r.send("evaluate: an archived flag", evaluate("smallest", "{}")).await;
    let rename = patch(flag("smallest")).text(r#"{"name":"Renamed"}"#);
    r.send("patch rejected: archived", rename).await;
    let on_archived = r#"{"key":"a","name":"a","type":"boolean","prerequisites":[{"flagKey":"smallest","variant":"on"}]}"#;
    r.send("create rejected: an archived prerequisite", post(FLAGS).text(on_archived)).await;
    let taken = r#"{"key":"smallest","name":"Again","type":"boolean"}"#;
    r.send("create rejected: the key of an archived flag", post(FLAGS).text(taken)).await;
    let back = patch(flag("smallest")).text(r#"{"archived":false,"name":"Back"}"#);
    r.send("unarchive", back).await;
    r.send("archive: after it was unarchived", archive("smallest")).await;
    r.send(
        "delete rejected: another version",
        delete(flag("smallest")).header("if-match", "\"1\""),
    )
    .await;
    r.send("delete", delete(flag("smallest")).header("if-match", "*")).await;
    r.send("delete: again", delete(flag("smallest"))).await;
    r.send("get: deleted", get(flag("smallest"))).await;

    // A chain of maximum length, and one more flag.
    for depth in 0..=10 {
        let before = (depth > 0)
            .then(|| json!({"flagKey": format!("chain-{}", depth - 1), "variant": "on"}));
        let before: Vec<Value> = before.into_iter().collect();
        let body = json!({"key": format!("chain-{depth}"), "name": "Chain", "type": "boolean",
            "enabled": true, "fallthrough": {"variant": "on"}, "prerequisites": before});
        r.send(&format!("create: number {depth} of a chain"), post(FLAGS).json(&body)).await;
    }
    r.send("evaluate: the end of a chain", evaluate("chain-9", "{}")).await;
}

/// Cases that require changes of stored data.
async fn damage(r: &mut Recording) {
    let project = r.test.project_id.to_string();
    let key = |key: &'static str| [("projectId", project.as_str()), ("key", key)];
    let table = "feature-flags";
    r.send("archive: before the project is full", archive("nulls")).await;
    let full = AttributeValue::N("2000".to_owned());
    r.test.tamper(table, key("#"), "liveFlags", full).await;
    let one_more = r#"{"key":"one-more","name":"One more","type":"boolean"}"#;
    r.send("create rejected: as many flags as allowed", post(FLAGS).text(one_more)).await;
    let back = patch(flag("nulls")).text(r#"{"archived":false}"#);
    r.send("unarchive rejected: as many flags as allowed", back).await;
    let nonsense = AttributeValue::S("{".to_owned());
    r.test.tamper(table, key("theme"), "definition", nonsense).await;
    r.send("get: a damaged flag", get(flag("theme"))).await;
    r.send("list: a damaged flag", get(FLAGS).query("limit", 100)).await;
    r.send("evaluate: a damaged flag", evaluate("theme", "{}")).await;
    r.send("evaluate all: a damaged flag", post(EVALUATE).text("{}")).await;
}
