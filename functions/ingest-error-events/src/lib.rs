//! Takes errors from official Sentry SDKs.
//!
//! SDKs drop what is not taken at the first attempt, so an event is stored and counted before
//! anything else is done with it.

use shared::app::{Access, App, Operation};
use shared::error_tracking::ingestion::{
    CredentialSources, Envelope, MAX_START_BYTES, NormalizedEvent, inflate, inflate_start,
    normalize_store_body,
};
use shared::error_tracking::log::row::EventRow;
use shared::error_tracking::store::Counting;
use shared::error_tracking::{
    ErrorDescription, EventId, SENTRY, add_log_shards, find_ingest_project, open_log, see_error,
};
use shared::http::{Answer, Incoming, Method, Problem};
use shared::projects::dsn::IngestId;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/api/{ingestId}/envelope/",
    Access::Dsn(|app, incoming| Box::pin(handle(app, incoming))),
)
.speaking(SENTRY);

/// Answers one request.
async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request: nobody without a key has more decompressed than the line that may hold it.
    let received_at = app.clock.now();
    let takes_envelopes = match endpoint(incoming) {
        Some("envelope") => true,
        Some("store") => false,
        // The template routes all that SDKs may send here.
        _ => return Err(Problem::unknown_endpoint()),
    };
    let content_encoding = incoming.header_texts("content-encoding").join(",");
    let ingest_id = incoming.path_parameter("ingestId").unwrap_or_default();
    let credentials = CredentialSources {
        ingest_id: &ingest_id,
        query_keys: &incoming.query_texts("sentry_key"),
        sentry_auth: &incoming.header_texts("x-sentry-auth"),
        authorization: &incoming.header_texts("authorization"),
    };
    let mut dsn = None;
    if takes_envelopes && !credentials.hold_a_key() {
        let start = inflate_start(incoming.body(), &content_encoding, MAX_START_BYTES)?;
        dsn = Envelope::read_dsn(&start)?;
    }
    let key = credentials.read(dsn.as_deref())?;
    let project_id = find_ingest_project(app, incoming, IngestId::parse(&ingest_id), key).await?;

    let body = inflate(incoming.body(), &content_encoding)?;
    let envelope = takes_envelopes.then(|| Envelope::parse(&body)).transpose()?;
    if let Some(envelope) = &envelope {
        credentials.read(envelope.dsn.as_deref())?;
    }

    // Rules.
    let event = match &envelope {
        Some(envelope) => envelope.normalize_event(received_at)?,
        None => normalize_store_body(&body, received_at)?,
    };
    let Some(event) = event else { return Answer::ok(&serde_json::json!({})) };
    let new_id = app.ids.new_uuid(received_at).into_bytes();
    let event_id = event.event_id.or_else(|| EventId::from_random_bytes(new_id));
    let event_id = event_id.ok_or_else(|| Problem::internal("a new UUID is never all zero"))?;

    // Storage.
    store(app, project_id, event_id, event, received_at).await?;

    // Answer.
    Answer::ok(&serde_json::json!({ "id": event_id.to_string() }))
}

/// The last segment of the path.
fn endpoint(incoming: &Incoming) -> Option<&str> {
    incoming.path().trim_end_matches('/').rsplit('/').next()
}

/// Stores an event, counts it once, and makes its error known. May be cut off anywhere: an event that
/// is counted has its payload, and an error that is missing is created by the next event of it or
/// when its row is packed.
async fn store(
    app: &App,
    project_id: ProjectId,
    event_id: EventId,
    event: NormalizedEvent,
    now: Timestamp,
) -> Result<(), Problem> {
    let row = EventRow {
        occurred_at: event.occurred_at,
        fingerprint: event.fingerprint,
        attributes: event.attributes,
    };
    let (shards, ()) = tokio::try_join!(
        open_log(app, project_id),
        app.store.put_payload(project_id, event_id, &event.payload, now)
    )?;
    // Each attempt has the time at which it starts: rows come in the order of the log, but for seconds.
    let count = |shards| app.store.count_event(project_id, event_id, &row, shards, app.clock.now());
    let mut counting = count(shards).await?;
    if counting == Counting::LogThrottled {
        counting = count(add_log_shards(app, project_id, shards).await?).await?;
    }
    // The first delivery counts, also for what the event is and when it occurred.
    let occurred_at = match counting {
        Counting::Counted => row.occurred_at,
        Counting::Duplicate { first: Some(first) } => first,
        Counting::Duplicate { first: None } => return Ok(()),
        Counting::LogThrottled => return Err(Problem::unavailable("the log takes no more")),
    };
    let description = ErrorDescription {
        fingerprint: row.fingerprint,
        title: event.title,
        error_type: event.error_type,
        message: event.message,
        culprit: event.culprit,
    };
    see_error(app, project_id, &description, occurred_at).await?;
    Ok(())
}
