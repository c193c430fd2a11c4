//! Concurrent changes to the same flags.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Reply;
use tests::seed;

use super::{
    CREATE, archive, change, create, create_dependent, creation, delete, live_flags, on, stored,
    update,
};

/// Sends a request until it is not a conflict: changes of prerequisites update one item, so some
/// give up.
async fn until_decided(mut send: impl AsyncFnMut() -> Reply) -> Reply {
    loop {
        let reply = send().await;
        if reply.problem() != (409, "conflict") {
            return reply;
        }
    }
}

#[tokio::test]
async fn concurrent_updates_cannot_close_a_cycle() {
    let test = TestApp::start().await;
    for number in 0..4 {
        create(&test, &format!("f{number}"), &json!({})).await;
    }
    // Rings of two, three and four flags. All updates of a ring except one succeed.
    for size in [2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 2, 2, 2, 2] {
        let update = |number: usize| {
            let (key, next) = (format!("f{number}"), format!("f{}", (number + 1) % size));
            let test = &test;
            async move { until_decided(async || update(test, &key, on(&[&next])).await).await }
        };
        let replies = join_all((0..size).map(update)).await;
        let rejected: Vec<&Reply> = replies.iter().filter(|reply| reply.status != 200).collect();
        assert_eq!(rejected.len(), 1, "of a ring of {size}");
        assert_eq!(rejected[0].violations(), [("/prerequisites/0", "cycle")]);
        assert_consistent(&test).await;
        for number in 0..size {
            change(&test, &format!("f{number}"), json!({"prerequisites": []})).await;
        }
    }
}

#[tokio::test]
async fn concurrent_updates_cannot_exceed_the_chain_limit() {
    let test = TestApp::start().await;
    // Chains of four, four and three flags. Two connections fit, a third one does not.
    for (chain, length) in [("a", 4), ("b", 4), ("c", 3)] {
        create(&test, &format!("{chain}1"), &json!({})).await;
        for number in 2..=length {
            let below = format!("{chain}{}", number - 1);
            create_dependent(&test, &format!("{chain}{number}"), &[&below]).await;
        }
    }
    for _ in 0..5 {
        let connect = |key: &'static str, to: &'static str| {
            let test = &test;
            async move { until_decided(async || update(test, key, on(&[to])).await).await }
        };
        let replies = tokio::join!(connect("a1", "b4"), connect("b1", "c3"));
        let outcomes = [replies.0.status, replies.1.status];
        assert!(outcomes == [200, 400] || outcomes == [400, 200], "{outcomes:?}");
        assert_consistent(&test).await;
        for key in ["a1", "b1"] {
            change(&test, key, json!({"prerequisites": []})).await;
        }
    }
}

#[tokio::test]
async fn archiving_conflicts_with_a_new_dependent() {
    let test = TestApp::start().await;
    create(&test, "top", &json!({})).await;
    let mut outcomes = BTreeSet::new();
    for round in 0..12 {
        let base = format!("base-{round}");
        create(&test, &base, &json!({})).await;
        let archiving = until_decided(async || archive(&test, &base).await);
        let depending = until_decided(async || update(&test, "top", on(&[&base])).await);
        let creating = until_decided(async || {
            let body = creation(&format!("new-{round}"), &on(&[&base]));
            test.call(CREATE).json(&body).send(&test.app).await
        });
        let (archived, depends, created) = tokio::join!(archiving, depending, creating);
        if archived.status == 200 {
            assert_eq!(depends.violations(), [("/prerequisites/0/flagKey", "flag_archived")]);
            assert_eq!(created.violations(), [("/prerequisites/0/flagKey", "flag_archived")]);
        } else {
            assert_eq!(archived.problem(), (409, "flag_in_use"));
            assert!(depends.status == 200 || created.status == 201);
        }
        outcomes.insert(archived.status);
        assert_consistent(&test).await;
    }
    assert!(!outcomes.is_empty());
}

