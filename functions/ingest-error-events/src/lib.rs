//! Takes errors from official Sentry SDKs.
//!
//! SDKs drop what is not taken at the first attempt, so an event is stored and counted before
//! anything else is done with it.

pub mod delivery;

use delivery::{
    Remembered, add_event_shards, add_log_shards, count_delivery, find_error_of,
    find_ingest_project, open_log, remember_error, see_error,
};

use errors::ingestion::{
    CredentialSources, Envelope, MAX_FIRST_ITEM_BYTES, MAX_START_BYTES, NormalizedEvent, Received,
    inflate, inflate_start, normalize_store_body,
};
use errors::log::row::EventRow;
use errors::store::{Counting, ErrorOfEvent, ErrorStore};
use errors::{EventId, SENTRY, http};
use shared::app::{Access, App, Operation};
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

/// How often counting an event is tried: after its partition was throttled, and is one of more then, or
/// somebody else made its error.
const MAX_ATTEMPTS: u32 = 4;
/// When an SDK may send more, if that does not help.
const SECONDS_TO_WAIT: u16 = 5;

/// Answers one request.
async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request: nobody without a key has more decompressed than the line that may hold it.
    let received_at = app.clock.now();
    let takes_envelopes = match endpoint(incoming) {
        Some("envelope") => true,
        Some("store") => false,
        // The template routes all that SDKs may send here.
        _ => return Err(http::unknown_endpoint()),
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
    let access = find_ingest_project(app, incoming, IngestId::parse(&ingest_id), key).await?;

    // Which limit counts the delivery follows from its start. Nothing more is decompressed before.
    let start = || inflate_start(incoming.body(), &content_encoding, MAX_FIRST_ITEM_BYTES);
    let begins_with_event =
        !takes_envelopes || start().is_ok_and(|start| Envelope::begins_with_event(&start));
    count_delivery(app, &access, begins_with_event).await?;

    let body = inflate(incoming.body(), &content_encoding)?;
    let envelope = takes_envelopes.then(|| Envelope::parse(&body)).transpose()?;
    if let Some(envelope) = &envelope {
        credentials.read(envelope.dsn.as_deref())?;
        if envelope.event.is_some() && !begins_with_event {
            count_delivery(app, &access, true).await?;
        }
    }

    // Rules.
    let user_agent = incoming.header_texts("user-agent").first().copied();
    let received = Received { at: received_at, user_agent };
    let event = match &envelope {
        Some(envelope) => envelope.normalize_event(received)?,
        None => normalize_store_body(&body, received)?,
    };
    let answer = |body| match &envelope {
        Some(envelope) if envelope.dropped_items > 0 => {
            http::with_dropped_categories(Answer::ok(&body)?)
        }
        _ => Answer::ok(&body),
    };
    let Some(event) = event else { return answer(serde_json::json!({})) };
    let new_id = app.ids.new_uuid(received_at).into_bytes();
    let event_id = event.event_id.or_else(|| EventId::from_random_bytes(new_id));
    let event_id = event_id.ok_or_else(|| Problem::internal("a new UUID is never all zero"))?;

    // Storage.
    let [.., a, b, c, d] = new_id;
    let draw = u32::from_be_bytes([a, b, c, d]);
    Box::pin(store(app, access.project, event_id, event, received_at, draw)).await?;

    // Answer.
    answer(serde_json::json!({ "id": event_id.to_string() }))
}

/// The last segment of the path.
fn endpoint(incoming: &Incoming) -> Option<&str> {
    incoming.path().trim_end_matches('/').rsplit('/').next()
}

/// Stores an event, counts it once, and makes it known to its error. May be cut off anywhere: an event
/// that is counted has its payload and its error, and what its error does not know of it yet is made up
/// for by the next event or when its row is packed.
async fn store(
    app: &App,
    project_id: ProjectId,
    event_id: EventId,
    event: NormalizedEvent,
    received_at: Timestamp,
    draw: u32,
) -> Result<(), Problem> {
    let kind = event.description();
    let (mut shards, mut found, ()) = tokio::try_join!(
        open_log(app, project_id, draw),
        find_error_of(app, project_id, kind.clone(), Remembered::Counts),
        ErrorStore::new(&app.store).put_payload(project_id, event_id, &event.payload, received_at)
    )?;
    let mut row = EventRow {
        occurred_at: event.occurred_at,
        fingerprint: kind.fingerprint,
        attributes: event.attributes,
    };
    for _ in 0..MAX_ATTEMPTS {
        row.fingerprint = found.description.fingerprint;
        // Each attempt has the time at which it starts: rows come in the order of the log, but for
        // seconds.
        let now = app.clock.now();
        let counting = ErrorStore::new(&app.store)
            .count_event(project_id, event_id, &row, &found.error, shards, now)
            .await?;
        let (description, occurred_at, counted_at) = match counting {
            Counting::Counted if let ErrorOfEvent::New(new) = &found.error => {
                remember_error(app, project_id, row.fingerprint, new.known);
                return Ok(());
            }
            Counting::Counted => (&found.description, row.occurred_at, now),
            // The first delivery counts, also for what the event is and when it occurred.
            Counting::Duplicate { fingerprint, occurred_at, received_at } => {
                let kinds = [&kind, &found.description];
                let known = kinds.into_iter().find(|kind| kind.fingerprint == fingerprint);
                let Some(description) = known else { return Ok(()) };
                (description, occurred_at, received_at)
            }
            // Its error learns of it when its row is packed, if it did not with the first delivery.
            Counting::UnreadableDuplicate => return Ok(()),
            Counting::ErrorExists => {
                found = find_error_of(app, project_id, kind.clone(), Remembered::IsOld).await?;
                continue;
            }
            Counting::LogThrottled => {
                shards = add_log_shards(app, project_id, shards).await?;
                continue;
            }
            Counting::EventsThrottled => {
                found = add_event_shards(app, project_id, found).await?;
                continue;
            }
        };
        match see_error(app, project_id, description, occurred_at, counted_at).await {
            Ok(true) => {}
            // It was deleted with its error, and is not to come back by being sent again.
            Ok(false) => ErrorStore::new(&app.store).delete_payload(project_id, event_id).await?,
            // It counts: its error learns of it from the next event, or when its row is packed.
            Err(failure) if failure.may_pass() => {
                tracing::warn!(cause = %failure, "an error does not know of an event yet");
            }
            Err(failure) => return Err(failure.into()),
        }
        return Ok(());
    }
    Err(Problem::overloaded(SECONDS_TO_WAIT))
}
