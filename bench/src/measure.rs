//! The phases of the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use axum::body::Bytes;
use serde_json::Value as Json;

use local::environment;

use crate::cold::{Starts, all_but_first, respond_once};
use crate::counter::{Call, Counter};
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::stack::{Projects, Stack};
use crate::statistics::{Sorted, millis};
use crate::tls::Terminator;
use crate::{Result, events};

/// The number of consecutive requests to a program before the next program's turn.
const BLOCK: usize = 100;
/// The number of unmeasured requests before each block. They refill the processor's caches after a
/// sleep, and look up the project, which happens at its first flag.
const BLOCK_WARM_UPS: usize = 5;
/// The number of unmeasured blocks.
const WARM_UP_BLOCKS: usize = 2;
/// The number of measured requests of the rarer kinds, and their block length. A project can hold
/// the largest flags of one block.
const RARE: (usize, usize) = (200, 20);
/// The number of create-feature-flag requests whose round trips are counted.
const COUNTED: usize = 200;
/// The number of requests to each other function whose round trips are counted.
const COUNTED_OTHERS: usize = 50;
/// The number of processes that make their first call over TLS.
const TLS_STARTS: usize = 15;
/// The maximum difference in size between hello-dynamodb's calls and the recorded calls, in
/// percent.
const MAX_SIZE_DIFFERENCE: usize = 2;

/// The environment of the benchmark.
pub(crate) struct Bench<'b> {
    pub(crate) stack: &'b Stack,
    /// A separate stack for jobs, since a job processes everything in its tables.
    pub(crate) job_stack: &'b Stack,
    pub(crate) programs: Programs,
    /// A folder for files that the programs read.
    pub(crate) folder: &'b Path,
}

/// Requests to a warm process.
pub(crate) struct Requests {
    /// The time from receipt of the event to the response, in milliseconds.
    pub(crate) latency: Sorted,
    /// The mean processor time per request of each block, in milliseconds.
    pub(crate) cpu: Vec<f64>,
}

impl Requests {
    /// Returns the median of [`Self::cpu`], which a disturbed block does not affect.
    pub(crate) fn median_cpu(&self) -> f64 {
        Sorted::new(self.cpu.iter().copied()).median()
    }

    /// Returns the median difference in processor time from other requests, block by block.
    pub(crate) fn cpu_beyond(&self, others: &Self) -> f64 {
        Sorted::new(self.cpu.iter().zip(&others.cpu).map(|(ours, theirs)| ours - theirs)).median()
    }
}

/// Round trips to DynamoDB.
pub(crate) struct RoundTrips {
    /// The operations that create-feature-flag calls from its cold start through its first request.
    pub(crate) cold: Vec<String>,
    /// The maximum of a warm create-feature-flag request.
    pub(crate) most: usize,
    /// The maximum of a warm delete-event-marker-collection request.
    pub(crate) most_of_delete: usize,
    /// The maximum of a warm update-email-preferences request.
    pub(crate) most_of_update: usize,
    /// Files with the recorded actions of a typical flag and of the largest flag.
    actions: [PathBuf; 2],
}

/// The figures of warm requests.
pub(crate) struct Warm {
    pub(crate) hello: Requests,
    pub(crate) sdk: Requests,
    pub(crate) create: Requests,
    pub(crate) update: Requests,
    pub(crate) invalid: Requests,
    pub(crate) largest: Requests,
    pub(crate) largest_sdk: Requests,
    /// The peak memory of hello, hello-dynamodb and create-feature-flag under typical requests, in
    /// bytes.
    pub(crate) memory: [u64; 3],
    /// The peak memory of update-email-preferences, in bytes.
    pub(crate) memory_of_update: u64,
    /// The peak memory of create-feature-flag after the largest flags, in bytes.
    pub(crate) memory_after_largest: u64,
}

/// The figures of first calls over TLS.
pub(crate) struct Tls {
    /// The time to create a client and make its first call, in milliseconds.
    pub(crate) client_and_call: Sorted,
    /// The time of the first call, in milliseconds.
    pub(crate) call: Sorted,
    /// Cold starts of create-feature-flag.
    pub(crate) create: Starts,
}

