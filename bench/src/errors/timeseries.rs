//! Queries of a data set with 1.5 million events. Timeseries are compared with `PostgreSQL`.

use std::iter::repeat_n;
use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value as Json, json};

use errors::attribute::Attribute;
use shared::app::Clock;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{DAYS, DataSet, PROJECTS, ProjectDay, is_resolved};
use super::loading::{bytes_of_runs, create_errors, put_rows, put_runs};
use super::postgres::Postgres;
use super::{QueryTargets, measure_query};
use crate::Result;
use crate::counter::{Call, calls, most_of_warm};
use crate::process::{Process, Requests};
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, Target, at_most, under};
use crate::request::{BREAK_DOWN_ERRORS, QUERY_ERRORS, QUERY_TIMESERIES, UPDATE_ERROR};
use crate::stack::Stack;
use crate::statistics::{Sorted, count, float};

/// The number of turns of each question.
const TURNS: usize = 22;
/// The number of first turns that are not measured.
const WARM_UP_TURNS: usize = 2;
/// The number of queries of the function in a turn. `PostgreSQL` gets one.
const QUERIES_OF_A_TURN: usize = 5;
/// The number of queries whose calls are counted.
const COUNTED: usize = 5;
/// The number of latest events of a project that are not packed.
const ROWS: usize = 200;

/// A question about the events of all projects, for the function and for `PostgreSQL`.
pub(super) struct Question {
    pub(super) data_set: DataSet,
    /// Required values. With any, also only open errors count.
    pub(super) filters: Vec<(Attribute, String)>,
}

impl Question {
    /// Returns the body of a request to a function.
    fn body(&self, projects: &[ProjectId]) -> Json {
        let filter = |(attribute, value): &(Attribute, String)| json!({"categoryId": attribute.as_str(), "operator": "is", "value": value});
        json!({
            "projectIds": projects,
            "from": self.data_set.from.as_millis(),
            "to": self.data_set.to.as_millis(),
            "filters": self.filters.iter().map(filter).collect::<Vec<_>>(),
            "status": if self.filters.is_empty() { Json::Null } else { json!("open") },
        })
    }
}

/// The counts of a time bucket: its start in milliseconds since the Unix epoch, events, errors.
pub(super) type BucketCount = (i64, i64, i64);

/// A question, its targets and its measurements.
struct Measured {
    question: Question,
    name: &'static str,
    p50: Option<Target>,
    ratio: Option<Target>,
    p95: Option<Target>,
    request: Bytes,
    of_function: Requests,
    of_postgres: Vec<Duration>,
}

/// Sends questions to the functions, and to `PostgreSQL` if `beside_postgres`.
pub(crate) async fn timeseries(
    programs: &Programs,
    beside_postgres: bool,
    report: &mut Report,
) -> Result<()> {
    progress(&format!("timeseries: storing {DAYS} days of {PROJECTS} projects"));
    let stack = Stack::start().await?;
    let now = Clock::System.now();
    let data_set = DataSet::before(now);
    let projects = load(programs, &stack, data_set, now, report).await?;
    let postgres = if beside_postgres { Postgres::start(data_set).await? } else { None };

    let attributes = [Attribute::Browser, Attribute::Release];
    let filters = attributes.into_iter().zip(data_set.common_values(attributes)?).collect();
    let measured = |name, filters, [p50, ratio, p95]: [Option<Target>; 3]| {
        let question = Question { data_set, filters };
        let body = question.body(&projects);
        let request = stack.request(QUERY_TIMESERIES, &[]).json(&body).event();
        let (of_function, of_postgres) = Default::default();
        Measured { question, name, p50, ratio, p95, request, of_function, of_postgres }
    };
    let mut questions = [
        measured("30 days of 10 projects", Vec::new(), [under(24.0), under(0.07), at_most(300.0)]),
        // PostgreSQL has an index for these filters. Its share varies between machines: 0.58 to 0.74.
        measured("filtered", filters, [under(72.0), under(0.8), at_most(800.0)]),
    ];

    progress(&format!("timeseries: {} queries of each kind", TURNS * QUERIES_OF_A_TURN));
    let program = Program::QueryErrorTimeseries;
    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    for measured in &mut questions {
        measured.check(&mut process, postgres.as_ref()).await?;
    }
    for turn in 0..TURNS {
        for measured in &mut questions {
            measured.take_turn(turn, &mut process, postgres.as_ref()).await?;
        }
    }
    report.add_memory(program, process.peak_memory()?, under(128.0));
    if let Some(postgres) = postgres {
        postgres.stop().await?;
    }
    for measured in &questions {
        measured.add(report);
        let requests = repeat_n(measured.request.clone(), 1 + COUNTED);
        let calls = calls(programs, (program, &[]), &stack, 200, requests).await?;
        let most = |name: &str, figure: fn(&[Call]) -> f64| {
            (format!("{}, {name}, most", measured.name), most_of_warm(&calls, figure))
        };
        for (name, most) in [
            most("round trips", |calls| count(calls.len())),
            most("read units", |calls| calls.iter().map(|call| call.units).sum()),
        ] {
            report.add(program, name, most, "", None);
        }
    }

    progress("timeseries: breakdowns and lists of errors");
    for Measured { question, name, p95, .. } in &questions {
        let targets = QueryTargets { p95: *p95, memory: under(128.0) };
        let breakdowns = Attribute::texts().map(|by| {
            let mut body = question.body(&projects);
            body["by"] = json!(by.as_str());
            stack.request(BREAK_DOWN_ERRORS, &[]).json(&body).event()
        });
        let breakdowns: Vec<Bytes> = breakdowns.collect();
        let lists: Vec<Bytes> = projects
            .iter()
            .zip(["users", "count"].into_iter().cycle())
            .map(|(project, sort)| {
                let mut body = question.body(&[]);
                body["sort"] = json!(sort);
                if let Some(fields) = body.as_object_mut() {
                    fields.remove("projectIds");
                }
                stack.request(QUERY_ERRORS, &[project]).json(&body).event()
            })
            .collect();
        for (program, variants) in
            [(Program::BreakdownErrors, &breakdowns[..]), (Program::QueryErrors, &lists)]
        {
            measure_query((programs, &stack), (program, name), variants, targets, report).await?;
        }
    }
    Ok(())
}

