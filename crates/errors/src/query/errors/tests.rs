use super::*;
use crate::grouping::Fingerprint;
use crate::{ErrorDescription, NewError};
use serde_json::json;

const ID: &str = "01a06648-2800-7c3a-9b1e-5d2f8a4c6e0";

fn id(number: u8) -> ErrorId {
    ErrorId::parse(&format!("{ID}{number}")).unwrap()
}

fn query(body: &serde_json::Value) -> Result<ErrorsQuery, Violations> {
    let text = body.to_string();
    let json = Json::parse(&text, 8).unwrap();
    let now = Timestamp::from_millis(1_795_000_000_000);
    ErrorsQuery::read(&json, |cursor| Ok(cursor.to_owned()), now)
}

fn error(number: u8, first: i64, last: i64) -> ErrorRecord {
    let [first, last] = [first, last].map(Timestamp::from_millis);
    let description = ErrorDescription {
        fingerprint: Fingerprint([number; 16]),
        title: String::new(),
        error_type: String::new(),
        message: String::new(),
        culprit: String::new(),
    };
    let new = NewError { id: id(number), description, events_since: None };
    ErrorRecord { last_seen: last, ..ErrorRecord::new(&new, first, first) }
}

/// Returns the numbers of the errors of all pages. `unpacked` has the times of unpacked events.
fn listed(sort: &str, limit: usize, unpacked: &[(u8, i64)]) -> Vec<u8> {
    // The times first and last seen, and the number of events.
    let errors = [(5, 9, 1), (4, 9, 3), (3, 7, 3), (9, 9, 0), (3, 8, 2)];
    let stored = |(number, (first, last, _)): (u8, (i64, i64, u64))| {
        let unpacked = unpacked.iter().find(|(of, _)| *of == number);
        let unpacked = unpacked.map(|(_, at)| Timestamp::from_millis(*at));
        error(number, first, last).with_unpacked(unpacked)
    };
    let stored: Vec<ErrorRecord> = (0..).zip(errors).map(stored).collect();
    let mut body = json!({"sort": sort, "limit": limit});
    let mut found = Vec::new();
    loop {
        let count = |(_, _, events)| ErrorCount { events, ..ErrorCount::default() };
        let errors = errors.into_iter().map(count).collect();
        let counts = ErrorCounts { errors, ..ErrorCounts::of_users(false) };
        let page = query(&body).unwrap().page(stored.clone(), counts).unwrap();
        assert!(page.items.len() <= limit);
        let number = |error: &RankedError| (0..5).find(|number| id(*number) == error.error.id);
        found.extend(page.items.iter().filter_map(number));
        let Some(end) = page.end else { return found };
        body["cursor"] = json!(end);
    }
}

#[test]
fn pages_list_all_counted_errors_in_order() {
    for limit in 1..6 {
        assert_eq!(listed("lastSeen", limit, &[]), [1, 0, 4, 2]);
        assert_eq!(listed("firstSeen", limit, &[]), [0, 1, 4, 2]);
        assert_eq!(listed("count", limit, &[]), [2, 1, 4, 0]);
        assert_eq!(listed("users", limit, &[]), [4, 2, 1, 0]);
        // The last event decides the order, packed or not.
        assert_eq!(listed("lastSeen", limit, &[(2, 10), (0, 8), (3, 20)]), [2, 1, 0, 4]);
    }
}

#[test]
fn cursors_keep_the_time_of_the_first_page() {
    let requested_at = Timestamp::from_millis(1_794_000_000_000);
    let position = Position { sort: ErrorSort::LastSeen, requested_at, value: 7, id: id(1) };
    let cursor = position.write();
    assert_eq!(Position::read(&cursor), Some(position));
    let later = query(&json!({ "cursor": cursor })).unwrap();
    assert_eq!((later.requested_at, later.after), (requested_at, Some(position)));
    assert_eq!(later.events.range.to(), Timestamp::from_millis(1_794_000_000_000));
    for wrong in ["", "lastSeen", "lastSeen#1#2#x", "title#1#2#3", &format!("{cursor}#")] {
        assert!(query(&json!({ "cursor": wrong })).is_err(), "{wrong}");
    }
    assert!(query(&json!({"cursor": cursor, "sort": "count"})).is_err());
}

#[test]
fn requested_series_have_every_bucket() {
    let series = |body: &serde_json::Value| {
        let query = query(body).unwrap();
        let mut counts = ErrorCounts::of_users(query.with_series);
        for (bucket, events) in [(3, 2), (1, 1), (3, 2)] {
            counts.add_events(0, bucket, events);
        }
        query.page(vec![error(1, 1, 1)], counts).unwrap().items.remove(0).series
    };
    let (from, to) = (1_794_000_000_000_i64, 1_794_000_600_000_i64);
    let expected = vec![0, 1, 0, 4, 0, 0, 0, 0, 0, 0];
    assert_eq!(series(&json!({"from": from, "to": to, "series": true})), Some(expected));
    for nothing in [json!({}), json!({"series": null}), json!({"series": false})] {
        assert_eq!(series(&nothing), None);
    }
    assert!(query(&json!({"series": 1})).is_err());
}

#[test]
fn too_many_users_are_rejected() {
    let mut counts = ErrorCounts::of_users(false);
    for user in [1_u64, 2, 2] {
        counts.add_event(3, 0, Some(user));
    }
    assert_eq!(counts.users, 2);
    counts.users = MAX_USERS + 1;
    let violations = query(&json!({})).unwrap().page(Vec::new(), counts).unwrap_err();
    assert_eq!(violations.listed()[0].code, ViolationCode::TooManyItems);
}
