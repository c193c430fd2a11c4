//! Pain points of concurrent uploads, and of uploads that died.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use ::insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use ::insights::{Insight, InsightId, PainPoint};
use shared::app::Ids;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::insights::{self, pain_point, upload};

use super::{
    ADD, CREATE, LIST_PAIN_POINTS, add, call_for, create, creation, etag, get, id_of, members,
    numbered, stored,
};

const BATCH_LIFETIME: Duration = Duration::from_secs(5);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Claims pain points for a batch that is never committed.
async fn claim(test: &TestApp, numbers: impl IntoIterator<Item = usize>) -> BatchId {
    let now = test.app.clock.now();
    let pain_points: Vec<PainPoint> = numbers.into_iter().map(pain_point).collect();
    let pain_points: Vec<&PainPoint> = pain_points.iter().collect();
    let batch = insights::batch(now);
    let claim = InsightStore::new(&test.app.store)
        .claim_pain_points(test.project_id, batch, &pain_points, now)
        .await;
    assert_eq!(claim.unwrap(), ClaimOutcome::Claimed);
    batch
}

/// Repeats a call while it conflicts with others, as a client should.
async fn send_until_settled(test: &TestApp, call: Call) -> Reply {
    loop {
        let reply = call.clone().send(&test.app).await;
        if !matches!(reply.problem(), (409, "conflict") | (503, "unavailable")) {
            return reply;
        }
    }
}

async fn add_settled(test: &TestApp, id: &str, numbers: impl Iterator<Item = usize>) -> Reply {
    send_until_settled(test, call_for(test, ADD, id).json(&upload(numbers))).await
}

#[tokio::test]
async fn claims_of_dead_uploads_are_in_no_insight() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let before = get(&test, &id).await;
    let reply = call_for(&test, ADD, &id).json(&upload([1, 2])).send(&test.dying_after(1)).await;
    assert!(reply.status >= 500, "{}", reply.body);
    let reply = test.call(CREATE).json(&creation([3, 4])).send(&test.dying_after(1)).await;
    assert!(reply.status >= 500, "{}", reply.body);
    let after = get(&test, &id).await;
    assert_eq!((&after.body, etag(&after)), (&before.body, "\"1\""));
    assert_eq!(members(&test, &id).await, numbered([0]));
    assert_eq!(test.pages(&test.call(super::LIST), 10).await.concat().len(), 1);
}

#[tokio::test]
async fn claims_of_dead_uploads_conflict_for_5_seconds() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let reply = call_for(&test, ADD, &id).json(&upload([1, 2])).send(&test.dying_after(1)).await;
    assert!(reply.status >= 500);
    assert_eq!(add(&test, &id, [3]).await.status, 200, "other pain points do not conflict");
    test.pass(BATCH_LIFETIME.saturating_sub(MILLISECOND));
    let started = Instant::now();
    let creation = creation([2, 5]);
    let (added, created) =
        tokio::join!(add(&test, &id, [1]), test.call(CREATE).json(&creation).send(&test.app));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    for reply in [added, created] {
        assert_eq!(reply.problem(), (409, "conflict"));
        assert_eq!(reply.headers["retry-after"], "1");
    }
    // These two requests' own claims conflict for the same time.
    test.pass(MILLISECOND);
    let mut other = upload([1]);
    other["painPoints"][0]["title"] = json!("Uploaded again");
    let reply = call_for(&test, ADD, &id).json(&other).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(3)));
    let listed = test.pages(&call_for(&test, LIST_PAIN_POINTS, &id), 10).await.concat();
    assert_eq!(listed[1]["title"], "Uploaded again");
    test.pass(BATCH_LIFETIME);
    let reply = test.call(CREATE).json(&creation).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (201, &json!(2)));
}

