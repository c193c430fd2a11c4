//! Filter categories: each value of each category finds exactly the events with that value.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Program, Reported, is_handled};

/// A category, and the function that reads an event's value (`openapi.yaml`, "Filter categories").
type Category = (&'static str, fn(&Value) -> Option<String>);

const CATEGORIES: [Category; 13] = [
    ("environment", |event| text(&event["environment"])),
    ("release", |event| text(&event["release"])),
    ("level", |event| text(&event["level"]).or(Some("error".to_owned()))),
    ("handled", |event| Some(is_handled(event).to_string())),
    ("browser", |event| text(&event["contexts"]["browser"]["name"])),
    ("os", |event| first(event, &["/contexts/os/name", "/contexts/client_os/name"])),
    ("device", |event| {
        first(
            event,
            &["/contexts/device/family", "/contexts/device/model", "/contexts/device/name"],
        )
    }),
    ("country", |event| text(&event["user"]["geo"]["country_code"])),
    ("platform", |event| text(&event["platform"])),
    ("transaction", |event| text(&event["transaction"])),
    ("bot", |_| Some("false".to_owned())),
    ("user", |event| {
        let address = text(&event["user"]["ip_address"]).filter(|address| address != "{{auto}}");
        first(event, &["/user/id", "/user/email"]).or(address)
    }),
    ("type", |event| text(&event["exception"]["values"].as_array()?.last()?["type"])),
];

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn first(event: &Value, pointers: &[&str]) -> Option<String> {
    pointers.iter().find_map(|pointer| text(event.pointer(pointer)?))
}

impl Program<'_> {
    /// Checks the count of each value of each category.
    pub(super) async fn check_categories(&self, errors: &[Reported]) {
        for (category, value_of) in CATEGORIES {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for reported in errors.iter().flat_map(|reported| &reported.events) {
                if let Some(value) = value_of(&reported["event"]) {
                    *counts.entry(value).or_default() += 1;
                }
            }
            let filter = |operator: &str, value: &str| json!({"categoryId": category, "operator": operator, "value": value});
            let set: usize = counts.values().sum();
            assert_eq!(self.count(filter("is_set", "")).await, set, "{category}");
            for (value, count) in counts {
                assert_eq!(self.count(filter("is", &value)).await, count, "{category} is {value}");
            }
        }
    }

    /// Returns the number of events that a filter finds.
    pub(super) async fn count(&self, filter: Value) -> usize {
        let query = json!({
            "projectIds": [self.project], "from": self.started_at, "filters": [filter],
        });
        self.timeseries(&query).await.values().map(|(errors, _)| errors).sum()
    }
}
