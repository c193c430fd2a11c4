//! The phases of the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use axum::body::Bytes;
use serde_json::Value as Json;

use local::environment;

use crate::cold::{Starts, all_but_first, answer_once};
use crate::counter::{Call, Counter};
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::report::progress;
use crate::stack::{Projects, Stack};
use crate::statistics::{Sorted, millis};
use crate::tls::Terminator;
use crate::{Result, events};

/// How many requests are measured in a row before the next program has its turn.
const BLOCK: usize = 100;
/// How many requests before each block are not measured: a program that slept has to find its way
/// back into the processor's caches, and a project is looked up at its first flag.
const BLOCK_WARM_UPS: usize = 5;
/// How many blocks are not measured.
const WARM_UP_BLOCKS: usize = 2;
/// How many requests of the rarer kinds are measured, in how long blocks: a project has the largest flags of one.
const RARE: (usize, usize) = (200, 20);
/// How many requests have their round trips counted.
const COUNTED: usize = 200;
/// How many requests of a function other than create-feature-flag have their round trips counted.
const COUNTED_OTHERS: usize = 50;
/// How many processes make their first call over TLS.
const TLS_STARTS: usize = 15;
/// By how many percent what hello-dynamodb sends may differ in size from what it stands for.
const LIKENESS: usize = 2;

/// What is measured, and where.
pub(crate) struct Bench<'b> {
    pub(crate) stack: &'b Stack,
    /// A stack with nothing but what a job is to work on, since a job works on all that there is.
    pub(crate) job_stack: &'b Stack,
    pub(crate) programs: Programs,
    /// A folder for files that the programs read.
    pub(crate) folder: &'b Path,
}

/// Requests to a warm process.
pub(crate) struct Requests {
    /// From taking the event to the answer, in milliseconds.
    pub(crate) latency: Sorted,
    /// The processor time of one request, in milliseconds: the mean of each block.
    pub(crate) cpu: Vec<f64>,
}

impl Requests {
    /// The processor time of one request, in milliseconds, safe against a disturbed block.
    pub(crate) fn median_cpu(&self) -> f64 {
        Sorted::new(self.cpu.iter().copied()).median()
    }

    /// How much more processor time these requests take than others, block by block.
    pub(crate) fn cpu_beyond(&self, others: &Self) -> f64 {
        Sorted::new(self.cpu.iter().zip(&others.cpu).map(|(ours, theirs)| ours - theirs)).median()
    }
}

/// Round trips to DynamoDB.
pub(crate) struct RoundTrips {
    /// The calls of a cold start and its first request.
    pub(crate) cold: Vec<String>,
    /// The most that a warm request made.
    pub(crate) most: usize,
    /// The most that a warm request of delete-event-marker-collection made.
    pub(crate) most_of_delete: usize,
    /// The most that a warm request of update-email-preferences made.
    pub(crate) most_of_update: usize,
    /// A typical flag's item, and the largest's, in files.
    actions: [PathBuf; 2],
}

/// Warm requests, in turns.
pub(crate) struct Warm {
    pub(crate) hello: Requests,
    pub(crate) sdk: Requests,
    pub(crate) create: Requests,
    pub(crate) update: Requests,
    pub(crate) invalid: Requests,
    pub(crate) largest: Requests,
    pub(crate) largest_sdk: Requests,
    /// The most memory of hello, hello-dynamodb and create-feature-flag under typical requests.
    pub(crate) memory: [u64; 3],
    /// The most memory of update-email-preferences.
    pub(crate) memory_of_update: u64,
    /// The most memory of create-feature-flag after the largest flags.
    pub(crate) memory_after_largest: u64,
}

/// First calls over TLS.
pub(crate) struct Tls {
    /// Making a client and its first call.
    pub(crate) client_and_call: Sorted,
    /// The call alone.
    pub(crate) call: Sorted,
    /// Cold starts of create-feature-flag.
    pub(crate) create: Starts,
}

