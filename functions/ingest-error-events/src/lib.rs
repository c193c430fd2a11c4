//! Receives errors from official Sentry SDKs.
//!
//! SDKs drop events that are rejected at the first attempt, so an event is stored and counted
//! before anything else is done with it.

pub mod delivery;
mod replays;

use delivery::{count_delivery, find_ingest_project, store_event};

use std::time::Duration;

use errors::ingestion::{
    CanonicalEvent, CredentialSources, Envelope, EventText, MAX_FIRST_ITEM_BYTES, MAX_START_BYTES,
    Received, inflate, inflate_start,
};
use errors::{EventId, SENTRY, http};
use shared::app::{Access, App, Operation};
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::dsn::IngestId;
use shared::projects::project::ProjectId;
use source_maps::event::{ResolvedFrames, minified_frames};
use source_maps::store::{ProjectMaps, Resolver, SourceMapCache};

/// Longest time that an event waits for source maps. The rest of the time budget stores the event.
const MAX_RESOLVING: Duration = Duration::from_millis(800);

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/api/{ingestId}/envelope/",
    Access::Dsn(shared::handler!(handle without caller)),
)
.speaking(SENTRY);

async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
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
        replays::count(app, &access).await?;
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
    let text = match &envelope {
        Some(envelope) => envelope.event_text(),
        None => Some(EventText::of_store_body(&body)?),
    };
    let event = text.as_ref().map(|text| text.canonicalize(received)).transpose()?.flatten();
    let respond = |body| match &envelope {
        Some(envelope) if envelope.dropped_items > 0 => {
            http::with_dropped_categories(ApiResponse::ok(&body)?)
        }
        _ => ApiResponse::ok(&body),
    };
    let Some(event) = event else {
        if let Some(envelope) = &envelope {
            replays::store(app, &access, envelope, received, begins_with_replay).await?;
        }
        return respond(serde_json::json!({}));
    };
    let frames = resolve_frames(app, access.project, &event).await;
    let event = event.with_members(|members| frames.apply(members)).normalize();
    let new_id = app.ids.new_uuid(received_at).into_bytes();
    let event_id = event.event_id.or_else(|| EventId::from_random_bytes(new_id));
    let event_id = event_id.ok_or_else(|| Problem::internal("a new UUID is never all zero"))?;

    // Storage.
    let [.., a, b, c, d] = new_id;
    let draw = u32::from_be_bytes([a, b, c, d]);
    let (replay, fingerprint) = (event.replay.clone(), event.description.fingerprint);
    Box::pin(store_event(app, &access, event_id, event, received_at, draw)).await?;
    replays::link_error(app, &access, replay, fingerprint).await?;
    if let Some(envelope) = &envelope {
        replays::store(app, &access, envelope, received, begins_with_replay).await?;
    }

    // Response.
    respond(serde_json::json!({ "id": event_id.to_string() }))
}

/// Returns the event's frames that a source map resolves. A failure must not cost the event: its
/// frames are then resolved when it is read.
async fn resolve_frames(
    app: &App,
    project: ProjectId,
    event: &CanonicalEvent<'_>,
) -> ResolvedFrames {
    let minified = minified_frames(event.members());
    if minified.is_empty() {
        return ResolvedFrames::default();
    }
    let cache = app.cache::<SourceMapCache>();
    let maps = ProjectMaps::new(&app.store, project);
    let resolver = Resolver::new(maps, &cache, app.clock.now());
    let resolving = async {
        let resolution = resolver.resolve(&minified).await?;
        resolver.note_use(&resolution).await?;
        Ok::<_, StoreError>(resolution.frames)
    };
    match tokio::time::timeout(MAX_RESOLVING, resolving).await {
        Ok(Ok(frames)) => frames,
        Ok(Err(failure)) => {
            tracing::warn!(cause = %failure, "the frames of an event are not yet resolved");
            ResolvedFrames::default()
        }
        Err(_) => {
            tracing::warn!("the frames of an event are not yet resolved: DynamoDB was too slow");
            ResolvedFrames::default()
        }
    }
}

/// Returns the last segment of the path.
fn endpoint(incoming: &ApiRequest) -> Option<&str> {
    incoming.path().trim_end_matches('/').rsplit('/').next()
}
