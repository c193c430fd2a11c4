use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::FlagKey;
use crate::evaluation::test_flags::{flag, flags, loaded, now, project};
use crate::evaluation::{DamagedFlag, LoadedFlag};

fn failure(body: &[u8]) -> (ErrorCode, String) {
    let failure = read_context(body).unwrap_err();
    (failure.code(), failure.details)
}

fn one(flags: &Flags, key: &str, body: &str) -> (u16, String) {
    let response = evaluate_one(flags, key, &read_context(body.as_bytes()).unwrap(), now());
    assert_eq!(response.etag, None);
    (response.status, response.body.unwrap())
}

fn all(flags: &Flags, body: &str, if_none_match: &[&str]) -> OfrepResponse {
    let context = read_context(body.as_bytes()).unwrap();
    evaluate_all(flags, &context, now(), if_none_match.iter().map(|value| value.as_bytes()))
}

fn split() -> Value {
    json!({"rollout": [{"variant": "on", "weight": 1}, {"variant": "off", "weight": 1}]})
}

const METADATA: &str = r#""version":"1","flagSetId":"00000000-0000-0000-0000-00000000000a""#;

#[test]
fn contexts_are_optional() {
    for body in ["", " \n", "{}", r#"{"context": null}"#, r#"{"context": {}, "x": 1}"#] {
        assert_eq!(read_context(body.as_bytes()).unwrap().targeting_key(), None, "{body:?}");
    }
    let context = read_context(br#"{"context": {"targetingKey": "u", "a": [{"b": 1}]}}"#).unwrap();
    assert_eq!(context.targeting_key(), Some("u"));
}

#[test]
fn invalid_requests_have_specific_codes() {
    for body in [&b"{"[..], b"[]", b"1", b"null", b"\xff", b"{} {}", &[b'['; 1_000]] {
        assert_eq!(failure(body).0, ErrorCode::ParseError, "{body:?}");
    }
    for body in [
        r#"{"context": []}"#,
        r#"{"context": "x"}"#,
        r#"{"context": {"targetingKey": 1}}"#,
        r#"{"context": {"a": 1, "a": 2}}"#,
        r#"{"context": {}, "context": {}}"#,
    ] {
        assert_eq!(failure(body.as_bytes()).0, ErrorCode::InvalidContext, "{body}");
    }
}

#[test]
fn bodies_have_at_most_64_kilobytes() {
    let of_length = |length: usize| {
        let frame = r#"{"context": {"a": ""}}"#.len();
        format!(r#"{{"context": {{"a": "{}"}}}}"#, "x".repeat(length - frame))
    };
    assert!(read_context(of_length(64_000).as_bytes()).is_ok());
    let (code, details) = failure(of_length(64_001).as_bytes());
    assert_eq!(code, ErrorCode::InvalidContext);
    assert_eq!(details, "the body has 64001 bytes; at most 64000 are allowed");
}

#[test]
fn successes_have_these_fields_in_order() {
    let flags = flags([flag("f", &json!({}))]);
    let expected = format!(
        r#"{{"key":"f","value":true,"reason":"STATIC","variant":"on","metadata":{{{METADATA}}}}}"#
    );
    assert_eq!(one(&flags, "f", ""), (200, expected));
}

#[test]
fn values_have_the_type_of_their_flag() {
    let value = |flag_type: &str, values: &[&str]| {
        let variant =
            |(index, value): (usize, &&str)| json!({"key": format!("v{index}"), "value": value});
        let variants: Vec<Value> = values.iter().enumerate().map(variant).collect();
        let flags = flags([flag("f", &json!({"type": flag_type, "variants": variants}))]);
        let (_, body) = one(&flags, "f", "");
        let raw: std::collections::HashMap<String, &RawValue> =
            serde_json::from_str(&body).unwrap();
        raw["value"].get().to_owned()
    };
    assert_eq!(value("boolean", &["true"]), "true");
    assert_eq!(value("string", &["a\"é"]), r#""a\"é""#);
    assert_eq!(value("number", &["1", "2"]), "1");
    assert_eq!(value("number", &["1", "0.5"]), "1.0");
    assert_eq!(value("json", &[r#"{"a": 1.50}"#]), r#"{"a": 1.50}"#);
}

#[test]
fn missing_values_have_an_empty_variant() {
    let flags = flags([flag("f", &json!({"type": "string"}))]);
    let expected =
        format!(r#"{{"key":"f","reason":"DEFAULT","variant":"","metadata":{{{METADATA}}}}}"#);
    assert_eq!(one(&flags, "f", ""), (200, expected));
}

#[test]
fn metadata_names_the_deciding_step() {
    let targets = json!([{"kind": "identifier", "value": "vip", "variant": "off"}]);
    let rule = json!({"id": "r", "conditions": [
        {"attribute": "a", "operator": "exists"},
    ], "serve": split()});
    let flags = flags([
        flag("f", &json!({"targets": targets, "rules": [rule], "fallthrough": split()})),
        flag("g", &json!({"prerequisites": [{"flagKey": "gone", "variant": "on"}]})),
    ]);
    let metadata = |key: &str, context: Value| {
        let (status, body) = one(&flags, key, &json!({"context": context}).to_string());
        assert_eq!(status, 200);
        body.split_once(r#""metadata":"#).unwrap().1.trim_end_matches('}').to_owned()
    };
    let with = |more: &str| format!("{{{METADATA},{more}");
    assert_eq!(metadata("f", json!({"targetingKey": "vip"})), with(r#""targeted":true"#));
    assert_eq!(
        metadata("f", json!({"targetingKey": "u", "a": 1})),
        with(r#""ruleId":"r","bucketed":true"#)
    );
    assert_eq!(metadata("f", json!({"targetingKey": "u"})), with(r#""bucketed":true"#));
    assert_eq!(metadata("g", json!({})), with(r#""prerequisite":"gone""#));
}

#[test]
fn failures_have_their_status_code_and_details() {
    let damaged =
        LoadedFlag::damaged(FlagKey::parse("d").unwrap(), DamagedFlag::new("it is \"x\""));
    let split = loaded(&flag("s", &json!({"fallthrough": split()})));
    let flags = Flags::new(project(), [damaged, split].map(Arc::new));
    let not_found = r#"{"key":"a\"b","errorCode":"FLAG_NOT_FOUND","errorDetails":"the project has no flag with this key"}"#;
    assert_eq!(one(&flags, "a\"b", ""), (404, not_found.to_owned()));
    let damage = r#"{"key":"d","errorCode":"PARSE_ERROR","errorDetails":"the stored flag d is corrupted: it is \"x\""}"#;
    assert_eq!(one(&flags, "d", ""), (400, damage.to_owned()));
    let (status, body) = one(&flags, "s", "");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["errorCode"]), (400, &json!("TARGETING_KEY_MISSING")));
    assert_eq!(body["key"], "s");
    assert!(body["errorDetails"].is_string());

    let response = EvaluationFailure::new(ErrorCode::General, "x").for_all_flags();
    let expected = r#"{"errorCode":"GENERAL","errorDetails":"x"}"#;
    assert_eq!((response.status, response.body.as_deref()), (500, Some(expected)));
}

#[test]
fn bulk_evaluations_include_each_failure() {
    let mut disabled = flag("c", &json!({}));
    disabled.enabled = false;
    let flags = flags([
        flag("b", &json!({"fallthrough": split()})),
        disabled,
        flag("a", &json!({"type": "string"})),
    ]);
    let response = all(&flags, "", &[]);
    let expected = format!(
        r#"{{"flags":[{{"key":"a","reason":"DEFAULT","variant":"","metadata":{{{METADATA}}}}},{{"key":"b","errorCode":"TARGETING_KEY_MISSING","errorDetails":"the context has no targetingKey, which a rollout of the flag b requires"}},{{"key":"c","value":false,"reason":"DISABLED","variant":"off","metadata":{{{METADATA}}}}}],"metadata":{{"flagSetId":"00000000-0000-0000-0000-00000000000a"}}}}"#
    );
    assert_eq!((response.status, response.body), (200, Some(expected)));
    let nothing = all(&Flags::new(project(), []), "", &[]);
    assert!(nothing.body.unwrap().starts_with(r#"{"flags":[],"metadata":"#));
}

#[test]
fn entity_tags_cover_the_response() {
    let rule = json!({"id": "r", "conditions": [
        {"attribute": "plan", "operator": "equals", "values": ["pro"]},
    ], "serve": {"variant": "off"}});
    let flags = flags([flag("f", &json!({"rules": [rule]}))]);
    let tag = |body: &str| all(&flags, body, &[]).etag.unwrap();
    let free = tag(r#"{"context": {"targetingKey": "u"}}"#);
    let quoted = free.as_str();
    assert!(quoted.len() == 34 && quoted.starts_with('"') && quoted.ends_with('"'), "{quoted}");
    // Another context with an equal response, and the same individual with a different one.
    assert_eq!(tag(r#"{"context": {"targetingKey": "v"}}"#), free);
    assert_ne!(tag(r#"{"context": {"targetingKey": "u", "plan": "pro"}}"#), free);
}

#[test]
fn cached_responses_return_304() {
    let flags = flags([flag("f", &json!({}))]);
    let etag = all(&flags, "", &[]).etag.unwrap();
    let tag = etag.as_str();
    let weak = format!("W/{tag}");
    let listed = format!("\"x\", {tag} ,\"y\"");
    for named in [&[tag][..], &[&weak], &[&listed], &["\"x\"", tag], &["*"]] {
        let response = all(&flags, "", named);
        assert_eq!(response, OfrepResponse { status: 304, body: None, etag: Some(etag.clone()) });
    }
    let unquoted = tag.trim_matches('"');
    let within = format!("\"x,{unquoted}\"");
    for other in [&[][..], &["\"x\""], &[unquoted], &[&within], &[""], &["w/", "\""]] {
        assert_eq!(all(&flags, "", other).status, 200, "{other:?}");
    }
}

#[test]
fn oversized_responses_are_rejected() {
    let response = |count: usize, value: &str| {
        let members = json!({"type": "string", "variants": [{"key": "v", "value": value}]});
        let large = |index: usize| flag(&format!("f{index}"), &members);
        all(&flags((0..count).map(large)), "", &[])
    };
    let text = "x".repeat(20_000);
    let rejected = response(300, &text);
    assert_eq!(rejected.status, 500);
    assert!(rejected.body.unwrap().starts_with(r#"{"errorCode":"GENERAL","errorDetails":"#));
    assert_eq!(rejected.etag, None);
    assert_eq!(response(290, &text).status, 200);
    // A quote takes two bytes in JSON, and four in JSON within JSON.
    let quotes = "\"".repeat(10_000);
    assert_eq!((response(150, &quotes).status, response(140, &quotes).status), (500, 200));
}
