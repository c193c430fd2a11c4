//! Exports to flagd, evaluated by flagd's own cores: they serve the same variants as an evaluation
//! here.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use flags::draft::FlagDraft;
use flags::evaluation::{Compiler, Flags, LoadedFlag, LoadedSegment, Segments};
use flags::flagd::{FlagdExport, GENERAL_DIFFERENCES, Layout};
use flags::segment::SegmentDraft;
use flags::{FeatureFlag, RolloutEntry, Segment, Serve, VariantKey, Weight, flagd, ofrep};
use shared::json::{Json, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// The time of evaluations here: between the dates 2020 and 2100, as on flagd's clock.
fn now() -> Timestamp {
    Timestamp::from_millis(1_795_234_560_000)
}

fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(7))
}

fn flag(body: &Value) -> FeatureFlag {
    let text = body.to_string();
    let draft = FlagDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    draft.into_flag(project(), now(), || Uuid::from_u128(1)).unwrap()
}

/// Returns a boolean flag with one rule for these conditions.
fn rule(key: &str, conditions: &Value) -> Value {
    let rule = json!({"id": "r", "conditions": conditions, "serve": {"variant": "on"}});
    json!({
        "key": key, "name": key, "type": "boolean", "enabled": true, "rules": [rule],
        "fallthrough": {"variant": "off"},
    })
}

fn condition(attribute: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"attribute": attribute, "operator": operator, "values": values}])
}