impl Bench<'_> {
    /// Starts a fresh process of a program.
    pub(crate) async fn start(
        &self,
        program: Program,
        variables: &[(&str, String)],
    ) -> Result<Process> {
        Process::start(&self.programs, program, variables).await
    }

    /// Counts the calls that requests make, and keeps what they write for hello-dynamodb.
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
        let typical = self.keep_actions("typical.json", &last)?;
        let reply = create
            .expect(201, self.stack.create_flag(&project, &events::largest_flag(COUNTED + 1), None))
            .await?;
        let bytes = reply.body.len();
        if !(190_000..=200_000).contains(&bytes) {
            return Err(format!("the largest flag has {bytes} bytes, not almost 200,000").into());
        }
        let largest = self.keep_actions("largest.json", &counter.take())?;
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
        alike(&last, &counter.take())?;
        let actions = [typical, largest];
        Ok(RoundTrips { cold, most, most_of_delete, most_of_update, actions })
    }

    /// Writes the actions of the calls' transaction into a file.
    fn keep_actions(&self, name: &str, calls: &[Call]) -> Result<PathBuf> {
        let actions = calls.iter().find_map(|call| call.actions().transpose());
        let actions = actions.ok_or("create-feature-flag writes without TransactWriteItems")??;
        let path = self.folder.join(name);
        fs::write(&path, serde_json::to_vec(&actions)?)?;
        Ok(path)
    }

    /// Sends requests to all programs, in turns.
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

        let [of_hello, of_sdk, of_create, of_update] = in_turns(
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
        let [invalid] = in_turns([(&mut create, kind)], RARE).await?;
        let mut largest_sdk =
            self.subject("largest-sdk", Program::HelloDynamodb, &with_largest).await?;
        let [of_largest_sdk, of_largest] = in_turns(
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

    /// Makes first calls over TLS.
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
            let project = projects.with_room(slice::from_ref(&flag)).await?;
            let event = self.stack.create_flag(&project, &flag, None);
            let mut process = self.start(Program::HelloDynamodb, &measuring).await?;
            let reply = process.expect(200, event.clone()).await?;
            process.stop().await?;
            let figures: Json = serde_json::from_str(&reply.body)?;
            let figure = |name: &str| figures[name].as_f64().ok_or("a figure is missing");
            both.push(figure("clientAndCallMs")?);
            call.push(figure("callMs")?);
            let process = self.start(Program::CreateFeatureFlag, &variables).await?;
            create.push(answer_once(process, 201, event).await?);
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

/// Fails unless two programs sent about as many bytes in as many calls.
fn alike(ours: &[Call], theirs: &[Call]) -> Result<()> {
    let [(our_calls, our_bytes), (their_calls, their_bytes)] = [ours, theirs]
        .map(|calls| (calls.len(), calls.iter().map(|call| call.body.len()).sum::<usize>()));
    if our_calls == their_calls && our_bytes.abs_diff(their_bytes) * 100 <= our_bytes * LIKENESS {
        return Ok(());
    }
    let message = format!(
        "hello-dynamodb sends {their_bytes} bytes in {their_calls} calls, create-feature-flag \
         {our_bytes} in {our_calls}: it does not stand for the same call any more"
    );
    Err(message.into())
}

/// The most calls that one of the requests to a process makes, the first left out, since it is not
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

/// A warm process with projects of its own.
struct Subject<'s> {
    process: Process,
    stack: &'s Stack,
    projects: Projects<'s>,
    /// How many requests it was sent.
    sent: usize,
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    /// A new flag: its body by number, and the status of its answer.
    Flag { body: fn(usize) -> Json, status: u64 },
    /// Other preferences.
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
                let project = self.projects.with_room(&flags).await?;
                flags.iter().map(|flag| self.stack.create_flag(&project, flag, None)).collect()
            }
            Kind::Preferences => numbers.map(|n| self.stack.update_preferences(n)).collect(),
        })
    }

    /// Sends a block of requests, and answers how long each took, and the processor time of one.
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

/// Sends requests to several programs, in blocks by turns, so that whatever else the machine does
/// meets all of them.
async fn in_turns<const N: usize>(
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
