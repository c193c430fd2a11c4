//! Each bug is one error in all builds of an application.
//!
//! The stacks are those of ten bugs in twenty builds by each of several bundlers
//! (`crates/errors/src/testdata/builds/README.md`). Stacks with stable names keep the fingerprints
//! that they always had.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use shared::timestamp::Timestamp;

use super::Envelope;
use super::testing::{normalize_envelope, normalize_store_body};
use crate::grouping::Fingerprint;

const FRAMES: &str = include_str!("../testdata/builds/frames.json");
const BUILDS: usize = 20;
const BUGS: usize = 10;

/// Bundlers, their builds, and the bugs in each.
type Recorded = BTreeMap<String, Vec<BTreeMap<String, Thrown>>>;

#[derive(Debug, serde::Deserialize)]
struct Thrown {
    r#type: String,
    value: String,
    /// Function and file.
    frames: Vec<(String, String)>,
}

fn fingerprint(event: &Value) -> Fingerprint {
    let received_at = Timestamp::from_millis(1_795_000_000_000);
    let event = normalize_store_body(event.to_string().as_bytes(), received_at);
    event.unwrap().unwrap().description.fingerprint
}

fn event(bug: &str, thrown: &Thrown, with_transaction: bool) -> Value {
    let frames: Vec<Value> = thrown
        .frames
        .iter()
        .map(|(function, file)| json!({"function": function, "filename": file, "in_app": true}))
        .collect();
    let mut event = json!({
        "platform": "javascript",
        "request": {"url": format!("https://shop.example.com/{bug}/4711?page=2")},
        "exception": {"values": [{
            "type": thrown.r#type, "value": thrown.value, "stacktrace": {"frames": frames},
        }]},
    });
    if with_transaction {
        event["transaction"] = json!(format!("/{bug}/:id"));
    }
    event
}

#[test]
fn each_bug_is_one_error_in_all_builds_of_a_bundler() {
    let recorded: Recorded = serde_json::from_str(FRAMES).unwrap();
    assert_eq!(recorded.len(), 8);
    for (bundler, builds) in &recorded {
        assert_eq!(builds.len(), BUILDS);
        for with_transaction in [true, false] {
            let mut errors: BTreeMap<&str, BTreeSet<Fingerprint>> = BTreeMap::new();
            for (bug, thrown) in builds.iter().flatten() {
                let fingerprint = fingerprint(&event(bug, thrown, with_transaction));
                errors.entry(bug).or_default().insert(fingerprint);
            }
            assert_eq!(errors.len(), BUGS);
            for (bug, fingerprints) in &errors {
                assert_eq!(fingerprints.len(), 1, "{bundler}: {bug}");
            }
            let distinct: BTreeSet<&Fingerprint> = errors.values().flatten().collect();
            assert_eq!(distinct.len(), BUGS, "{bundler}: two bugs are one error");
        }
    }
}