#[tokio::test]
async fn abandoned_batches_cannot_be_committed() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let batch = claim(&test, [1, 2]).await;
    test.pass(BATCH_LIFETIME);
    assert_eq!(add(&test, &id, [1]).await.status, 200);
    let before = stored(&test).await;
    // The request that was considered dead continues.
    let now = test.app.clock.now();
    let (one, two) = (pain_point(1), pain_point(2));
    let new_id = || Ids::Random.new_uuid(now);
    let late = InsightId::new(new_id());
    let mut insight = Insight::new(late, test.project_id, "Late".to_owned(), String::new());
    insight.add(&[&one, &two], new_id).unwrap();
    let together = RequestRecord::Batch(batch);
    let written =
        InsightStore::new(&test.app.store).save_insights(&[&insight], together, None, now).await;
    assert_eq!(written.unwrap(), InsightWrite::BatchAbandoned);
    assert_eq!(stored(&test).await, before);
    let claim = InsightStore::new(&test.app.store)
        .claim_pain_points(test.project_id, batch, &[&one], now)
        .await;
    assert_eq!(claim.unwrap(), ClaimOutcome::Taken(vec![one.id]));
}

#[tokio::test]
async fn later_of_two_waiting_batches_is_abandoned() {
    let test = TestApp::start().await;
    let now = test.app.clock.now();
    let pain_points: Vec<PainPoint> = (0..200).map(pain_point).collect();
    let pain_points: Vec<&PainPoint> = pain_points.iter().collect();
    let (earlier, later) =
        (BatchId::new(test.app.ids.new_uuid(now)), insights::batch(now.plus(MILLISECOND)));
    let claim = async |batch, pain_points| {
        InsightStore::new(&test.app.store)
            .claim_pain_points(test.project_id, batch, pain_points, now)
            .await
            .unwrap()
    };
    assert_eq!(claim(earlier, &pain_points[..100]).await, ClaimOutcome::Claimed);
    assert_eq!(claim(later, &pain_points[100..]).await, ClaimOutcome::Claimed);
    assert_eq!(claim(earlier, &pain_points).await, ClaimOutcome::InProgress);
    assert_eq!(claim(later, &pain_points).await, ClaimOutcome::GivenUp);
    assert_eq!(claim(earlier, &pain_points).await, ClaimOutcome::Claimed);
    // An abandoned batch stays abandoned.
    assert_eq!(InsightStore::new(&test.app.store).give_up(later).await.unwrap(), None);
}

#[tokio::test]
async fn dead_uploads_are_replaced_within_three_seconds() {
    let test = TestApp::start().await;
    let id = create(&test, [1_000]).await;
    claim(&test, 0..500).await;
    test.pass(BATCH_LIFETIME);
    test.round_trips();
    let reply = add(&test, &id, 0..500).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(501)));
    // Two reads of the insight; five claims that find conflicts; one read and one write of the
    // batch's outcome. Then five claims that take over, and one commit.
    assert!(test.round_trips() <= 16);
}

#[tokio::test]
async fn claims_of_many_dead_uploads_are_taken_over() {
    let test = TestApp::start().await;
    let id = create(&test, [1_000]).await;
    for first in 0..110 {
        claim(&test, [first, 200 + first]).await;
    }
    // Also two uploads with alternating pain points.
    claim(&test, (400..450).step_by(2)).await;
    claim(&test, (401..450).step_by(2)).await;
    test.pass(BATCH_LIFETIME);
    let reply = add(&test, &id, (0..110).chain(200..310).chain(400..450)).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(271)));
}

#[tokio::test]
async fn one_of_two_uploads_to_different_insights_succeeds() {
    let test = TestApp::start().await;
    for (round, count) in [1, 10, 150, 250, 250].into_iter().enumerate() {
        let base = 10_000 * round;
        let (one, two) = (create(&test, [base]).await, create(&test, [base + 1]).await);
        let numbers = || base + 10..base + 10 + count;
        let (first, second) = tokio::join!(
            add_settled(&test, &one, numbers()),
            add_settled(&test, &two, numbers().rev())
        );
        let mut problems = [first.problem(), second.problem()];
        problems.sort_unstable();
        assert_eq!(problems, [(200, ""), (409, "pain_point_exists")], "{count}");
        let won = if first.status == 200 { &one } else { &two };
        for (id, own) in [(&one, base), (&two, base + 1)] {
            let expected: BTreeSet<String> =
                if id == won { numbered(numbers().chain([own])) } else { numbered([own]) };
            assert_eq!(members(&test, id).await, expected, "{count}");
        }
    }
}

