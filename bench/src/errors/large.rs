//! Queries of one project with 10 million events, a third of them from one day.

use std::time::Duration;

use serde_json::{Value as Json, json};

use errors::attribute::Attribute;
use errors::log::day::Day;
use shared::app::Clock;

use super::data_set::ProjectDay;
use super::generator::ProjectGenerator;
use super::loading::{create_errors, put_runs};
use super::{QueryTargets, measure_query};
use crate::Result;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most};
use crate::request::{GET_ERROR, LIST_ERRORS, QUERY_TIMESERIES, UPDATE_ERROR};
use crate::stack::Stack;

/// The days of the events, the last of them yesterday.
const DAYS: u32 = 90;
/// The flooded day, in days before now.
const FLOODED: u32 = 20;
/// The number of pack steps of the flooded day, and of each other day.
const STEPS: (usize, usize) = (188, 5);
/// The number of events of a pack step.
const EVENTS_OF_A_STEP: usize = 16_000;
/// The number of errors that occur.
const ERRORS: u16 = 10_000;
const DAY: Duration = Duration::from_hours(24);

/// Loads a large project and measures its queries.
pub(crate) async fn large(programs: &Programs, report: &mut Report) -> Result<()> {
    progress(&format!("large project: storing {DAYS} days, one of them flooded"));
    let stack = Stack::start().await?;
    let project = stack.project("large").await?;
    let now = Clock::System.now();
    let mut generator = ProjectGenerator::new(0, ERRORS)?;
    let errors = create_errors(stack.store(), project, generator.fingerprints(), now).await?;
    let (_, error) = errors.first().ok_or("there are no errors")?;
    let steps = (1..=DAYS).rev().flat_map(|back| {
        let steps = if back == FLOODED { STEPS.0 } else { STEPS.1 };
        std::iter::repeat_n(Day::of(now.minus(DAY * back)), steps)
    });
    let parts = steps.map(|day| ProjectDay { day, rows: generator.day(day, EVENTS_OF_A_STEP) });
    let events = put_runs(stack.store(), project, parts, now).await?;
    progress(&format!("large project: queries of {events} events"));

    let from = now.minus(DAY * DAYS).as_millis();
    let query = |filters: Json| {
        let query = json!({"projectIds": [project], "from": from, "filters": filters});
        vec![stack.request(QUERY_TIMESERIES, &[]).json(&query).event()]
    };
    let browser =
        json!([{"categoryId": Attribute::Browser.as_str(), "operator": "is", "value": "Chrome"}]);
    let update = |status| {
        stack.request(UPDATE_ERROR, &[&project, error]).json(&json!({ "status": status })).event()
    };
    let queries = [
        // Counts the events of all errors, and takes the longest.
        (Program::ListErrors, "", 600.0, vec![stack.request(LIST_ERRORS, &[&project]).event()]),
        (Program::GetError, "", 500.0, vec![stack.request(GET_ERROR, &[&project, error]).event()]),
        (Program::UpdateError, "", 500.0, vec![update("resolved"), update("open")]),
        (Program::QueryErrorTimeseries, "", 500.0, query(json!([]))),
        (Program::QueryErrorTimeseries, " of a browser", 500.0, query(browser)),
    ];
    for (program, of, p95, requests) in queries {
        let targets = QueryTargets { p95: at_most(p95), memory: at_most(256.0) };
        let name = format!("10 million events{of}");
        measure_query((programs, &stack), (program, &name), &requests, targets, report).await?;
    }
    Ok(())
}
