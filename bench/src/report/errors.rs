//! The report of error tracking.

use std::fmt::Display;

use super::units::{kilobytes, mb, ms, range, times};
use super::{Figures, NOT_MEASURED};
use crate::errors::{
    Capacity, Cost, DAYS, Errors, Ingestion, Large, MeasuredQuestion, PROJECTS, QueryFigures,
    ResolvedFrames, Timeseries, Traffic,
};
use crate::interpretation::Interpretations;
use crate::job::JobWork;
use crate::statistics::Sorted;
use crate::statistics::grouped;

impl Figures {
    pub(super) fn print_errors(&self) {
        let Errors { ingestion, resolved_frames, packing, timeseries, capacity, large } =
            &self.errors;
        print_ingestion(ingestion);
        print_resolved_frames(resolved_frames);
        print_packing(packing);
        print_timeseries(timeseries);
        print_capacity(capacity);
        print_large(large.as_ref());
    }
}

impl Figures {
    pub(super) fn print_interpretations(&self) {
        let Interpretations { typical, largest, .. } = &self.interpretations;
        println!("\ninterpret-error-filters, warm");
        line("a typical query", percentiles(&typical.latency));
        line("  CPU time", ms(typical.median_cpu()));
        line("the largest allowed request", percentiles(&largest.latency));
        line("  CPU time", ms(largest.median_cpu()));
    }
}

fn line(name: &str, figures: impl Display) {
    println!("  {name:<36} {figures}");
}

fn print_ingestion(ingestion: &Ingestion) {
    println!("\ningest-error-events, sequential events");
    let (event, body) = (kilobytes(ingestion.event_bytes), kilobytes(ingestion.body_bytes));
    line(&format!("{event:.1} kB, compressed {body:.1} kB"), range(&ingestion.latency));
    line("  events of one process", format!("{:.0}/s", ingestion.events_per_second));
    line("  embedded DynamoDB's time", ms(ingestion.dynamodb.median()));
    line("  DynamoDB traffic, most", traffic(ingestion.traffic));
}

fn print_resolved_frames(frames: &ResolvedFrames) {
    println!("\ningest-error-events, events of a browser with 30 frames");
    line("without a source map", percentiles(&frames.without));
    line("with a source map of 10 MB", percentiles(&frames.with));
    line("  its first use by a process", percentiles(&frames.first));
    line("  peak memory", mb(frames.memory));
}

fn print_packing(packing: &JobWork) {
    println!("\npack-error-log, with the embedded engine instead of DynamoDB");
    let (rate, seconds) = (packing.events_per_second(), packing.time.as_secs_f64());
    let invocations = packing.invocations;
    let all = format!("{rate:.0} events/s   {seconds:.1} s   invocations {invocations}");
    line(&format!("{} events in rows", grouped(packing.events)), all);
    line("  CPU time per 1,000 events", ms(packing.cpu_of_1000()));
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
    let print = |name: &str, query: &QueryFigures| {
        line(name, percentiles(&query.latency));
        line("  CPU time", ms(query.cpu.median()));
        line("  embedded DynamoDB's time", ms(query.dynamodb.median()));
        line("  DynamoDB traffic, most", traffic(query.traffic));
        let postgres = match &query.postgres {
            Some(postgres) => percentiles(postgres),
            None if timeseries.beside_postgres => "not installed: skipped".to_owned(),
            None => NOT_MEASURED.to_owned(),
        };
        line("  PostgreSQL 15", postgres);
        let ratio = query.ratio().map(times);
        line("  as a multiple of PostgreSQL's", ratio.unwrap_or_else(|| "–".to_owned()));
    };
    print("unfiltered", &timeseries.unfiltered);
    print("browser, release and status", &timeseries.filtered);
    print_questions(&timeseries.random);
}

fn print_capacity(capacity: &Capacity) {
    println!("\nwrite units of an event, reported by the embedded engine");
    for cost in &capacity.loads {
        let Cost { events_of_a_day, lasting, delivery, packing } = cost;
        let events = grouped(usize::try_from(*events_of_a_day).unwrap_or(usize::MAX));
        let all = delivery + packing;
        let figures = format!(
            "{all:.2}   after delivery {packing:.4}   (over {} h)",
            lasting.as_secs() / 3_600
        );
        line(&format!("{events} events a day"), figures);
    }
    let figures = format!("{:.2} per kB of runs", capacity.of_flood);
    line("attributes that all differ", figures);
}

fn print_large(large: Option<&Large>) {
    println!("\na project with 10 million events of 10,000 errors in 90 days, one day flooded");
    let Some(large) = large else {
        line("list-errors, get-error, update-error", NOT_MEASURED);
        return;
    };
    let events = grouped(usize::try_from(large.events).unwrap_or(usize::MAX));
    line("runs", format!("{} for {events} events", mb(large.run_bytes)));
    print_questions(&large.questions);
}

fn print_questions(questions: &[MeasuredQuestion]) {
    for MeasuredQuestion { name, latency, memory, .. } in questions {
        let (p50, p95) = (latency.median(), latency.percentile(95));
        line(name, format!("p50 {}   p95 {}   memory {}", ms(p50), ms(p95), mb(*memory)));
    }
}

fn percentiles(figures: &Sorted) -> String {
    let (p50, p99) = (figures.median(), figures.percentile(99));
    format!("p50 {}   p99 {}   fastest {}", ms(p50), ms(p99), ms(figures.min()))
}

fn traffic(traffic: Traffic) -> String {
    let Traffic { calls, read_units, write_units } = traffic;
    format!("{calls} calls   {read_units} read units   {write_units} write units")
}
