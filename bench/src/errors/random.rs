//! A thousand random questions about the data set, sent to functions and to `PostgreSQL`. Both must
//! return equal results.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::Bytes;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value as Json, json};
use tokio_postgres::Row;

use errors::ErrorStatus;
use errors::attribute::Attribute;
use local::environment;
use shared::projects::project::ProjectId;

use super::MeasuredQuestion;
use super::data_set::{DAYS, DataSet, PROJECTS};
use super::postgres::{Postgres, read_buckets};
use super::question::{Filter, Operator, Question, number_of, read_timeseries};
use crate::Result;
use crate::measure::Bench;
use crate::process::Process;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;

/// The number of questions, which go to three functions in turn.
const QUESTIONS: usize = 1_000;
/// The seed of the questions.
const SEED: u64 = 15;
const MINUTES_OF_A_DAY: u32 = 24 * 60;
/// The maximum number of errors on a page.
const PAGE: usize = 100;
const FUNCTIONS: [(Program, [&str; 2]); 3] = [
    (Program::QueryErrorTimeseries, ["random timeseries", "random timeseries, filtered"]),
    (Program::BreakdownErrors, ["random breakdowns", "random breakdowns, filtered"]),
    (Program::QueryErrors, ["random lists", "random lists, filtered"]),
];

/// A query of the events that a question selects.
enum QuerySpec {
    Timeseries,
    Breakdown { by: Attribute, limit: u8 },
    Errors { by_users: bool },
}

/// A row of a breakdown.
#[derive(Debug, PartialEq, Eq)]
struct Share {
    value: Option<String>,
    events: u64,
    errors: u64,
    is_rest: bool,
}

/// A listed error, by its fingerprint.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    fingerprint: String,
    events: u64,
    users: u64,
}

impl Bench<'_> {
    /// Sends all questions, and fails at the first result that differs from `PostgreSQL`'s.
    pub(super) async fn random_questions(
        &self,
        data_set: DataSet,
        projects: &[ProjectId],
        postgres: &Postgres,
    ) -> Result<Vec<MeasuredQuestion>> {
        progress(&format!("random questions: {QUESTIONS}, each compared with PostgreSQL"));
        let mut random = RandomQuestions::new(data_set)?;
        let variables = environment::variables(&self.stack.endpoint());
        let mut processes = Vec::with_capacity(FUNCTIONS.len());
        for (program, _) in FUNCTIONS {
            processes.push(self.start(program, &variables).await?);
        }
        let mut latencies: [[Vec<Duration>; 2]; 3] = Default::default();
        for number in 0..QUESTIONS {
            let function = number % FUNCTIONS.len();
            let (question, query) = random.next(function);
            let (Some(process), Some(latency)) =
                (processes.get_mut(function), latencies.get_mut(function))
            else {
                break;
            };
            let time = self.compare(&question, &query, projects, process, postgres).await?;
            latency[usize::from(question.is_filtered())].push(time);
            if (number + 1).is_multiple_of(200) {
                progress(&format!("  {} results are equal", number + 1));
            }
        }
        let mut measured = Vec::new();
        for (((program, names), process), latencies) in
            FUNCTIONS.into_iter().zip(processes).zip(latencies)
        {
            let memory = process.peak_memory()?;
            process.stop().await?;
            for (name, latency) in names.into_iter().zip(latencies) {
                let latency = Sorted::millis(latency);
                measured.push(MeasuredQuestion { program, name, latency, memory });
            }
        }
        Ok(measured)
    }

    /// Sends one question to a function and to `PostgreSQL`. Returns the latency of the function.
    async fn compare(
        &self,
        question: &Question,
        query: &QuerySpec,
        projects: &[ProjectId],
        process: &mut Process,
        postgres: &Postgres,
    ) -> Result<Duration> {
        let reply = process.expect(200, self.request(question, query, projects)?).await?;
        let body = &reply.body;
        let is_equal = match query {
            QuerySpec::Timeseries => {
                let rows = postgres.rows(&question.timeseries()).await?;
                read_timeseries(body)? == read_buckets(&rows)?
            }
            QuerySpec::Breakdown { by, limit } => {
                let rows = postgres.rows(&question.breakdown(*by, *limit)).await?;
                read_shares(body)? == shares_of(&rows)?
            }
            QuerySpec::Errors { by_users } => {
                let rows = postgres.rows(&question.errors()).await?;
                is_first_page(&read_listed(body)?, &listed_of(&rows)?, *by_users)
            }
        };
        if is_equal {
            return Ok(reply.latency);
        }
        Err(format!("PostgreSQL's result of {question:?} differs from {body}").into())
    }

    fn request(
        &self,
        question: &Question,
        query: &QuerySpec,
        projects: &[ProjectId],
    ) -> Result<Bytes> {
        let mut body = question.body_of_projects(projects);
        Ok(match query {
            QuerySpec::Timeseries => self.stack.query_timeseries(&body),
            QuerySpec::Breakdown { by, limit } => {
                body["by"] = json!(by.name());
                body["limit"] = json!(limit);
                self.stack.break_down_errors(&body)
            }
            QuerySpec::Errors { by_users } => {
                let project =
                    question.projects.first().and_then(|it| projects.get(usize::from(*it)));
                let mut body = question.body();
                body["sort"] = json!(if *by_users { "users" } else { "count" });
                body["limit"] = json!(PAGE);
                self.stack.query_errors(*project.ok_or("a question has no project")?, &body)
            }
        })
    }
}

