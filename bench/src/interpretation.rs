//! Interpretation of natural-language filters: typical queries, and the largest allowed requests.

use std::time::Duration;

use axum::body::Bytes;
use local::environment;
use serde_json::{Value as Json, json};

use crate::Result;
use crate::measure::{Bench, Requests};
use crate::process::Process;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::{Sorted, millis};

/// The number of measured requests of each kind.
const REQUESTS: usize = 200;
/// The number of unmeasured requests before them.
const WARM_UPS: usize = 20;
/// The number of consecutive requests whose processor time is measured together.
const BLOCK: u32 = 10;
/// The maximum length of a query, in characters.
const LARGEST_QUERY: usize = 500;
/// The maximum number of categories of a request.
const MOST_CATEGORIES: usize = 50;
/// The number of values per category of the largest requests.
const VALUES_OF_A_CATEGORY: usize = 40;

/// Typical queries.
const TYPICAL: [&str; 4] = [
    "chrome prod unhandled",
    "firefx or safri on andriod in stagin, more then 50 usres",
    "only checkout errors from germany since release 2.4.0",
    "Show me all the unhandled errors that Safari users on iPhone hit in production, but not in \
     Germany",
];

/// The figures of natural-language filters.
pub(crate) struct Interpretations {
    /// Typical queries.
    pub(crate) typical: Requests,
    /// The slowest kind of the largest allowed requests.
    pub(crate) largest: Requests,
    /// The peak memory of interpret-error-filters, in bytes.
    pub(crate) memory: u64,
}

impl Bench<'_> {
    /// Measures the interpretation of queries.
    pub(crate) async fn interpretations(&self) -> Result<Interpretations> {
        progress(&format!("interpretation: {REQUESTS} queries of each kind"));
        let project = self.stack.project("interpreted").await?.to_string();
        let variables = environment::variables(&self.stack.endpoint());
        let mut process = self.start(Program::InterpretErrorFilters, &variables).await?;
        let request = |body: Json| self.stack.interpret(&body);
        let typical = TYPICAL.map(|query| request(typical(&project, query)));
        let typical = measure(&mut process, &typical).await?;
        let mut slowest: Option<Requests> = None;
        for body in largest(&project) {
            let requests = measure(&mut process, &[request(body)]).await?;
            let slower = |known: &Requests| known.median_cpu() < requests.median_cpu();
            if slowest.as_ref().is_none_or(slower) {
                slowest = Some(requests);
            }
        }
        let memory = process.peak_memory()?;
        process.stop().await?;
        let largest = slowest.ok_or("there is no largest request")?;
        Ok(Interpretations { typical, largest, memory })
    }
}

async fn measure(process: &mut Process, requests: &[Bytes]) -> Result<Requests> {
    let mut requests = requests.iter().cycle();
    let mut send = async |process: &mut Process| -> Result<Duration> {
        let request = requests.next().ok_or("there is no request")?;
        Ok(process.expect(200, request.clone()).await?.latency)
    };
    for _ in 0..WARM_UPS {
        send(process).await?;
    }
    let (mut latencies, mut cpu) = (Vec::with_capacity(REQUESTS), Vec::new());
    while latencies.len() < REQUESTS {
        let before = process.cpu().await?;
        for _ in 0..BLOCK {
            latencies.push(send(process).await?);
        }
        cpu.push(millis(process.cpu().await?.saturating_sub(before) / BLOCK));
    }
    Ok(Requests { latency: Sorted::millis(latencies), cpu })
}

/// Returns a request with the categories of a typical project.
pub(crate) fn typical(project: &str, query: &str) -> Json {
    let text = |id: &str, label: &str, values: &[&str]| json!({"id": id, "label": label, "values": values});
    json!({
        "projectId": project,
        "query": query,
        "categories": [
            text("browser", "Browser", &["Chrome", "Firefox", "Safari", "Edge", "Opera"]),
            text("os", "Operating system", &["Windows", "macOS", "Linux", "iOS", "Android"]),
            text("environment", "Environment", &["production", "staging", "development"]),
            text("release", "Release", &["web@2.4.1", "web@2.4.0", "web@2.3.9", "web@3.0.0-beta"]),
            text("level", "Level", &["fatal", "error", "warning", "info", "debug"]),
            text("country", "Country", &["United States", "United Kingdom", "Germany", "Brazil"]),
            text("message", "Message", &[]),
            {"id": "handled", "label": "Handled", "isBoolean": true},
            {"id": "users", "label": "Users affected", "isNumeric": true},
            {"id": "tags", "label": "Tags", "values": ["checkout", "search"], "isArray": true},
        ],
        "currentFilters": [{"categoryId": "level", "operator": "is", "value": "error"}],
    })
}

/// Returns the largest requests: values that share words, values that the query misspells, and
/// values that all match equally.
fn largest(project: &str) -> [Json; 4] {
    let request = |value: fn(usize) -> String, query: &str| {
        let categories = (0..MOST_CATEGORIES).map(|category| {
            let values = (0..VALUES_OF_A_CATEGORY)
                .map(|index| value(category * VALUES_OF_A_CATEGORY + index))
                .collect::<Vec<_>>();
            let label = format!("Label number {category}");
            json!({"id": format!("category_{category}"), "label": label, "values": values})
        });
        json!({
            "projectId": project,
            "query": query.chars().cycle().take(LARGEST_QUERY).collect::<String>(),
            "categories": categories.collect::<Vec<_>>(),
            "currentFilters": [],
        })
    };
    [
        request(
            |index| format!("service-{index} eu-west node{}", index % 97),
            "service-12 or service-77 in eu-west but not node9, ",
        ),
        request(|index| format!("abcdefg{index:04}x"), "abcdefh abcdegf "),
        request(|index| format!("alpha beta gamma {index}"), "gamma beta alpha "),
        request(|_| "a a a a a a a a".to_owned(), "a "),
    ]
}
