use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::FeatureFlag;
use crate::evaluation::outcome::{ErrorCode, Reason};
use crate::evaluation::test_flags::{context, flag, flags, loaded, now, project};
use crate::evaluation::{DamagedFlag, Flags};

/// Returns a flag that is on if these flags are on.
fn depending(key: &str, on: &[&str]) -> FeatureFlag {
    depending_on(key, &on.iter().map(|key| (*key, "on")).collect::<Vec<_>>())
}

fn depending_on(key: &str, on: &[(&str, &str)]) -> FeatureFlag {
    let prerequisite = |(key, variant): &(&str, &str)| json!({"flagKey": key, "variant": variant});
    let prerequisites: Vec<Value> = on.iter().map(prerequisite).collect();
    let mut depending = flag(key, &json!({}));
    // Set directly, since validation would reject cycles.
    depending.prerequisites = serde_json::from_value(prerequisites.into()).unwrap();
    depending
}

fn disabled(key: &str) -> FeatureFlag {
    FeatureFlag { enabled: false, ..flag(key, &json!({})) }
}

/// Returns the variant or the error's code, and the unmet prerequisite.
fn outcome(flags: &Flags, key: &str) -> String {
    shown(&flags.evaluate(key, &context("{}"), now()))
}

fn shown(outcome: &Outcome<'_>) -> String {
    match outcome {
        Ok(evaluation) => {
            let unmet = evaluation.metadata().prerequisite.map(FlagKey::as_str);
            let mut shown = evaluation.variant().unwrap().to_string();
            write!(shown, " {:?} {}", evaluation.reason(), unmet.unwrap_or("-")).unwrap();
            shown
        }
        Err(error) => format!("{:?}", error.code()),
    }
}

#[test]
fn met_prerequisites_let_the_flag_decide() {
    let flags = flags([depending("f", &["p", "q"]), flag("p", &json!({})), flag("q", &json!({}))]);
    assert_eq!(outcome(&flags, "f"), "on Default -");
}

#[test]
fn first_unmet_prerequisite_turns_the_flag_off() {
    let flags = flags([
        depending_on("other-variant", &[("p", "on"), ("p", "off"), ("gone", "on")]),
        depending("gone-first", &["gone", "p"]),
        depending("disabled-first", &["p", "d"]),
        depending("indirect", &["disabled-first"]),
        flag("p", &json!({})),
        disabled("d"),
    ]);
    assert_eq!(outcome(&flags, "other-variant"), "off Disabled p");
    assert_eq!(outcome(&flags, "gone-first"), "off Disabled gone");
    assert_eq!(outcome(&flags, "disabled-first"), "off Disabled d");
    assert_eq!(outcome(&flags, "indirect"), "off Disabled disabled-first");
}

#[test]
fn disabled_prerequisites_are_always_unmet() {
    let flags = flags([depending_on("f", &[("d", "off")]), disabled("d")]);
    assert_eq!(outcome(&flags, "f"), "off Disabled d");
}

#[test]
fn disabled_flags_ignore_their_prerequisites() {
    let mut off = depending("f", &["gone"]);
    off.enabled = false;
    assert_eq!(outcome(&flags([off]), "f"), "off Disabled -");
}

#[test]
fn errors_propagate_only_along_evaluated_prerequisites() {
    let split = json!({"fallthrough": {"rollout": [
        {"variant": "on", "weight": 1}, {"variant": "off", "weight": 1},
    ]}});
    let flags = flags([
        depending("reached", &["p", "split"]),
        depending("unreached", &["d", "split"]),
        depending("indirect", &["reached"]),
        flag("p", &json!({})),
        disabled("d"),
        flag("split", &split),
    ]);
    assert_eq!(outcome(&flags, "reached"), "TargetingKeyMissing");
    assert_eq!(outcome(&flags, "indirect"), "TargetingKeyMissing");
    assert_eq!(outcome(&flags, "unreached"), "off Disabled d");
    let error = flags.evaluate("indirect", &context("{}"), now()).unwrap_err();
    assert!(error.to_string().contains("flag split "), "{error}");
}

#[test]
fn unreadable_flags_fail_only_their_dependents() {
    let damaged = LoadedFlag::damaged(
        FlagKey::parse("damaged").unwrap(),
        DamagedFlag::new("its definition is no JSON"),
    );
    let others = [depending("f", &["damaged"]), flag("p", &json!({}))].map(|it| loaded(&it));
    let flags = Flags::new(project(), others.into_iter().chain([damaged]).map(Arc::new));
    let empty = context("{}");
    let evaluated = flags.evaluate_all(&empty, now());
    let shown: Vec<String> = evaluated.map(|(_, outcome)| shown(&outcome)).collect();
    assert_eq!(shown, ["ParseError", "ParseError", "on Static -"]);
}

#[test]
fn diamonds_are_not_cycles() {
    let flags = flags([
        depending("top", &["left", "right"]),
        depending("left", &["bottom"]),
        depending("right", &["bottom"]),
        flag("bottom", &json!({})),
    ]);
    assert_eq!(outcome(&flags, "top"), "on Default -");
}

