use serde_json::{Value, json};

use super::*;
use crate::FeatureFlag;
use crate::evaluation::project_flags::Flags;
use crate::evaluation::test_flags::{context, flag, flags, now, segment};
use crate::evaluation::{ErrorCode, Reason};

fn key(text: &str) -> SegmentKey {
    SegmentKey::parse(text).unwrap()
}

/// Returns a flag that is on if this condition about segments holds.
fn about(operator: &str, segments: &[&str]) -> FeatureFlag {
    let condition = json!({"operator": operator, "values": segments});
    let rules = json!([{"id": "r", "conditions": [condition], "serve": {"variant": "on"}}]);
    flag("f", &json!({"rules": rules, "fallthrough": {"variant": "off"}}))
}

/// Returns the flag with the segments `staff` (by email, not blocked) and `beta`.
fn with_segments(flag: FeatureFlag) -> Flags {
    let staff = json!([
        {"attribute": "email", "operator": "ends_with", "values": ["@example.com"]},
        {"attribute": "blocked", "operator": "not_exists"},
    ]);
    let beta = json!([{"attribute": "plan", "operator": "equals", "values": ["beta"]}]);
    let segments = [segment("staff", &staff), segment("beta", &beta)];
    let loaded =
        segments.into_iter().map(|it| Arc::new(LoadedSegment::new(it, &Compiler::default())));
    flags([flag]).with_segments(Segments::new(loaded))
}

fn variant(flags: &Flags, of: &Value) -> String {
    let of = of.to_string();
    flags.evaluate("f", &context(&of), now()).unwrap().variant().unwrap().to_string()
}

const ADA: &str = "ada@example.com";

#[test]
fn segment_members_meet_all_conditions() {
    let flags = with_segments(about("in_segment", &["staff"]));
    for (of, expected) in [
        (json!({"email": ADA}), "on"),
        (json!({"email": ADA, "blocked": null}), "on"),
        (json!({"email": ADA, "blocked": false}), "off"),
        (json!({"email": "ada@example.org"}), "off"),
        (json!({}), "off"),
    ] {
        assert_eq!(variant(&flags, &of), expected, "{of}");
    }
    let of = json!({"email": ADA}).to_string();
    assert_eq!(flags.evaluate("f", &context(&of), now()).unwrap().reason(), Reason::TargetingMatch);
}

#[test]
fn segment_operators_require_one_or_none() {
    let any = with_segments(about("in_segment", &["staff", "beta"]));
    let none = with_segments(about("not_in_segment", &["staff", "beta"]));
    for (of, is_in) in [
        (json!({"email": ADA}), true),
        (json!({"plan": "beta"}), true),
        (json!({"email": ADA, "plan": "beta"}), true),
        (json!({"plan": "free"}), false),
        // Missing attributes exclude a context from all segments.
        (json!({}), false),
    ] {
        assert_eq!(variant(&any, &of) == "on", is_in, "{of}");
        assert_eq!(variant(&none, &of) == "on", !is_in, "{of}");
    }
}

#[test]
fn unreadable_segments_fail_only_their_flags_after_targets() {
    let mut asking = about("not_in_segment", &["lost"]);
    asking.targets =
        serde_json::from_value(json!([{"kind": "identifier", "value": "vip", "variant": "on"}]))
            .unwrap();
    let damaged = Segments::new([Arc::new(LoadedSegment::damaged(key("lost")))]);
    for flags in [
        flags([asking.clone(), flag("other", &json!({}))]).with_segments(damaged),
        flags([asking, flag("other", &json!({}))]),
    ] {
        let empty = context("{}");
        let error = flags.evaluate("f", &empty, now()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ParseError);
        assert!(error.to_string().contains("the segment lost"), "{error}");
        assert!(flags.evaluate("other", &empty, now()).is_ok());
        assert_eq!(variant(&flags, &json!({"targetingKey": "vip"})), "on");
    }
}

#[test]
fn stored_segments_with_segment_conditions_fail() {
    let mut nested = segment("staff", &json!([{"attribute": "a", "operator": "exists"}]));
    nested.conditions = serde_json::from_value(
        json!([{"attribute": null, "operator": "in_segment", "values": ["staff"]}]),
    )
    .unwrap();
    let segments = Segments::new([Arc::new(LoadedSegment::new(nested, &Compiler::default()))]);
    let flags = flags([about("in_segment", &["staff"])]).with_segments(segments);
    assert!(flags.evaluate("f", &context("{}"), now()).is_err());
}

#[test]
fn segments_with_the_same_version_are_reusable() {
    let stored = segment("staff", &json!([{"attribute": "a", "operator": "exists"}]));
    let (id, version) = (stored.id, stored.version);
    let segments = Segments::new([Arc::new(LoadedSegment::new(stored, &Compiler::default()))]);
    let kept = segments.get(&key("staff")).unwrap();
    assert!(kept.is(id, version) && !kept.is(id, version + 1));
    assert!(!kept.is(Uuid::from_u128(7), version));
    assert!(!LoadedSegment::damaged(key("staff")).is(id, version));
    assert!(segments.get(&key("beta")).is_none());
}
