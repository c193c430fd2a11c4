//! Interpretation of natural-language filters: typical queries, and the largest allowed requests.

use axum::body::Bytes;
use serde_json::{Value as Json, json};
use shared::projects::project::ProjectId;

use crate::Result;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, under};
use crate::request::INTERPRET_FILTERS;
use crate::stack::Stack;

/// The number of requests of each kind.
const REQUESTS: usize = 220;
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

/// Measures the interpretation of queries.
pub(crate) async fn interpretation(programs: &Programs, report: &mut Report) -> Result<()> {
    progress(&format!("interpretation: {REQUESTS} queries of each kind"));
    let stack = Stack::start().await?;
    let project = stack.project("interpreted").await?;
    let program = Program::InterpretErrorFilters;
    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let mut measure = async |bodies: &[Json]| {
        let request = |body| stack.request(INTERPRET_FILTERS, &[]).json(body).event();
        let requests: Vec<Bytes> = bodies.iter().map(request).collect();
        process.measure(200, requests.into_iter().cycle().take(REQUESTS)).await
    };
    let of_typical = measure(&TYPICAL.map(|query| typical(project, query))).await?;
    report.add_times(program, "a typical query", &of_typical.latency(), None);
    let cpu = of_typical.median_cpu();
    report.add(program, "a typical query, CPU time", cpu, "ms", under(1.0));
    for (kind, body) in largest(project) {
        let requests = measure(&[body]).await?;
        let name = format!("the largest request, {kind}");
        report.add_times(program, &name, &requests.latency(), None);
        let cpu = requests.median_cpu();
        report.add(program, format!("{name}, CPU time"), cpu, "ms", under(10.0));
    }
    report.add_memory(program, process.peak_memory()?, under(20.0));
    Ok(())
}

/// Returns a request with the categories of a typical project.
pub(crate) fn typical(project: ProjectId, query: &str) -> Json {
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
fn largest(project: ProjectId) -> [(&'static str, Json); 4] {
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
    let services = request(
        |index| format!("service-{index} eu-west node{}", index % 97),
        "service-12 or service-77 in eu-west but not node9, ",
    );
    [
        ("shared words", services),
        ("misspelled values", request(|index| format!("abcdefg{index:04}x"), "abcdefh abcdegf ")),
        ("equal words", request(|index| format!("alpha beta gamma {index}"), "gamma beta alpha ")),
        ("equal values", request(|_| "a a a a a a a a".to_owned(), "a ")),
    ]
}