/// A generator of questions.
struct RandomQuestions {
    random: ChaCha8Rng,
    data_set: DataSet,
    /// The values of each attribute that occur.
    values: HashMap<Attribute, Vec<String>>,
}

impl RandomQuestions {
    fn new(data_set: DataSet) -> Result<Self> {
        Ok(Self { random: ChaCha8Rng::seed_from_u64(SEED), data_set, values: data_set.values()? })
    }

    fn next(&mut self, function: usize) -> (Question, QuerySpec) {
        let query = match FUNCTIONS.get(function) {
            Some((Program::BreakdownErrors, _)) => QuerySpec::Breakdown {
                by: self.attribute(),
                limit: self.random.random_range(1..=30),
            },
            Some((Program::QueryErrors, _)) => {
                QuerySpec::Errors { by_users: self.random.random_bool(0.5) }
            }
            _ => QuerySpec::Timeseries,
        };
        let most = if matches!(query, QuerySpec::Errors { .. }) { 1 } else { PROJECTS };
        let count = self.random.random_range(1..=most);
        let mut projects: Vec<u8> = (0..PROJECTS).collect();
        while projects.len() > usize::from(count) {
            projects.swap_remove(self.random.random_range(0..projects.len()));
        }
        let all = DAYS * MINUTES_OF_A_DAY;
        // Short and long ranges are equally frequent.
        let longest = *[120, 720, 2_880, 20_160, all].choose(&mut self.random).unwrap_or(&all);
        let minutes = self.random.random_range(1..=longest);
        let start = self.random.random_range(0..=all - minutes);
        let minute = Duration::from_mins(1);
        let from = self.data_set.from.plus(minute * start);
        let filters =
            if self.random.random_bool(0.5) { 0 } else { self.random.random_range(1..=3) };
        let mut filters: Vec<Filter> = (0..filters).map(|_| self.filter()).collect();
        filters.sort_by_key(|filter| filter.attribute);
        filters.dedup_by_key(|filter| filter.attribute);
        let statuses = [ErrorStatus::Open, ErrorStatus::Resolved, ErrorStatus::Ignored];
        let has_status = !filters.is_empty() && self.random.random_bool(0.3);
        let status = statuses.choose(&mut self.random).filter(|_| has_status).copied();
        let question =
            Question { from, to: from.plus(minute * minutes), projects, filters, status };
        (question, query)
    }

    fn attribute(&mut self) -> Attribute {
        let index = self.random.random_range(0..Attribute::ALL.len());
        Attribute::ALL.get(index).copied().unwrap_or(Attribute::Release)
    }

