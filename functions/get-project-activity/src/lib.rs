//! Returns the event markers, flag changes and releases of a range, newest first.

use std::cmp::Reverse;
use std::time::Duration;

use errors::store::{ErrorStore, NewestReleases, SeenRelease};
use flags::store::{FlagStore, ListedChange, NewestChanges};
use markers::store::{MarkerStore, NewestMarkers};
use markers::{CollectionId, EventMarker, TimeRange};
use serde::Serialize;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, read_limit};
use shared::json::Violations;
use shared::projects::api_key::{Scope, UserId};
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/activity",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
)
.within(COUNTING_TIME_BUDGET);

/// Length of the default range.
const DEFAULT_RANGE: Duration = Duration::from_hours(7 * 24);

/// An item of the response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActivityItem {
    kind: &'static str,
    id: String,
    at: Timestamp,
    name: String,
    description: String,
    user: Option<UserId>,
    collection_id: Option<CollectionId>,
}

/// The numbers of further items.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftOut {
    markers: u64,
    flag_changes: u64,
    releases: u64,
    is_exact: bool,
}

/// The response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProjectActivity {
    items: Vec<ActivityItem>,
    left_out: LeftOut,
}

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let mut violations = Violations::default();
    let from = incoming.query_parameter("from", &mut violations, TimeRange::parse_bound);
    let to = incoming.query_parameter("to", &mut violations, TimeRange::parse_bound);
    let range = from.zip(to).and_then(|(from, to)| {
        let to = to.unwrap_or(now.as_millis());
        let from = from.unwrap_or(Timestamp::from_millis(to).minus(DEFAULT_RANGE).as_millis());
        let range = TimeRange::new(Some(from), Some(to));
        range.map(|range| (range, to)).map_err(|error| violations.note_query("from", error)).ok()
    });
    let limit = read_limit(incoming, &mut violations);
    let ((range, to), limit) = violations.into_result(range.zip(limit))?;
    let project = caller.project()?;

    // Storage: what the key can read.
    let (store, bounds) = (&app.store, (range.from, to));
    let (markers, changes, releases) = tokio::try_join!(
        when(caller, Scope::MarkersRead, || {
            MarkerStore::new(store).newest_markers(project, range, limit)
        }),
        when(caller, Scope::FlagsRead, || {
            FlagStore::new(store).newest_changes(project, bounds, limit, now)
        }),
        when(caller, Scope::ErrorsRead, || {
            ErrorStore::new(store).newest_releases(project, bounds, limit, now)
        }),
    )?;

    // Response.
    ApiResponse::ok(&activity(markers, changes, releases, limit))
}

/// Reads one kind of item, if the caller has the scope for it.
async fn when<T, F: Future<Output = Result<T, StoreError>>>(
    caller: &Caller<'_>,
    scope: Scope,
    read: impl FnOnce() -> F,
) -> Result<Option<T>, StoreError> {
    if !caller.scopes().contains(&scope) {
        return Ok(None);
    }
    read().await.map(Some)
}

/// Returns the newest items of all kinds, and the numbers of the others.
fn activity(
    markers: Option<NewestMarkers>,
    changes: Option<NewestChanges>,
    releases: Option<NewestReleases>,
    limit: u32,
) -> ProjectActivity {
    let mut left_out = LeftOut { markers: 0, flag_changes: 0, releases: 0, is_exact: true };
    let mut items = Vec::new();
    if let Some(markers) = markers {
        left_out.markers = markers.left_out;
        left_out.is_exact &= markers.is_exact;
        items.extend(markers.events.into_iter().map(item_of_marker));
    }
    if let Some(changes) = changes {
        left_out.flag_changes = changes.left_out;
        left_out.is_exact &= changes.is_exact;
        items.extend(changes.changes.into_iter().map(item_of_change));
    }
    if let Some(releases) = releases {
        left_out.releases = releases.left_out;
        left_out.is_exact &= releases.is_exact;
        items.extend(releases.releases.into_iter().map(item_of_release));
    }
    items.sort_by(|one, other| {
        (Reverse(one.at), one.kind, &one.id).cmp(&(Reverse(other.at), other.kind, &other.id))
    });
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    for item in items.drain(limit.min(items.len())..) {
        match item.kind {
            MARKER => left_out.markers += 1,
            FLAG_CHANGE => left_out.flag_changes += 1,
            _ => left_out.releases += 1,
        }
    }
    ProjectActivity { items, left_out }
}

const MARKER: &str = "marker";
const FLAG_CHANGE: &str = "flag_change";
const RELEASE: &str = "release";

fn item_of_marker((collection, event): (CollectionId, EventMarker)) -> ActivityItem {
    ActivityItem {
        kind: MARKER,
        id: event.id.to_string(),
        at: event.occurred_at,
        name: event.name,
        description: event.description,
        user: None,
        collection_id: Some(collection),
    }
}

fn item_of_change(change: ListedChange) -> ActivityItem {
    ActivityItem {
        kind: FLAG_CHANGE,
        id: format!("{}/{}", change.flag_id, change.version),
        at: change.at,
        name: change.flag_key,
        description: change.summary,
        user: change.user,
        collection_id: None,
    }
}

fn item_of_release(SeenRelease { release, first_seen }: SeenRelease) -> ActivityItem {
    ActivityItem {
        kind: RELEASE,
        id: release.clone(),
        at: first_seen,
        name: release,
        description: String::new(),
        user: None,
        collection_id: None,
    }
}