#[tokio::test]
async fn variant_removal_conflicts_with_a_new_dependent() {
    let test = TestApp::start().await;
    create(&test, "top", &json!({})).await;
    for round in 0..10 {
        let base = format!("base-{round}");
        create(&test, &base, &json!({})).await;
        let only_off = json!({
            "variants": [{"key": "off", "value": "false"}], "fallthrough": {"variant": "off"}
        });
        let removing = until_decided(async || update(&test, &base, only_off.clone()).await);
        let depending = until_decided(async || update(&test, "top", on(&[&base])).await);
        let (removed, depends) = tokio::join!(removing, depending);
        if removed.status == 200 {
            assert_eq!(depends.violations(), [("/prerequisites/0/variant", "unknown_variant")]);
        } else {
            assert_eq!((removed.problem(), depends.status), ((409, "flag_in_use"), 200));
        }
        assert_consistent(&test).await;
    }
}

#[tokio::test]
async fn concurrent_flags_respect_the_project_limit() {
    let test = TestApp::start().await;
    for number in 0..4 {
        create(&test, &format!("f{number}"), &json!({})).await;
        archive(&test, &format!("f{number}")).await;
    }
    super::set_live_flags(&test, 1_998).await;
    let back = |number: usize| {
        let (test, key) = (&test, format!("f{number}"));
        async move {
            let patch = json!({"archived": false});
            until_decided(async || update(test, &key, patch.clone()).await).await
        }
    };
    let new = |number: usize| {
        let (test, body) = (&test, creation(&format!("n{number}"), &json!({})));
        async move { until_decided(async || test.call(CREATE).json(&body).send(&test.app).await).await }
    };
    let (back, new) = tokio::join!(join_all((0..4).map(back)), join_all((0..4).map(new)));
    let replies = [back, new].concat();
    let full = replies.iter().filter(|r| r.problem() == (409, "flag_limit_reached")).count();
    let taken = replies.iter().filter(|reply| matches!(reply.status, 200 | 201)).count();
    assert_eq!((taken, full), (2, 6));
    assert_eq!(live_flags(&test).await, 2_000);
}

const CLIENTS: usize = 8;
const TIME: Duration = Duration::from_secs(8);

/// Number of responses by request, status and code.
type Outcomes = BTreeMap<(&'static str, u16, String), usize>;

/// Sends a random request for one of a few flags that all clients use.
async fn send_random_request(test: &TestApp, random: &mut ChaCha8Rng, outcomes: &Mutex<Outcomes>) {
    let key = format!("f{}", random.random_range(0..12));
    let prerequisites = |random: &mut ChaCha8Rng| {
        let others: BTreeSet<u64> =
            (0..random.random_range(0..3)).map(|_| random.random_range(0..12)).collect();
        let other = |number: &u64| {
            let variant = if number.is_multiple_of(2) { "on" } else { "off" };
            json!({"flagKey": format!("f{number}"), "variant": variant})
        };
        json!({"prerequisites": others.iter().map(other).collect::<Vec<Value>>()})
    };
    let (request, reply) = match random.random_range(0..12) {
        0 | 1 => ("archive", archive(test, &key).await),
        2 | 3 => ("unarchive", update(test, &key, json!({"archived": false})).await),
        4 => ("delete", delete(test, &key).await),
        5..8 => {
            let body = creation(&key, &prerequisites(random));
            ("create", test.call(CREATE).json(&body).send(&test.app).await)
        }
        8 => {
            let choices: [&[&str]; 3] = [&["on", "off"], &["on"], &["off", "new"]];
            let keys = *choices.choose(random).unwrap();
            let variant = |key: &&str| json!({"key": key, "value": "true"});
            let patch = json!({
                "variants": keys.iter().map(variant).collect::<Vec<_>>(),
                "offVariant": keys[0], "fallthrough": {"variant": keys[0]},
            });
            ("variants", update(test, &key, patch).await)
        }
        9 => ("toggle", update(test, &key, json!({"enabled": random.random_ratio(1, 2)})).await),
        _ => ("prerequisites", update(test, &key, prerequisites(random)).await),
    };
    assert!(matches!(reply.status, 200 | 201 | 204 | 400 | 404 | 409), "{request}: {}", reply.body);
    if request == "toggle" && reply.status >= 400 {
        let expected = ["flag_not_found", "flag_archived", "conflict"];
        assert!(expected.contains(&reply.code()), "toggling is never rejected: {}", reply.body);
    }
    let outcome = (request, reply.status, reply.code().to_owned());
    *outcomes.lock().unwrap().entry(outcome).or_default() += 1;
}

#[tokio::test]
async fn concurrent_clients_keep_flags_and_counts_consistent() {
    let seed = seed();
    println!("SEED={seed}");
    let test = TestApp::start().await;
    for number in 0..12 {
        create(&test, &format!("f{number}"), &json!({})).await;
    }
    let outcomes = Mutex::default();
    let until = Instant::now() + TIME;
    let clients = (0..CLIENTS).map(|client| {
        let mut random =
            ChaCha8Rng::seed_from_u64(seed.wrapping_add(u64::try_from(client).unwrap()));
        let (test, outcomes) = (&test, &outcomes);
        async move {
            while Instant::now() < until {
                send_random_request(test, &mut random, outcomes).await;
            }
        }
    });
    let watching = async {
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_consistent(&test).await;
        }
    };
    tokio::join!(join_all(clients), watching);
    assert_consistent(&test).await;
    let outcomes = outcomes.into_inner().unwrap();
    for (request, status) in
        [("archive", 200), ("unarchive", 200), ("create", 201), ("prerequisites", 200)]
    {
        let done: usize = outcomes
            .iter()
            .filter(|((a, s, _), _)| *a == request && *s == status)
            .map(|(_, count)| count)
            .sum();
        assert!(done > 0, "only {done} of {request}: {outcomes:?}");
    }
}