#[tokio::test]
async fn overlapping_uploads_share_no_pain_points() {
    let test = TestApp::start().await;
    for round in 0..3 {
        let base = 10_000 * round;
        let ids = [create(&test, [base]).await, create(&test, [base + 1]).await];
        let ranges = [base + 10..base + 310, base + 160..base + 460];
        let (first, second) = tokio::join!(
            add_settled(&test, &ids[0], ranges[0].clone()),
            add_settled(&test, &ids[1], ranges[1].clone())
        );
        let mut problems = [first.problem(), second.problem()];
        problems.sort_unstable();
        assert_eq!(problems, [(200, ""), (409, "pain_point_exists")]);
        let won = usize::from(second.status == 200);
        assert_eq!(members(&test, &ids[won]).await.len(), 301);
        assert_eq!(members(&test, &ids[1 - won]).await.len(), 1);
        // The pain points that only the rejected upload had can be uploaded again immediately.
        let rest = ranges[1 - won].clone().filter(|number| !ranges[won].contains(number));
        let reply = add(&test, &ids[1 - won], rest).await;
        assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(151)));
    }
}

#[tokio::test]
async fn equal_uploads_to_one_insight_both_succeed() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    for (round, count) in [1, 10, 150, 250, 250].into_iter().enumerate() {
        let before = members(&test, &id).await;
        let numbers = || (round + 1) * 10_000..(round + 1) * 10_000 + count;
        let (first, second) = tokio::join!(
            add_settled(&test, &id, numbers()),
            add_settled(&test, &id, numbers().rev())
        );
        assert_eq!((first.status, second.status), (200, 200), "{first:?} {second:?}");
        let expected: BTreeSet<String> = before.union(&numbered(numbers())).cloned().collect();
        assert_eq!(members(&test, &id).await, expected);
        assert_eq!(get(&test, &id).await.body["occurrences"], expected.len());
    }
    assert_eq!(etag(&get(&test, &id).await), "\"6\"", "each pair of uploads is one change");
}

#[tokio::test]
async fn one_of_two_equal_creations_succeeds() {
    let test = TestApp::start().await;
    let create = async |numbers: Vec<usize>| {
        send_until_settled(&test, test.call(CREATE).json(&creation(numbers))).await
    };
    for (round, count) in [1, 150, 250].into_iter().enumerate() {
        let base = 10_000 * round;
        let numbers: Vec<usize> = (base..base + count).collect();
        let reversed = numbers.iter().rev().copied().collect();
        let (first, second) = tokio::join!(create(numbers.clone()), create(reversed));
        let mut problems = [first.problem(), second.problem()];
        problems.sort_unstable();
        assert_eq!(problems, [(201, ""), (409, "pain_point_exists")], "{count}");
        let won = if first.status == 201 { first } else { second };
        assert_eq!(members(&test, &id_of(&won)).await, numbered(numbers));
    }
}

#[tokio::test]
async fn idempotency_conflicts_leave_no_claims() {
    let test = TestApp::start().await;
    let id = create(&test, [0]).await;
    let request =
        |number| call_for(&test, ADD, &id).header("idempotency-key", "k").json(&upload([number]));
    assert_eq!(request(1).send(&test.app).await.status, 200);
    assert_eq!(request(2).send(&test.app).await.problem(), (409, "idempotency_conflict"));
    assert_eq!(
        add(&test, &id, [2]).await.status,
        200,
        "the pain point can be uploaded with another key"
    );
}
