//! Queries of a data set with 1.5 million events, compared with `PostgreSQL`.

use std::time::Duration;

use axum::body::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use local::environment;
use shared::app::Clock;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use tokio_postgres::Statement;

use super::data_set::{DAYS, DataSet, PROJECTS};
use super::loading::{Loaded, load_packed};
use super::postgres::{Postgres, read_buckets};
use super::question::{Question, read_timeseries};
use super::{MeasuredQuestion, Traffic};
use crate::Result;
use crate::counter::{Counter, time_in_progress};
use crate::measure::Bench;
use crate::process::Process;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;

/// The number of turns of each question.
const TURNS: usize = 22;
/// The number of first turns that are not measured.
const WARM_UP_TURNS: usize = 2;
/// The number of queries of the function in a turn. `PostgreSQL` gets one.
const QUERIES_OF_A_TURN: usize = 5;
/// The number of queries whose calls are counted.
const COUNTED: usize = 5;
/// The number of projects that are stored concurrently. The engine stores one while another is
/// packed.
const PROJECTS_AT_ONCE: usize = 2;

/// The figures of timeseries queries of a large data set.
pub(crate) struct Timeseries {
    pub(crate) loaded: Loaded,
    pub(crate) unfiltered: QueryFigures,
    pub(crate) filtered: QueryFigures,
    /// `true` if a comparison with `PostgreSQL` was requested.
    pub(crate) beside_postgres: bool,
    /// The peak memory of query-error-timeseries, in bytes.
    pub(crate) memory: u64,
    /// Random questions with results equal to `PostgreSQL`'s; empty without `PostgreSQL`.
    pub(crate) random: Vec<MeasuredQuestion>,
}

/// The figures of one question.
pub(crate) struct QueryFigures {
    /// The latency of the function, in milliseconds.
    pub(crate) latency: Sorted,
    /// The processor time of the function, in milliseconds.
    pub(crate) cpu: Sorted,
    /// The time during which DynamoDB calls were in progress, in milliseconds.
    pub(crate) dynamodb: Sorted,
    /// The maximum DynamoDB traffic of a query.
    pub(crate) traffic: Traffic,
    /// The latency of `PostgreSQL`, in milliseconds; `None` if it was not compared.
    pub(crate) postgres: Option<Sorted>,
}

impl QueryFigures {
    /// Returns the function's median latency as a multiple of `PostgreSQL`'s.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.postgres.as_ref().map(|postgres| self.latency.median() / postgres.median())
    }
}

impl Timeseries {
    /// Returns the average size of an event in a run, in bytes.
    #[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
    pub(crate) fn run_bytes_per_event(&self) -> f64 {
        self.loaded.run_bytes as f64 / self.loaded.packed as f64
    }
}

/// A question and its measurements.
struct QuerySpec {
    request: Bytes,
    statement: Option<Statement>,
    latency: Vec<Duration>,
    postgres: Vec<Duration>,
    cpu: Vec<Duration>,
    dynamodb: Vec<Duration>,
    traffic: Traffic,
}

