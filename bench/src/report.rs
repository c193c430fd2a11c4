//! What the benchmark says.

// A benchmark is a program whose purpose is to print.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use serde_json::{Value as Json, json};

use crate::event_markers::{EVENTS, EventMarkers};
use crate::measure::{Cold, Requests, RoundTrips, Starts, Tls, Warm};
use crate::statistics::{Sorted, millis};

/// Tells that something goes on.
pub(crate) fn progress(text: &str) {
    eprintln!("bench: {text}");
}

/// Everything that was measured.
pub(crate) struct Figures {
    pub(crate) round_trips: RoundTrips,
    pub(crate) cold: Cold,
    pub(crate) warm: Warm,
    pub(crate) tls: Tls,
    pub(crate) event_markers: EventMarkers,
    /// The bytes of hello, hello-dynamodb and create-feature-flag.
    pub(crate) sizes: [u64; 3],
    /// The bytes of delete-event-marker-collection, purge-event-markers and
    /// update-email-preferences.
    pub(crate) other_sizes: [u64; 3],
}

/// What was measured of every function.
struct Common<'f> {
    function: &'static str,
    starts: &'f Starts,
    /// The most round trips of a warm request; `None` for a job, which makes as many as it needs.
    round_trips: Option<usize>,
    memory: u64,
    size: u64,
}

/// A promise about a figure.
struct Target {
    function: &'static str,
    name: &'static str,
    figure: f64,
    bound: f64,
    /// Whether the bound itself still keeps the promise.
    inclusive: bool,
    unit: &'static str,
}

impl Target {
    fn kept(&self) -> bool {
        self.figure < self.bound || (self.inclusive && self.figure <= self.bound)
    }
}

impl Figures {
    fn own_cpu(&self) -> f64 {
        self.warm.create.cpu_beyond(&self.warm.sdk)
    }