/// Stores the data set and its errors, some of them resolved.
async fn load(
    programs: &Programs,
    stack: &Stack,
    data_set: DataSet,
    now: Timestamp,
    report: &mut Report,
) -> Result<Vec<ProjectId>> {
    let mut update = Process::start(programs, Program::UpdateError, &stack.endpoint(), &[]).await?;
    let (mut projects, mut packed, mut bytes) = (Vec::new(), 0, 0);
    for number in 0..PROJECTS {
        let project = stack.project(&format!("queried-{number}")).await?;
        let mut days: Vec<ProjectDay> = data_set.project(number)?.collect();
        let fingerprints = days.iter().flat_map(ProjectDay::fingerprints).collect();
        for (fingerprint, error) in create_errors(stack.store(), project, fingerprints, now).await?
        {
            if is_resolved(fingerprint) {
                let request = stack.request(UPDATE_ERROR, &[&project, &error]);
                let request = request.json(&json!({"status": "resolved"})).event();
                update.expect(200, request).await?;
            }
        }
        let last = days.last_mut().ok_or("there are no days")?;
        let rows = last.rows.split_off(last.rows.len().saturating_sub(ROWS));
        put_rows(stack.client(), project, &rows, now).await?;
        packed += put_runs(stack.store(), project, days.into_iter(), now).await?;
        bytes += bytes_of_runs(stack.client(), project).await?;
        projects.push(project);
    }
    let each = float(bytes) / count(packed);
    report.add(Program::PackErrorLog, "run bytes per event", each, "B", at_most(14.0));
    Ok(projects)
}

impl Measured {
    /// Checks that the function and `PostgreSQL` return equal results.
    async fn check(&self, process: &mut Process, postgres: Option<&Postgres>) -> Result<()> {
        let Some(postgres) = postgres else { return Ok(()) };
        let body = process.expect(200, self.request.clone()).await?.body;
        let (ours, theirs) = (read_buckets(&body)?, postgres.query(&self.question).await?.0);
        if ours == theirs {
            return Ok(());
        }
        Err(format!("the results differ: {ours:?} and {theirs:?}").into())
    }

    /// Queries the function and `PostgreSQL`. The order alternates, so that neither has an
    /// advantage.
    async fn take_turn(
        &mut self,
        turn: usize,
        process: &mut Process,
        postgres: Option<&Postgres>,
    ) -> Result<()> {
        for is_function in [turn.is_multiple_of(2), !turn.is_multiple_of(2)] {
            if is_function {
                let requests = repeat_n(self.request.clone(), QUERIES_OF_A_TURN);
                process.send(200, requests, &mut self.of_function).await?;
            } else if let Some(postgres) = postgres {
                self.of_postgres.push(postgres.query(&self.question).await?.1);
            }
        }
        if turn + 1 == WARM_UP_TURNS {
            (self.of_function, self.of_postgres) = Default::default();
        }
        Ok(())
    }

    fn add(&self, report: &mut Report) {
        let (program, name) = (Program::QueryErrorTimeseries, self.name);
        report.add_requests(program, name, &self.of_function, self.p50);
        let latency = self.of_function.latency();
        report.add(program, format!("{name}, p95"), latency.percentile(95), "ms", self.p95);
        if !self.of_postgres.is_empty() {
            let postgres = Sorted::millis(self.of_postgres.iter().copied());
            report.add_times(program, &format!("{name}, PostgreSQL 15"), &postgres, None);
            let ratio = latency.median() / postgres.median();
            let name = format!("{name}, as a multiple of PostgreSQL's");
            report.add(program, name, ratio, "×", self.ratio);
        }
    }
}

/// Returns the buckets of a response that have events.
fn read_buckets(body: &str) -> Result<Vec<BucketCount>> {
    let buckets: Vec<Json> = serde_json::from_str(body)?;
    let mut counts = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let start = bucket["bucketStart"].as_str().ok_or("a bucket has no start")?;
        let start = Timestamp::parse_rfc3339(start)?.as_millis();
        let [events, errors] = ["errors", "uniqueErrors"].map(|name| bucket[name].as_i64());
        counts.push((start, events.ok_or("no event count")?, errors.ok_or("no error count")?));
    }
    counts.retain(|(_, events, _)| *events > 0);
    Ok(counts)
}