#[test]
fn cycles_fail_without_a_disabled_flag() {
    let cycle = |middle: FeatureFlag| {
        flags([depending("a", &["b"]), middle, depending("c", &["a"]), depending("d", &["c"])])
    };
    let closed = cycle(depending("b", &["c"]));
    for key in ["a", "b", "c", "d"] {
        assert_eq!(outcome(&closed, key), "ParseError", "{key}");
    }
    let broken = cycle(FeatureFlag { enabled: false, ..depending("b", &["c"]) });
    assert_eq!(outcome(&broken, "b"), "off Disabled -");
    assert_eq!(outcome(&broken, "a"), "off Disabled b");
    assert_eq!(outcome(&flags([depending("s", &["s"])]), "s"), "ParseError");
}

/// Returns a chain: f02 depends on f01, and so on.
fn chain(length: usize) -> Vec<FeatureFlag> {
    let key = |number: usize| format!("f{number:02}");
    let mut chain = vec![flag(&key(1), &json!({}))];
    chain.extend((2..=length).map(|number| depending(&key(number), &[&key(number - 1)])));
    chain
}

#[test]
fn chains_have_at_most_ten_flags() {
    let flags = flags(chain(12));
    for (key, expected) in [
        ("f01", "on Static -"),
        ("f10", "on Default -"),
        ("f11", "ParseError"),
        ("f12", "ParseError"),
    ] {
        assert_eq!(outcome(&flags, key), expected, "{key}");
    }
}

#[test]
fn chain_length_ignores_the_evaluation_order() {
    // By sorted keys, the longest chain comes first in one project and last in the other.
    let rising = flags(chain(14));
    let falling = flags(chain(14).into_iter().map(|mut flag| {
        let mirrored = |key: &FlagKey| {
            let number: usize = key.as_str()[1..].parse().unwrap();
            FlagKey::parse(&format!("f{:02}", 15 - number)).unwrap()
        };
        flag.key = mirrored(&flag.key);
        for prerequisite in &mut flag.prerequisites {
            prerequisite.flag_key = mirrored(&prerequisite.flag_key);
        }
        flag
    }));
    for (flags, from_the_end) in [(&rising, false), (&falling, true)] {
        let empty = context("{}");
        let evaluated = flags.evaluate_all(&empty, now());
        let mut failed: Vec<bool> = evaluated.map(|(_, outcome)| outcome.is_err()).collect();
        if from_the_end {
            failed.reverse();
        }
        let expected: Vec<bool> = (1..=14).map(|number| number > 10).collect();
        assert_eq!(failed, expected);
    }
}

#[test]
fn dense_graphs_evaluate_each_flag_once() {
    // Without caching, ten layers of twenty flags would take 20^9 evaluations.
    let layer = |number: usize| (0..20).map(move |index| format!("l{number}-{index}"));
    let all = (0..10).flat_map(|number| {
        let below: Vec<String> = if number == 0 { Vec::new() } else { layer(number - 1).collect() };
        layer(number)
            .map(move |key| depending(&key, &below.iter().map(String::as_str).collect::<Vec<_>>()))
    });
    let flags = flags(all);
    assert_eq!(outcome(&flags, "l9-0"), "on Default -");
    assert!(flags.evaluate_all(&context("{}"), now()).all(|(_, outcome)| outcome.is_ok()));
}

/// Flags: whether each is enabled, and the flags that it requires to be on or off.
type Graph = [(bool, Vec<(usize, bool)>)];

/// Returns whether a flag of a graph is on, without caching; `None` if its evaluation fails.
fn plain(graph: &Graph, path: &[usize], index: usize) -> Option<bool> {
    if path.contains(&index) || path.len() >= MAX_PREREQUISITE_DEPTH {
        return None;
    }
    let path = [path, &[index]].concat();
    let (enabled, prerequisites) = &graph[index];
    let mut on = *enabled;
    for (other, wanted) in prerequisites {
        if on {
            on = plain(graph, &path, *other)? == *wanted && graph[*other].0;
        }
    }
    Some(on)
}

proptest! {
    #[test]
    fn caching_does_not_change_results(
        graph in prop::collection::vec(
            (prop::bool::weighted(0.9), prop::collection::vec((0_usize..16, prop::bool::weighted(0.9)), 0..3)),
            16,
        ),
    ) {
        let keys: Vec<String> = (0..graph.len()).map(|index| format!("f{index:02}")).collect();
        let all = graph.iter().enumerate().map(|(index, (enabled, prerequisites))| {
            let on = |(other, wanted): &(usize, bool)| {
                (keys[*other].as_str(), if *wanted { "on" } else { "off" })
            };
            let prerequisites: Vec<_> = prerequisites.iter().map(on).collect();
            FeatureFlag { enabled: *enabled, ..depending_on(&keys[index], &prerequisites) }
        });
        let flags = flags(all);
        let empty = context("{}");
        for (index, (key, outcome)) in flags.evaluate_all(&empty, now()).enumerate() {
            let alone = flags.evaluate(key.as_str(), &context("{}"), now());
            prop_assert_eq!(shown(&alone), shown(&outcome));
            match (plain(&graph, &[], index), &alone) {
                (Some(on), Ok(found)) => {
                    prop_assert_eq!(found.variant().unwrap().as_str(), if on { "on" } else { "off" });
                    prop_assert_eq!(found.reason() == Reason::Disabled, !on);
                }
                (None, Err(error)) => prop_assert_eq!(error.code(), ErrorCode::ParseError),
                (plain, found) => prop_assert!(false, "{:?} {:?}", plain, found),
            }
        }
    }
}
