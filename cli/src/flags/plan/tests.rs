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

/// A boolean flag with some members of its own, as the project has it.
fn stored(flag_key: &str, members: &Value) -> FeatureFlag {
    let mut body = json!({"key": flag_key, "name": flag_key, "type": "boolean"});
    let mut archived_at = None;
    for (name, value) in members.as_object().unwrap() {
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

/// The same as a document describes it.
fn described(flag_key: &str, members: &Value) -> DescribedFlag {
    let flag = stored(flag_key, members);
    let archived = flag.archived_at.is_some();
    let flag = FeatureFlag { id: Uuid::from_u128(9), archived_at: None, created_at: at(7), ..flag };
    DescribedFlag { flag, archived, new_rule_ids: HashSet::new() }
}

fn on(keys: &[&str]) -> Value {
    let on = |key: &&str| json!({"flagKey": key, "variant": "on"});
    json!({"prerequisites": keys.iter().map(on).collect::<Vec<_>>()})
}

fn planned(stored: Vec<FeatureFlag>, described: Vec<DescribedFlag>) -> Plan {
    plan(stored, described, &SegmentPlan::default(), false, at(100)).unwrap()
}

fn conflicts(stored: Vec<FeatureFlag>, described: Vec<DescribedFlag>) -> Vec<String> {
    let Conflicts(conflicts) =
        plan(stored, described, &SegmentPlan::default(), true, at(100)).unwrap_err();
    conflicts.into_iter().map(|it| format!("{}: {}", it.name, it.reason)).collect()
}

fn order(plan: Plan) -> Vec<String> {
    plan.changes().iter().map(|fate| fate.outcome().key.to_string()).collect()
}

#[test]
fn each_flag_has_its_fate() {
    let enabled = json!({"enabled": true});
    let project = ["same", "other", "extra"].map(|key| stored(key, &json!({})));
    let document = vec![
        described("same", &json!({})),
        described("other", &enabled),
        described("new", &enabled),
    ];
    let plan = planned(project.to_vec(), document);
    let PlannedAction::Changed(change) = &plan.flags[&key("other")] else { panic!() };
    let Change { stored, flag, fields } = change.as_ref();
    assert_eq!((stored.version, flag.version, flag.updated_at), (1, 2, at(100)));
    assert_eq!((flag.id, flag.created_at), (stored.id, stored.created_at));
    assert_eq!(fields.len(), 1);
    assert!(
        matches!(&plan.flags[&key("new")], PlannedAction::Created(flag) if flag.archived_at.is_none())
    );
    let expected = "? extra: not in the file, left alone\n\
                    + new: created, boolean, enabled, variants: 2\n\
                    ~ other: changed\n    enabled: false → true\n\
                    = same: unchanged";
    assert_eq!(plan.to_string(), expected);
}

#[test]
fn what_the_document_lacks_is_archived_only_if_asked_for() {
    let project = || vec![stored("a", &json!({})), stored("b", &json!({"archived": true}))];
    let plan = plan(project(), vec![], &SegmentPlan::default(), true, at(100)).unwrap();
    let flag = plan.flags[&key("a")].outcome();
    assert_eq!((flag.archived_at, flag.version), (Some(at(100)), 2));
    assert!(matches!(plan.flags[&key("b")], PlannedAction::LeftAlone(_)));
    assert_eq!(planned(project(), vec![]).count(PlannedAction::is_change), 0);
}

#[test]
fn a_flag_is_archived_and_brought_back_but_not_changed_in_the_archive() {
    let archived = json!({"archived": true});
    let plan = planned(
        vec![stored("down", &json!({})), stored("up", &archived), stored("there", &archived)],
        vec![
            described("down", &archived),
            described("up", &json!({"enabled": true})),
            described("there", &archived),
        ],
    );
    assert_eq!(plan.flags[&key("down")].outcome().archived_at, Some(at(100)));
    let up = plan.flags[&key("up")].outcome();
    assert_eq!((up.archived_at, up.enabled), (None, true));
    assert!(matches!(plan.flags[&key("there")], PlannedAction::Unchanged(_)));

    let changed = json!({"archived": true, "description": "new"});
    let told = conflicts(vec![stored("a", &archived)], vec![described("a", &changed)]);
    assert!(told[0].contains("archived flags cannot be changed"), "{told:?}");
}

#[test]
fn a_type_stays() {
    let number = json!({"type": "number"});
    let told = conflicts(vec![stored("a", &json!({}))], vec![described("a", &number)]);
    assert!(told[0].starts_with("a: is of type boolean and cannot become number"), "{told:?}");
}

#[test]
fn rules_without_an_id_keep_that_of_their_like() {
    let rule = |id: &str, serve: &str| json!({"id": id, "serve": {"variant": serve}});
    let project =
        stored("a", &json!({"rules": [rule("1", "on"), rule("2", "off"), rule("3", "on")]}));
    let rules = json!({"rules": [
        rule("new-1", "off"), rule("1", "on"), rule("new-2", "on"), rule("new-3", "on"),
    ]});
    let mut document = described("a", &rules);
    document.new_rule_ids = ["new-1", "new-2", "new-3"].map(|id| RuleId::parse(id).unwrap()).into();
    let plan = planned(vec![project], vec![document]);
    let rules = plan.flags[&key("a")].outcome().rules.iter();
    assert_eq!(rules.map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["2", "1", "3", "new-3"]);
}

#[test]
fn what_others_depend_on_comes_first_and_the_archive_last() {
    let document = vec![
        described("a", &on(&["c"])),
        described("b", &on(&["a", "d"])),
        described("c", &on(&["d"])),
        described("d", &json!({})),
        described("e", &json!({"archived": true})),
    ];
    assert_eq!(order(planned(vec![], document)), ["d", "c", "a", "b", "e"]);
    // What is archived loses its dependents first.
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
fn dependencies_that_would_not_hold_are_conflicts() {
    let told = conflicts(vec![], vec![described("a", &on(&["b"]))]);
    assert!(
        told[0].starts_with("a: depends on b, which would be archived or not there"),
        "{told:?}"
    );
    // Also of a flag that the document leaves as it is.
    let project = || vec![stored("a", &json!({})), stored("b", &on(&["a"]))];
    let other_variants = json!({"variants": [{"key": "other", "value": "true"}]});
    let keep = || described("b", &on(&["a"]));
    let told = conflicts(project(), vec![described("a", &other_variants), keep()]);
    assert!(told[0].starts_with("b: depends on the variant on of a, which"), "{told:?}");
    let told = conflicts(project(), vec![described("a", &json!({"archived": true})), keep()]);
    assert!(told[0].starts_with("b: depends on a, which would be archived"), "{told:?}");

    let told = conflicts(project(), vec![described("a", &on(&["b"])), keep()]);
    assert_eq!(told, ["a: would depend on itself: a → b → a; take away a prerequisite"]);
    let chain: Vec<String> = (0..11).map(|index| format!("f{index:02}")).collect();
    let flags = chain.iter().enumerate().map(|(index, key)| {
        described(
            key,
            &on(&chain.get(index + 1).map(String::as_str).into_iter().collect::<Vec<_>>()),
        )
    });
    let told = conflicts(vec![], flags.collect());
    assert!(told[0].starts_with("f00: would be in a chain too long: f00 → f01"), "{told:?}");
}

#[test]
fn a_chain_of_archived_flags_counts_for_nothing() {
    let archived = |prerequisite: &str| {
        let mut members = on(&[prerequisite]);
        members["archived"] = json!(true);
        members
    };
    let document = vec![described("a", &archived("b")), described("b", &archived("a"))];
    let keys: BTreeSet<_> = order(planned(vec![], document)).into_iter().collect();
    assert_eq!(keys, ["a", "b"].map(str::to_owned).into());
    assert_eq!(order(planned(vec![], vec![described("a", &archived("gone"))])), ["a"]);
}

#[test]
fn a_project_has_so_many_live_flags_and_no_more() {
    let flags = |from: u32, to: u32| (from..to).map(|index| format!("f{index}"));
    let project = || flags(0, MAX_LIVE_FLAGS).map(|key| stored(&key, &json!({}))).collect();
    let told = plan(
        project(),
        vec![described("one-more", &json!({}))],
        &SegmentPlan::default(),
        false,
        at(1),
    )
    .unwrap_err();
    assert!(told.to_string().contains("would have 2001 flags"), "{told}");
    let document = vec![described("f0", &json!({"archived": true})), described("z", &json!({}))];
    assert_eq!(planned(project(), document).count(PlannedAction::is_change), 2);
}
