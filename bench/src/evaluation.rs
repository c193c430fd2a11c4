//! Flag evaluation: the rules alone, one flag by a warm function, and a thousand flags in one
//! request.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::{Value as Json, json};

use flags::FeatureFlag;
use flags::draft::FlagDraft;
use flags::evaluation::{Compiler, Context, Flags, LoadedFlag};
use local::environment;
use shared::app::Ids;
use shared::json::{Json as Document, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::Result;
use crate::counter::Counter;
use crate::measure::{Bench, Requests};
use crate::process::Process;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::{Sorted, millis};

/// The number of flags of the project.
pub(crate) const FLAGS: usize = 1_000;
/// The number of rules of each flag. With more, a thousand flags exceed the size limit of a
/// project.
pub(crate) const RULES: usize = 6;
/// The number of evaluations that are timed together.
const EVALUATIONS: u32 = 2_000;
/// The number of such measurements.
const ROUNDS: usize = 50;
/// The number of measured requests of each kind.
const REQUESTS: usize = 200;
/// The number of consecutive requests whose processor time is measured together.
const BLOCK: u32 = 10;
const WARM_UPS: usize = 10;

/// The figures of flag evaluation. Flags have [`RULES`] rules with 5 conditions each. The last
/// condition never matches, so that all are evaluated.
pub(crate) struct Evaluations {
    /// The time of one evaluation outside a function, in microseconds.
    pub(crate) rules_alone: Sorted,
    /// Requests for one cached flag.
    pub(crate) single: Requests,
    /// The maximum number of DynamoDB calls of a request for one cached flag.
    pub(crate) calls: usize,
    /// Requests for all flags of the project, cached.
    pub(crate) bulk: Requests,
    /// The latency of requests that read all flags without the cache, in milliseconds.
    pub(crate) uncached: Sorted,
    /// The peak memory of evaluate-feature-flag, in bytes.
    pub(crate) memory_of_single: u64,
    /// The peak memory of evaluate-feature-flags, in bytes.
    pub(crate) memory: u64,
}

impl Bench<'_> {
    /// Measures flag evaluation.
    pub(crate) async fn evaluations(&self) -> Result<Evaluations> {
        progress("evaluation: the rules alone");
        let project = self.stack.project("evaluated").await?;
        let rules_alone = rules_alone(project)?;

        progress(&format!("evaluation: creating {FLAGS} flags"));
        let variables = environment::variables(&self.stack.endpoint());
        let project = project.to_string();
        let mut create = self.start(Program::CreateFeatureFlag, &variables).await?;
        for number in 0..FLAGS {
            let request = self.stack.create_flag(&project, &flag(number), None);
            create.expect(201, request).await?;
        }
        create.stop().await?;

        progress(&format!("evaluation: {REQUESTS} requests of each kind"));
        let one = self.stack.evaluate_flag(&project, &key(FLAGS / 2), &context());
        let mut process = self.start(Program::EvaluateFeatureFlag, &variables).await?;
        let single = measure(&mut process, &one).await?;
        let memory_of_single = process.peak_memory()?;
        process.stop().await?;
        let calls = self.calls_of_cached(&one).await?;

        let all = self.stack.evaluate_flags(&project, &context(), false);
        let uncached = self.stack.evaluate_flags(&project, &context(), true);
        let mut process = self.start(Program::EvaluateFeatureFlags, &variables).await?;
        let bulk = measure(&mut process, &all).await?;
        let mut latencies = Vec::new();
        for _ in 0..WARM_UPS {
            latencies.push(process.expect(200, uncached.clone()).await?.latency);
        }
        let memory = process.peak_memory()?;
        process.stop().await?;
        let uncached = Sorted::millis(latencies);
        Ok(Evaluations { rules_alone, single, calls, bulk, uncached, memory_of_single, memory })
    }

    async fn calls_of_cached(&self, request: &Bytes) -> Result<usize> {
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut process = self.start(Program::EvaluateFeatureFlag, &variables).await?;
        process.expect(200, request.clone()).await?;
        counter.take();
        let mut most = 0;
        // These requests take far less time than flags stay cached.
        for _ in 0..WARM_UPS {
            process.expect(200, request.clone()).await?;
            most = most.max(counter.take().len());
        }
        process.stop().await?;
        Ok(most)
    }
}

async fn measure(process: &mut Process, request: &Bytes) -> Result<Requests> {
    for _ in 0..WARM_UPS {
        process.expect(200, request.clone()).await?;
    }
    let (mut latencies, mut cpu) = (Vec::with_capacity(REQUESTS), Vec::new());
    while latencies.len() < REQUESTS {
        let before = process.cpu().await?;
        for _ in 0..BLOCK {
            latencies.push(process.expect(200, request.clone()).await?.latency);
        }
        cpu.push(millis(process.cpu().await?.saturating_sub(before) / BLOCK));
    }
    Ok(Requests { latency: Sorted::millis(latencies), cpu })
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
