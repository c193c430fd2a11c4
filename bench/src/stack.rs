//! The functions' environment: the embedded engine with tables, projects and an API key.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use axum::body::Bytes;
use serde_json::{Value as Json, json};

use errors::{ErrorId, ErrorStatus};
use flags::{MAX_LIVE_FLAGS, MAX_PROJECT_BYTES};
use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPoint, PainPointId};
use local::engine::Engine;
use local::{demo, environment, template};
use markers::store::MarkerStore;
use markers::{CollectionId, EventMarker, EventMarkerCollection};
use shared::app::{Clock, Ids};
use shared::dynamodb::{Store, client};
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;

use crate::Result;
use crate::events::{self, Request};
use crate::insights::Size;

/// The maximum number of events of one transaction.
const EVENTS_AT_ONCE: usize = 98;

/// The time between two pain points of an insight. 10,000 of them reach back 55 days, into both
/// periods that an insight's numbers compare.
const BETWEEN_PAIN_POINTS: Duration = Duration::from_mins(8);
/// The number of pain points of a session.
const PAIN_POINTS_OF_A_SESSION: usize = 3;

/// An engine in memory, and an API key with all scopes.
pub(crate) struct Stack {
    engine: Engine,
    client: Client,
    store: Store,
    api_key: String,
}

impl Stack {
    pub(crate) async fn start() -> Result<Self> {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let tables = template::read_tables(&template)?;
        let engine = Engine::start(([127, 0, 0, 1], 0).into(), None, &tables)?;
        let client = client::for_endpoint(&engine.endpoint())?;
        let store = Store::new(client.clone(), environment::table_prefix());
        let api_key = demo::create_key(&store, |record| record).await?;
        Ok(Self { engine, client, store, api_key })
    }

    /// Returns the URL of the engine.
    pub(crate) fn endpoint(&self) -> String {
        self.engine.endpoint()
    }

    /// Returns a client for direct reads of the tables.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a request to create a flag.
    pub(crate) fn create_flag(
        &self,
        project: &str,
        flag: &Json,
        idempotency_key: Option<&str>,
    ) -> Bytes {
        let parameters = &[("idOrSlug", project)];
        let request = Request::new(events::CREATE_FLAG, &self.api_key);
        Request { parameters, body: Some(flag), idempotency_key, ..request }.event()
    }

    /// Returns a request to delete an event marker collection.
    pub(crate) fn delete_collection(&self, project: ProjectId, id: CollectionId) -> Bytes {
        let (project, id) = (project.to_string(), id.to_string());
        let parameters = &[("idOrSlug", project.as_str()), ("collectionId", &id)];
        let request = Request::new(events::DELETE_COLLECTION, &self.api_key);
        Request { parameters, ..request }.event()
    }

    /// Returns a request to change all preferences. `number` varies them.
    pub(crate) fn update_preferences(&self, number: usize) -> Bytes {
        let body = &events::preferences(number);
        let request = Request::new(events::UPDATE_PREFERENCES, &self.api_key);
        Request { body: Some(body), ..request }.event()
    }

    /// Returns a query-error-timeseries request.
    pub(crate) fn query_timeseries(&self, query: &Json) -> Bytes {
        let request = Request::new(events::QUERY_TIMESERIES, &self.api_key);
        Request { body: Some(query), ..request }.event()
    }

    /// Returns a breakdown-errors request.
    pub(crate) fn break_down_errors(&self, query: &Json) -> Bytes {
        let request = Request::new(events::BREAK_DOWN_ERRORS, &self.api_key);
        Request { body: Some(query), ..request }.event()
    }

    /// Returns a query-errors request.
    pub(crate) fn query_errors(&self, project: ProjectId, query: &Json) -> Bytes {
        let project = project.to_string();
        let parameters = &[("idOrSlug", project.as_str())];
        let request = Request::new(events::QUERY_ERRORS, &self.api_key);
        Request { parameters, body: Some(query), ..request }.event()
    }

    /// Returns a request for the first page of a project's errors.
    pub(crate) fn list_errors(&self, project: ProjectId) -> Bytes {
        let project = project.to_string();
        let parameters = &[("idOrSlug", project.as_str())];
        let request = Request::new(events::LIST_ERRORS, &self.api_key);
        Request { parameters, ..request }.event()
    }