impl Bench<'_> {
    /// Starts a new process of a program.
    pub(crate) async fn start(
        &self,
        program: Program,
        variables: &[(&str, String)],
    ) -> Result<Process> {
        Process::start(&self.programs, program, variables).await
    }

    /// Counts the calls of requests, and records the actions of their transactions for
    /// hello-dynamodb.
    pub(crate) async fn round_trips(&self) -> Result<RoundTrips> {
        progress("counting round trips");
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut create = self.start(Program::CreateFeatureFlag, &variables).await?;
        let project = self.stack.project("counted").await?.to_string();
        let typical = events::typical_flag(0);
        create.expect(201, self.stack.create_flag(&project, &typical, None)).await?;
        let cold = counter.take().into_iter().map(|call| call.operation).collect();

        let mut most = 0;
        let mut last = Vec::new();
        for number in 1..=COUNTED {
            let idempotency_key = format!("benchmark-{number}");
            let idempotency_key = number.is_multiple_of(2).then_some(idempotency_key.as_str());
            let flag = events::typical_flag(number);
            let request = self.stack.create_flag(&project, &flag, idempotency_key);
            create.expect(201, request).await?;
            let calls = counter.take();
            most = most.max(calls.len());
            if idempotency_key.is_none() {
                last = calls;
            }
        }
        let typical = self.record_actions("typical.json", &last)?;
        let reply = create
            .expect(201, self.stack.create_flag(&project, &events::largest_flag(COUNTED + 1), None))
            .await?;
        let bytes = reply.body.len();
        if !(190_000..=200_000).contains(&bytes) {
            return Err(format!("the largest flag has {bytes} bytes, not almost 200,000").into());
        }
        let largest = self.record_actions("largest.json", &counter.take())?;
        let reply = create
            .expect(400, self.stack.create_flag(&project, &events::invalid_flag(), None))
            .await?;
        let problem: Json = serde_json::from_str(&reply.body)?;
        if problem["errors"].as_array().map(Vec::len) != Some(10) {
            return Err(format!("the invalid body does not have ten errors: {problem:#}").into());
        }
        counter.take();
        create.stop().await?;

        let project = self.stack.project("counted-markers").await?;
        let mut deletions = Vec::new();
        for collection in self.stack.collections(project, COUNTED_OTHERS + 1, 0).await? {
            deletions.push(self.stack.delete_collection(project, collection));
        }
        let delete = self.start(Program::DeleteEventMarkerCollection, &variables).await?;
        let most_of_delete = most_calls(&counter, delete, 204, deletions).await?;
        let updates = (0..=COUNTED_OTHERS).map(|number| self.stack.update_preferences(number));
        let update = self.start(Program::UpdateEmailPreferences, &variables).await?;
        let most_of_update = most_calls(&counter, update, 200, updates.collect()).await?;

        let mut sdk = self
            .start(Program::HelloDynamodb, &with(variables, [actions_variable(&typical)]))
            .await?;
        let project = self.stack.project("compared").await?.to_string();
        sdk.expect(201, self.stack.create_flag(&project, &events::typical_flag(0), None)).await?;
        sdk.stop().await?;
        check_similar(&last, &counter.take())?;
        let actions = [typical, largest];
        Ok(RoundTrips { cold, most, most_of_delete, most_of_update, actions })
    }

    /// Writes the actions of the first transaction among the calls to a file. Returns its path.
    fn record_actions(&self, name: &str, calls: &[Call]) -> Result<PathBuf> {
        let actions = calls.iter().find_map(|call| call.actions().transpose());
        let actions = actions.ok_or("create-feature-flag writes without TransactWriteItems")??;
        let path = self.folder.join(name);
        fs::write(&path, serde_json::to_vec(&actions)?)?;
        Ok(path)
    }

    /// Sends requests to all programs alternately.
    pub(crate) async fn warm(&self, requests: usize, round_trips: &RoundTrips) -> Result<Warm> {
        progress(&format!("warm requests: {requests} each of four programs"));
        let variables = environment::variables(&self.stack.endpoint());
        let [typical, largest] = round_trips.actions.each_ref().map(|path| actions_variable(path));
        let with_typical = with(variables.clone(), [typical]);
        let with_largest = with(variables.clone(), [largest]);
        let mut hello = self.subject("hello", Program::Hello, &variables).await?;
        let mut sdk = self.subject("sdk", Program::HelloDynamodb, &with_typical).await?;
        let mut create = self.subject("create", Program::CreateFeatureFlag, &variables).await?;
        let mut update =
            self.subject("update", Program::UpdateEmailPreferences, &variables).await?;

        let [of_hello, of_sdk, of_create, of_update] = alternate(
            [
                (&mut hello, Kind::Flag { body: events::typical_flag, status: 200 }),
                (&mut sdk, Kind::Flag { body: events::typical_flag, status: 201 }),
                (&mut create, Kind::Flag { body: events::typical_flag, status: 201 }),
                (&mut update, Kind::Preferences),
            ],
            (requests, BLOCK),
        )
        .await?;
        let memory = [
            hello.process.peak_memory()?,
            sdk.process.peak_memory()?,
            create.process.peak_memory()?,
        ];
        let memory_of_update = update.process.peak_memory()?;
        update.process.stop().await?;
        hello.process.stop().await?;
        sdk.process.stop().await?;

        progress(&format!(
            "warm requests: {} each of an invalid body and the largest flag",
            RARE.0
        ));
        let kind = Kind::Flag { body: |_| events::invalid_flag(), status: 400 };
        let [invalid] = alternate([(&mut create, kind)], RARE).await?;
        let mut largest_sdk =
            self.subject("largest-sdk", Program::HelloDynamodb, &with_largest).await?;
        let [of_largest_sdk, of_largest] = alternate(
            [
                (&mut largest_sdk, Kind::Flag { body: events::largest_flag, status: 201 }),
                (&mut create, Kind::Flag { body: events::largest_flag, status: 201 }),
            ],
            RARE,
        )
        .await?;
        let memory_after_largest = create.process.peak_memory()?;
        create.process.stop().await?;
        largest_sdk.process.stop().await?;
        Ok(Warm {
            hello: of_hello,
            sdk: of_sdk,
            create: of_create,
            update: of_update,
            invalid,
            largest: of_largest,
            largest_sdk: of_largest_sdk,
            memory,
            memory_of_update,
            memory_after_largest,
        })
    }

    async fn subject<'s>(
        &'s self,
        name: &'s str,
        program: Program,
        variables: &[(&str, String)],
    ) -> Result<Subject<'s>> {
        Ok(Subject {
            process: self.start(program, variables).await?,
            stack: self.stack,
            projects: self.stack.projects(name),
            sent: 0,
        })
    }

    /// Measures first calls over TLS.
    pub(crate) async fn tls(&self) -> Result<Tls> {
        progress(&format!("first calls over TLS: {TLS_STARTS} processes of each kind"));
        let authority = self.folder.join("authority.pem");
        let terminator = Terminator::start(&self.stack.endpoint(), &authority).await?;
        let trust = [
            (client_trust(), "system".to_owned()),
            ("SSL_CERT_FILE", authority.display().to_string()),
        ];
        let variables = with(environment::variables(&terminator.endpoint()), trust);
        let measuring = with(variables.clone(), [("BENCH_FIRST_CALL", "1".to_owned())]);
        let mut projects = self.stack.projects("tls");
        let (mut both, mut call, mut create) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..=TLS_STARTS {
            let flag = events::typical_flag(number);
            let project = projects.project_for(slice::from_ref(&flag)).await?;
            let event = self.stack.create_flag(&project, &flag, None);
            let mut process = self.start(Program::HelloDynamodb, &measuring).await?;
            let reply = process.expect(200, event.clone()).await?;
            process.stop().await?;
            let figures: Json = serde_json::from_str(&reply.body)?;
            let figure = |name: &str| figures[name].as_f64().ok_or("a figure is missing");
            both.push(figure("clientAndCallMs")?);
            call.push(figure("callMs")?);
            let process = self.start(Program::CreateFeatureFlag, &variables).await?;
            create.push(respond_once(process, 201, event).await?);
        }
        Ok(Tls {
            client_and_call: Sorted::new(both.into_iter().skip(1)),
            call: Sorted::new(call.into_iter().skip(1)),
            create: all_but_first(&create),
        })
    }
}

