use super::*;
use serde_json::{Value, json};

use crate::attribute::Attribute;
use crate::tag::TagKey;

fn read(filters: &Value) -> Result<QueryFilters, Vec<(String, ViolationCode)>> {
    let text = filters.to_string();
    let json = Json::parse(&text, 8).unwrap();
    let mut violations = Violations::default();
    let path = JsonPath::Root.member("filters");
    let read = QueryFilters::read(&json, &path, &mut violations);
    violations.into_result(read).map_err(|violations| {
        violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
    })
}

fn filters(filters: &[[&str; 3]]) -> EventFilters {
    let filters = filters.iter().map(|[category, operator, value]| {
        json!({"categoryId": category, "operator": operator, "value": value})
    });
    let read = read(&Value::Array(filters.collect())).unwrap();
    assert!(read.errors.is_empty());
    read.events
}

fn event(values: &[(&str, &str)]) -> Attributes {
    let mut attributes = Attributes::default();
    for (name, value) in values {
        attributes.set(Attribute::named(name).unwrap(), Some((*value).to_owned()));
    }
    attributes
}

#[test]
fn each_operator_means_what_its_name_says() {
    let cases = [
        ("is", "Chrome", [true, false, false, false, false]),
        ("is_not", "Chrome", [false, true, true, true, true]),
        ("contains", "CHROME", [true, true, true, false, false]),
        ("not_contains", "chrome", [false, false, false, true, true]),
        ("is_set", "", [true, true, true, true, false]),
        ("is_not_set", "", [false, false, false, false, true]),
    ];
    let values = [Some("Chrome"), Some("chrome"), Some("Chrome Mobile"), Some("Firefox"), None];
    for (operator, value, expected) in cases {
        let filters = filters(&[["browser", operator, value]]);
        let found = values.map(|value| filters.match_value(Attribute::Browser.into(), value));
        assert_eq!(found, expected, "{operator}");
    }
}

#[test]
fn is_compares_bytes() {
    let composed = filters(&[["transaction", "is", "/caf\u{e9}"]]);
    assert!(composed.match_value(Attribute::Transaction.into(), Some("/caf\u{e9}")));
    assert!(!composed.match_value(Attribute::Transaction.into(), Some("/cafe\u{301}")));
    assert!(!composed.match_value(Attribute::Transaction.into(), Some("/caf\u{e9} ")));
}

#[test]
fn is_and_contains_of_one_attribute_are_alternatives() {
    let filters = filters(&[
        ["browser", "is", "Chrome"],
        ["browser", "contains", "fox"],
        ["browser", "is", "Safari"],
    ]);
    for (browser, passes) in
        [("Chrome", true), ("Firefox", true), ("Safari", true), ("Edge", false)]
    {
        assert_eq!(filters.matches(&event(&[("browser", browser)])), passes, "{browser}");
    }
    assert!(!filters.matches(&event(&[])));
}

#[test]
fn all_negative_filters_must_hold() {
    let filters = filters(&[
        ["browser", "is_not", "Chrome"],
        ["browser", "not_contains", "fox"],
        ["browser", "is_not", "Safari"],
    ]);
    for (browser, passes) in
        [("Chrome", false), ("Firefox", false), ("Safari", false), ("Edge", true)]
    {
        assert_eq!(filters.matches(&event(&[("browser", browser)])), passes, "{browser}");
    }
    assert!(filters.matches(&event(&[])));
}

#[test]
fn filters_on_different_attributes_must_all_hold() {
    let filters = filters(&[["browser", "is", "Chrome"], ["os", "is", "Android"]]);
    assert!(filters.matches(&event(&[("browser", "Chrome"), ("os", "Android")])));
    assert!(!filters.matches(&event(&[("browser", "Chrome"), ("os", "Windows")])));
    assert!(!filters.matches(&event(&[("os", "Android")])));
}

#[test]
fn positive_and_negative_filters_must_both_hold() {
    let filters = filters(&[
        ["release", "contains", "2."],
        ["release", "is_not", "2.0.1"],
        ["release", "is_set", ""],
    ]);
    assert!(filters.matches(&event(&[("release", "2.0.0")])));
    assert!(!filters.matches(&event(&[("release", "2.0.1")])));
    assert!(!filters.matches(&event(&[("release", "1.0.0")])));
}

#[test]
fn filters_report_the_attributes_they_need() {
    let filters = filters(&[["os", "is", "a"], ["browser", "is", "b"], ["os", "is_not", "c"]]);
    let needed = [Attribute::Browser, Attribute::Os].map(Category::from);
    assert_eq!(filters.categories(), needed.into());
    assert!(!filters.is_empty());
    assert!(EventFilters::new(Vec::new()).is_empty());
    assert!(EventFilters::default().matches(&event(&[])));
}

#[test]
fn every_attribute_is_a_category() {
    for attribute in Attribute::ALL {
        let filters = filters(&[[attribute.as_str(), "is", "x"]]);
        assert_eq!(filters.categories(), [attribute.into()].into());
    }
}

