use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use flags::RuleId;
use flags::draft::FlagDraft;
use shared::json::Json;
use shared::projects::project::ProjectId;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn key(text: &str) -> FlagKey {
    FlagKey::parse(text).unwrap()
}

/// A stored boolean flag with the given fields.
fn stored(flag_key: &str, fields: &Value) -> FeatureFlag {
    let mut body = json!({"key": flag_key, "name": flag_key, "type": "boolean"});
    let mut archived_at = None;
    for (name, value) in fields.as_object().unwrap() {
        match name.as_str() {
            "archived" => archived_at = value.as_bool().unwrap().then(|| at(5)),
            name => body[name] = value.clone(),
        }
    }
    let text = body.to_string();
    let draft = FlagDraft::read(&Json::parse(&text, 10).unwrap()).unwrap();
    let project = ProjectId::new(Uuid::from_u128(1));
    let flag = draft.into_flag(project, at(1), || Uuid::from_u128(2)).unwrap();
    FeatureFlag { archived_at, ..flag }
}

/// The same flag as the document describes it.
fn described(flag_key: &str, fields: &Value) -> DescribedFlag {
    let flag = stored(flag_key, fields);
    let archived = flag.archived_at.is_some();
    let flag = FeatureFlag { id: Uuid::from_u128(9), archived_at: None, created_at: at(7), ..flag };
    DescribedFlag { flag, archived, new_rule_ids: HashSet::new() }
}

fn on(keys: &[&str]) -> Value {
    let on = |key: &&str| json!({"flagKey": key, "variant": "on"});
    json!({"prerequisites": keys.iter().map(on).collect::<Vec<_>>()})
}

fn planned(stored: Vec<FeatureFlag>, described: Vec<DescribedFlag>) -> Plan {
    plan(stored, described, &Actions(BTreeMap::new()), false, at(100)).unwrap()
}

fn conflicts(stored: Vec<FeatureFlag>, described: Vec<DescribedFlag>) -> Vec<String> {
    let Conflicts(conflicts) =
        plan(stored, described, &Actions(BTreeMap::new()), true, at(100)).unwrap_err();
    conflicts.into_iter().map(|it| format!("{}: {}", it.name, it.reason)).collect()
}

fn order(plan: Plan) -> Vec<String> {
    plan.changes().iter().map(|planned| planned.outcome().key.to_string()).collect()
}

