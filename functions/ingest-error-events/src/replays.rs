//! Derives pain points from session replays and feedback
//! (`docs/semantics/replay-insights.md`, "Derived pain points").

use errors::grouping::Fingerprint;
use errors::http::REPLAY_CATEGORY;
use errors::ingestion::{
    Envelope, EventReplay, IngestionFault, Received, inflate, occurrence_time,
};
use errors::user_agent::UserAgent;
use insights::recordings::{ClickError, Facts, Feedback, Malformed, ReplayId, Segment};
use insights::store::{Change, InsightStore};
use shared::app::App;
use shared::http::Problem;
use shared::projects::project::ProjectId;
use shared::projects::store::IngestAccess;
use shared::telemetry::log_malformed_recording;

use crate::delivery::{error_of_fingerprint, limits_of};

/// Compression of recordings: zlib.
const RECORDING_CODING: &str = "deflate";

/// Counts a replay segment. Fails with 429 over the project's limit.
pub(crate) async fn count(app: &App, access: &IngestAccess) -> Result<(), Problem> {
    let counted = app.count_replay(access.project, &limits_of(app, access)).await;
    counted.map_err(|over| over.limiting(REPLAY_CATEGORY))
}

/// Derives pain points from the replay segment and the feedback of an envelope. Drops malformed
/// items, since SDKs would send them again. Can be repeated.
pub(crate) async fn store(
    app: &App,
    access: &IngestAccess,
    envelope: &Envelope<'_>,
    received: Received<'_>,
    is_counted: bool,
) -> Result<(), Problem> {
    let project = access.project;
    if let Some(replay_event) = envelope.replay_event {
        if !is_counted {
            count(app, access).await?;
        }
        let recording = envelope.replay_recording.unwrap_or_default();
        match read_segment(replay_event, recording)? {
            Ok(segment) if segment.is_empty() => {}
            Ok(segment) => store_segment(app, project, segment, envelope, received).await?,
            Err(Malformed) => note_malformed(app, project, "malformed recording"),
        }
    }
    let feedback_id = envelope.event_id.map(|id| id.to_string());
    let feedback = envelope.feedback.map(|item| Feedback::read(item, feedback_id.as_deref()));
    let report = envelope.user_report.map(Feedback::read_report);
    for feedback in feedback.into_iter().chain(report) {
        match feedback {
            Ok(feedback) => store_feedback(app, project, feedback, envelope, received).await?,
            Err(Malformed) => note_malformed(app, project, "malformed feedback"),
        }
    }
    Ok(())
}

/// Adds a stored error to the replay in which it occurred.
pub(crate) async fn link_error(
    app: &App,
    access: &IngestAccess,
    replay: Option<EventReplay>,
    fingerprint: Fingerprint,
) -> Result<(), Problem> {
    let Some(EventReplay { id, at }) = replay else { return Ok(()) };
    let Some(replay_id) = ReplayId::parse(&id) else { return Ok(()) };
    let Some(error) = error_of_fingerprint(app, access, fingerprint).await? else { return Ok(()) };
    let errors = vec![ClickError { at: at.as_millis(), error_id: error.to_string() }];
    add_facts(app, access.project, &replay_id, &Facts { errors, ..Facts::default() }).await
}

/// Reads a segment. The recording begins with a header line, which is not compressed.
fn read_segment(
    replay_event: &[u8],
    recording: &[u8],
) -> Result<Result<Segment, Malformed>, Problem> {
    let Some(line) = recording.iter().position(|byte| *byte == b'\n') else {
        return Ok(Err(Malformed));
    };
    let events = recording.get(line + 1..).unwrap_or_default();
    // A page that allows no worker sends JSON. No zlib stream begins with a bracket.
    if events.trim_ascii_start().starts_with(b"[") {
        return Ok(Segment::read(replay_event, events));
    }
    match inflate(events, RECORDING_CODING) {
        Ok(events) => Ok(Segment::read(replay_event, &events)),
        Err(fault @ IngestionFault::TooLarge(_)) => Err(fault.into()),
        Err(_) => Ok(Err(Malformed)),
    }
}

async fn store_segment(
    app: &App,
    project: ProjectId,
    segment: Segment,
    envelope: &Envelope<'_>,
    received: Received<'_>,
) -> Result<(), Problem> {
    let replay = segment.replay.clone();
    let browser = browser_of(segment.user_agent.as_deref(), received);
    let clock = |claimed| occurrence_time(Some(claimed), envelope.sent_at, received.at);
    add_facts(app, project, &replay, &segment.into_facts(browser.as_deref(), clock)).await
}

async fn add_facts(
    app: &App,
    project: ProjectId,
    replay: &ReplayId,
    facts: &Facts,
) -> Result<(), Problem> {
    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let change = Change { project, new_id: &new_id, now };
    if !InsightStore::new(&app.store).add_facts(change, replay, facts).await? {
        note_malformed(app, project, "replay with too many facts");
    }
    Ok(())
}

async fn store_feedback(
    app: &App,
    project: ProjectId,
    feedback: Feedback,
    envelope: &Envelope<'_>,
    received: Received<'_>,
) -> Result<(), Problem> {
    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let browser = browser_of(feedback.user_agent.as_deref(), received);
    let occurred_at = occurrence_time(feedback.claimed, envelope.sent_at, received.at);
    let point = feedback.into_pain_point(browser, occurred_at);
    let Some(evidence) = &point.evidence else { return Ok(()) };
    let change = Change { project, new_id: &new_id, now };
    let store = InsightStore::new(&app.store);
    Ok(store.add_derived(change, evidence.signature(), &point).await?)
}

/// Returns the name and the version of the browser of an item.
fn browser_of(user_agent: Option<&str>, received: Received<'_>) -> Option<String> {
    let browser = UserAgent::read(user_agent.or(received.user_agent)?).browser?;
    Some(match browser.version {
        Some(version) => format!("{} {version}", browser.name),
        None => browser.name,
    })
}

fn note_malformed(app: &App, project: ProjectId, reason: &str) {
    log_malformed_recording(reason, &format!("replays#{project}"), app.clock.now());
}
