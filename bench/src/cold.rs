//! Cold starts.

use std::collections::BTreeMap;
use std::slice;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use shared::app::Clock;
use tokio::time::sleep;

use local::environment;

use crate::errors::delivery;
use crate::evaluation::context;
use crate::insights::SMALL;
use crate::interpretation::typical;
use crate::measure::Bench;
use crate::process::{Process, Reply};
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;
use crate::{Result, events};

/// Cold starts of one program.
pub(crate) struct Starts {
    /// The time from the process start to the first response, in milliseconds.
    pub(crate) response: Sorted,
    /// The processor time until the first response, in milliseconds.
    pub(crate) cpu: Sorted,
}

/// Cold starts of all programs except hello-dynamodb, interleaved. The start of a job ends with an
/// invocation that finds no work.
pub(crate) struct Cold(BTreeMap<Program, Starts>);

impl Cold {
    pub(crate) fn of(&self, program: Program) -> &Starts {
        &self.0[&program]
    }
}

/// The first event of a started program.
enum Task {
    /// The expected response status, and the request.
    Request(u64, Bytes),
    /// An invocation of a scheduled job.
    Job,
}

impl Bench<'_> {
    /// Starts hello and the functions alternately, so that other load on the machine affects all.
    pub(crate) async fn cold(&self, starts: usize) -> Result<Cold> {
        let functions = Program::functions().count();
        progress(&format!("cold starts: {starts} each of hello and {functions} functions"));
        let variables = environment::variables(&self.stack.endpoint());
        let job_variables = environment::variables(&self.job_stack.endpoint());
        let mut projects = self.stack.projects("cold");
        let markers = self.stack.project("cold-markers").await?;
        let collections = self.stack.collections(markers, starts + 1, 0).await?;
        let insights = self.stack.project("cold-insights").await?;
        let splits = self.stack.splits(insights, starts + 1, SMALL).await?;
        let errors = self.stack.project_with_dsn("cold-errors").await?;
        let query = self.stack.query_timeseries(&json!({ "projectIds": [errors.id] }));
        let words = typical(&errors.id.to_string(), "unhandled errors on chrome");
        let interpret = self.stack.interpret(&words);
        let flag = json!({"key": "cold", "name": "Cold", "type": "boolean", "enabled": true});
        let evaluated = projects.project_for(slice::from_ref(&flag)).await?;
        let mut create = self.start(Program::CreateFeatureFlag, &variables).await?;
        create.expect(201, self.stack.create_flag(&evaluated, &flag, None)).await?;
        create.stop().await?;
        let evaluate = self.stack.evaluate_flag(&evaluated, "cold", &context());
        let evaluate_all = self.stack.evaluate_flags(&evaluated, &context(), false);
        let mut figures: BTreeMap<Program, Vec<_>> = BTreeMap::new();
        // The first start of each program reads the binary from disk, so it is not counted.
        for (number, (collection, split)) in collections.into_iter().zip(splits).enumerate() {
            let flag = events::typical_flag(number);
            let project = projects.project_for(slice::from_ref(&flag)).await?;
            let create = self.stack.create_flag(&project, &flag, None);
            let delete = self.stack.delete_collection(markers, collection);
            let update = self.stack.update_preferences(number);
            let ingest = delivery(&errors, number, Clock::System.now())?.request;
            let round = [
                (Program::Hello, Task::Request(200, create.clone())),
                (Program::CreateFeatureFlag, Task::Request(201, create)),
                (Program::DeleteEventMarkerCollection, Task::Request(204, delete)),
                (Program::PurgeEventMarkers, Task::Job),
                (Program::UpdateEmailPreferences, Task::Request(200, update)),
                (Program::SplitInsight, Task::Request(201, split)),
                (Program::IngestErrorEvents, Task::Request(200, ingest)),
                (Program::QueryErrorTimeseries, Task::Request(200, query.clone())),
                (Program::PackErrorLog, Task::Job),
                (Program::InterpretErrorFilters, Task::Request(200, interpret.clone())),
                (Program::EvaluateFeatureFlag, Task::Request(200, evaluate.clone())),
                (Program::EvaluateFeatureFlags, Task::Request(200, evaluate_all.clone())),
            ];
            for (program, task) in round {
                let start = match task {
                    Task::Request(status, request) => {
                        respond_once(self.start(program, &variables).await?, status, request)
                            .await?
                    }
                    Task::Job => run_once(self.start(program, &job_variables).await?).await?,
                };
                figures.entry(program).or_default().push(start);
            }
            if number > 0 && number.is_multiple_of(10) && number < starts {
                progress(&format!("  {number} of {starts} starts"));
            }
        }
        let starts = figures.iter().map(|(program, starts)| (*program, all_but_first(starts)));
        Ok(Cold(starts.collect()))
    }
}

/// Sends one request to a started process, then stops it.
pub(crate) async fn respond_once(
    mut process: Process,
    status: u64,
    request: Bytes,
) -> Result<(Duration, Duration)> {
    let reply = process.expect(status, request).await?;
    end(process, &reply).await
}

/// Runs the job of a started process once, then stops the process.
async fn run_once(mut process: Process) -> Result<(Duration, Duration)> {
    let reply = process.run_job().await?;
    end(process, &reply).await
}

/// Stops a process after its first reply. Returns the time and the processor time until the reply.
async fn end(process: Process, reply: &Reply) -> Result<(Duration, Duration)> {
    let cpu = process.cpu().await?;
    process.stop().await?;
    // Cleanup of this process must not slow the next one.
    sleep(Duration::from_millis(5)).await;
    Ok((reply.since_start, cpu))
}

pub(crate) fn all_but_first(starts: &[(Duration, Duration)]) -> Starts {
    let starts = starts.iter().skip(1);
    Starts {
        response: Sorted::millis(starts.clone().map(|(response, _)| *response)),
        cpu: Sorted::millis(starts.map(|(_, cpu)| *cpu)),
    }
}
