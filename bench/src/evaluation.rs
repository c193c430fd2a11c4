//! Flag evaluation: the rules alone, one flag by a warm function, and a thousand flags in one
//! request.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use flags::FeatureFlag;
use flags::draft::FlagDraft;
use flags::evaluation::{Compiler, Context, Flags, LoadedFlag};
use shared::app::Ids;
use shared::json::{Json as Document, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::Result;
use crate::counter::{calls, most_of_warm};
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::request::{CREATE_FLAG, EVALUATE_FLAG, EVALUATE_FLAGS};
use crate::stack::Stack;
use crate::statistics::{Sorted, count};

/// The number of flags of the project.
const FLAGS: usize = 1_000;
/// The number of rules of each flag. With more, a thousand flags exceed the size limit of a
/// project.
const RULES: usize = 6;
/// The number of evaluations that are timed together.
const EVALUATIONS: u32 = 2_000;
/// The number of such measurements.
const ROUNDS: usize = 50;
/// The number of requests of each kind.
const REQUESTS: usize = 220;
/// The number of requests that read all flags from DynamoDB.
const UNCACHED: usize = 30;
/// The number of requests whose calls are counted. They take far less time than flags stay cached.
const COUNTED: usize = 11;

/// Measures flag evaluation. Flags have [`RULES`] rules with 5 conditions each. The last condition
/// never matches, so that all are evaluated.
pub(crate) async fn evaluation(programs: &Programs, report: &mut Report) -> Result<()> {
    progress("evaluation: the rules alone");
    let stack = Stack::start().await?;
    let project = stack.project("evaluated").await?;
    let (one, all) = (Program::EvaluateFeatureFlag, Program::EvaluateFeatureFlags);
    report.add(one, "the rules alone, p50", rules_alone(project)?.median(), "µs", under(5.0));

    progress(&format!("evaluation: creating {FLAGS} flags"));
    let endpoint = stack.endpoint();
    let mut create = Process::start(programs, Program::CreateFeatureFlag, &endpoint, &[]).await?;
    for number in 0..FLAGS {
        let flag = stack.request(CREATE_FLAG, &[&project]).json(&flag(number));
        create.expect(201, flag.event()).await?;
    }

    progress(&format!("evaluation: {REQUESTS} requests of each kind"));
    let of_one = stack.request(EVALUATE_FLAG, &[&project, &key(FLAGS / 2)]).json(&context());
    let requests = vec![of_one.event(); REQUESTS];
    let mut process = Process::start(programs, one, &endpoint, &[]).await?;
    let cached = process.measure(200, requests.clone()).await?;
    report.add_requests(one, "warm request", &cached, None);
    report.add_memory(one, process.peak_memory()?, under(20.0));
    let calls =
        calls(programs, (one, &[]), &stack, 200, requests.into_iter().take(COUNTED)).await?;
    let most = most_of_warm(&calls, |calls| count(calls.len()));
    report.add(one, "DynamoDB round trips while cached, most", most, "", at_most(0.0));

    let of_all = || stack.request(EVALUATE_FLAGS, &[&project]).json(&context());
    let mut process = Process::start(programs, all, &endpoint, &[]).await?;
    let cached = process.measure(200, vec![of_all().event(); REQUESTS]).await?;
    report.add_requests(all, "1,000 flags in one response", &cached, under(5.0));
    let uncached = vec![of_all().header("cache-control", "no-cache").event(); UNCACHED];
    let uncached = process.measure(200, uncached).await?;
    report.add_requests(all, "1,000 flags, uncached", &uncached, None);
    report.add_memory(all, process.peak_memory()?, under(24.0));
    Ok(())
}

fn rules_alone(project: ProjectId) -> Result<Sorted> {
    let now = Timestamp::from_millis(1_795_234_560_000);
    let flags = Flags::new(
        project,
        [Arc::new(LoadedFlag::new(&compiled(project, now)?, &mut Compiler::default()))],
    );
    let context = context()["context"].to_string();
    let context = Document::parse(&context, MAX_BODY_DEPTH)?;
    let context = Context::read(context).map_err(|_| "the context is invalid")?;
    let mut micros = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..EVALUATIONS {
            black_box(flags.evaluate(&key(0), black_box(&context), now))
                .map_err(|_| "the evaluation failed")?;
        }
        let time: Duration = started.elapsed() / EVALUATIONS;
        micros.push(time.as_secs_f64() * 1e6);
    }
    Ok(Sorted::new(micros))
}

fn compiled(project: ProjectId, now: Timestamp) -> Result<FeatureFlag> {
    let body = flag(0).to_string();
    let draft = FlagDraft::read(&Document::parse(&body, MAX_BODY_DEPTH)?);
    let flag = draft.and_then(|draft| draft.into_flag(project, now, || Ids::Random.new_uuid(now)));
    flag.map_err(|violations| format!("{violations:?}").into())
}

fn key(number: usize) -> String {
    format!("evaluated-{number:04}")
}

/// Returns a flag. For [`context`], the first four conditions of each rule match, the fifth does
/// not.
fn flag(number: usize) -> Json {
    let rule = |rule: usize| {
        json!({
            "name": format!("Rule {rule}"),
            "conditions": [
                {"attribute": "country", "operator": "in", "values": ["DE", "FR", "IT", "PT"]},
                {"attribute": "version", "operator": "semver_greater_than_or_equal", "values": ["2.1.0"]},
                {"attribute": "age", "operator": "greater_than", "values": ["18"]},
                {"attribute": "user.role", "operator": "not_in", "values": ["guest", "bot"]},
                {"attribute": "email", "operator": "ends_with", "values": [format!("@nobody{rule}.example")]},
            ],
            "serve": {"variant": "on"},
        })
    };
    json!({
        "key": key(number),
        "name": format!("Evaluated {number}"),
        "type": "boolean",
        "enabled": true,
        "rules": (0..RULES).map(rule).collect::<Vec<_>>(),
        "fallthrough": {"rollout": [{"variant": "on", "weight": 5}, {"variant": "off", "weight": 95}]},
    })
}

/// Returns an evaluation context, as an application sends it for a user.
pub(crate) fn context() -> Json {
    json!({"context": {
        "targetingKey": "0195c5a2-7f3c-7c3e-9a51-1f2d3c4b5a69",
        "country": "PT",
        "version": "3.14.2",
        "age": 42,
        "user": {"role": "admin", "team": "core"},
        "email": "somebody@example.com",
        "device": "phone",
        "locale": "pt-PT",
    }})
}