#[test]
fn tags_are_categories() {
    let filters = filters(&[["tags.tenant", "is", "acme"], ["tags.tenant", "contains", "MBR"]]);
    let of_tenant = |tenant: &str| {
        let mut attributes = event(&[("browser", "acme")]);
        attributes.set_tag(TagKey::parse("tenant").unwrap(), tenant.to_owned());
        attributes
    };
    assert!(filters.matches(&of_tenant("acme")) && filters.matches(&of_tenant("umbrella")));
    assert!(!filters.matches(&of_tenant("initech")) && !filters.matches(&of_tenant("")));
    assert_eq!(filters.categories(), [Category::parse("tags.tenant").unwrap()].into());
}

#[test]
fn violations_are_reported_at_their_field() {
    let body = json!([
        {"categoryId": "browser", "operator": "is", "value": "Chrome"},
        {"categoryId": "uri", "operator": "starts_with", "value": "x"},
        {"categoryId": "level", "operator": "gt", "value": "1"},
        {"categoryId": "level", "operator": "is", "value": ["a"]},
        {"operator": "is_set", "value": "x", "not": true},
        {"categoryId": "Browser", "operator": null, "value": 1},
        "browser:Chrome",
    ]);
    let expected = [
        ("/filters/1/categoryId", ViolationCode::InvalidValue),
        ("/filters/1/operator", ViolationCode::InvalidValue),
        ("/filters/2/operator", ViolationCode::InvalidValue),
        ("/filters/3/value", ViolationCode::InvalidType),
        ("/filters/4/not", ViolationCode::UnknownField),
        ("/filters/4/categoryId", ViolationCode::Required),
        ("/filters/4/value", ViolationCode::InvalidValue),
        ("/filters/5/categoryId", ViolationCode::InvalidValue),
        ("/filters/5/operator", ViolationCode::Required),
        ("/filters/5/value", ViolationCode::InvalidType),
        ("/filters/6", ViolationCode::InvalidType),
    ];
    let expected = expected.map(|(pointer, code)| (pointer.to_owned(), code));
    assert_eq!(read(&body).unwrap_err(), expected);
}

#[test]
fn numeric_operators_are_rejected_at_the_operator() {
    for operator in Operator::NUMERIC {
        let body = json!([{"categoryId": "release", "operator": operator, "value": "2"}]);
        let expected = [("/filters/0/operator".to_owned(), ViolationCode::InvalidValue)];
        assert_eq!(read(&body).unwrap_err(), expected, "{operator}");
    }
}

#[test]
fn users_match_by_the_identity_sent() {
    let of = |identity: &str| {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::User, user_hash(identity));
        attributes
    };
    let users = ["42", "alice@example.com", ""];
    for (operator, value, expected) in [
        ("is", "42", [true, false, false]),
        ("is_not", "42", [false, true, true]),
        ("is", "", [false, false, false]),
        ("is_not", "", [true, true, true]),
        ("is_set", "", [true, true, false]),
        ("is_not_set", "", [false, false, true]),
    ] {
        let filters = filters(&[["user", operator, value]]);
        assert_eq!(filters.categories(), [Attribute::User.into()].into());
        assert_eq!(users.map(|user| filters.matches(&of(user))), expected, "{operator}");
        let passes = |user| filters.match_value(Attribute::User.into(), user_hash(user).as_deref());
        assert_eq!(users.map(passes), expected, "{operator}");
    }
    let both = filters(&[["user", "is", "42"], ["user", "is", "43"], ["user", "is_not", "43"]]);
    assert_eq!(["42", "43", "44"].map(|user| both.matches(&of(user))), [true, false, false]);
}

#[test]
fn user_hashes_have_no_parts() {
    for operator in ["contains", "not_contains", "gt", "lte", "starts_with"] {
        let body = json!([{"categoryId": "user", "operator": operator, "value": "4"}]);
        let expected = [("/filters/0/operator".to_owned(), ViolationCode::InvalidValue)];
        assert_eq!(read(&body).unwrap_err(), expected, "{operator}");
    }
}

#[test]
fn error_filters_compare_whole_ids() {
    const ID: &str = "01A06648-2800-7C3A-9B1E-5D2F8A4C6E01";
    let one = |operator, value| {
        read(&json!([{"categoryId": ERROR_ID, "operator": operator, "value": value}]))
    };
    let id = ErrorId::parse(ID).unwrap();
    for (operator, passes) in [("is", true), ("is_not", false)] {
        let filters = one(operator, ID).unwrap();
        assert!(filters.events.is_empty());
        assert_eq!(filters.errors.matches(id), passes, "{operator}");
    }
    let rejected = |field: &str, code| Err(vec![(format!("/filters/0/{field}"), code)]);
    assert_eq!(one("is", "1"), rejected("value", ViolationCode::InvalidFormat));
    for (operator, value) in [("contains", ID), ("is_set", ""), ("is_not_set", ""), ("gt", ID)] {
        assert_eq!(one(operator, value), rejected("operator", ViolationCode::InvalidValue));
    }
}

#[test]
fn takes_at_most_20_filters() {
    let many =
        |count| json!(vec![json!({"categoryId": "os", "operator": "is", "value": "a"}); count]);
    assert!(read(&many(MAX_FILTERS)).is_ok());
    let expected = [("/filters".to_owned(), ViolationCode::TooManyItems)];
    assert_eq!(read(&many(MAX_FILTERS + 1)).unwrap_err(), expected);
}
