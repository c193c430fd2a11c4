//! Random queries of query-errors, breakdown-errors and list-error-categories.

use std::collections::BTreeSet;

use super::questions::{bucket_size, minute_start, value_of};
use super::*;

const SORTS: [&str; 4] = ["lastSeen", "firstSeen", "count", "users"];
const BY: [&str; 8] =
    ["browser", "os", "environment", "release", "level", "type", "device", "tags.tenant"];

/// Returns the value of a breakdown category.
fn value_by<'e>(event: &'e SentEvent, by: &str) -> Option<&'e str> {
    if by == "type" { Some(&event.error_type) } else { value_of(event, by) }
}

impl History {
    /// Returns the events that a query counts.
    fn counted(&self, query: &Query) -> Vec<&Acknowledged> {
        let (from, to) = self.minutes(query);
        let now = self.tracker.now().as_millis();
        let size = bucket_size(from, to);
        // No bucket starts after now, but the current bucket counts to its end.
        let last = (now.div_euclid(size) + 1) * size;
        let is_counted = |sent: &&Acknowledged| {
            let at = sent.event.at.as_millis();
            at >= from && at < to.min(last) && self.passes(query, sent)
        };
        self.events.iter().filter(is_counted).collect()
    }

    pub(super) async fn check_errors(&mut self) {
        let mut query = self.query();
        query.projects.truncate(1);
        let mut body = self.body(&query);
        let sort = *SORTS.choose(&mut self.random).unwrap();
        for name in ["projectIds", "limit"] {
            body.as_object_mut().unwrap().remove(name);
        }
        body["sort"] = json!(sort);
        body["limit"] = json!(self.random.random_range(1..4));
        let with_series = self.random.random_ratio(2, 3);
        body["series"] = json!(with_series);
        let call =
            Call::of(QUERY_ERRORS).parameter("idOrSlug", self.projects[query.projects[0]].id);
        let call = call.key(&self.tracker.test.key);
        let mut errors: Vec<Value> = Vec::new();
        loop {
            let reply = call.clone().json(&body).send_until_response(&self.tracker.test.app).await;
            assert_eq!(reply.status, 200, "{}", reply.body);
            errors.extend(reply.body["items"].as_array().unwrap().iter().cloned());
            body["cursor"] = reply.body["nextCursor"].clone();
            if body["cursor"].is_null() {
                break;
            }
        }
        let mut expected: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for sent in self.counted(&query) {
            let count = expected.entry(&sent.event.error_type).or_default();
            count.0 += 1;
            count.1.extend(sent.event.attributes.get("user").map(String::as_str));
        }
        let expected: Vec<Value> = expected
            .iter()
            .map(|(error_type, (events, users))| json!([error_type, events, users.len()]))
            .collect();
        let mut found: Vec<Value> = errors
            .iter()
            .map(|error| json!([error["type"], error["count"], error["users"]]))
            .collect();
        found.sort_by_key(|error| error[0].to_string());
        assert_eq!(found, expected, "{body}");
        let sort_value = |error: &Value| match &error[sort] {
            Value::String(time) => {
                let minutes = if sort == "lastSeen" { 60_000 } else { 0 };
                (Timestamp::parse_rfc3339(time).unwrap().as_millis(), minutes)
            }
            count => (count.as_i64().unwrap(), 0),
        };
        let in_order = |(one, lag): (i64, i64), (other, _)| one + lag >= other;
        let is_sorted =
            errors.is_sorted_by(|one, other| in_order(sort_value(one), sort_value(other)));
        assert!(is_sorted, "{errors:?}");
        if !with_series {
            assert!(errors.iter().all(|error| error.get("series").is_none()), "{errors:?}");
        } else if let Some(error) = errors.choose(&mut self.random) {
            assert_eq!(self.series_of(&query, error).await, error["series"], "{body}");
        }
    }

    /// Returns the event counts of an error over time, from query-error-timeseries.
    async fn series_of(&mut self, query: &Query, error: &Value) -> Value {
        let mut body = self.body(query);
        body.as_object_mut().unwrap().remove("limit");
        let filter = json!({"categoryId": "errorId", "operator": "is", "value": error["errorId"]});
        match &mut body["filters"] {
            Value::Array(filters) => filters.push(filter),
            none => *none = json!([filter]),
        }
        let buckets = self.tracker.query(&body).await;
        assert_eq!(buckets.status, 200, "{}", buckets.body);
        let buckets = buckets.body.as_array().unwrap().clone();
        buckets.iter().map(|bucket| bucket["errors"].clone()).collect()
    }

    pub(super) async fn check_breakdown(&mut self) {
        let query = self.query();
        let mut body = self.body(&query);
        let by = *BY.choose(&mut self.random).unwrap();
        let limit = self.random.random_range(1..4);
        (body["by"], body["limit"]) = (json!(by), json!(limit));
        let call = Call::of(BREAKDOWN).key(&self.tracker.test.key).json(&body);
        let reply = call.send_until_response(&self.tracker.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let mut values: BTreeMap<Option<&str>, Vec<(usize, &str)>> = BTreeMap::new();
        for sent in self.counted(&query) {
            let of_value = values.entry(value_by(&sent.event, by)).or_default();
            of_value.push((sent.project, &sent.event.error_type));
        }
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by_key(|(value, events)| (usize::MAX - events.len(), value.is_none()));
        let rest = values.split_off(limit.min(values.len()));
        let row = |value: Option<&str>, events: &[(usize, &str)]| {
            let distinct: BTreeSet<_> = events.iter().collect();
            json!({"value": value, "errors": events.len(), "uniqueErrors": distinct.len()})
        };
        let mut rows: Vec<Value> =
            values.iter().map(|(value, events)| row(*value, events)).collect();
        if !rest.is_empty() {
            let events: Vec<_> = rest.into_iter().flat_map(|(_, events)| events).collect();
            rows.push(row(None, &events));
            rows.last_mut().unwrap()["other"] = json!(true);
        }
        assert_eq!(reply.body, json!(rows), "{body}");
    }

    pub(super) async fn check_categories(&self) {
        for (number, project) in self.projects.iter().enumerate() {
            let call = Call::of(CATEGORIES).parameter("idOrSlug", project.id);
            let call = call.key(&self.tracker.test.key);
            let reply = call.send_until_response(&self.tracker.test.app).await;
            assert_eq!(reply.status, 200, "{}", reply.body);
            let minute = minute_start(self.tracker.now().as_millis());
            // Clocks that are ahead produce events in future minutes, which are not listed yet.
            let times = minute - 30 * 24 * 60 * 60_000..minute + 60_000;
            for category in reply.body.as_array().unwrap() {
                let id = category["id"].as_str().unwrap();
                if !BY.contains(&id) {
                    continue;
                }
                let mut values: BTreeMap<&str, usize> = BTreeMap::new();
                let listed = |sent: &&Acknowledged| {
                    sent.project == number && times.contains(&sent.event.at.as_millis())
                };
                for sent in self.events.iter().filter(listed) {
                    if let Some(value) = value_by(&sent.event, id) {
                        *values.entry(value).or_default() += 1;
                    }
                }
                let mut values: Vec<(&str, usize)> = values.into_iter().collect();
                values.sort_by_key(|(_, count)| usize::MAX - count);
                values.truncate(200);
                let values: Vec<&str> = values.into_iter().map(|(value, _)| value).collect();
                assert_eq!(category["values"], json!(values), "{id}");
            }
        }
    }
}
