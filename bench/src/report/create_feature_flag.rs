//! The report of create-feature-flag, compared with two functions that do less.

use super::units::{mb, ms, range};
use super::{Figures, NOT_MEASURED};
use crate::cold::Starts;
use crate::measure::{Requests, Tls};
use crate::program::Program;

impl Figures {
    pub(super) fn print_comparison(&self) {
        let Self { cold, warm, .. } = self;
        let line = |name: &str, [hello, sdk, create]: [String; 3]| {
            println!("{name:<36} {hello:>12} {sdk:>16} {create:>21}");
        };
        let starts = |figure: &dyn Fn(&Starts) -> f64| {
            let of = |program| ms(figure(cold.of(program)));
            [of(Program::Hello), "–".to_owned(), of(Program::CreateFeatureFlag)]
        };
        let requests = |figure: &dyn Fn(&Requests) -> f64| {
            [&warm.hello, &warm.sdk, &warm.create].map(|requests| ms(figure(requests)))
        };
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        println!("{}, {processors} processors, embedded DynamoDB", std::env::consts::ARCH);
        println!();
        let programs = [Program::Hello, Program::HelloDynamodb, Program::CreateFeatureFlag];
        line("", programs.map(Program::name));
        line("cold start to first response, median", starts(&|s| s.response.median()));
        line("  fastest", starts(&|s| s.response.min()));
        line("  90th percentile", starts(&|s| s.response.percentile(90)));
        line("  CPU time, median", starts(&|s| s.cpu.median()));
        line("warm request, p50", requests(&|r| r.latency.median()));
        line("  p99", requests(&|r| r.latency.percentile(99)));
        line("  CPU time", requests(&Requests::median_cpu));
        line("peak memory", warm.memory.map(mb));
        line("binary", programs.map(|program| mb(self.size(program))));
    }

    pub(super) fn print_more(&self) {
        let Self { round_trips, warm, tls, .. } = self;
        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        let request = |name: &str, requests: &Requests| {
            let (p50, p99) = (requests.latency.median(), requests.latency.percentile(99));
            let cpu = requests.median_cpu();
            line(name, format!("p50 {}   p99 {}   CPU {}", ms(p50), ms(p99), ms(cpu)));
        };
        println!("\ncreate-feature-flag in detail");
        request("warm, ten errors in the body: 400", &warm.invalid);
        request("warm, a flag of almost 200 kB", &warm.largest);
        line("  own CPU time", ms(warm.largest.cpu_beyond(&warm.largest_sdk)));
        line("  peak memory afterwards", mb(warm.memory_after_largest));
        let over_tls = |figure: &dyn Fn(&Tls) -> String| {
            tls.as_ref().map_or_else(|| NOT_MEASURED.to_owned(), figure)
        };
        line("cold start over TLS, median", over_tls(&|tls| ms(tls.create.response.median())));
        line("first call over TLS, client included", over_tls(&|tls| range(&tls.client_and_call)));
        line("  the call alone", over_tls(&|tls| range(&tls.call)));
        line("calls of a cold start", round_trips.cold.join(", "));
    }
}