impl Bench<'_> {
    /// Sends both questions alternately to the function, and to `PostgreSQL` if `beside_postgres`.
    pub(super) async fn timeseries(&self, beside_postgres: bool) -> Result<Timeseries> {
        progress(&format!("timeseries: storing {DAYS} days of {PROJECTS} projects"));
        let now = Clock::System.now();
        let data_set = DataSet::before(now);
        let (projects, loaded) = self.load(data_set, now).await?;
        let postgres = if beside_postgres { start_postgres(data_set).await? } else { None };

        progress("timeseries: comparing the results");
        let questions = [Question::unfiltered(data_set), Question::filtered(data_set)?];
        let mut specs = Vec::with_capacity(questions.len());
        for question in &questions {
            specs.push(self.check(question, &projects, postgres.as_ref(), loaded).await?);
        }

        let count = TURNS * QUERIES_OF_A_TURN;
        progress(&format!("timeseries: {count} queries of each kind"));
        let variables = environment::variables(&self.stack.endpoint());
        let mut process = self.start(Program::QueryErrorTimeseries, &variables).await?;
        for turn in 0..TURNS {
            for spec in &mut specs {
                spec.take_turn(turn, &mut process, postgres.as_ref()).await?;
            }
        }
        let memory = process.peak_memory()?;
        process.stop().await?;
        let mut random = Vec::new();
        if let Some(postgres) = postgres {
            random = self.random_questions(data_set, &projects, &postgres).await?;
            postgres.stop().await?;
        }
        let mut figures = specs.into_iter().map(QuerySpec::into_figures);
        let mut next = || figures.next().ok_or("a question has no figures");
        let (unfiltered, filtered) = (next()?, next()?);
        Ok(Timeseries { loaded, unfiltered, filtered, beside_postgres, memory, random })
    }

    async fn load(&self, data_set: DataSet, now: Timestamp) -> Result<(Vec<ProjectId>, Loaded)> {
        let stored: Vec<(ProjectId, Loaded)> = stream::iter(0..PROJECTS)
            .map(|number| self.load_project(data_set, number, now))
            .buffered(PROJECTS_AT_ONCE)
            .try_collect()
            .await?;
        let loaded = stored.iter().fold(Loaded::default(), |sum, (_, loaded)| sum.with(*loaded));
        Ok((stored.into_iter().map(|(project, _)| project).collect(), loaded))
    }

    async fn load_project(
        &self,
        data_set: DataSet,
        number: u8,
        now: Timestamp,
    ) -> Result<(ProjectId, Loaded)> {
        let project = self.stack.project(&format!("queried-{number}")).await?;
        let days = data_set.project(number)?;
        let loaded = load_packed(self.stack, project, days, now).await?;
        progress(&format!("  project {} of {PROJECTS}", number + 1));
        Ok((project, loaded))
    }

    /// Counts the DynamoDB traffic of a question.
    ///
    /// # Errors
    ///
    /// If the result is wrong: an unfiltered count differs from the loaded events, or the result
    /// from `PostgreSQL`'s.
    async fn check(
        &self,
        question: &Question,
        projects: &[ProjectId],
        postgres: Option<&Postgres>,
        loaded: Loaded,
    ) -> Result<QuerySpec> {
        let request = self.stack.query_timeseries(&question.body_of_projects(projects));
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut process = self.start(Program::QueryErrorTimeseries, &variables).await?;
        // The first request is not warm, so it is not counted.
        let reply = process.expect(200, request.clone()).await?;
        let buckets = read_timeseries(&reply.body)?;
        let events = buckets.iter().map(|bucket| bucket.events).sum::<u64>();
        if events != loaded.events() && !question.is_filtered() {
            return Err(format!("{events} of {} events were counted", loaded.events()).into());
        }
        let statement = match postgres {
            Some(postgres) => Some(postgres.prepare(&question.timeseries()).await?),
            None => None,
        };
        if let (Some(postgres), Some(statement)) = (postgres, &statement) {
            let other = read_buckets(&postgres.timed_rows(statement).await?.0)?;
            if buckets != other {
                return Err(format!("the results differ: {buckets:?} and {other:?}").into());
            }
        }
        let (latency, postgres) = (Vec::new(), Vec::new());
        let (mut cpu, mut dynamodb, mut traffic) = (Vec::new(), Vec::new(), Traffic::default());
        counter.take();
        for _ in 0..COUNTED {
            let before = process.cpu().await?;
            process.expect(200, request.clone()).await?;
            cpu.push(process.cpu().await?.saturating_sub(before));
            let calls = counter.take();
            dynamodb.push(time_in_progress(&calls));
            traffic = traffic.max(Traffic::of(&calls));
        }
        process.stop().await?;
        Ok(QuerySpec { request, statement, latency, postgres, cpu, dynamodb, traffic })
    }
}

impl QuerySpec {
    /// Queries the function and `PostgreSQL`. The order alternates, so that neither has an
    /// advantage.
    async fn take_turn(
        &mut self,
        turn: usize,
        process: &mut Process,
        postgres: Option<&Postgres>,
    ) -> Result<()> {
        let function_first = turn.is_multiple_of(2);
        let (mut of_function, mut of_postgres) = (Vec::new(), Vec::new());
        for is_function in [function_first, !function_first] {
            if is_function {
                for _ in 0..QUERIES_OF_A_TURN {
                    let reply = process.expect(200, self.request.clone()).await?;
                    of_function.push(reply.latency);
                }
            } else if let (Some(postgres), Some(statement)) = (postgres, &self.statement) {
                of_postgres.push(postgres.timed_rows(statement).await?.1);
            }
        }
        if turn >= WARM_UP_TURNS {
            self.latency.extend(of_function);
            self.postgres.extend(of_postgres);
        }
        Ok(())
    }

    fn into_figures(self) -> QueryFigures {
        let postgres = self.statement.map(|_| Sorted::millis(self.postgres));
        QueryFigures {
            latency: Sorted::millis(self.latency),
            cpu: Sorted::millis(self.cpu),
            dynamodb: Sorted::millis(self.dynamodb),
            traffic: self.traffic,
            postgres,
        }
    }
}

async fn start_postgres(data_set: DataSet) -> Result<Option<Postgres>> {
    let Some(postgres) = Postgres::start().await? else {
        progress("timeseries: PostgreSQL 15 is not installed; the comparison is skipped");
        return Ok(None);
    };
    progress("timeseries: storing the same events in PostgreSQL");
    postgres.load(data_set).await?;
    Ok(Some(postgres))
}