    /// Returns a get-error request.
    pub(crate) fn get_error(&self, project: ProjectId, error: ErrorId) -> Bytes {
        let (project, error) = (project.to_string(), error.to_string());
        let parameters = &[("idOrSlug", project.as_str()), ("errorId", &error)];
        let request = Request::new(events::GET_ERROR, &self.api_key);
        Request { parameters, ..request }.event()
    }

    /// Returns a request to change the status of an error.
    pub(crate) fn update_error(
        &self,
        project: ProjectId,
        error: ErrorId,
        status: ErrorStatus,
    ) -> Bytes {
        let (project, error) = (project.to_string(), error.to_string());
        let parameters = &[("idOrSlug", project.as_str()), ("errorId", &error)];
        let body = &json!({ "status": status.as_str() });
        let request = Request::new(events::UPDATE_ERROR, &self.api_key);
        Request { parameters, body: Some(body), ..request }.event()
    }

    /// Returns a request to evaluate a flag.
    pub(crate) fn evaluate_flag(&self, project: &str, key: &str, context: &Json) -> Bytes {
        let parameters = &[("idOrSlug", project), ("key", key)];
        let request = Request::new(events::EVALUATE_FLAG, &self.api_key);
        Request { parameters, body: Some(context), ..request }.event()
    }

    /// Returns a request to evaluate all flags of a project, with `no-cache` if `no_cache`.
    pub(crate) fn evaluate_flags(&self, project: &str, context: &Json, no_cache: bool) -> Bytes {
        let parameters = &[("idOrSlug", project)];
        let request = Request::new(events::EVALUATE_FLAGS, &self.api_key);
        Request { parameters, body: Some(context), no_cache, ..request }.event()
    }

    /// Returns a request to interpret natural-language filters.
    pub(crate) fn interpret(&self, query: &Json) -> Bytes {
        let request = Request::new(events::INTERPRET_FILTERS, &self.api_key);
        Request { body: Some(query), ..request }.event()
    }

    /// Returns a request to split pain points off an insight.
    fn split_insight(&self, project: ProjectId, id: InsightId, moved: &[PainPointId]) -> Bytes {
        let (project, id) = (project.to_string(), id.to_string());
        let parameters = &[("idOrSlug", project.as_str()), ("insightId", &id)];
        let body = &events::split(moved);
        let request = Request::new(events::SPLIT_INSIGHT, &self.api_key);
        Request { parameters, body: Some(body), ..request }.event()
    }

    /// Creates a project.
    pub(crate) async fn project(&self, slug: &str) -> Result<ProjectId> {
        Ok(demo::ensure_project(&self.store, slug, slug).await?)
    }

    /// Creates a project, and returns it with its ingest id and public key.
    pub(crate) async fn project_with_dsn(&self, slug: &str) -> Result<Project> {
        let id = self.project(slug).await?;
        Ok(self.store.read_project(id).await?.ok_or("a project is missing")?)
    }

    /// Creates a collection with `events` event markers, one per second from 1970 on.
    async fn collection(&self, project: ProjectId, events: usize) -> Result<CollectionId> {
        let now = Clock::System.now();
        let id = CollectionId::new(Ids::Random.new_uuid(now));
        let collection = EventMarkerCollection {
            id,
            project_id: project,
            name: "Releases".to_owned(),
            description: "Deployments to production.".to_owned(),
            source: None,
            event_count: 0,
            created_at: now,
            updated_at: now,
        };
        MarkerStore::new(&self.store).create_collection(&collection, None).await?;
        let seconds = (1..).take(events);
        let events: Vec<EventMarker> =
            seconds.map(|second| event(Timestamp::from_millis(second * 1_000))).collect();
        for events in events.chunks(EVENTS_AT_ONCE) {
            MarkerStore::new(&self.store).add_events(project, id, events, now, None).await?;
        }
        let stored = MarkerStore::new(&self.store)
            .find_collection(project, id)
            .await?
            .map(|found| found.event_count);
        if stored != Some(u64::try_from(events.len())?) {
            return Err("a collection has a wrong event count".into());
        }
        Ok(id)
    }

    /// Creates `count` collections.
    pub(crate) async fn collections(
        &self,
        project: ProjectId,
        count: usize,
        events: usize,
    ) -> Result<Vec<CollectionId>> {
        let mut collections = Vec::with_capacity(count);
        for _ in 0..count {
            collections.push(self.collection(project, events).await?);
        }
        Ok(collections)
    }

