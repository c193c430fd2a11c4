//! The test queries, with their accepted filters.
#![allow(clippy::unwrap_used, dead_code)]

use interpreter::{Category, Filter, Kind, Operator, Request};
use serde_json::Value;

const QUERIES: [&str; 16] = [
    include_str!("../../../../tests/tests/errors/interpret_error_filters/queries/blind.jsonl"),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/development.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/eighth-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/eleventh-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/fifth-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/fourth-round.jsonl"
    ),
    include_str!("../../../../tests/tests/errors/interpret_error_filters/queries/held-out.jsonl"),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/ninth-round.jsonl"
    ),
    include_str!("../../../../tests/tests/errors/interpret_error_filters/queries/released.jsonl"),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/second-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/seventh-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/sixth-round.jsonl"
    ),
    include_str!("../../../../tests/tests/errors/interpret_error_filters/queries/specified.jsonl"),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/tenth-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/third-round.jsonl"
    ),
    include_str!(
        "../../../../tests/tests/errors/interpret_error_filters/queries/twelfth-round.jsonl"
    ),
];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn filter(it: &Value) -> Filter {
    Filter {
        category_id: text(&it["categoryId"]),
        operator: Operator::parse(&text(&it["operator"])).unwrap(),
        value: text(&it["value"]),
    }
}

fn request(value: &Value) -> Request {
    let category = |it: &Value| Category {
        id: text(&it["id"]),
        label: text(&it["label"]),
        values: it["values"].as_array().map(|it| it.iter().map(text).collect()).unwrap_or_default(),
        kind: Kind::from_flags(
            it["isNumeric"] == true,
            it["isBoolean"] == true,
            it["isArray"] == true,
        ),
    };
    Request {
        query: text(&value["query"]),
        categories: value["categories"].as_array().unwrap().iter().map(category).collect(),
        current_filters: value["currentFilters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(filter)
            .collect(),
    }
}

/// Returns all queries, with the accepted lists of filters.
pub(crate) fn cases() -> Vec<(Request, Vec<Vec<Filter>>)> {
    let lines = QUERIES.iter().flat_map(|file| file.lines()).filter(|line| !line.is_empty());
    let parse = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let lists = case["expected"].as_array().into_iter().flatten();
        let list = |it: &Value| it.as_array().into_iter().flatten().map(filter).collect();
        (request(&case["request"]), lists.map(list).collect())
    };
    lines.map(parse).collect()
}

/// Returns the requests of all queries.
pub(crate) fn requests() -> Vec<Request> {
    cases().into_iter().map(|case| case.0).collect()
}
