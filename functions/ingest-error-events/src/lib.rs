//! Receives errors from official Sentry SDKs.
//!
//! SDKs drop events that are rejected at the first attempt, so an event is stored and counted
//! before anything else is done with it.

pub mod delivery;
mod replays;

use delivery::{count_delivery, find_ingest_project, store_event};

use errors::ingestion::{
    CredentialSources, Envelope, MAX_FIRST_ITEM_BYTES, MAX_START_BYTES, Received, inflate,
    inflate_start, normalize_store_body,
};
use errors::{EventId, SENTRY, http};
use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::projects::dsn::IngestId;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/api/{ingestId}/envelope/",
    Access::Dsn(|app, incoming| Box::pin(handle(app, incoming))),
)
.speaking(SENTRY);

async fn handle(app: &App, incoming: &ApiRequest) -> Result<ApiResponse, Problem> {
    // Request: without a key, no more is decompressed than the line that can contain it.
    let received_at = app.clock.now();
    let takes_envelopes = match endpoint(incoming) {
        Some("envelope") => true,
        Some("store") => false,
        // The gateway's route also matches unknown endpoints.
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

    // The start of a delivery decides which limit counts it. Nothing more is decompressed before.
    let start = || inflate_start(incoming.body(), &content_encoding, MAX_FIRST_ITEM_BYTES);
    let begins_with_event =
        !takes_envelopes || start().is_ok_and(|start| Envelope::begins_with_event(&start));
    let begins_with_replay =
        !begins_with_event && start().is_ok_and(|start| Envelope::begins_with_replay(&start));
    if begins_with_replay {
        replays::count(app, access.project).await?;
    } else {
        count_delivery(app, &access, begins_with_event).await?;
    }

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
    let respond = |body| match &envelope {
        Some(envelope) if envelope.dropped_items > 0 => {
            http::with_dropped_categories(ApiResponse::ok(&body)?)
        }
        _ => ApiResponse::ok(&body),
    };
    let Some(event) = event else {
        if let Some(envelope) = &envelope {
            replays::store(app, access.project, envelope, received, begins_with_replay).await?;
        }
        return respond(serde_json::json!({}));
    };
    let new_id = app.ids.new_uuid(received_at).into_bytes();
    let event_id = event.event_id.or_else(|| EventId::from_random_bytes(new_id));
    let event_id = event_id.ok_or_else(|| Problem::internal("a new UUID is never all zero"))?;

    // Storage.
    let [.., a, b, c, d] = new_id;
    let draw = u32::from_be_bytes([a, b, c, d]);
    let (replay, fingerprint) = (event.replay.clone(), event.fingerprint);
    Box::pin(store_event(app, access.project, event_id, event, received_at, draw)).await?;
    replays::link_error(app, access.project, replay, fingerprint).await?;
    if let Some(envelope) = &envelope {
        replays::store(app, access.project, envelope, received, begins_with_replay).await?;
    }

    // Response.
    respond(serde_json::json!({ "id": event_id.to_string() }))
}

/// Returns the last segment of the path.
fn endpoint(incoming: &ApiRequest) -> Option<&str> {
    incoming.path().trim_end_matches('/').rsplit('/').next()
}