    /// Creates an insight with these pain points.
    async fn insight(&self, project: ProjectId, pain_points: &[&PainPoint]) -> Result<InsightId> {
        let now = Clock::System.now();
        let new_id = || Ids::Random.new_uuid(now);
        let (id, batch) = (InsightId::new(new_id()), BatchId::new(new_id()));
        let title = "Trouble at the checkout".to_owned();
        let mut insight = Insight::new(id, project, title, String::new());
        insight.add(pain_points, new_id).map_err(|_| "an insight has too many pain points")?;
        let claim = InsightStore::new(&self.store)
            .claim_pain_points(project, batch, pain_points, now)
            .await?;
        if claim != ClaimOutcome::Claimed {
            return Err("pain points belong to another insight".into());
        }
        let together = RequestRecord::Batch(batch);
        match InsightStore::new(&self.store).save_insights(&[&insight], together, None, now).await?
        {
            InsightWrite::Done => Ok(id),
            outcome => Err(format!("an insight is not stored: {outcome:?}").into()),
        }
    }

    /// Creates insights of a size. Returns a split request for each.
    ///
    /// The moved pain points are spread evenly over the insight, and include the latest one.
    pub(crate) async fn splits(
        &self,
        project: ProjectId,
        count: usize,
        size: Size,
    ) -> Result<Vec<Bytes>> {
        let Size { members, moved } = size;
        let mut requests = Vec::with_capacity(count);
        for _ in 0..count {
            let pain_points: Vec<PainPoint> = pain_points().take(members).collect();
            let id = self.insight(project, &pain_points.iter().collect::<Vec<_>>()).await?;
            let scattered = pain_points.iter().step_by(members / moved).take(moved);
            let scattered: Vec<PainPointId> = scattered.map(|pain_point| pain_point.id).collect();
            requests.push(self.split_insight(project, id, &scattered));
        }
        Ok(requests)
    }

    /// `true` if a collection still has events, even after its deletion.
    pub(crate) async fn has_events(&self, collection: CollectionId) -> Result<bool> {
        Ok(!MarkerStore::new(&self.store).event_keys(collection, 1).await?.is_empty())
    }

    /// Returns an allocator of projects for one program's flags.
    pub(crate) fn projects<'s>(&'s self, name: &'s str) -> Projects<'s> {
        let (count, flags_left, bytes_left) = (0, 0, 0);
        Projects { store: &self.store, name, count, flags_left, bytes_left, current: String::new() }
    }
}

fn event(occurred_at: Timestamp) -> EventMarker {
    EventMarker {
        id: Ids::Random.new_uuid(occurred_at),
        name: "v1.2.3".to_owned(),
        occurred_at,
        description: "A release of the web application.".to_owned(),
        attributes: BTreeMap::from([("commit".to_owned(), "9f2c1e7".to_owned())]),
    }
}

/// Returns an endless sequence of pain points, the latest first.
fn pain_points() -> impl Iterator<Item = PainPoint> {
    let now = Clock::System.now();
    let times = std::iter::successors(Some(now), |later| Some(later.minus(BETWEEN_PAIN_POINTS)));
    times.enumerate().map(move |(number, occurred_at)| {
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
    })
}

/// The maximum JSON bytes of the flags of a project. The size limit applies to their size in
/// memory, which is up to three times that.
const MAX_JSON_BYTES: usize = MAX_PROJECT_BYTES / 3;

/// An allocator of projects for the flags of a program.
pub(crate) struct Projects<'s> {
    store: &'s Store,
    name: &'s str,
    /// The number of created projects.
    count: usize,
    flags_left: usize,
    bytes_left: usize,
    current: String,
}

impl Projects<'_> {
    /// Returns the id of a project with capacity for these flags, and reserves the capacity.
    pub(crate) async fn project_for(&mut self, flags: &[Json]) -> Result<String> {
        let bytes: usize = flags.iter().map(|flag| flag.to_string().len()).sum();
        if self.flags_left < flags.len() || self.bytes_left < bytes {
            self.count += 1;
            let slug = format!("{}-{}", self.name, self.count);
            self.current = demo::ensure_project(self.store, &slug, self.name).await?.to_string();
            self.flags_left = usize::try_from(MAX_LIVE_FLAGS)?;
            self.bytes_left = MAX_JSON_BYTES;
        }
        let too_many = "a block has more flags than a project can hold";
        self.flags_left = self.flags_left.checked_sub(flags.len()).ok_or(too_many)?;
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(too_many)?;
        Ok(self.current.clone())
    }
}
