//! Pain points, and insights with many of them. They are stored directly, because that is fast.

use serde_json::{Value, json};

use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPoint, PainPointId};
use shared::app::{Clock, Ids};
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::app::START;

/// Returns the id of the pain point with this number. Ids sort like their numbers.
pub fn id(number: usize) -> String {
    format!("01902f3c-0000-7000-8000-{number:012x}")
}

/// Returns the pain point with this number. Pain points occur every second, starting one day before
/// [`START`], in 7 sessions. Every third has no user, the others have one of 5.
pub fn pain_point(number: usize) -> PainPoint {
    let millis = i64::try_from(START).expect("the time fits") - 24 * 60 * 60 * 1_000;
    let seconds = i64::try_from(number).expect("the number fits");
    PainPoint {
        id: PainPointId::parse(&id(number)).expect("the id is a UUID"),
        session_id: format!("session-{}", number % 7),
        user_id: (!number.is_multiple_of(3)).then(|| format!("user-{}", number % 5)),
        occurred_at: Timestamp::from_millis(millis + seconds * 1_000),
        title: format!("Pain point {number}"),
        excerpt: format!("Replay excerpt {number}"),
        evidence: None,
    }
}

/// Returns a request body with the pain points with these numbers.
pub fn upload(numbers: impl IntoIterator<Item = usize>) -> Value {
    let mut body = json!({ "painPoints": numbers.into_iter().map(pain_point).collect::<Vec<_>>() });
    // Only responses have evidence.
    for pain_point in body["painPoints"].as_array_mut().into_iter().flatten() {
        pain_point.as_object_mut().expect("a pain point is an object").remove("evidence");
    }
    body
}

/// Returns a new batch id.
pub fn batch(now: Timestamp) -> BatchId {
    BatchId::new(Ids::Random.new_uuid(now))
}

/// Stores a new insight with the first `count` pain points. To save time, only the last hundred and
/// every `nth` have details. Tests must not list the others or use them as the latest.
pub async fn filled(store: &Store, project_id: ProjectId, count: usize, nth: usize) -> InsightId {
    let now = Clock::System.now();
    let new_id = || Ids::Random.new_uuid(now);
    let pain_points: Vec<PainPoint> = (0..count).map(pain_point).collect();
    let all: Vec<&PainPoint> = pain_points.iter().collect();
    let id = InsightId::new(new_id());
    let mut insight = Insight::new(id, project_id, "Large".to_owned(), String::new());
    insight.add(&all, new_id).expect("the insight is not full");
    let batch = batch(now);
    let is_detailed = |at: usize| at.is_multiple_of(nth) || at + 100 >= count;
    let detailed = all.iter().enumerate().filter(|(at, _)| is_detailed(*at));
    let detailed: Vec<&PainPoint> = detailed.map(|(_, pain_point)| *pain_point).collect();
    let claim = InsightStore::new(store).claim_pain_points(project_id, batch, &detailed, now).await;
    assert_eq!(claim.expect("the pain points are stored"), ClaimOutcome::Claimed);
    let written = InsightStore::new(store)
        .save_insights(&[&insight], RequestRecord::Batch(batch), None, now)
        .await;
    assert_eq!(written.expect("the insight is stored"), InsightWrite::Done);
    id
}
