//! Cold starts.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::json;
use shared::app::Clock;
use tokio::time::sleep;

use crate::Result;
use crate::errors::delivery;
use crate::evaluation::context;
use crate::event_markers::collections;
use crate::flags::typical_flag;
use crate::insights::{SMALL, splits};
use crate::interpretation::typical;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most};
use crate::request::{
    CREATE_FLAG, DELETE_COLLECTION, EVALUATE_FLAG, EVALUATE_FLAGS, INTERPRET_FILTERS,
    QUERY_TIMESERIES,
};
use crate::sign_in::SignIns;
use crate::stack::Stack;
use crate::statistics::{Sorted, millis};
use crate::warm::update_preferences;

/// The first event of a started program.
enum Task {
    /// The expected response status, and the request.
    Request(u64, Bytes),
    /// An invocation of a scheduled job that finds no work.
    Job,
}

/// Starts hello and the functions alternately, so that other load on the machine affects all.
pub(crate) async fn cold(programs: &Programs, starts: usize, report: &mut Report) -> Result<()> {
    progress(&format!("cold starts: {starts} of each program"));
    // A job would process everything that the other functions store.
    let (stack, of_jobs) = (Stack::start().await?, Stack::start().await?);
    let project = stack.project("cold").await?;
    let with_dsn = stack.project_with_dsn("cold-errors").await?;
    let collections = collections(&stack, project, starts + 1, 0).await?;
    let splits = splits(&stack, project, starts + 1, SMALL).await?;
    let query = json!({ "projectIds": [project] });
    let query = stack.request(QUERY_TIMESERIES, &[]).json(&query).event();
    let words = typical(project, "unhandled errors on chrome");
    let interpret = stack.request(INTERPRET_FILTERS, &[]).json(&words).event();
    let sign_ins = SignIns::start(&stack).await?;
    let variables = sign_ins.variables();
    let evaluated = stack.project("cold-evaluated").await?;
    let flag = json!({"key": "cold", "name": "Cold", "type": "boolean", "enabled": true});
    let flag = stack.request(CREATE_FLAG, &[&evaluated]).json(&flag).event();
    let mut create =
        Process::start(programs, Program::CreateFeatureFlag, &stack.endpoint(), &[]).await?;
    create.expect(201, flag).await?;
    let evaluate = stack.request(EVALUATE_FLAG, &[&evaluated, &"cold"]).json(&context()).event();
    let evaluate_all = stack.request(EVALUATE_FLAGS, &[&evaluated]).json(&context()).event();

    let mut figures: BTreeMap<Program, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (number, (collection, split)) in collections.into_iter().zip(splits).enumerate() {
        let flag = typical_flag(number);
        let create = stack.request(CREATE_FLAG, &[&project]).json(&flag).event();
        let delete = stack.request(DELETE_COLLECTION, &[&project, &collection]).event();
        let ingest = delivery(&with_dsn, number, Clock::System.now())?;
        let round = [
            (Program::Hello, Task::Request(200, create.clone())),
            (Program::CreateFeatureFlag, Task::Request(201, create)),
            (Program::DeleteEventMarkerCollection, Task::Request(204, delete)),
            (Program::PurgeEventMarkers, Task::Job),
            (
                Program::UpdateEmailPreferences,
                Task::Request(200, update_preferences(&stack, number)),
            ),
            (Program::SplitInsight, Task::Request(201, split)),
            (Program::IngestErrorEvents, Task::Request(200, ingest)),
            (Program::QueryErrorTimeseries, Task::Request(200, query.clone())),
            (Program::PackErrorLog, Task::Job),
            (Program::InterpretErrorFilters, Task::Request(200, interpret.clone())),
            (Program::EvaluateFeatureFlag, Task::Request(200, evaluate.clone())),
            (Program::EvaluateFeatureFlags, Task::Request(200, evaluate_all.clone())),
            (Program::RequestSignIn, Task::Request(202, SignIns::request())),
            (Program::CompleteSignIn, Task::Request(200, sign_ins.complete().await?)),
            (Program::CompleteOidcSignIn, Task::Request(302, SignIns::start_oidc())),
        ];
        for (program, task) in round {
            let stack = if matches!(task, Task::Job) { &of_jobs } else { &stack };
            let mut process =
                Process::start(programs, program, &stack.endpoint(), &variables).await?;
            let reply = match task {
                Task::Request(status, request) => process.expect(status, request).await?,
                Task::Job => process.run_job().await?,
            };
            let cpu = process.cpu().await?;
            process.stop().await?;
            // Cleanup of this process must not slow the next one.
            sleep(Duration::from_millis(5)).await;
            // The first start of each program reads the binary from disk, so it is not counted.
            if number > 0 {
                let (response, of_cpu) = figures.entry(program).or_default();
                response.push(millis(reply.since_start));
                of_cpu.push(millis(cpu));
            }
        }
    }
    let mut of_hello = f64::NAN;
    for (program, (response, cpu)) in figures {
        let (response, cpu) = (Sorted::new(response), Sorted::new(cpu));
        report.add_times(program, "cold start to first response", &response, None);
        report.add(program, "cold start, CPU time", cpu.median(), "ms", None);
        // The first program is hello.
        if program == Program::Hello {
            of_hello = response.median();
        } else {
            let ratio = response.median() / of_hello;
            let limit = at_most(most_of_hello(program));
            report.add(program, "cold start, as a multiple of hello's", ratio, "×", limit);
        }
    }
    Ok(())
}

/// Returns the most that the first response of a new process may take, as a multiple of hello's.
fn most_of_hello(program: Program) -> f64 {
    match program {
        // The first event compiles patterns of user agents, and the first query indexes all words.
        Program::IngestErrorEvents | Program::InterpretErrorFilters => 6.0,
        // The most calls to DynamoDB one after another.
        Program::PackErrorLog | Program::SplitInsight => 5.0,
        _ => 4.0,
    }
}
