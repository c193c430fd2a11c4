//! Random queries, and recounts of their results.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use shared::timestamp::Timestamp;
use tests::errors::SentEvent;

use super::super::{DAY, HOUR};
use super::{ATTRIBUTES, Acknowledged, History, STATUSES};

const OPERATORS: [&str; 6] = ["is", "is_not", "contains", "not_contains", "is_set", "is_not_set"];

type Passes = fn(&SentEvent) -> bool;

/// Searches, and the events that match them.
const SEARCHES: [(&str, Passes); 9] = [
    ("card", |event| event.message.contains("card")),
    ("CARD -bad", |event| event.message == "the card was declined"),
    ("-error", |event| event.error_type == "PaymentDeclined"),
    ("\"property of\"", |event| event.error_type == "TypeError"),
    ("nothing-like-it", |_| false),
    ("!os:Debian", |event| value_of(event, "os") != Some("Debian")),
    ("browser:[Chrome,Firefox]", |event| {
        matches!(value_of(event, "browser"), Some("Chrome" | "Firefox"))
    }),
    ("tenant:acme card", |event| {
        value_of(event, "tags.tenant") == Some("acme") && event.message.contains("card")
    }),
    ("TypeError: level:warning", |event| {
        event.error_type == "TypeError" && value_of(event, "level") == Some("warning")
    }),
];

/// Returns the value of an attribute, as filters use it.
pub(super) fn value_of<'e>(event: &'e SentEvent, name: &str) -> Option<&'e str> {
    let sent = event.attributes.get(name).map(String::as_str);
    if name == "level" { sent.or(Some("error")) } else { sent }
}

pub(super) fn minute_start(at: i64) -> i64 {
    at.div_euclid(60_000) * 60_000
}

/// Returns the bucket size of a range of whole minutes, in milliseconds.
pub(super) fn bucket_size(from: i64, to: i64) -> i64 {
    let minutes = match (to - from) / 60_000 {
        ..=120 => 1,
        121..=720 => 5,
        721..=2_880 => 30,
        2_881..=20_160 => 60,
        _ => 1_440,
    };
    minutes * 60_000
}

/// A query.
#[derive(Debug, Clone)]
pub(super) struct Query {
    pub(super) projects: Vec<usize>,
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) limit: Option<usize>,
    pub(super) status: Option<&'static str>,
    pub(super) search: Option<usize>,
    pub(super) filters: Vec<[&'static str; 3]>,
}

impl History {
    pub(super) fn query(&mut self) -> Query {
        let mut projects: Vec<usize> = (0..self.projects.len()).collect();
        if self.random.random_ratio(1, 2) {
            projects = vec![self.random.random_range(0..self.projects.len())];
        }
        let (from, to) = self.range();
        let mut filters = Vec::new();
        if self.random.random_ratio(1, 2) {
            for _ in 0..=self.random.random_range(0..3) {
                let (name, values) = *ATTRIBUTES.choose(&mut self.random).unwrap();
                let operator = match OPERATORS.choose(&mut self.random).unwrap() {
                    // Users are hashed, so they do not support `contains`.
                    &"contains" | &"not_contains" if name == "user" => "is_not",
                    operator => *operator,
                };
                let value = match operator {
                    "is_set" | "is_not_set" => "",
                    "contains" | "not_contains" => {
                        *["chrome", "2.0", "ION"].choose(&mut self.random).unwrap()
                    }
                    _ => *values.choose(&mut self.random).unwrap(),
                };
                filters.push([name, operator, value]);
            }
        }
        let limit = self.random.random_ratio(1, 4).then(|| 1 + self.random.random_range(0..60));
        let status =
            self.random.random_ratio(1, 3).then(|| *STATUSES.choose(&mut self.random).unwrap());
        let search =
            self.random.random_ratio(1, 3).then(|| self.random.random_range(0..SEARCHES.len()));
        Query { projects, from, to, limit, status, search, filters }
    }

    /// Returns a range. Its ends are at any millisecond, at minutes, hours or days, or at an event.
    fn range(&mut self) -> (Option<i64>, Option<i64>) {
        let now = self.tracker.now().as_millis();
        let end = |history: &mut Self, at: i64| match history.random.random_range(0..4) {
            0 => at.div_euclid(60_000) * 60_000,
            1 => at.div_euclid(3_600_000) * 3_600_000,
            2 => at.div_euclid(86_400_000) * 86_400_000,
            _ => at,
        };
        let ahead = self.random.random_range(Duration::ZERO..2 * HOUR);
        let back = self.random.random_range(Duration::ZERO..30 * DAY);
        let to = match self.random.random_range(0..4) {
            0 => None,
            1 => Some(now + i64::try_from(ahead.as_millis()).unwrap()),
            2 if !self.events.is_empty() => Some(
                self.events[self.random.random_range(0..self.events.len())].event.at.as_millis()
                    + 1,
            ),
            _ => Some(end(self, now - i64::try_from(back.as_millis()).unwrap())),
        };
        let longest =
            *[2 * HOUR, 12 * HOUR, 48 * HOUR, 14 * DAY, 60 * DAY].choose(&mut self.random).unwrap();
        let length = if self.random.random_ratio(1, 4) {
            longest
        } else {
            self.random.random_range(Duration::ZERO..longest)
        };
        let from = to.unwrap_or(now) - i64::try_from(length.as_millis()).unwrap().max(60_000);
        let from = if self.random.random_ratio(1, 6) { None } else { Some(end(self, from)) };
        (from, to.map(|to| to.max(from.map_or(to, |from| from + 1))))
    }