/// Returns the fingerprint of an error in a bundle, from its functions. `function@file` names
/// another file than the bundle.
fn bundle_fingerprint(value: &str, transaction: &str, functions: &[&str]) -> Fingerprint {
    const BUNDLE: &str = "https://shop.example.com/assets/main-DORQCSFD.js";
    let frames = functions.iter().map(|function| match function.split_once('@') {
        Some((function, file)) => (function.to_owned(), file.to_owned()),
        None => ((*function).to_owned(), BUNDLE.to_owned()),
    });
    let (r#type, value) = ("TypeError".to_owned(), value.to_owned());
    let mut event = event("cart", &Thrown { r#type, value, frames: frames.collect() }, false);
    event["transaction"] = json!(transaction);
    fingerprint(&event)
}

#[test]
fn engine_functions_do_not_count() {
    let parse = |value, transaction| {
        bundle_fingerprint(value, transaction, &["?", "a", "JSON.parse@<anonymous>"])
    };
    assert_ne!(parse("Unexpected end of JSON input", "/cart"), parse("\"x\" is no JSON", "/cart"));
    assert_ne!(parse("x", "/cart"), parse("x", "/login"));
    let each = |called: &[&str]| {
        bundle_fingerprint("x", "/cart", &[&["?", "checkout"], called, &["submitOrder"]].concat())
    };
    let of_firefox = each(&[]);
    assert_eq!(each(&["Array.forEach@<anonymous>"]), of_firefox);
    assert_eq!(each(&["forEach@[native code]"]), of_firefox);
}

#[test]
fn missing_names_distinguish_methods_with_equal_names() {
    let save = |value| bundle_fingerprint(value, "/cart", &["?", "t.save"]);
    let amount = save("Cannot read properties of undefined (reading 'amount')");
    assert_ne!(amount, save("Cannot read properties of undefined (reading 'roles')"));
    for of_another_browser in [
        "undefined is not an object (evaluating 'e.cart.amount')",
        "can't access property \"amount\", e.cart is undefined",
    ] {
        assert_eq!(save(of_another_browser), amount, "{of_another_browser}");
    }
    assert_eq!(save("No rate for EUR"), save("No rate for USD"), "the application's own message");
}

#[test]
fn only_numbers_of_bundlers_are_ignored() {
    let of = |function| bundle_fingerprint("x", "/cart", &["?", function]);
    assert_ne!(of("submitStep1"), of("submitStep2"));
    assert_eq!(of("load2"), of("load$1"));
}

#[test]
fn page_paths_become_routes() {
    let at = |transaction| bundle_fingerprint("x is undefined", transaction, &["?", "ab"]);
    assert_eq!(at("/orders/4711"), at("/orders/4712"));
    assert_ne!(at("/orders/4711"), at("/cart"));
    assert_ne!(at("checkout"), at("cart"));
}

#[test]
fn unbuilt_code_is_grouped_by_all_names() {
    let of_node = |function: &str, column: u64| {
        let frame = json!({"function": function, "module": "app", "in_app": true, "colno": column});
        fingerprint(&json!({"platform": "node", "exception": [{
            "type": "Error", "value": "x", "stacktrace": {"frames": [frame]},
        }]}))
    };
    assert_ne!(of_node("run", 12), of_node("add", 12));
    assert_eq!(of_node("run", 12), of_node("run", 999));
    // A server's bundle has long lines.
    assert_eq!(of_node("run", 40_000), of_node("add", 50_000));
}

#[test]
fn events_with_stable_names_keep_their_fingerprints() {
    let sent: [&[u8]; 5] = [
        include_bytes!("../testdata/python-chained-exception.envelope"),
        include_bytes!("../testdata/python-unhandled.envelope"),
        include_bytes!("../testdata/python-logged-message.envelope"),
        include_bytes!("../testdata/node-chained-exception.envelope"),
        include_bytes!("../testdata/node-unhandled.envelope"),
    ];
    let received_at = Timestamp::from_millis(1_795_000_000_000);
    let fingerprints = sent.map(|envelope| {
        let event = normalize_envelope(&Envelope::parse(envelope).unwrap(), received_at);
        event.unwrap().unwrap().description.fingerprint.to_string()
    });
    let of_rust = json!({"platform": "native", "sdk": {"name": "sentry.rust"}, "exception": [{
        "type": "ParseIntError", "value": "invalid digit found in string",
        "stacktrace": {"frames": [
            {"function": "shop::main", "filename": "src/main.rs", "in_app": true},
            {"function": "shop::cart::add::h0123456789abcdef", "filename": "src/cart.rs", "in_app": true},
        ]},
    }]});
    let expected = [
        "55e7e5f22fa8eb5e187e59b46824960c",
        "55e7e5f22fa8eb5e187e59b46824960c",
        "311894ee79e4bc19f5bb6ac110038994",
        "8812d6196b145db05157354072439a8f",
        "b315d504c192138ce36aca56164e2bd0",
    ];
    assert_eq!(fingerprints, expected);
    assert_eq!(fingerprint(&of_rust).to_string(), "f1a17030291b0e9b043768afd7c8110a");
}
