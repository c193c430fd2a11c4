//! Queries of one project with 10 million events, a third of them from one day.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value as Json, json};

use errors::attribute::Attribute;
use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::CompactionLimits;
use errors::store::ErrorStore;
use errors::{ErrorId, ErrorStatus};
use local::environment;
use shared::app::{Clock, Ids};
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::MeasuredQuestion;
use super::loading::{bytes_of_runs, create_error};
use crate::Result;
use crate::generator::ProjectGenerator;
use crate::measure::Bench;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;

/// The days of the events, the last of them yesterday.
const DAYS: u32 = 90;
/// The flooded day, in days before now.
const FLOODED: u32 = 20;
/// The number of events of the flooded day.
const EVENTS_OF_A_FLOOD: usize = 3_000_000;
/// The number of events of each other day.
const EVENTS_OF_A_DAY: usize = 78_700;
/// The number of errors that occur.
const ERRORS: u16 = 10_000;
/// The number of such events in a pack step.
const PACKED_AT_ONCE: usize = 16_000;
/// The number of pack steps between two compactions, for a packer without idle time.
const STEPS_OF_A_MERGING: usize = 16;
/// The number of errors that are stored concurrently.
const ERRORS_AT_ONCE: usize = 8;
/// The number of measured requests of each kind.
const REQUESTS: usize = 40;
/// The number of unmeasured requests before them.
const WARM_UPS: usize = 3;
const DAY: Duration = Duration::from_hours(24);

/// Queries of a large project.
pub(crate) struct Large {
    pub(crate) events: u64,
    pub(crate) run_bytes: u64,
    pub(crate) questions: Vec<MeasuredQuestion>,
}

impl Bench<'_> {
    /// Loads a large project and measures its queries.
    pub(super) async fn large(&self) -> Result<Large> {
        progress(&format!("large project: storing {DAYS} days, one of them flooded"));
        let now = Clock::System.now();
        let project = self.stack.project("large").await?;
        let (events, errors) = load(self.stack.store(), project, now).await?;
        let run_bytes = bytes_of_runs(self.stack.client(), project).await?;
        let error = *errors.first().ok_or("there are no errors")?;

        let stack = self.stack;
        let from = now.minus(DAY * DAYS).as_millis();
        let query = |filters: Json| {
            let query = json!({"projectIds": [project], "from": from, "filters": filters});
            stack.query_timeseries(&query)
        };
        let browser = json!([{"categoryId": Attribute::Browser.name(), "operator": "is",
            "value": "Chrome"}]);
        let kinds: [(Program, &str, Vec<Bytes>); 5] = [
            (Program::ListErrors, "list-errors", vec![stack.list_errors(project)]),
            (Program::GetError, "get-error", vec![stack.get_error(project, error)]),
            (
                Program::UpdateError,
                "update-error",
                [ErrorStatus::Resolved, ErrorStatus::Open]
                    .map(|status| stack.update_error(project, error, status))
                    .into(),
            ),
            (Program::QueryErrorTimeseries, "timeseries", vec![query(json!([]))]),
            (Program::QueryErrorTimeseries, "timeseries of a browser", vec![query(browser)]),
        ];
        let mut questions = Vec::with_capacity(kinds.len());
        for (program, name, requests) in kinds {
            progress(&format!("large project: {REQUESTS} times {name}"));
            questions.push(self.measure_large(program, name, &requests).await?);
        }
        Ok(Large { events, run_bytes, questions })
    }

    /// Sends the requests alternately to a new process, and measures them.
    async fn measure_large(
        &self,
        program: Program,
        name: &'static str,
        requests: &[Bytes],
    ) -> Result<MeasuredQuestion> {
        let variables = environment::variables(&self.stack.endpoint());
        let mut process = self.start(program, &variables).await?;
        let mut latency = Vec::with_capacity(REQUESTS);
        let requests = requests.iter().cycle().take(WARM_UPS + REQUESTS);
        for (number, request) in requests.enumerate() {
            let reply = process.expect(200, request.clone()).await?;
            if number >= WARM_UPS {
                latency.push(reply.latency);
            }
        }
        let memory = process.peak_memory()?;
        process.stop().await?;
        Ok(MeasuredQuestion { program, name, latency: Sorted::millis(latency), memory })
    }
}

/// Stores the events and errors as packing and compaction would leave them at `now`. Returns the
/// number of events, and the errors.
async fn load(store: &Store, project: ProjectId, now: Timestamp) -> Result<(u64, Vec<ErrorId>)> {
    let limits = CompactionLimits::default();
    let mut generator = ProjectGenerator::with_errors(0, ERRORS)?;
    let mut events = 0;
    for back in (1..=DAYS).rev() {
        let day = Day::of(now.minus(DAY * back));
        let mut left = if back == FLOODED { EVENTS_OF_A_FLOOD } else { EVENTS_OF_A_DAY };
        let mut steps = 0_usize;
        while left > 0 {
            let rows = generator.day(day, left.min(PACKED_AT_ONCE));
            left -= rows.len();
            events += u64::try_from(rows.len())?;
            ErrorStore::new(store).backfill_events(project, day, &rows).await?;
            steps += 1;
            if steps.is_multiple_of(STEPS_OF_A_MERGING) {
                ErrorStore::new(store).compact_step(project, &limits, day.next().start()).await?;
            }
        }
        // A day is compacted as a whole two days after its end, or not yet if that is after `now`.
        let merged_at = day.next().start().plus(DAY * 2).min(now);
        while ErrorStore::new(store).compact_step(project, &limits, merged_at).await? {}
        if back.is_multiple_of(10) {
            progress(&format!("  {back} days are left"));
        }
    }
    let fingerprints: Vec<Fingerprint> = generator.fingerprints().collect();
    let created = fingerprints.into_iter().map(|fingerprint| async move {
        let new = ErrorId::new(Ids::Random.new_uuid(now));
        create_error(store, project, fingerprint, new, now).await
    });
    let errors = stream::iter(created).buffer_unordered(ERRORS_AT_ONCE).try_collect().await?;
    Ok((events, errors))
}
