//! Cold starts.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use shared::app::Clock;
use tokio::time::sleep;

use local::environment;

use crate::Result;
use crate::errors::delivery;
use crate::evaluation::context;
use crate::events;
use crate::insights::SMALL;
use crate::interpretation::typical;
use crate::measure::Bench;
use crate::process::{Process, Program, Reply};
use crate::report::progress;
use crate::statistics::Sorted;

/// The start of fresh processes.
pub(crate) struct Starts {
    /// From the start of the process to its first answer, in milliseconds.
    pub(crate) answer: Sorted,
    /// The processor time that it took until then, in milliseconds.
    pub(crate) cpu: Sorted,
}

/// Cold starts, in turns.
pub(crate) struct Cold {
    pub(crate) hello: Starts,
    pub(crate) create: Starts,
    pub(crate) delete: Starts,
    pub(crate) evaluate: Starts,
    pub(crate) evaluate_all: Starts,
    /// Up to the end of a run that finds nothing to do.
    pub(crate) purge: Starts,
    pub(crate) update: Starts,
    pub(crate) split: Starts,
    pub(crate) ingest: Starts,
    pub(crate) query: Starts,
    /// Up to the end of a run that finds nothing to do.
    pub(crate) compact: Starts,
    pub(crate) interpret: Starts,
}

impl Bench<'_> {
    /// Starts hello and the functions in turns, so that whatever else the machine does meets all.
    pub(crate) async fn cold(&self, starts: usize) -> Result<Cold> {
        progress(&format!("cold starts: {starts} each of hello and eleven functions"));
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
        let evaluated = projects.with_room(1).await?;
        let mut create = Process::start(&self.create, &variables).await?;
        let flag = json!({"key": "cold", "name": "Cold", "type": "boolean", "enabled": true});
        create.expect(201, self.stack.create_flag(&evaluated, &flag, None)).await?;
        create.stop().await?;
        let evaluate = self.stack.evaluate_flag(&evaluated, "cold", &context());
        let evaluate_all = self.stack.evaluate_flags(&evaluated, &context(), false);
        let mut figures = [const { Vec::new() }; 12];
        // The first of each reads its binary from the disk and does not count.
        for (number, (collection, split)) in collections.into_iter().zip(splits).enumerate() {
            let project = projects.with_room(1).await?;
            let create = self.stack.create_flag(&project, &events::typical_flag(number), None);
            let delete = self.stack.delete_collection(markers, collection);
            let update = self.stack.update_preferences(number);
            let ingest = delivery(&errors, number, Clock::System.now())?;
            let round = [
                start_once(&self.hello, &variables, 200, create.clone()).await?,
                start_once(&self.create, &variables, 201, create).await?,
                start_once(&self.delete, &variables, 204, delete).await?,
                start_for_job(&self.purge, &job_variables).await?,
                start_once(&self.update, &variables, 200, update).await?,
                start_once(&self.split, &variables, 201, split).await?,
                start_once(&self.ingest, &variables, 200, ingest.request).await?,
                start_once(&self.query, &variables, 200, query.clone()).await?,
                start_for_job(&self.compact, &job_variables).await?,
                start_once(&self.interpret, &variables, 200, interpret.clone()).await?,
                start_once(&self.evaluate, &variables, 200, evaluate.clone()).await?,
                start_once(&self.evaluate_all, &variables, 200, evaluate_all.clone()).await?,
            ];
            for (figures, start) in figures.iter_mut().zip(round) {
                figures.push(start);
            }
        }
        let [
            hello,
            create,
            delete,
            purge,
            update,
            split,
            ingest,
            query,
            compact,
            interpret,
            evaluate,
            evaluate_all,
        ] = figures.map(|figures| all_but_first(&figures));
        Ok(Cold {
            hello,
            create,
            delete,
            evaluate,
            evaluate_all,
            purge,
            update,
            split,
            ingest,
            query,
            compact,
            interpret,
        })
    }
}

/// Starts a process, lets it answer one request, and stops it.
pub(crate) async fn start_once(
    program: &Program,
    variables: &[(&str, String)],
    status: u64,
    request: Bytes,
) -> Result<(Duration, Duration)> {
    let mut process = Process::start(program, variables).await?;
    let reply = process.expect(status, request).await?;
    end(process, &reply).await
}

/// Starts a process, lets it run its job once, and stops it.
async fn start_for_job(
    program: &Program,
    variables: &[(&str, String)],
) -> Result<(Duration, Duration)> {
    let mut process = Process::start(program, variables).await?;
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
