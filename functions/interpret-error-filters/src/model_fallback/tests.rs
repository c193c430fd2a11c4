use super::*;
use interpreter::{Category, Kind, Operator};

fn filter(category_id: &str, operator: Operator, value: &str) -> Filter {
    Filter { category_id: category_id.to_owned(), operator, value: value.to_owned() }
}

fn request(current_filters: Vec<Filter>) -> Request {
    let category = |id: &str, values: &[&str], kind| Category {
        id: id.to_owned(),
        label: id.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        kind,
    };
    Request {
        query: String::new(),
        categories: vec![
            category("browser", &["Chrome", "Firefox"], Kind::Text),
            category("users", &[], Kind::Numeric),
            category("message", &[], Kind::Text),
        ],
        current_filters,
    }
}

#[test]
fn remaining_filters_come_first_in_order() {
    let chrome = filter("browser", Operator::Is, "Chrome");
    let many = filter("users", Operator::Gt, "5");
    let new = filter("message", Operator::Contains, "x");
    let request = request(vec![chrome.clone(), many.clone()]);
    let reply = vec![new.clone(), many.clone(), chrome.clone()];
    assert_eq!(validated(&request, reply), Ok(vec![chrome, many, new]));
}

#[test]
fn one_invalid_filter_rejects_the_reply() {
    let long = "x".repeat(501);
    let chrome = filter("browser", Operator::Is, "Chrome");
    for wrong in [
        filter("device", Operator::Is, "Chrome"),
        filter("browser", Operator::Gt, "Chrome"),
        filter("browser", Operator::Is, "chrome"),
        filter("browser", Operator::Is, ""),
        filter("users", Operator::Gt, "many"),
        filter("users", Operator::Contains, "5"),
        filter("message", Operator::Contains, ""),
        filter("message", Operator::Contains, &long),
        filter("message", Operator::Contains, "\0"),
        filter("message", Operator::IsSet, "x"),
        chrome.clone(),
    ] {
        let reply = vec![chrome.clone(), wrong.clone()];
        assert_eq!(
            validated(&request(Vec::new()), reply),
            Err(FallbackError::Invalid),
            "{wrong:?}"
        );
    }
}

#[test]
fn normalized_numbers_must_be_unique() {
    let reply = vec![filter("users", Operator::Gt, "1500.0")];
    let plain = vec![filter("users", Operator::Gt, "1500")];
    assert_eq!(validated(&request(Vec::new()), reply.clone()), Ok(plain.clone()));
    let twice = [reply, plain].concat();
    assert_eq!(validated(&request(Vec::new()), twice), Err(FallbackError::Invalid));
}

#[test]
fn model_timeout_respects_the_time_of_the_request() {
    assert_eq!(model_timeout(Duration::ZERO), LONGEST_WAIT);
    assert_eq!(model_timeout(Duration::from_millis(800)), Duration::from_millis(1_500));
    assert_eq!(model_timeout(Duration::from_secs(9)), Duration::ZERO);
}