/// Returns a flag for each form of export.
fn flags() -> Vec<Value> {
    let rollout = |weights: &[(&str, f64)]| {
        let entry = |(variant, weight): &(&str, f64)| json!({"variant": variant, "weight": weight});
        json!({"variant": null, "rollout": weights.iter().map(entry).collect::<Vec<_>>()})
    };
    let target = |value: &str| json!({"kind": "identifier", "value": value, "variant": "c"});
    let thirds = rollout(&[("a", 33.3), ("b", 33.3), ("c", 33.4)]);
    let variants = json!([
        {"key": "a", "value": "A"}, {"key": "b", "value": ""}, {"key": "c", "value": "C"},
    ]);
    let staff = &condition("email", "ends_with", &["@example.com", "@example.org"])[0];
    let adult = &condition("age", "greater_than_or_equal", &["18"])[0];
    let all = json!({
        "key": "all", "name": "all", "type": "string", "enabled": true, "variants": variants,
        "targets": [target("user-3"), target("user-5")], "fallthrough": thirds,
        "rules": [
            {"id": "1", "conditions": [staff, adult], "serve": {"variant": "b"}},
            {"id": "2", "conditions": [adult], "serve": rollout(&[("a", 0.001), ("c", 0.002)])},
        ],
    });
    let code_default = json!({"variant": null, "rollout": []});
    let on_request = condition("plan", "equals", &["pro"]);
    let mut flags = vec![
        all,
        json!({"key": "plain", "name": "p", "type": "boolean", "enabled": true}),
        json!({"key": "off", "name": "o", "type": "boolean"}),
        json!({"key": "off-to-code", "name": "o", "type": "boolean", "offVariant": null}),
        json!({
            "key": "everyone", "name": "e", "type": "boolean", "enabled": true,
            "fallthrough": rollout(&[("on", 3.0), ("off", 0.0)]),
        }),
        json!({
            "key": "size", "name": "s", "type": "number", "enabled": true, "fallthrough": rollout(&[("a", 1.0), ("b", 1.0)]),
            "variants": [{"key": "a", "value": "1"}, {"key": "b", "value": "2.5"}],
        }),
        json!({
            "key": "theme", "name": "t", "type": "json", "enabled": true,
            "variants": [{"key": "a", "value": r#"{"dark": [true, {"n": 1}]}"#}],
        }),
        json!({
            "key": "to-code", "name": "t", "type": "boolean", "enabled": true, "fallthrough": code_default,
            "rules": [{"id": "r", "conditions": on_request, "serve": {"variant": "on"}}],
        }),
        json!({
            "key": "pro-to-code", "name": "p", "type": "boolean", "enabled": true,
            "rules": [{"id": "r", "conditions": on_request, "serve": code_default}],
        }),
    ];
    for (operator, attribute, values) in [
        ("equals", "plan", &["pro", "18", "true"][..]),
        ("not_in", "plan", &["pro", "18"]),
        ("contains", "email", &["@example", "x"]),
        ("not_contains", "email", &["@example"]),
        ("starts_with", "email", &["ada", "b"]),
        ("not_starts_with", "email", &["ada"]),
        ("not_ends_with", "email", &[".com"]),
        ("exists", "plan", &[]),
        ("not_exists", "plan", &[]),
        ("exists", "organization.name", &[]),
        ("equals", "organization.name", &["Acme"]),
        ("less_than", "age", &["18"]),
        ("greater_than", "age", &["17.5"]),
        ("after", "$now", &["2020-01-01T00:00:00Z"]),
        ("before", "$now", &["2020-01-01T00:00:00Z"]),
        ("semver_greater_than_or_equal", "version", &["2.1"]),
        ("semver_less_than", "version", &["2.1.0"]),
        ("semver_equals", "version", &["2"]),
        ("equals", "targetingKey", &["user-1"]),
    ] {
        let key = format!("{operator}-{attribute}").replace('$', "");
        flags.push(rule(&key, &condition(attribute, operator, values)));
    }
    for (key, operator, segments) in [
        ("in-staff", "in_segment", &["staff"][..]),
        ("not-in-staff", "not_in_segment", &["staff-of-age.2"]),
        ("in-any", "in_segment", &["staff-of-age.2", "umlaut"]),
        ("in-none", "not_in_segment", &["staff", "umlaut"]),
    ] {
        flags.push(rule(key, &json!([{"operator": operator, "values": segments}])));
    }
    flags
}

fn contexts() -> Vec<Value> {
    let mut contexts: Vec<Value> =
        (0..60).map(|number| json!({"targetingKey": format!("user-{number}")})).collect();
    let attributes = [
        (
            "email",
            json!(["ada@example.com", "bo@example.org", "cy@else.net", "", "ADA@EXAMPLE.COM"]),
        ),
        ("age", json!([17, 18, 17.5, 17.6, -1, 40, "40"])),
        ("plan", json!(["pro", "free", 18, 18.0, true, false, "18", null, ""])),
        ("version", json!(["2.1.0", "2.0.9", "2.1.0-rc.1", "3.0.0", "2.0.0"])),
        ("organization", json!([{"name": "Acme"}, {"name": "Other"}, {}])),
    ];
    for (name, values) in attributes {
        for (index, value) in values.as_array().unwrap().iter().enumerate() {
            contexts.push(json!({"targetingKey": format!("user-{index}"), name: value}));
        }
    }
    contexts.push(json!({"targetingKey": "user-é", "email": "a@example.com", "age": 20}));
    contexts
}

/// Returns the caller's default, which no flag serves.
fn default_of(flag: &Value) -> Value {
    match flag["type"].as_str().unwrap() {
        "boolean" => json!(flag["key"].as_str().unwrap().len().is_multiple_of(2)),
        "string" => json!("the caller's"),
        "number" => json!(-1),
        _ => json!({"the": "caller's"}),
    }
}

/// Returns value and variant as served here; without a variant, the caller's default.
fn served_here(flags: &Flags, flag: &Value, context: &Value) -> (Value, Value) {
    let body = json!({"context": context}).to_string();
    let context = ofrep::read_context(body.as_bytes()).unwrap();
    let response = ofrep::evaluate_one(flags, flag["key"].as_str().unwrap(), &context, now());
    let response: Value = serde_json::from_str(&response.body.unwrap()).unwrap();
    match response.get("value") {
        Some(value) => (value.clone(), response["variant"].clone()),
        None => (default_of(flag), Value::Null),
    }
}

/// An official evaluator of flagd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Core {
    /// The core from npm. It first checks the document with its schemas.
    JavaScript,
    /// The core from `PyPI`, run through its provider, which reads a file.
    Python,
}

impl Core {
    fn command(self) -> Command {
        let sdks = tests::workspace().join("tests/sdks");
        let (program, script) = match self {
            Self::JavaScript => ("node".into(), sdks.join("node/evaluate_flagd_export.mjs")),
            Self::Python => (
                tests::workspace().join(".venv/flagd/bin/python"),
                sdks.join("python/evaluate_flagd_export.py"),
            ),
        };
        let mut command = Command::new(program);
        command.arg(&script).current_dir(script.parent().unwrap());
        command
    }
}

/// Returns a core's results for each evaluation of each document.
fn served_by_flagd(core: Core, requests: &[Value]) -> Vec<Value> {
    let mut flagd = core
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{core:?}: {error}; run `make test-tools`"));
    let input_text = Value::from(requests).to_string();
    let mut input = flagd.stdin.take().unwrap();
    // Write in a thread, since a full output pipe would block both sides.
    let writing = std::thread::spawn(move || input.write_all(input_text.as_bytes()));
    let output = flagd.wait_with_output().unwrap();
    assert!(output.status.success(), "{core:?} rejects a document");
    writing.join().unwrap().unwrap();
    let results = String::from_utf8(output.stdout).unwrap();
    results.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns segments that some flags use. The first two are referenced, the last is copied.
fn segments() -> Vec<Segment> {
    let segment = |key: &str, conditions: &Value| {
        let text = json!({"key": key, "name": key, "conditions": conditions}).to_string();
        let draft = SegmentDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
        draft.into_segment(project(), now(), Uuid::from_u128(2)).unwrap()
    };
    let staff = condition("email", "ends_with", &["@example.com", "@example.org"])[0].clone();
    let adult = condition("age", "greater_than_or_equal", &["18"])[0].clone();
    vec![
        segment("staff", &json!([staff])),
        segment("staff-of-age.2", &json!([staff, adult])),
        segment("umlaut", &condition("email", "starts_with", &["é", "ada", "$&"])),
    ]
}

/// Compares the results of a core with evaluations here.
fn compare(core: Core) {
    let bodies: Vec<Value> = flags().into_iter().filter(|flag| core.serves_equally(flag)).collect();
    let flags: Vec<FeatureFlag> = bodies.iter().map(flag).collect();
    let segments = segments();
    let FlagdExport { document, differences } =
        flagd::export(project(), &flags, &segments, Layout::Compact);
    assert!(differences.iter().all(|difference| !difference.left_out), "{differences:?}");
    let evaluators: Value = serde_json::from_str(&document).unwrap();
    let evaluators = evaluators["$evaluators"].as_object().unwrap();
    assert_eq!(evaluators.keys().collect::<Vec<_>>(), ["staff", "staff-of-age.2"]);
    let loaded_segments =
        segments.into_iter().map(|it| Arc::new(LoadedSegment::new(it, &Compiler::default())));
    let loaded =
        flags.into_iter().map(|it| Arc::new(LoadedFlag::new(&it, &mut Compiler::default())));
    let loaded = Flags::new(project(), loaded).with_segments(Segments::new(loaded_segments));

    let contexts = contexts();
    let cases: Vec<(&Value, &Value)> = bodies
        .iter()
        .flat_map(|body| contexts.iter().map(move |context| (body, context)))
        .collect();
    let evaluation = |(flag, context): &(&Value, &Value)| {
        let of = flag["type"].as_str().unwrap().replace("json", "object");
        json!({"flag": flag["key"], "type": of, "default": default_of(flag), "context": context})
    };
    let evaluations: Vec<Value> = cases.iter().map(evaluation).collect();
    let request = json!({"document": document, "evaluations": evaluations});
    let results = served_by_flagd(core, &[request]);
    assert_eq!(results.len(), cases.len());
    let mut served_variants = std::collections::BTreeSet::new();
    let mut failures = Vec::new();
    for ((flag, context), result) in cases.into_iter().zip(results) {
        let is_disabled = flag["enabled"] != true;
        // flagd serves the caller's default for disabled flags, with the reason.
        let (value, variant) = if is_disabled {
            (default_of(flag), Value::Null)
        } else {
            served_here(&loaded, flag, context)
        };
        let same = result["value"] == value
            || result["value"].as_f64().is_some_and(|number| Some(number) == value.as_f64());
        let key = flag["key"].as_str().unwrap();
        let served_variant = result.get("variant").unwrap_or(&Value::Null);
        if !same || *served_variant != variant || is_disabled != (result["reason"] == "DISABLED") {
            failures.push(format!("{key} for {context}: {value} {variant} here, {result} there"));
        }
        served_variants.insert((key, variant.to_string()));
    }
    assert_eq!(failures, [""; 0], "{} differ", failures.len());
    let both = [("to-code", 2), ("pro-to-code", 2), ("in-staff", 2), ("not-in-staff", 2)];
    let split = [("all", 3), ("size", 2)].into_iter().filter(|_| core == Core::JavaScript);
    for (key, variants) in both.into_iter().chain(split) {
        assert_eq!(served_variants.iter().filter(|(of, _)| *of == key).count(), variants, "{key}");
    }
}

impl Core {
    /// `true` if the core serves a flag as here. Python's core uses another hash.
    fn serves_equally(self, flag: &Value) -> bool {
        self == Self::JavaScript || !["all", "size"].contains(&flag["key"].as_str().unwrap())
    }
}

#[test]
fn javascript_core_serves_the_same_as_here() {
    compare(Core::JavaScript);
}

#[test]
fn python_core_serves_the_same_as_here() {
    compare(Core::Python);
}

#[test]
fn rollouts_without_targeting_key_serve_the_default() {
    let bodies: Vec<Value> = flags().into_iter().filter(|flag| flag["key"] == "size").collect();
    let exported = flagd::export(project(), &[flag(&bodies[0])], &[], Layout::Compact);
    let evaluation = json!({"flag": "size", "type": "number", "default": -1, "context": {}});
    let request = json!({"document": exported.document, "evaluations": [evaluation]});
    let result = &served_by_flagd(Core::JavaScript, &[request])[0];
    assert_eq!((&result["value"], &result["variant"]), (&json!(-1), &Value::Null), "{result}");
}

/// Returns the number of individuals for whom a core serves another half than here.
fn served_otherwise(core: Core, targeting_key: impl Fn(usize) -> String) -> usize {
    let half = |variant: &str| RolloutEntry {
        variant: VariantKey::parse(variant).unwrap(),
        weight: Weight::parse("50").unwrap(),
    };
    let variants = json!([{"key": "a", "value": "A"}, {"key": "b", "value": "B"}]);
    let body = json!({"key": "f", "name": "f", "type": "string", "variants": variants});
    let mut flag = flag(&body);
    (flag.enabled, flag.fallthrough) = (true, Serve::Rollout(vec![half("a"), half("b")]));
    let FlagdExport { document, .. } =
        flagd::export(project(), std::slice::from_ref(&flag), &[], Layout::Compact);
    let contexts: Vec<Value> =
        (0..INDIVIDUALS).map(|at| json!({"targetingKey": targeting_key(at)})).collect();
    let evaluation = |context: &Value| json!({"flag": "f", "type": "string", "default": "the caller's", "context": context});
    let evaluations: Vec<Value> = contexts.iter().map(evaluation).collect();
    let there = served_by_flagd(core, &[json!({"document": document, "evaluations": evaluations})]);
    assert_eq!(there.len(), INDIVIDUALS);
    let loaded = Arc::new(LoadedFlag::new(&flag, &mut Compiler::default()));
    let loaded = Flags::new(project(), [loaded]);
    let differs = |(context, there): &(&Value, Value)| {
        served_here(&loaded, &body, context).1 != there["variant"]
    };
    contexts.iter().zip(there).filter(differs).count()
}

const INDIVIDUALS: usize = 48;

#[test]
fn export_lists_differences_in_shares() {
    let ascii = |at: usize| format!("user-{at}");
    let beyond = |at: usize| format!("{}-{at}", ["é", "名前", "🙂"][at % 3]);
    assert_eq!(served_otherwise(Core::JavaScript, ascii), 0);
    let is_listed = |core: &str, how: &str| {
        GENERAL_DIFFERENCES.iter().any(|it| it.contains(core) && it.contains(how))
    };
    for (core, differ, listed) in [
        (
            Core::JavaScript,
            served_otherwise(Core::JavaScript, beyond),
            is_listed("JavaScript", "UTF-16"),
        ),
        (Core::Python, served_otherwise(Core::Python, ascii), is_listed("Python", "CBOR")),
        (Core::Python, served_otherwise(Core::Python, beyond), is_listed("Python", "CBOR")),
    ] {
        // About half of the individuals are in the other half.
        assert!((12..=36).contains(&differ) && listed, "{core:?}: {differ}");
    }
}
