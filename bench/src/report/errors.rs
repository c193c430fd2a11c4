//! What is said of error tracking.

use std::fmt::Display;

use super::units::{grouped, kilobytes, mb, ms, range, times};
use super::{Figures, NOT_MEASURED};
use crate::errors::{Answers, DAYS, Errors, Ingestion, PROJECTS, Timeseries, Traffic};
use crate::interpretation::Interpretations;
use crate::job::JobWork;
use crate::statistics::Sorted;

impl Figures {
    pub(super) fn print_errors(&self) {
        let Errors { ingestion, compaction, timeseries } = &self.errors;
        print_ingestion(ingestion);
        print_compaction(compaction);
        print_timeseries(timeseries);
    }
}

impl Figures {
    pub(super) fn print_interpretations(&self) {
        let Interpretations { typical, largest, .. } = &self.interpretations;
        println!("\ninterpret-error-filters, warm");
        line("a query as people type it", percentiles(&typical.latency));
        line("  CPU time", ms(typical.median_cpu()));
        line("the largest request allowed", percentiles(&largest.latency));
        line("  CPU time", ms(largest.median_cpu()));
    }
}

fn line(name: &str, figures: impl Display) {
    println!("  {name:<36} {figures}");
}

fn print_ingestion(ingestion: &Ingestion) {
    println!("\ningest-error-events, one event after the other");
    let (event, body) = (kilobytes(ingestion.event_bytes), kilobytes(ingestion.body_bytes));
    line(&format!("an event of {event:.1} kB, as {body:.1} kB"), range(&ingestion.latency));
    line("  events of one process", format!("{:.0}/s", ingestion.events_per_second));
    line("  time of the embedded DynamoDB", ms(ingestion.dynamodb.median()));
    line("  what it asks of DynamoDB, most", traffic(ingestion.traffic));
}

fn print_compaction(compaction: &JobWork) {
    println!("\npack-error-log, by the embedded engine, not by AWS's DynamoDB");
    let (rate, seconds) = (compaction.events_per_second(), compaction.time.as_secs_f64());
    let all = format!("{rate:.0} events/s   {seconds:.1} s   runs {}", compaction.runs);
    line(&format!("{} events in rows", grouped(compaction.events)), all);
    line("  CPU time of 1,000 events", ms(compaction.cpu_of_1000()));
}

fn print_timeseries(timeseries: &Timeseries) {
    let loaded = timeseries.loaded;
    let runs = format!(
        "{:.2} B per event: {} for {} events",
        timeseries.run_bytes_per_event(),
        mb(loaded.run_bytes),
        loaded.packed
    );
    line("runs of all events below", runs);

    let (events, rows) = (loaded.events(), loaded.rows);
    println!("\nquery-error-timeseries, warm");
    println!("  {DAYS} days of {PROJECTS} projects: {events} events, {rows} of them in rows");
    let print = |name: &str, answers: &Answers| {
        line(name, percentiles(&answers.latency));
        line("  CPU time", ms(answers.cpu.median()));
        line("  time of the embedded DynamoDB", ms(answers.dynamodb.median()));
        line("  what it asks of DynamoDB, most", traffic(answers.traffic));
        let postgres = match &answers.postgres {
            Some(postgres) => percentiles(postgres),
            None if timeseries.beside_postgres => "not installed: skipped".to_owned(),
            None => NOT_MEASURED.to_owned(),
        };
        line("  PostgreSQL 15", postgres);
        let ratio = answers.ratio().map(times);
        line("  as a multiple of that", ratio.unwrap_or_else(|| "–".to_owned()));
    };
    print("unfiltered", &timeseries.unfiltered);
    print("browser, release and status", &timeseries.filtered);
}

fn percentiles(figures: &Sorted) -> String {
    let (p50, p99) = (figures.median(), figures.percentile(99));
    format!("p50 {}   p99 {}   fastest {}", ms(p50), ms(p99), ms(figures.min()))
}

fn traffic(traffic: Traffic) -> String {
    let Traffic { calls, read_units, write_units } = traffic;
    format!("{calls} calls   {read_units} read units   {write_units} write units")
}