#[test]
fn plan_has_one_action_per_flag() {
    let enabled = json!({"enabled": true});
    let project = ["same", "other", "extra"].map(|key| stored(key, &json!({})));
    let document = vec![
        described("same", &json!({})),
        described("other", &enabled),
        described("new", &enabled),
    ];
    let plan = planned(project.to_vec(), document);
    let Planned::Changed(change) = &plan.0[&key("other")] else { panic!() };
    let Change { stored, new: flag, fields } = change.as_ref();
    assert_eq!((stored.version, flag.version, flag.updated_at), (1, 2, at(100)));
    assert_eq!((flag.id, flag.created_at), (stored.id, stored.created_at));
    assert_eq!(fields.len(), 1);
    assert!(matches!(&plan.0[&key("new")], Planned::Created(flag) if flag.archived_at.is_none()));
    let expected = "? extra: not in the file, left alone\n\
                    + new: created, boolean, enabled, variants: 2\n\
                    ~ other: changed\n    enabled: false → true\n\
                    = same: unchanged\n";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn missing_flags_are_archived_only_on_request() {
    let project = || vec![stored("a", &json!({})), stored("b", &json!({"archived": true}))];
    let plan = plan(project(), vec![], &Actions(BTreeMap::new()), true, at(100)).unwrap();
    let flag = plan.0[&key("a")].outcome();
    assert_eq!((flag.archived_at, flag.version), (Some(at(100)), 2));
    assert!(matches!(plan.0[&key("b")], Planned::LeftAlone(_)));
    assert_eq!(planned(project(), vec![]).count_changes(), 0);
}

#[test]
fn archived_flags_can_be_unarchived_but_not_changed() {
    let archived = json!({"archived": true});
    let plan = planned(
        vec![stored("down", &json!({})), stored("up", &archived), stored("there", &archived)],
        vec![
            described("down", &archived),
            described("up", &json!({"enabled": true})),
            described("there", &archived),
        ],
    );
    assert_eq!(plan.0[&key("down")].outcome().archived_at, Some(at(100)));
    let up = plan.0[&key("up")].outcome();
    assert_eq!((up.archived_at, up.enabled), (None, true));
    assert!(matches!(plan.0[&key("there")], Planned::Unchanged(_)));

    let changed = json!({"archived": true, "description": "new"});
    let messages = conflicts(vec![stored("a", &archived)], vec![described("a", &changed)]);
    assert!(messages[0].contains("archived flags cannot be changed"), "{messages:?}");
}

#[test]
fn type_changes_are_conflicts() {
    let number = json!({"type": "number"});
    let messages = conflicts(vec![stored("a", &json!({}))], vec![described("a", &number)]);
    assert!(
        messages[0].starts_with("a: has type boolean, which cannot become number"),
        "{messages:?}"
    );
}

#[test]
fn rules_without_id_keep_the_matching_id() {
    let rule = |id: &str, serve: &str| json!({"id": id, "serve": {"variant": serve}});
    let project =
        stored("a", &json!({"rules": [rule("1", "on"), rule("2", "off"), rule("3", "on")]}));
    let rules = json!({"rules": [
        rule("new-1", "off"), rule("1", "on"), rule("new-2", "on"), rule("new-3", "on"),
    ]});
    let mut document = described("a", &rules);
    document.new_rule_ids = ["new-1", "new-2", "new-3"].map(|id| RuleId::parse(id).unwrap()).into();
    let plan = planned(vec![project], vec![document]);
    let rules = plan.0[&key("a")].outcome().rules.iter();
    assert_eq!(rules.map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["2", "1", "3", "new-3"]);
}

#[test]
fn prerequisites_come_first_and_archived_flags_last() {
    let document = vec![
        described("a", &on(&["c"])),
        described("b", &on(&["a", "d"])),
        described("c", &on(&["d"])),
        described("d", &json!({})),
        described("e", &json!({"archived": true})),
    ];
    assert_eq!(order(planned(vec![], document)), ["d", "c", "a", "b", "e"]);
    // Dependents of archived flags come first.
    let project = vec![stored("a", &json!({})), stored("b", &on(&["a"])), stored("c", &on(&["a"]))];
    let mut archived = on(&["a"]);
    archived["archived"] = json!(true);
    let document = vec![
        described("a", &json!({"archived": true})),
        described("b", &archived),
        described("c", &json!({})),
    ];
    assert_eq!(order(planned(project, document)), ["c", "b", "a"]);
}

#[test]
fn broken_prerequisites_are_conflicts() {
    let messages = conflicts(vec![], vec![described("a", &on(&["b"]))]);
    assert!(
        messages[0].starts_with("a: depends on b, which would be archived or missing"),
        "{messages:?}"
    );
    // Also for a flag that the document does not change.
    let project = || vec![stored("a", &json!({})), stored("b", &on(&["a"]))];
    let other_variants = json!({"variants": [{"key": "other", "value": "true"}]});
    let keep = || described("b", &on(&["a"]));
    let messages = conflicts(project(), vec![described("a", &other_variants), keep()]);
    assert!(messages[0].starts_with("b: depends on the variant on of a, which"), "{messages:?}");
    let messages = conflicts(project(), vec![described("a", &json!({"archived": true})), keep()]);
    assert!(messages[0].starts_with("b: depends on a, which would be archived"), "{messages:?}");

    let messages = conflicts(project(), vec![described("a", &on(&["b"])), keep()]);
    assert_eq!(messages, ["a: would depend on itself: a → b → a; remove a prerequisite"]);
    let chain: Vec<String> = (0..11).map(|index| format!("f{index:02}")).collect();
    let flags = chain.iter().enumerate().map(|(index, key)| {
        described(
            key,
            &on(&chain.get(index + 1).map(String::as_str).into_iter().collect::<Vec<_>>()),
        )
    });
    let messages = conflicts(vec![], flags.collect());
    assert!(
        messages[0]
            .starts_with("f00: would be in a prerequisite chain that is too long: f00 → f01"),
        "{messages:?}"
    );
}

#[test]
fn chains_of_archived_flags_are_ignored() {
    let archived = |prerequisite: &str| {
        let mut fields = on(&[prerequisite]);
        fields["archived"] = json!(true);
        fields
    };
    let document = vec![described("a", &archived("b")), described("b", &archived("a"))];
    let keys: BTreeSet<_> = order(planned(vec![], document)).into_iter().collect();
    assert_eq!(keys, ["a", "b"].map(str::to_owned).into());
    assert_eq!(order(planned(vec![], vec![described("a", &archived("gone"))])), ["a"]);
}

#[test]
fn live_flags_over_the_limit_are_a_conflict() {
    let flags = |from: u32, to: u32| (from..to).map(|index| format!("f{index}"));
    let project = || flags(0, MAX_LIVE_FLAGS).map(|key| stored(&key, &json!({}))).collect();
    let messages = plan(
        project(),
        vec![described("one-more", &json!({}))],
        &Actions(BTreeMap::new()),
        false,
        at(1),
    )
    .unwrap_err();
    assert!(messages.to_string().contains("would have 2001 flags"), "{messages}");
    let document = vec![described("f0", &json!({"archived": true})), described("z", &json!({}))];
    assert_eq!(planned(project(), document).count_changes(), 2);
}
