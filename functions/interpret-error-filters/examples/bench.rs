//! Prints the CPU time of a typical and of the largest allowed requests.
#![allow(clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use interpret_error_filters::interpretation::{Category, Kind, Request, interpret};

fn category(id: &str, label: &str, values: &[&str], kind: Kind) -> Category {
    Category {
        id: id.to_owned(),
        label: label.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        kind,
    }
}

fn typical(query: &str) -> Request {
    let categories = vec![
        category(
            "browser",
            "Browser",
            &["Chrome", "Firefox", "Safari", "Edge", "Opera", "Samsung Internet"],
            Kind::Text,
        ),
        category(
            "os",
            "Operating system",
            &["Windows", "macOS", "Linux", "iOS", "Android"],
            Kind::Text,
        ),
        category("device", "Device type", &["desktop", "mobile", "tablet"], Kind::Text),
        category(
            "environment",
            "Environment",
            &["production", "staging", "development"],
            Kind::Text,
        ),
        category(
            "release",
            "Release",
            &["web@2.4.1", "web@2.4.0", "web@2.3.9", "web@3.0.0-beta"],
            Kind::Text,
        ),
        category("handled", "Handled", &[], Kind::Boolean),
        category("level", "Level", &["fatal", "error", "warning", "info", "debug"], Kind::Text),
        category("users", "Users affected", &[], Kind::Numeric),
        category(
            "tags",
            "Tags",
            &["checkout", "payments", "login", "search", "third-party"],
            Kind::Array,
        ),
        category("message", "Message", &[], Kind::Text),
        category(
            "country",
            "Country",
            &["United States", "United Kingdom", "Germany", "France", "Brazil", "India", "Japan"],
            Kind::Text,
        ),
    ];
    Request { query: query.to_owned(), categories, current_filters: Vec::new() }
}

fn largest(value: impl Fn(usize) -> String, query: &str) -> Request {
    let categories = (0..50)
        .map(|category| Category {
            id: format!("category_{category}"),
            label: format!("Label number {category}"),
            values: (0..40).map(|index| value(category * 40 + index)).collect(),
            kind: Kind::Text,
        })
        .collect();
    Request {
        query: query.repeat(500).chars().take(500).collect(),
        categories,
        current_filters: Vec::new(),
    }
}

fn measure(name: &str, request: &Request, rounds: u32) {
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(interpret(black_box(request)));
    }
    let each = start.elapsed() / rounds;
    println!("{name:<28} {each:>12?}");
}

fn main() {
    let first = typical("chrome prod unhandled");
    let start = Instant::now();
    interpret(&first);
    println!("{:<28} {:>12?}", "first call (reads data)", start.elapsed());
    measure("short query", &first, 2_000);
    let long = "Show me all the unhandled errors that Safari users on iPhone hit in production, but not in Germany";
    measure("long query", &typical(long), 2_000);
    measure(
        "misspelt query",
        &typical("firefx or safri on andriod in stagin, more then 50 usres"),
        2_000,
    );
    let name = |index: usize| format!("service-{index} eu-west node{}", index % 97);
    measure("largest", &largest(name, "service-12 or service-77 in eu-west but not node9, "), 50);
    measure(
        "largest, misspelt",
        &largest(|index| format!("abcdefg{index:04}x"), "abcdefh abcdegf "),
        50,
    );
    measure(
        "largest, shared parts",
        &largest(|index| format!("alpha beta gamma {index}"), "gamma beta alpha "),
        50,
    );
    measure("largest, one word", &largest(|_| "a a a a a a a a".to_owned(), "a "), 50);
    let words =
        |index: usize| (0..18).map(|word| format!("w{index}x{word}")).collect::<Vec<_>>().join(" ");
    measure("largest, long values", &largest(words, "w3x4 w9x1 "), 50);
}
