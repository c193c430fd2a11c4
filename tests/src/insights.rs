//! Pain points, and insights with many of them, made through the store: much in little time.

use serde_json::{Value, json};

use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPoint, PainPointId};
use shared::app::{Clock, Ids};
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::app::START;

/// The id of the pain point of this number. Ids sort as their numbers do.
pub fn id(number: usize) -> String {
    format!("01902f3c-0000-7000-8000-{number:012x}")
}

/// The pain point of this number: one for each second from the day before [`START`] on, in one of 7
/// sessions; every third has no user, the others have one of 5.
pub fn pain_point(number: usize) -> PainPoint {
    let millis = i64::try_from(START).expect("it is a time") - 24 * 60 * 60 * 1_000;
    let seconds = i64::try_from(number).expect("a test has few pain points");
    PainPoint {
        id: PainPointId::parse(&id(number)).expect("it is a UUID"),
        session_id: format!("session-{}", number % 7),
        user_id: (!number.is_multiple_of(3)).then(|| format!("user-{}", number % 5)),
        occurred_at: Timestamp::from_millis(millis + seconds * 1_000),
        title: format!("Pain point {number}"),
        excerpt: format!("What the replay shows of {number}"),
    }
}

/// A body of the pain points of these numbers.
pub fn upload(numbers: impl IntoIterator<Item = usize>) -> Value {
    let pain_points: Vec<PainPoint> = numbers.into_iter().map(pain_point).collect();
    json!({ "painPoints": pain_points })
}

/// A new batch of pain points.
pub fn batch(now: Timestamp) -> BatchId {
    BatchId::new(Ids::Random.new_uuid(now))
}

/// Stores a new insight with the first so many pain points. Only the last hundred of them, and every
/// `nth`, have details, which takes a fraction of the time; no others may be listed or be the latest.
pub async fn filled(store: &Store, project_id: ProjectId, count: usize, nth: usize) -> InsightId {
    let now = Clock::System.now();
    let new_id = || Ids::Random.new_uuid(now);
    let pain_points: Vec<PainPoint> = (0..count).map(pain_point).collect();
    let all: Vec<&PainPoint> = pain_points.iter().collect();
    let id = InsightId::new(new_id());
    let mut insight = Insight::new(id, project_id, "Large".to_owned(), String::new());
    insight.add(&all, new_id).expect("there is room");
    let batch = batch(now);
    let is_detailed = |at: usize| at.is_multiple_of(nth) || at + 100 >= count;
    let detailed = all.iter().enumerate().filter(|(at, _)| is_detailed(*at));
    let detailed: Vec<&PainPoint> = detailed.map(|(_, pain_point)| *pain_point).collect();
    let claim = InsightStore::new(store).claim_pain_points(project_id, batch, &detailed, now).await;
    assert_eq!(claim.expect("they are stored"), ClaimOutcome::Claimed);
    let written = InsightStore::new(store)
        .save_insights(&[&insight], RequestRecord::Batch(batch), None, now)
        .await;
    assert_eq!(written.expect("it is stored"), InsightWrite::Done);
    id
}