    pub(super) fn body(&mut self, query: &Query) -> Value {
        let mut names = Vec::new();
        for project in &query.projects {
            let project = &self.projects[*project];
            names.push(if self.random.random_ratio(1, 2) {
                project.id.to_string()
            } else {
                project.slug.to_string()
            });
        }
        let filter = |[name, operator, value]: &[&str; 3]| json!({"categoryId": name, "operator": operator, "value": value});
        json!({
            "projectIds": names,
            "from": query.from,
            "to": query.to,
            "limit": query.limit,
            "status": query.status,
            "searchQuery": query.search.map(|search| SEARCHES[search].0),
            "filters": query.filters.iter().map(filter).collect::<Vec<_>>(),
        })
    }

    /// Returns the range of a query, rounded to minutes. A future range is empty.
    pub(super) fn minutes(&self, query: &Query) -> (i64, i64) {
        let now = self.tracker.now().as_millis();
        if query.from.is_some_and(|from| from > now) {
            return (0, 0);
        }
        let to = query.to.unwrap_or(now);
        let from = query.from.unwrap_or(to - 7 * 24 * 60 * 60_000);
        (minute_start(from), minute_start(to + 60_000 - 1))
    }

    /// Returns the expected buckets, counted event by event.
    fn expected(&self, query: &Query) -> Vec<(String, u64, u64)> {
        let now = self.tracker.now().as_millis();
        let (from, to) = self.minutes(query);
        let size = bucket_size(from, to);
        let mut buckets = Vec::new();
        let mut start = from.div_euclid(size) * size;
        while start < to && start <= now {
            let counted = self.events.iter().filter(|sent| {
                let at = sent.event.at.as_millis();
                at >= from.max(start) && at < to.min(start + size) && self.passes(query, sent)
            });
            let counted: Vec<(usize, &str)> =
                counted.map(|sent| (sent.project, sent.event.error_type.as_str())).collect();
            let distinct: BTreeSet<&(usize, &str)> = counted.iter().collect();
            let shown = Timestamp::from_millis(start).to_string();
            buckets.push((shown, counted.len() as u64, distinct.len() as u64));
            start += size;
        }
        let kept = query.limit.unwrap_or(usize::MAX).min(buckets.len());
        buckets.split_off(buckets.len() - kept)
    }

    pub(super) fn passes(&self, query: &Query, sent: &Acknowledged) -> bool {
        let Acknowledged { project, event } = sent;
        let status = self.statuses[&(*project, event.error_type.clone())].name;
        let holds = |[name, operator, wanted]: &[&str; 3]| {
            let value = value_of(event, name);
            let contains =
                || value.is_some_and(|it| it.to_lowercase().contains(&wanted.to_lowercase()));
            match *operator {
                "is" => value == Some(wanted),
                "is_not" => value != Some(wanted),
                "contains" => contains(),
                "not_contains" => !contains(),
                "is_set" => value.is_some(),
                _ => value.is_none(),
            }
        };
        let is_alternative = |filter: &&[&str; 3]| matches!(filter[1], "is" | "contains");
        query.projects.contains(project)
            && query.status.is_none_or(|wanted| wanted == status)
            && query.search.is_none_or(|search| SEARCHES[search].1(event))
            && query.filters.iter().all(|filter| {
                if is_alternative(&filter) {
                    let alternatives = query.filters.iter().filter(is_alternative);
                    alternatives.filter(|other| other[0] == filter[0]).any(holds)
                } else {
                    holds(filter)
                }
            })
    }

    /// Returns a random query and its request body.
    pub(super) fn question(&mut self) -> (Query, Value) {
        let query = self.query();
        let body = self.body(&query);
        (query, body)
    }

    /// Sends a query, and compares the buckets with a recount.
    pub(super) async fn check(&self, query: &Query, body: &Value) {
        let found = self.tracker.buckets(body).await;
        let expected = self.expected(query);
        let differs = found.iter().zip(&expected).find(|(one, other)| one != other);
        assert!(found == expected, "{body}: {differs:?}, {} {}", found.len(), expected.len());
    }
}