/// Checks the stored items for consistency. A scan can see part of a transaction, so a fault is
/// checked again.
async fn assert_consistent(test: &TestApp) {
    let mut faults = Vec::new();
    for _ in 0..5 {
        faults = faults_of(test).await;
        if faults.is_empty() {
            return;
        }
    }
    panic!("{faults:?}");
}

async fn faults_of(test: &TestApp) -> Vec<String> {
    let mut items = stored(test).await;
    let project = items.remove("#").unwrap();
    items.retain(|key, _| !key.starts_with('!'));
    let mut faults = Vec::new();
    let counted: usize = project["liveFlags"].as_n().unwrap().parse().unwrap();
    items.retain(|_, item| {
        let live = !item.contains_key("archivedAt");
        if item.contains_key("dependentKey") != (live && item.contains_key("prerequisites")) {
            faults.push(format!("the index is wrong about {item:?}"));
        }
        live
    });
    if counted != items.len() {
        faults.push(format!("{counted} flags are counted, {} are there", items.len()));
    }
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, item) in &items {
        let prerequisites = item.get("prerequisites").map_or(&[][..], |it| it.as_l().unwrap());
        for prerequisite in prerequisites {
            let member = |name: &str| prerequisite.as_m().unwrap()[name].as_s().unwrap();
            edges.entry(key).or_default().push(member("flagKey"));
            let variants = items.get(member("flagKey")).and_then(|it| it.get("variantKeys"));
            if !variants.is_some_and(|it| it.as_ss().unwrap().contains(member("variant"))) {
                faults.push(format!("{key} wants what is not there: {prerequisite:?}"));
            }
        }
    }
    for key in items.keys() {
        let depth = depth(key, &edges, 0);
        if depth > 10 {
            faults.push(format!("{key} starts a chain of {depth} flags or a cycle"));
        }
    }
    faults
}

/// Returns the length of the longest chain from a flag. Stops when it must be a cycle.
fn depth(key: &str, edges: &BTreeMap<&str, Vec<&str>>, above: usize) -> usize {
    if above > 12 {
        return 1;
    }
    let below = edges.get(key).into_iter().flatten();
    1 + below.map(|next| depth(next, edges, above + 1)).max().unwrap_or(0)
}