    fn create(&self) -> Common<'_> {
        let ([.., memory], [.., size]) = (self.warm.memory, self.sizes);
        Common {
            function: "create-feature-flag",
            starts: &self.cold.create,
            round_trips: Some(self.round_trips.most),
            memory,
            size,
        }
    }

    fn others(&self) -> [Common<'_>; 3] {
        let Self { round_trips, cold, warm, event_markers, other_sizes, .. } = self;
        let [delete, purge, update] = *other_sizes;
        [
            Common {
                function: "delete-event-marker-collection",
                starts: &cold.delete,
                round_trips: Some(round_trips.most_of_delete),
                memory: event_markers.memory,
                size: delete,
            },
            Common {
                function: "purge-event-markers",
                starts: &cold.purge,
                round_trips: None,
                memory: event_markers.purge.memory,
                size: purge,
            },
            Common {
                function: "update-email-preferences",
                starts: &cold.update,
                round_trips: Some(round_trips.most_of_update),
                memory: warm.memory_of_update,
                size: update,
            },
        ]
    }

    /// The median cold start, as a multiple of hello's.
    fn cold_ratio(&self, starts: &Starts) -> f64 {
        starts.answer.median() / self.cold.hello.answer.median()
    }

    fn common_targets(&self, common: &Common<'_>) -> Vec<Target> {
        let Common { function, starts, round_trips, memory, size } = *common;
        let target = |name, figure, inclusive, bound, unit| Target {
            function,
            name,
            figure,
            bound,
            inclusive,
            unit,
        };
        let ratio = self.cold_ratio(starts);
        let mut targets = vec![
            target("cold start, as a multiple of hello's", ratio, true, 4.0, "×"),
            target("peak memory", megabytes(memory), false, 20.0, "MB"),
            target("release binary", megabytes(size), false, 8.0, "MB"),
        ];
        if let Some(most) = round_trips {
            let most = u32::try_from(most).map_or(f64::INFINITY, f64::from);
            let name = "DynamoDB round trips of a warm request";
            targets.push(target(name, most, true, 1.0, ""));
        }
        targets
    }

    fn targets(&self) -> Vec<Target> {
        let create = self.create();
        let mut targets = self.common_targets(&create);
        targets.extend([
            Target {
                function: create.function,
                name: "first DynamoDB call over TLS, client included",
                figure: self.tls.client_and_call.median(),
                inclusive: false,
                bound: 10.0,
                unit: "ms",
            },
            Target {
                function: create.function,
                name: "own CPU time of a warm request",
                figure: self.own_cpu(),
                inclusive: false,
                bound: 0.3,
                unit: "ms",
            },
        ]);
        let [delete, purge, update] = self.others();
        targets.extend(self.common_targets(&delete));
        targets.push(Target {
            function: delete.function,
            name: "20,000 events, as a multiple of none",
            figure: self.event_markers.ratio(),
            inclusive: true,
            bound: 1.5,
            unit: "×",
        });
        targets.extend(self.common_targets(&purge));
        targets.extend(self.common_targets(&update));
        targets
    }

    /// Prints all figures and targets, and answers whether all targets are met.
    pub(crate) fn print(&self) -> bool {
        self.print_comparison();
        self.print_more();
        self.print_others();
        println!("\nTargets");
        let targets = self.targets();
        let mut function = "";
        for target in &targets {
            let Target { name, figure, bound, inclusive, unit, .. } = target;
            if function != target.function {
                function = target.function;
                println!("  {function}");
            }
            let verdict = if target.kept() { "ok" } else { "MISSED" };
            let relation = if *inclusive { "at most" } else { "under" };
            let figure = format!("{figure:.2} {unit:<2}");
            let bound = format!("{relation} {bound} {unit}");
            println!("    {verdict:<7} {name:<46} {figure:>10}   {}", bound.trim_end());
        }
        targets.iter().all(Target::kept)
    }

    fn print_comparison(&self) {
        let Self { cold, warm, sizes, .. } = self;
        let line = |name: &str, [hello, sdk, create]: [String; 3]| {
            println!("{name:<36} {hello:>12} {sdk:>16} {create:>21}");
        };
        let starts = |figure: &dyn Fn(&Starts) -> f64| {
            [ms(figure(&cold.hello)), "–".to_owned(), ms(figure(&cold.create))]
        };
        let requests = |figure: &dyn Fn(&Requests) -> f64| {
            [&warm.hello, &warm.sdk, &warm.create].map(|requests| ms(figure(requests)))
        };
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        println!("{} with {processors} processors, DynamoDB embedded", std::env::consts::ARCH);
        println!();
        line("", ["hello", "hello-dynamodb", "create-feature-flag"].map(str::to_owned));
        line("cold start to first answer, median", starts(&|s| s.answer.median()));
        line("  fastest", starts(&|s| s.answer.min()));
        line("  90th percentile", starts(&|s| s.answer.percentile(90)));
        line("  CPU time, median", starts(&|s| s.cpu.median()));
        line("warm request, p50", requests(&|r| r.latency.median()));
        line("  p99", requests(&|r| r.latency.percentile(99)));
        line("  CPU time", requests(&Requests::median_cpu));
        line("peak memory", warm.memory.map(mb));
        line("binary", sizes.map(mb));
    }

    fn print_more(&self) {
        let Self { round_trips, warm, tls, .. } = self;
        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        let request = |name: &str, requests: &Requests| {
            let (p50, p99) = (requests.latency.median(), requests.latency.percentile(99));
            let cpu = requests.median_cpu();
            line(name, format!("p50 {}   p99 {}   CPU {}", ms(p50), ms(p99), ms(cpu)));
        };
        println!("\ncreate-feature-flag besides");
        request("warm, ten errors in the body: 400", &warm.invalid);
        request("warm, a flag of almost 200 kB", &warm.largest);
        line("  own CPU time of that", ms(warm.largest.cpu_beyond(&warm.largest_sdk)));
        line("  peak memory after that", mb(warm.memory_after_largest));
        line("cold start over TLS, median", ms(tls.create.answer.median()));
        line("first call over TLS, client included", range(&tls.client_and_call));
        line("  the call alone", range(&tls.call));
        line("calls of a cold start", round_trips.cold.join(", "));
    }

    fn print_others(&self) {
        let Self { warm, event_markers, .. } = self;
        let others = self.others();
        let line = |name: &str, figures: [String; 3]| {
            let [delete, purge, update] = figures;
            println!("{name:<36} {delete:>31} {purge:>20} {update:>25}");
        };
        let common = |figure: &dyn Fn(&Common<'_>) -> String| others.each_ref().map(figure);
        let none = || "–".to_owned();
        let update = |figure: &dyn Fn(&Requests) -> f64| [none(), none(), ms(figure(&warm.update))];
        let EventMarkers { empty, large, purge, .. } = event_markers;
        println!();
        line("", common(&|it| it.function.to_owned()));
        line("cold start to first answer or run", common(&|it| ms(it.starts.answer.median())));
        line("  as a multiple of hello's", common(&|it| times(self.cold_ratio(it.starts))));
        line("  fastest", common(&|it| ms(it.starts.answer.min())));
        line("  90th percentile", common(&|it| ms(it.starts.answer.percentile(90))));
        line("  CPU time, median", common(&|it| ms(it.starts.cpu.median())));
        let p50 = [ms(empty.median()), none(), ms(warm.update.latency.median())];
        line("warm request, p50", p50);
        line("  p99", update(&|r| r.latency.percentile(99)));
        line("  CPU time", update(&Requests::median_cpu));
        let round_trips = |it: &Common<'_>| it.round_trips.map_or_else(none, |n| n.to_string());
        line("  round trips, most", common(&round_trips));
        line("peak memory", common(&|it| mb(it.memory)));
        line("binary", common(&|it| mb(it.size)));

        let line = |name: &str, figures: String| println!("  {name:<36} {figures}");
        println!("\ndelete-event-marker-collection, warm");
        line("an empty collection, p50", range(empty));
        line(&format!("a collection of {} events", grouped(EVENTS)), range(large));
        line("  as a multiple of the empty one's", times(event_markers.ratio()));
        println!("\npurge-event-markers, by the embedded engine, not by AWS's DynamoDB");
        let (rate, seconds) = (purge.events_per_second(), purge.time.as_secs_f64());
        let all = format!("{rate:.0} events/s   {seconds:.1} s   runs {}", purge.runs);
        line(&format!("{} events", grouped(purge.events)), all);
        line("  CPU time of 1,000 events", ms(purge.cpu_of_1000()));
    }

    /// All figures as JSON: times in milliseconds, sizes in bytes.
    pub(crate) fn json(&self) -> Json {
        let Self { round_trips, cold, warm, tls, event_markers, sizes, .. } = self;
        let EventMarkers { empty, large, purge, .. } = event_markers;
        let [mut delete, mut purging, mut update] = self.others().map(|it| self.common_json(&it));
        delete["empty"] = distribution_json(empty);
        delete["of20000Events"] = distribution_json(large);
        delete["multipleOfEmpty"] = json!(event_markers.ratio());
        purging["purge"] = json!({
            "events": purge.events,
            "runs": purge.runs,
            "time": millis(purge.time),
            "eventsPerSecond": purge.events_per_second(),
            "cpuOf1000Events": purge.cpu_of_1000(),
        });
        update["warm"] = requests_json(&warm.update);
        let targets = self.targets();
        let targets = targets.iter().map(|target| {
            json!({
                "function": target.function,
                "name": target.name,
                "figure": target.figure,
                "bound": target.bound,
                "unit": target.unit,
                "met": target.kept(),
            })
        });
        json!({
            "cold": {
                "hello": starts_json(&cold.hello),
                "createFeatureFlag": starts_json(&cold.create),
                "createFeatureFlagOverTls": starts_json(&tls.create),
                "calls": round_trips.cold,
            },
            "warm": {
                "hello": requests_json(&warm.hello),
                "helloDynamodb": requests_json(&warm.sdk),
                "createFeatureFlag": requests_json(&warm.create),
                "invalidBody": requests_json(&warm.invalid),
                "largestFlag": requests_json(&warm.largest),
                "ownCpu": self.own_cpu(),
                "ownCpuOfLargestFlag": warm.largest.cpu_beyond(&warm.largest_sdk),
                "mostRoundTrips": round_trips.most,
            },
            "firstCallOverTls": {
                "clientAndCall": distribution_json(&tls.client_and_call),
                "call": distribution_json(&tls.call),
            },
            "peakMemory": {
                "hello": warm.memory[0],
                "helloDynamodb": warm.memory[1],
                "createFeatureFlag": warm.memory[2],
                "createFeatureFlagAfterLargestFlags": warm.memory_after_largest,
            },
            "binary": {
                "hello": sizes[0],
                "helloDynamodb": sizes[1],
                "createFeatureFlag": sizes[2],
            },
            "others": {
                "deleteEventMarkerCollection": delete,
                "purgeEventMarkers": purging,
                "updateEmailPreferences": update,
            },
            "targets": targets.collect::<Vec<_>>(),
        })
    }

    fn common_json(&self, common: &Common<'_>) -> Json {
        json!({
            "cold": starts_json(common.starts),
            "multipleOfHello": self.cold_ratio(common.starts),
            "mostRoundTrips": common.round_trips,
            "peakMemory": common.memory,
            "binary": common.size,
        })
    }
}

fn starts_json(starts: &Starts) -> Json {
    json!({"answer": distribution_json(&starts.answer), "cpu": distribution_json(&starts.cpu)})
}

fn requests_json(requests: &Requests) -> Json {
    json!({"latency": distribution_json(&requests.latency), "cpu": requests.median_cpu()})
}

fn distribution_json(figures: &Sorted) -> Json {
    json!({
        "min": figures.min(),
        "p50": figures.median(),
        "p90": figures.percentile(90),
        "p99": figures.percentile(99),
    })
}

fn ms(millis: f64) -> String {
    format!("{millis:.3} ms")
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2} ×")
}

fn range(figures: &Sorted) -> String {
    let (median, min, p90) = (figures.median(), figures.min(), figures.percentile(90));
    format!("{}   fastest {}   90th percentile {}", ms(median), ms(min), ms(p90))
}

/// A number of thousands as people write it.
fn grouped(number: usize) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

fn mb(bytes: u64) -> String {
    format!("{:.2} MB", megabytes(bytes))
}

/// Bytes in units of 1,000,000.
#[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
