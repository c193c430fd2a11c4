//! Valid requests. `bounds/` and `responses/` have the violations of invalid ones.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use ::interpret_error_filters::question::Question;
use interpreter::{Filter, Kind, Operator};
use shared::json::{Json, Violations};

/// Returns a body with these fields, which is otherwise valid.
fn body(members: &[(&str, Value)]) -> Value {
    let mut body = json!({
        "projectId": "shop",
        "query": "firefox",
        "categories": [
            {"id": "browser", "label": "Browser", "values": ["Chrome", "Firefox"],
             "isNumeric": false, "isBoolean": false, "isArray": false},
        ],
        "currentFilters": [],
    });
    for (name, value) in members {
        body[*name] = value.clone();
    }
    body
}

fn read(body: &Value) -> Result<Question, Violations> {
    Question::read(&Json::parse(&body.to_string(), 8).unwrap())
}

fn filter(category_id: &str, operator: &str, value: &str) -> Value {
    json!({"categoryId": category_id, "operator": operator, "value": value})
}

#[test]
fn reads_a_question() {
    let question = read(&body(&[
        ("query", json!(" \n not firefox ")),
        ("currentFilters", json!([filter("browser", "is_not", "Chrome")])),
    ]))
    .unwrap();
    assert_eq!(question.project.written, "shop");
    let request = question.request();
    assert_eq!(request.query, "not firefox");
    assert_eq!(request.categories[0].values, ["Chrome", "Firefox"]);
    let current = Filter {
        category_id: "browser".to_owned(),
        operator: Operator::IsNot,
        value: "Chrome".to_owned(),
    };
    assert_eq!(request.current_filters, [current]);
}

#[test]
fn categories_need_only_id_and_label() {
    let category = json!({"id": "c", "label": "", "values": null, "isNumeric": null});
    let read_kind = |category: &Value| {
        let question = read(&body(&[("categories", json!([category]))])).unwrap();
        let category = question.request().categories.into_iter().next().unwrap();
        assert_eq!(category.values, Vec::<String>::new());
        category.kind
    };
    assert_eq!(read_kind(&category), Kind::Text);
    for (flag, kind) in
        [("isNumeric", Kind::Numeric), ("isBoolean", Kind::Boolean), ("isArray", Kind::Array)]
    {
        let mut category = category.clone();
        category[flag] = json!(true);
        assert_eq!(read_kind(&category), kind);
    }
}

#[test]
fn filters_of_unknown_categories_keep_text_and_place() {
    let (first, second) = (filter("gone", "matches", "Ä b"), filter("gone", "", ""));
    let question = read(&body(&[(
        "currentFilters",
        json!([
            first,
            filter("browser", "is", "Chrome"),
            second,
            filter("browser", "is_not", "Edge"),
            first
        ]),
    )]))
    .unwrap();
    let response = |filters: Vec<Filter>| serde_json::to_value(question.response(filters)).unwrap();
    assert_eq!(response(Vec::new()), json!({"filters": [first, second]}));
    let known = question.request().current_filters;
    assert_eq!(
        response(known.clone()),
        json!({"filters": [
            first,
            filter("browser", "is", "Chrome"),
            second,
            filter("browser", "is_not", "Edge"),
        ]})
    );
    let new = Filter { value: "Firefox".to_owned(), ..known[0].clone() };
    assert_eq!(
        response(vec![known[1].clone(), new]),
        json!({"filters": [
            first,
            second,
            filter("browser", "is_not", "Edge"),
            filter("browser", "is", "Firefox"),
        ]})
    );
}

/// Returns bodies that are nearly valid.
fn any_body() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("a".to_owned()),
        Just("is".to_owned()),
        Just("\0".to_owned()),
        "\\PC{0,4}",
    ];
    let scalar = prop_oneof![
        4 => text.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
    ];
    let names = ["id", "label", "values", "isArray", "categoryId", "operator", "value", "x"];
    let list = vec(scalar.clone(), 0..3).prop_map(Value::from);
    let object =
        vec((proptest::sample::select(names.to_vec()), prop_oneof![scalar.clone(), list]), 0..5)
            .prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
            });
    let objects = vec(object, 0..4).prop_map(Value::from);
    (scalar, objects.clone(), objects).prop_map(|(query, categories, filters)| {
        body(&[("query", query), ("categories", categories), ("currentFilters", filters)])
    })
}

proptest! {
    #[test]
    fn every_body_is_valid_or_has_violations(body in any_body()) {
        match read(&body) {
            Ok(question) => {
                let unchanged = question.response(question.request().current_filters);
                let sent = body["currentFilters"].as_array().unwrap();
                prop_assert!(unchanged.filters.len() <= sent.len());
                for filter in unchanged.filters {
                    prop_assert!(sent.contains(&serde_json::to_value(filter).unwrap()));
                }
            }
            Err(violations) => prop_assert!(!violations.is_empty()),
        }
    }
}
