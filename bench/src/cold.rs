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
use crate::report::progress;
use crate::statistics::Sorted;
use crate::{Result, events};

/// The start of fresh processes.
pub(crate) struct Starts {
    /// From the start of the process to its first answer, in milliseconds.
    pub(crate) answer: Sorted,
    /// The processor time that it took until then, in milliseconds.
    pub(crate) cpu: Sorted,
}

/// Cold starts of all programs but hello-dynamodb, in turns; of a job, up to the end of a run that
/// finds nothing to do.
pub(crate) struct Cold(BTreeMap<Program, Starts>);

impl Cold {
    pub(crate) fn of(&self, program: Program) -> &Starts {
        &self.0[&program]
    }
}

/// What a program is started for.
enum Task {
    /// A request, and the status of its answer.
    Request(u64, Bytes),
    /// A run of a job.
    Job,
}

impl Bench<'_> {
    /// Starts hello and the functions in turns, so that whatever else the machine does meets all.
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
        let evaluated = projects.with_room(slice::from_ref(&flag)).await?;
        let mut create = self.start(Program::CreateFeatureFlag, &variables).await?;
        create.expect(201, self.stack.create_flag(&evaluated, &flag, None)).await?;
        create.stop().await?;
        let evaluate = self.stack.evaluate_flag(&evaluated, "cold", &context());
        let evaluate_all = self.stack.evaluate_flags(&evaluated, &context(), false);
        let mut figures: BTreeMap<Program, Vec<_>> = BTreeMap::new();
        // The first of each reads its binary from the disk and does not count.
        for (number, (collection, split)) in collections.into_iter().zip(splits).enumerate() {
            let flag = events::typical_flag(number);
            let project = projects.with_room(slice::from_ref(&flag)).await?;
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
                        answer_once(self.start(program, &variables).await?, status, request).await?
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

/// Lets a process that was just started answer one request, and stops it.
pub(crate) async fn answer_once(
    mut process: Process,
    status: u64,
    request: Bytes,
) -> Result<(Duration, Duration)> {
    let reply = process.expect(status, request).await?;
    end(process, &reply).await
}

/// Lets a process that was just started run its job once, and stops it.
async fn run_once(mut process: Process) -> Result<(Duration, Duration)> {
    let reply = process.run_job().await?;
    end(process, &reply).await
}

/// Stops a process after its first reply, and answers when that came, and the processor time until
/// then.
async fn end(process: Process, reply: &Reply) -> Result<(Duration, Duration)> {
    let cpu = process.cpu().await?;
    process.stop().await?;
    // Whatever ends with the process should not run into the next one's time.
    sleep(Duration::from_millis(5)).await;
    Ok((reply.since_start, cpu))
}

pub(crate) fn all_but_first(starts: &[(Duration, Duration)]) -> Starts {
    let starts = starts.iter().skip(1);
    Starts {
        answer: Sorted::millis(starts.clone().map(|(answer, _)| *answer)),
        cpu: Sorted::millis(starts.map(|(_, cpu)| *cpu)),
    }
}
