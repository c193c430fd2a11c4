//! Concurrent changes to the same insights.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;
use tests::app::TestApp;
use tests::call::Reply;
use tests::insights::{self, pain_point};

use super::{
    LIST, LIST_PAIN_POINTS, add, call_for, create, get, id_of, ids, members, merge, numbered, split,
};

const CLIENTS: usize = 16;
const TIME: Duration = Duration::from_secs(10);

/// The insights that clients know, and the responses that they got.
struct Work {
    insights: Mutex<Vec<String>>,
    next: AtomicUsize,
    acknowledged: Mutex<BTreeSet<String>>,
    in_doubt: Mutex<BTreeSet<String>>,
    outcomes: Mutex<BTreeMap<(&'static str, u16, String), usize>>,
}

impl Work {
    /// Returns a random insight, most often one of the first, so that clients meet.
    fn any_insight(&self) -> String {
        let insights = self.insights.lock().unwrap();
        let among = if random(3) == 0 { insights.len() } else { insights.len().min(3) };
        insights[random(among)].clone()
    }

    /// Returns up to `most` new pain points.
    fn new_numbers(&self, most: usize) -> std::ops::Range<usize> {
        let count = 1 + random(most);
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }

    fn note(&self, operation: &'static str, reply: &Reply) {
        assert!(
            matches!(reply.status, 200 | 201 | 400 | 409 | 503),
            "{operation}: {} {}",
            reply.status,
            reply.body
        );
        let outcome = (operation, reply.status, reply.code().to_owned());
        *self.outcomes.lock().unwrap().entry(outcome).or_default() += 1;
    }

    fn note_upload(&self, numbers: std::ops::Range<usize>, reply: &Reply) {
        let into = if reply.status < 300 { &self.acknowledged } else { &self.in_doubt };
        into.lock().unwrap().extend(numbered(numbers));
    }

    /// Sends a random request.
    async fn send_random_request(&self, test: &TestApp) {
        let id = self.any_insight();
        match random(8) {
            0..3 => {
                let numbers = self.new_numbers(5);
                let reply = add(test, &id, numbers.clone()).await;
                self.note("add", &reply);
                self.note_upload(numbers, &reply);
            }
            3 => {
                let numbers = self.new_numbers(3);
                let body = super::creation(numbers.clone());
                let reply = test.call(super::CREATE).json(&body).send(&test.app).await;
                self.note("create", &reply);
                self.note_upload(numbers, &reply);
                self.learn(&reply);
            }
            4..6 => {
                let list = call_for(test, LIST_PAIN_POINTS, &id).query("limit", 20);
                let reply = list.send(&test.app).await;
                self.note("list", &reply);
                let Some(items) = reply.body["items"].as_array() else { return };
                let chosen: Vec<Value> =
                    ids(items).into_iter().filter(|_| random(4) == 0).map(Value::from).collect();
                let body = serde_json::json!({ "painPointIds": chosen });
                if !chosen.is_empty() {
                    let reply = call_for(test, super::SPLIT, &id).json(&body).send(&test.app).await;
                    self.note("split", &reply);
                    self.learn(&reply);
                }
            }
            _ => {
                let reply = merge(test, &id, &self.any_insight()).await;
                self.note("merge", &reply);
                if reply.status == 200 {
                    self.insights.lock().unwrap().retain(|known| *known != id);
                }
            }
        }
    }

    fn learn(&self, reply: &Reply) {
        if reply.status == 201 {
            self.insights.lock().unwrap().push(id_of(reply));
        }
    }

