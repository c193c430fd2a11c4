//! Splits of small and large insights.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;

use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPoint, PainPointId};
use shared::app::{Clock, Ids};
use shared::projects::project::ProjectId;

use crate::Result;
use crate::counter::{Call, calls, most_of_warm};
use crate::process::{Process, Requests};
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::request::SPLIT_INSIGHT;
use crate::stack::Stack;
use crate::statistics::count;

/// The number of timed splits of each size.
const SPLITS: usize = 10;
/// The number of unmeasured splits of each size.
const WARM_UPS: usize = 3;
/// The number of splits of each size whose calls are counted.
const COUNTED: usize = 5;
/// The time between two pain points of an insight. 10,000 of them reach back 55 days, into both
/// periods that an insight's numbers compare.
const BETWEEN_PAIN_POINTS: Duration = Duration::from_mins(8);
/// The number of pain points of a session.
const PAIN_POINTS_OF_A_SESSION: usize = 3;

/// The size of a split: the number of pain points of the insight, and of those that move.
pub(crate) type Size = (usize, usize);

pub(crate) const SMALL: Size = (10, 5);
const LARGE: Size = (10_000, 500);

/// Splits small and large insights alternately.
pub(crate) async fn insights(programs: &Programs, report: &mut Report) -> Result<()> {
    let each = COUNTED + WARM_UPS + SPLITS;
    progress(&format!("splits: creating {each} insights of {} pain points", LARGE.0));
    let stack = Stack::start().await?;
    let project = stack.project("split").await?;
    let mut small = splits(&stack, project, 1 + each, SMALL).await?.into_iter();
    let mut large = splits(&stack, project, each, LARGE).await?.into_iter();

    progress(&format!("splits: {SPLITS} each of a small and a large insight"));
    let program = Program::SplitInsight;
    let counted: Vec<Bytes> =
        small.by_ref().take(1 + COUNTED).chain(large.by_ref().take(COUNTED)).collect();
    let calls = calls(programs, (program, &[]), &stack, 201, counted).await?;
    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    for warm_up in small.by_ref().take(WARM_UPS).chain(large.by_ref().take(WARM_UPS)) {
        process.expect(201, warm_up).await?;
    }
    let (mut of_small, mut of_large) = (Requests::default(), Requests::default());
    for (small, large) in small.zip(large) {
        process.send(201, [small], &mut of_small).await?;
        process.send(201, [large], &mut of_large).await?;
    }
    report.add_requests(program, "5 of 10 pain points", &of_small, None);
    report.add_requests(program, "500 of 10,000 pain points", &of_large, None);
    let ratio = of_large.latency().median() / of_small.latency().median();
    report.add(program, "a large split, as a multiple of a small one", ratio, "×", at_most(4.0));
    report.add_memory(program, process.peak_memory()?, under(20.0));

    // Sizes are those of the JSON on the wire, which exceed the sizes that DynamoDB limits.
    let trips = most_of_warm(&calls, |calls| count(calls.len()));
    report.add(program, "warm request, round trips, most", trips, "", None);
    let most = |figure: fn(&Call) -> usize| {
        most_of_warm(&calls, |calls| count(calls.iter().map(figure).max().unwrap_or_default()))
    };
    let item = most(|call| {
        let actions = call.actions();
        let items = actions.iter().filter_map(|action| action.pointer("/Put/Item"));
        items.map(|item| item.to_string().len()).max().unwrap_or_default()
    });
    report.add(program, "largest item", item / 1e3, "kB", under(400.0));
    let actions = most(|call| call.actions().len());
    report.add(program, "most actions of a transaction", actions, "", at_most(100.0));
    let bytes = most(|call| if call.is_read() { 0 } else { call.body.len() });
    report.add(program, "largest transaction", bytes / 1e6, "MB", under(4.0));
    Ok(())
}

/// Creates insights of a size. Returns a split request for each.
///
/// The moved pain points are spread evenly over the insight, and include the latest one.
pub(crate) async fn splits(
    stack: &Stack,
    project: ProjectId,
    count: usize,
    (members, moved): Size,
) -> Result<Vec<Bytes>> {
    let mut requests = Vec::with_capacity(count);
    for _ in 0..count {
        let pain_points = pain_points(members);
        let id = insight(stack, project, &pain_points.iter().collect::<Vec<_>>()).await?;
        let scattered = pain_points.iter().step_by(members / moved).take(moved);
        let body = json!({
            "painPointIds": scattered.map(|pain_point| pain_point.id).collect::<Vec<_>>(),
            "title": "Nothing happens on Pay",
            "description": "Split off since only customers with a saved card meet it.",
        });
        requests.push(stack.request(SPLIT_INSIGHT, &[&project, &id]).json(&body).event());
    }
    Ok(requests)
}

/// Creates an insight with these pain points.
async fn insight(
    stack: &Stack,
    project: ProjectId,
    pain_points: &[&PainPoint],
) -> Result<InsightId> {
    let now = Clock::System.now();
    let new_id = || Ids::Random.new_uuid(now);
    let (id, batch) = (InsightId::new(new_id()), BatchId::new(new_id()));
    let title = "Trouble at the checkout".to_owned();
    let mut insight = Insight::new(id, project, title, String::new());
    insight.add(pain_points, new_id).map_err(|_| "an insight has too many pain points")?;
    let store = InsightStore::new(stack.store());
    let claim = store.claim_pain_points(project, batch, pain_points, now).await?;
    let together = RequestRecord::Batch(batch);
    let saved = store.save_insights(&[&insight], together, None, now).await?;
    match (claim, saved) {
        (ClaimOutcome::Claimed, InsightWrite::Done) => Ok(id),
        (_, saved) => Err(format!("an insight is not stored: {saved:?}").into()),
    }
}

/// Returns pain points, the latest first.
fn pain_points(count: usize) -> Vec<PainPoint> {
    let now = Clock::System.now();
    let times = std::iter::successors(Some(now), |later| Some(later.minus(BETWEEN_PAIN_POINTS)));
    let pain_points = times.take(count).enumerate().map(|(number, occurred_at)| {
        let session = number / PAIN_POINTS_OF_A_SESSION;
        PainPoint {
            id: PainPointId::new(Ids::Random.new_uuid(now)),
            session_id: format!("session-{session:06x}"),
            // Every other session has no user.
            user_id: session.is_multiple_of(2).then(|| format!("user-{session:06x}")),
            occurred_at,
            title: "A click on Pay does nothing".to_owned(),
            excerpt: "Clicks Pay three times, waits for 20 s, and leaves the page.".to_owned(),
            evidence: None,
        }
    });
    pain_points.collect()
}
