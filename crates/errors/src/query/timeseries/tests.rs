use serde_json::{Value, json};

use shared::json::ViolationCode;

use super::*;
use crate::ErrorStatus;
use crate::attribute::Attribute;
use crate::category::Attributes;
use crate::query::time_bucket::BucketSize;

fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-11-21T04:16:30.500Z").unwrap()
}

fn read_text(body: &str) -> Result<TimeseriesQuery, Vec<(String, ViolationCode)>> {
    let json = Json::parse(body, 8).unwrap();
    TimeseriesQuery::read(&json, now()).map_err(|violations| {
        violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
    })
}

fn read(fields: &Value) -> Result<TimeseriesQuery, Vec<(String, ViolationCode)>> {
    let mut body = json!({"projectIds": ["shop"]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    read_text(&body.to_string())
}

fn fault(fields: &Value) -> Vec<(String, ViolationCode)> {
    read(fields).err().unwrap_or_default()
}

fn at(pointer: &str, code: ViolationCode) -> [(String, ViolationCode); 1] {
    [(pointer.to_owned(), code)]
}

#[test]
fn only_projects_are_required_and_null_is_absent() {
    let short = read(&json!({})).unwrap();
    let nulls = json!({
        "from": null, "to": null, "limit": null, "searchQuery": null, "status": null, "filters": null,
    });
    assert_eq!(read(&nulls).unwrap(), short);
    assert_eq!(short.events.range.bucket_count(), 7 * 24 + 1);
    assert_eq!(short.events.status, None);
    assert!(short.events.search.matches_every_error() && short.events.event_filters.is_empty());
}

#[test]
fn projects_are_1_to_50_without_duplicates() {
    let names = |count: usize| (0..count).map(|n| format!("p{n}")).collect::<Vec<_>>();
    let at_projects = |code| at("/projectIds", code);
    assert_eq!(fault(&json!({"projectIds": names(50)})), []);
    assert_eq!(fault(&json!({"projectIds": names(51)})), at_projects(ViolationCode::TooManyItems));
    assert_eq!(fault(&json!({"projectIds": []})), at_projects(ViolationCode::TooFewItems));
    assert_eq!(fault(&json!({"projectIds": null})), at_projects(ViolationCode::Required));
    assert_eq!(fault(&json!({"projectIds": "shop"})), at_projects(ViolationCode::InvalidType));
    assert_eq!(fault(&json!({"projectIds": [1]})), at("/projectIds/0", ViolationCode::InvalidType));
    let twice = [names(50), names(50)].concat();
    assert_eq!(read(&json!({"projectIds": twice})).unwrap().projects.len(), 50);
    let uuid = "019A9D5C-5B1E-7000-8000-00000000000A";
    let spelled = json!({"projectIds": [uuid, "shop", uuid.to_lowercase(), "No Slug", "No Slug"]});
    let projects = read(&spelled).unwrap().projects;
    let written: Vec<&str> = projects.iter().map(|project| project.written.as_str()).collect();
    assert_eq!(written, [uuid, "shop", "No Slug"]);
    assert!(projects[0].name.is_some() && projects[1].name.is_some());
    // The response will list it as unknown.
    assert_eq!(projects[2].name, None);
}

#[test]
fn from_and_to_are_any_numbers() {
    for number in ["0", "-1", "1e400", "-1E-400", "1795234560.25", "1e-99999999999999999999"] {
        let query = read_text(&format!(r#"{{"projectIds":["shop"],"to":{number}}}"#));
        assert!(query.is_ok(), "{number}");
    }
    assert_eq!(fault(&json!({"from": "0"})), at("/from", ViolationCode::InvalidType));
    assert_eq!(fault(&json!({"to": [0]})), at("/to", ViolationCode::InvalidType));
}

#[test]
fn empty_ranges_are_rejected_at_the_later_field() {
    let code = ViolationCode::OutOfRange;
    assert_eq!(fault(&json!({"from": 5, "to": 5})), at("/to", code));
    assert_eq!(fault(&json!({"from": 6, "to": 5})), at("/to", code));
    assert_eq!(fault(&json!({"from": 1_795_234_590_500_i64})), at("/from", code));
    let future = read(&json!({"from": 1_795_234_620_000_i64, "to": 1_795_234_680_000_i64}));
    assert_eq!(future.unwrap().events.range.bucket_count(), 0);
}

#[test]
fn limit_must_be_1_to_1000() {
    for limit in ["1", "1000", "1e3", "10.0"] {
        let query = read_text(&format!(r#"{{"projectIds":["shop"],"limit":{limit}}}"#));
        assert!(query.is_ok(), "{limit}");
    }
    for limit in ["0", "-1", "1001", "1.5", "1e400", "65537", "1e-3"] {
        let query = read_text(&format!(r#"{{"projectIds":["shop"],"limit":{limit}}}"#));
        assert_eq!(
            query.unwrap_err(),
            [("/limit".to_owned(), ViolationCode::OutOfRange)],
            "{limit}"
        );
    }
    assert_eq!(fault(&json!({"limit": "5"})), at("/limit", ViolationCode::InvalidType));
    assert_eq!(read(&json!({"limit": 5})).unwrap().events.range.bucket_count(), 5);
}

#[test]
fn status_is_one_of_three() {
    for status in ErrorStatus::ALL {
        let query = read(&json!({"status": status.as_str()}));
        assert_eq!(query.unwrap().events.status, Some(status));
    }
    assert_eq!(fault(&json!({"status": "Open"})), at("/status", ViolationCode::InvalidValue));
    assert_eq!(fault(&json!({"status": true})), at("/status", ViolationCode::InvalidType));
}

#[test]
fn only_long_searches_and_nul_are_rejected() {
    let at_search = |code| at("/searchQuery", code);
    assert_eq!(fault(&json!({"searchQuery": "\"[:-!browser:["})), []);
    assert_eq!(fault(&json!({"searchQuery": "x".repeat(1_024)})), []);
    assert_eq!(
        fault(&json!({"searchQuery": "x".repeat(1_025)})),
        at_search(ViolationCode::TooLong)
    );
    assert_eq!(fault(&json!({"searchQuery": "a\0b"})), at_search(ViolationCode::InvalidFormat));
    assert_eq!(fault(&json!({"searchQuery": 1})), at_search(ViolationCode::InvalidType));
}

#[test]
fn filters_and_search_keys_must_both_hold() {
    let query = read(&json!({
        "searchQuery": "os:Android timeout",
        "filters": [
            {"categoryId": "os", "operator": "is", "value": "iOS"},
            {"categoryId": "os", "operator": "contains", "value": "andr"},
        ],
    }));
    let filters = query.unwrap().events.event_filters;
    for (os, passes) in [("Android", true), ("iOS", false), ("Android TV", false)] {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::Os, Some(os.to_owned()));
        assert_eq!(filters.matches(&attributes), passes, "{os}");
    }
}

#[test]
fn all_violations_are_reported_together() {
    let body = json!({
        "projectIds": [], "from": "x", "to": true, "limit": 0, "searchQuery": [], "status": "new",
        "filters": [{"categoryId": "uri", "operator": "gt", "value": 1}], "interval": 1,
    });
    let expected = [
        ("/interval", ViolationCode::UnknownField),
        ("/projectIds", ViolationCode::TooFewItems),
        ("/from", ViolationCode::InvalidType),
        ("/to", ViolationCode::InvalidType),
        ("/limit", ViolationCode::OutOfRange),
        ("/searchQuery", ViolationCode::InvalidType),
        ("/status", ViolationCode::InvalidValue),
        ("/filters/0/categoryId", ViolationCode::InvalidValue),
        ("/filters/0/operator", ViolationCode::InvalidValue),
        ("/filters/0/value", ViolationCode::InvalidType),
    ];
    let expected = expected.map(|(pointer, code)| (pointer.to_owned(), code));
    assert_eq!(read(&body).unwrap_err(), expected);
    let both = read(&json!({"from": 6, "to": 5, "limit": 0})).unwrap_err();
    let pointers: Vec<&str> = both.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/limit", "/to"]);
    assert_eq!(read_text("[]").unwrap_err(), [(String::new(), ViolationCode::InvalidType)]);
}

#[test]
fn empty_buckets_are_in_the_response() {
    let range = read(&json!({"from": 1_794_873_600, "to": 1_795_046_400})).unwrap().events.range;
    assert_eq!(range.bucket_size(), BucketSize::HalfHour);
    let mut counts = vec![Count::default(); range.bucket_count()];
    counts[95] = Count { events: 7, errors: 2 };
    let shown = serde_json::to_value(Bucket::of_counts(&range, &counts)).unwrap();
    assert_eq!(shown.as_array().unwrap().len(), 96);
    let row = |date: &str, start: &str, errors: u64, unique: u64| json!({"date": date, "errors": errors, "uniqueErrors": unique, "bucketStart": start});
    assert_eq!(shown[0], row("2026-11-17", "2026-11-17T00:00:00.000Z", 0, 0));
    assert_eq!(shown[95], row("2026-11-18", "2026-11-18T23:30:00.000Z", 7, 2));
}