    fn filter(&mut self) -> Filter {
        let attribute = self.attribute();
        let operator = Operator::ALL.choose(&mut self.random).copied().unwrap_or(Operator::Is);
        let values = self.values.get(&attribute).filter(|_| operator.takes_value());
        let value = values.and_then(|values| values.choose(&mut self.random)).cloned();
        let mut value = value.unwrap_or_default();
        if matches!(operator, Operator::Contains | Operator::NotContains) && value.len() > 2 {
            value = value.get(1..3).unwrap_or_default().to_uppercase();
        }
        // An attribute that never occurs has no value to compare with.
        let operator =
            if operator.takes_value() && value.is_empty() { Operator::IsSet } else { operator };
        Filter { attribute, operator, value }
    }
}

fn read_shares(body: &str) -> Result<Vec<Share>> {
    let rows: Vec<Json> = serde_json::from_str(body)?;
    let share = |row: &Json| {
        Ok(Share {
            value: row["value"].as_str().map(str::to_owned),
            events: number_of(row, "errors")?,
            errors: number_of(row, "uniqueErrors")?,
            is_rest: row["other"].as_bool().unwrap_or_default(),
        })
    };
    rows.iter().map(share).collect()
}

fn shares_of(rows: &[Row]) -> Result<Vec<Share>> {
    let mut shares = Vec::with_capacity(rows.len());
    for row in rows {
        let (events, errors): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        shares.push(Share {
            value: row.try_get(0)?,
            events: events.try_into()?,
            errors: errors.try_into()?,
            is_rest: row.try_get(3)?,
        });
    }
    Ok(shares)
}

fn read_listed(body: &str) -> Result<Vec<Listed>> {
    let page: Json = serde_json::from_str(body)?;
    let items = page["items"].as_array().ok_or("a page has no items")?;
    let listed = |item: &Json| {
        let title = item["title"].as_str().unwrap_or_default();
        let fingerprint = title.split_once("item-").and_then(|(_, rest)| rest.split('\'').next());
        Ok(Listed {
            fingerprint: fingerprint.ok_or("an error title has no fingerprint")?.to_owned(),
            events: number_of(item, "count")?,
            users: number_of(item, "users")?,
        })
    };
    items.iter().map(listed).collect()
}

fn listed_of(rows: &[Row]) -> Result<Vec<Listed>> {
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        let (events, users): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        let (events, users) = (events.try_into()?, users.try_into()?);
        listed.push(Listed { fingerprint: row.try_get(0)?, events, users });
    }
    Ok(listed)
}

/// `true` if `page` has the errors with the highest counts. Errors with equal counts can have any
/// order.
fn is_first_page(page: &[Listed], all: &[Listed], by_users: bool) -> bool {
    let count = |error: &Listed| if by_users { error.users } else { error.events };
    let mut counts: Vec<u64> = all.iter().map(count).collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts.truncate(PAGE);
    counts == page.iter().map(count).collect::<Vec<_>>()
        && page.iter().all(|error| all.contains(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_page_has_highest_and_exact_counts() {
        let error =
            |name: &str, events, users| Listed { fingerprint: name.to_owned(), events, users };
        let all = [error("a", 3, 1), error("b", 5, 2), error("c", 3, 3)];
        let page = |names: [usize; 3]| {
            names.map(|at| error(&all[at].fingerprint, all[at].events, all[at].users))
        };
        assert!(is_first_page(&page([1, 0, 2]), &all, false));
        assert!(is_first_page(&page([1, 2, 0]), &all, false));
        assert!(!is_first_page(&page([0, 1, 2]), &all, false));
        assert!(is_first_page(&page([2, 1, 0]), &all, true));
        assert!(!is_first_page(&page([1, 0, 2])[..2], &all, false));
        let wrong = [error("b", 5, 2), error("a", 3, 2), error("c", 3, 3)];
        assert!(!is_first_page(&wrong, &all, false));
    }
}