    fn count(&self, operation: &str, status: u16) -> usize {
        let outcomes = self.outcomes.lock().unwrap();
        let counted = outcomes.iter().filter(|((o, s, _), _)| *o == operation && *s == status);
        counted.map(|(_, count)| count).sum()
    }
}

/// Returns a random number below `below`.
fn random(below: usize) -> usize {
    let random = RandomState::new().hash_one(Instant::now());
    usize::try_from(random % u64::try_from(below).unwrap()).unwrap()
}

#[tokio::test]
async fn concurrent_clients_keep_insight_counts_exact() {
    let test = TestApp::start().await;
    let mut known = Vec::new();
    for number in 0..3 {
        known.push(create(&test, number * 150..(number + 1) * 150).await);
    }
    let work = Work {
        insights: Mutex::new(known),
        next: AtomicUsize::new(1_000),
        acknowledged: Mutex::new(numbered(0..450)),
        in_doubt: Mutex::default(),
        outcomes: Mutex::default(),
    };
    let until = Instant::now() + TIME;
    let clients = (0..CLIENTS).map(|_| async {
        while Instant::now() < until {
            work.send_random_request(&test).await;
        }
    });
    join_all(clients).await;
    for (operation, status) in [("add", 200), ("create", 201), ("split", 201), ("merge", 200)] {
        let count = work.count(operation, status);
        assert!(count > 5, "only {count} of {operation}: {:?}", work.outcomes);
    }
    let owners = recount(&test).await;
    let (acknowledged, in_doubt) =
        (work.acknowledged.lock().unwrap(), work.in_doubt.lock().unwrap());
    let lost: Vec<_> = acknowledged.iter().filter(|id| !owners.contains_key(*id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let unknown = owners.keys().filter(|id| !acknowledged.contains(*id) && !in_doubt.contains(*id));
    assert_eq!(unknown.count(), 0);
}

/// Counts each insight from its listed pain points, and returns the insight of each pain point.
async fn recount(test: &TestApp) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for insight in test.pages(&test.call(LIST), 100).await.concat() {
        let id = insight["id"].as_str().unwrap();
        let members = members(test, id).await;
        let numbers: Vec<usize> = members
            .iter()
            .map(|member| usize::from_str_radix(&member[24..], 16).unwrap())
            .collect();
        let points: Vec<_> = numbers.iter().map(|number| pain_point(*number)).collect();
        let sessions: BTreeSet<_> = points.iter().map(|point| &point.session_id).collect();
        let users: BTreeSet<_> = points.iter().filter_map(|point| point.user_id.as_ref()).collect();
        let counted = [points.len(), sessions.len(), users.len()];
        let shown = ["occurrences", "affectedSessions", "identifiedUsers"];
        assert_eq!(shown.map(|field| insight[field].clone()), counted.map(Value::from));
        let latest = points.iter().map(|point| point.excerpt.as_str()).next_back();
        assert_eq!(insight["excerpt"], latest.unwrap_or_default());
        assert_eq!(insight["status"] == "merged", members.is_empty());
        for member in members {
            let before = owners.insert(member, id.to_owned());
            assert_eq!(before, None, "a pain point is in two insights");
        }
    }
    let chunks = super::referenced_chunks(test).await;
    assert_eq!(super::stored_of(test, "chunk#").await, chunks, "no chunk is orphaned");
    owners
}

#[tokio::test]
async fn readers_never_see_partial_splits_or_merges() {
    let test = TestApp::start().await;
    let id = create(&test, 0..300).await;
    let done = AtomicUsize::new(0);
    let writing = async {
        for _ in 0..15 {
            let split_off = id_of(&split(&test, &id, (0..300).step_by(2)).await);
            assert_eq!(merge(&test, &split_off, &id).await.status, 200);
        }
        done.store(1, Ordering::Relaxed);
    };
    let reading = async {
        let mut seen = BTreeSet::new();
        while done.load(Ordering::Relaxed) == 0 {
            let body = get(&test, &id).await.body;
            let shown = (body["occurrences"].as_u64(), body["excerpt"].as_str().map(str::to_owned));
            seen.insert(shown);
        }
        seen
    };
    let listing = async {
        while done.load(Ordering::Relaxed) == 0 {
            let items = test.pages(&call_for(&test, LIST_PAIN_POINTS, &id), 100).await;
            assert!(items[0].len() == 100);
        }
    };
    let ((), seen, ()) = tokio::join!(writing, reading, listing);
    let excerpt = |number: usize| Some(insights::pain_point(number).excerpt);
    let possible = BTreeSet::from([(Some(300), excerpt(299)), (Some(150), excerpt(299))]);
    assert!(seen.is_subset(&possible), "{seen:?}");
    assert_eq!(members(&test, &id).await, numbered(0..300));
}