fn client_trust() -> &'static str {
    shared::dynamodb::client::TRUST_STORE_VARIABLE
}

type Variables = Vec<(&'static str, String)>;

fn with<const N: usize>(mut variables: Variables, more: [(&'static str, String); N]) -> Variables {
    variables.extend(more);
    variables
}

fn actions_variable(path: &Path) -> (&'static str, String) {
    ("BENCH_ACTIONS", path.display().to_string())
}

/// Fails unless two programs made equally many calls with about equal total size.
fn check_similar(ours: &[Call], theirs: &[Call]) -> Result<()> {
    let [(our_calls, our_bytes), (their_calls, their_bytes)] = [ours, theirs]
        .map(|calls| (calls.len(), calls.iter().map(|call| call.body.len()).sum::<usize>()));
    let has_similar_size = our_bytes.abs_diff(their_bytes) * 100 <= our_bytes * MAX_SIZE_DIFFERENCE;
    if our_calls == their_calls && has_similar_size {
        return Ok(());
    }
    let message = format!(
        "hello-dynamodb sends {their_bytes} bytes in {their_calls} calls, create-feature-flag \
         {our_bytes} in {our_calls}: hello-dynamodb no longer represents create-feature-flag"
    );
    Err(message.into())
}

/// Returns the maximum number of calls of one request, without the first request, which is not
/// warm.
async fn most_calls(
    counter: &Counter,
    mut process: Process,
    status: u64,
    requests: Vec<Bytes>,
) -> Result<usize> {
    let mut calls = Vec::with_capacity(requests.len());
    for request in requests {
        process.expect(status, request).await?;
        calls.push(counter.take().len());
    }
    process.stop().await?;
    calls.into_iter().skip(1).max().ok_or_else(|| "no warm request was counted".into())
}

/// A measured process with its own projects.
struct Subject<'s> {
    process: Process,
    stack: &'s Stack,
    projects: Projects<'s>,
    /// The number of requests sent to it.
    sent: usize,
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    /// A new flag: its body by number, and the expected status.
    Flag { body: fn(usize) -> Json, status: u64 },
    /// Changed email preferences.
    Preferences,
}

impl Kind {
    fn status(self) -> u64 {
        match self {
            Self::Flag { status, .. } => status,
            Self::Preferences => 200,
        }
    }
}

impl Subject<'_> {
    async fn requests(&mut self, kind: Kind, count: usize) -> Result<Vec<Bytes>> {
        let numbers = self.sent + 1..=self.sent + count;
        self.sent += count;
        Ok(match kind {
            Kind::Flag { body, .. } => {
                let flags: Vec<Json> = numbers.map(body).collect();
                let project = self.projects.project_for(&flags).await?;
                flags.iter().map(|flag| self.stack.create_flag(&project, flag, None)).collect()
            }
            Kind::Preferences => numbers.map(|n| self.stack.update_preferences(n)).collect(),
        })
    }

    /// Sends a block of requests. Returns each latency and the mean processor time, in
    /// milliseconds.
    async fn block(&mut self, kind: Kind, length: usize) -> Result<(Vec<f64>, f64)> {
        let mut events = self.requests(kind, BLOCK_WARM_UPS + length).await?;
        let measured = events.split_off(BLOCK_WARM_UPS);
        for event in events {
            self.process.expect(kind.status(), event).await?;
        }
        let before = self.process.cpu().await?;
        let mut latencies = Vec::with_capacity(length);
        for event in measured {
            latencies.push(millis(self.process.expect(kind.status(), event).await?.latency));
        }
        let cpu = self.process.cpu().await?.saturating_sub(before);
        Ok((latencies, millis(cpu / u32::try_from(length)?)))
    }
}

/// Sends blocks of requests to several programs alternately, so that other load on the machine
/// affects all of them.
async fn alternate<const N: usize>(
    mut subjects: [(&mut Subject<'_>, Kind); N],
    (requests, block): (usize, usize),
) -> Result<[Requests; N]> {
    let blocks = requests.div_ceil(block).max(1);
    let mut figures = [const { (Vec::new(), Vec::new()) }; N];
    for turn in 0..WARM_UP_BLOCKS + blocks {
        for ((subject, kind), (latencies, cpu)) in subjects.iter_mut().zip(&mut figures) {
            let (of_requests, of_cpu) = subject.block(*kind, block).await?;
            if turn >= WARM_UP_BLOCKS {
                latencies.extend(of_requests);
                cpu.push(of_cpu);
            }
        }
        let done = (turn + 1).saturating_sub(WARM_UP_BLOCKS);
        if done > 0 && done.is_multiple_of(10) && done < blocks {
            progress(&format!("  {} of {} requests", done * block, blocks * block));
        }
    }
    Ok(figures.map(|(latencies, cpu)| Requests { latency: Sorted::new(latencies), cpu }))
}
