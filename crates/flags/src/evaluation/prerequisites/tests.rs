use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::FeatureFlag;
use crate::evaluation::outcome::{ErrorCode, Reason};
use crate::evaluation::test_flags::{context, flag, flags, loaded, now, project};
use crate::evaluation::{DamagedFlag, Flags};

/// A flag that is on for everyone, if these flags are.
fn depending(key: &str, on: &[&str]) -> FeatureFlag {
    depending_on(key, &on.iter().map(|key| (*key, "on")).collect::<Vec<_>>())
}

fn depending_on(key: &str, on: &[(&str, &str)]) -> FeatureFlag {
    let prerequisite = |(key, variant): &(&str, &str)| json!({"flagKey": key, "variant": variant});
    let prerequisites: Vec<Value> = on.iter().map(prerequisite).collect();
    let mut depending = flag(key, &json!({}));
    // Not checked, so that cycles can be built.
    depending.prerequisites = serde_json::from_value(prerequisites.into()).unwrap();
    depending
}

fn disabled(key: &str) -> FeatureFlag {
    FeatureFlag { enabled: false, ..flag(key, &json!({})) }
}

/// The variant, or the error's code; and the prerequisite that is unmet.
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
fn a_met_prerequisite_lets_the_flag_decide() {
    let flags = flags([depending("f", &["p", "q"]), flag("p", &json!({})), flag("q", &json!({}))]);
    assert_eq!(outcome(&flags, "f"), "on Default -");
}

#[test]
fn the_first_unmet_prerequisite_turns_the_flag_off_and_is_named() {
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
fn a_disabled_prerequisite_is_unmet_even_if_its_off_variant_is_wanted() {
    let flags = flags([depending_on("f", &[("d", "off")]), disabled("d")]);
    assert_eq!(outcome(&flags, "f"), "off Disabled d");
}

#[test]
fn a_disabled_flag_asks_for_no_prerequisite() {
    let mut off = depending("f", &["gone"]);
    off.enabled = false;
    assert_eq!(outcome(&flags([off]), "f"), "off Disabled -");
}

#[test]
fn an_error_propagates_where_it_is_reached_and_only_there() {
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
fn a_damaged_flag_fails_whoever_depends_on_it_and_nobody_else() {
    let damaged = LoadedFlag::damaged(
        FlagKey::parse("damaged").unwrap(),
        DamagedFlag::new("its definition is no JSON"),
    );
    let others = [depending("f", &["damaged"]), flag("p", &json!({}))].map(|it| loaded(&it));
    let flags = Flags::new(project(), others.into_iter().chain([damaged]).map(Arc::new));
    let nobody = context("{}");
    let evaluated = flags.evaluate_all(&nobody, now());
    let shown: Vec<String> = evaluated.map(|(_, outcome)| shown(&outcome)).collect();
    assert_eq!(shown, ["ParseError", "ParseError", "on Static -"]);
}

#[test]
fn a_diamond_is_no_cycle() {
    let flags = flags([
        depending("top", &["left", "right"]),
        depending("left", &["bottom"]),
        depending("right", &["bottom"]),
        flag("bottom", &json!({})),
    ]);
    assert_eq!(outcome(&flags, "top"), "on Default -");
}

#[test]
fn a_cycle_fails_unless_a_disabled_flag_breaks_it() {
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

/// f01, and f02 that depends on it, and so on.
fn chain(length: usize) -> Vec<FeatureFlag> {
    let key = |number: usize| format!("f{number:02}");
    let mut chain = vec![flag(&key(1), &json!({}))];
    chain.extend((2..=length).map(|number| depending(&key(number), &[&key(number - 1)])));
    chain
}

#[test]
fn a_chain_has_at_most_ten_flags() {
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
fn a_chain_is_as_long_whichever_of_its_flags_is_evaluated_first() {
    // Sorted by key, the longest chain comes first in one project and last in the other.
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
        let nobody = context("{}");
        let evaluated = flags.evaluate_all(&nobody, now());
        let mut failed: Vec<bool> = evaluated.map(|(_, outcome)| outcome.is_err()).collect();
        if from_the_end {
            failed.reverse();
        }
        let expected: Vec<bool> = (1..=14).map(|number| number > 10).collect();
        assert_eq!(failed, expected);
    }
}

#[test]
fn a_dense_graph_costs_each_flag_once() {
    // Without remembering, ten layers of twenty flags would be 20^9 evaluations.
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

/// Whether flags are enabled, and on which of the others they depend, being on or off.
type Graph = [(bool, Vec<(usize, bool)>)];

/// Whether a flag of a graph is on, without remembering anything; nothing if that fails.
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
    fn remembering_changes_no_result(
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
        let nobody = context("{}");
        for (index, (key, outcome)) in flags.evaluate_all(&nobody, now()).enumerate() {
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
