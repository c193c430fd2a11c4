//! A segment of a recording: the items `replay_event` and `replay_recording`.

use serde::Deserialize;
use serde_json::Value;

use shared::timestamp::Timestamp;

use super::element::Element;
use super::replay::{Click, ClickId};
use super::{
    Facts, Malformed, PainKind, ReplayId, each_event, millis_of_seconds, release_of, route,
    text_at, user_agent_of, user_of,
};

/// Clicks within 7 seconds that are a rage click.
const RAGE_CLICKS: u64 = 5;
/// Time without a reaction after which a click is dead, in milliseconds.
const DEAD_AFTER_MILLIS: f64 = 7_000.0;
/// Tags of elements that must react to clicks.
const REACTING_TAGS: [&str; 3] = ["a", "button", "input"];
/// Most clicks that are read of a segment. The SDK sends a segment every five seconds.
const MAX_CLICKS: usize = 500;
/// Types of events: the address of a page, and breadcrumbs.
const META: u8 = 4;
const CUSTOM: u8 = 5;

/// The data of a segment that pain points need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The replay.
    pub replay: ReplayId,
    /// The User-Agent of the page.
    pub user_agent: Option<String>,
    /// The clicks, in the order of the recording.
    clicks: Vec<Click>,
}

/// A change of the page's address.
struct Navigation {
    at: i64,
    from: Option<String>,
    to: String,
}

/// The clicks and the addresses of a recording.
#[derive(Default)]
struct Breadcrumbs {
    clicks: Vec<Click>,
    navigations: Vec<Navigation>,
}

impl Segment {
    /// Reads a segment. `recording` is the JSON text of the item `replay_recording`, without its
    /// header line and its compression.
    ///
    /// # Errors
    /// [`Malformed`] if an item is not JSON of the expected form.
    pub fn read(replay_event: &[u8], recording: &[u8]) -> Result<Self, Malformed> {
        let event: Value = serde_json::from_slice(replay_event).map_err(|_| Malformed)?;
        let replay = text_at(&event, "/replay_id").and_then(ReplayId::parse).ok_or(Malformed)?;
        let mut found = Breadcrumbs::default();
        // Events of other forms are not read.
        each_event(recording, |event| _ = found.read(event))?;
        let Breadcrumbs { mut clicks, mut navigations } = found;
        navigations.sort_by_key(|navigation| navigation.at);
        let (user, release) = (user_of(&event), release_of(&event));
        for click in &mut clicks {
            let page = || text_at(&event, "/request/url");
            let address = || address_at(&navigations, click.id.at).or_else(page);
            click.route = click.route.take().or_else(|| route(address()?));
            (click.user, click.release) = (user.clone(), release.clone());
        }
        Ok(Self { replay, user_agent: user_agent_of(&event), clicks })
    }

    /// `true` if the segment has no clicks.
    pub fn is_empty(&self) -> bool {
        self.clicks.is_empty()
    }

    /// Returns the facts. `clock` corrects times of the browser's clock.
    pub fn into_facts(
        mut self,
        browser: Option<&str>,
        clock: impl Fn(Timestamp) -> Timestamp,
    ) -> Facts {
        for click in &mut self.clicks {
            click.browser = browser.map(str::to_owned);
            click.occurred_at = clock(click.occurred_at);
        }
        Facts { clicks: self.clicks, errors: Vec::new() }
    }
}

/// Returns the address of the page at a time, if navigations show it.
fn address_at(navigations: &[Navigation], at: i64) -> Option<&str> {
    let later = navigations.partition_point(|navigation| navigation.at <= at);
    let before = later.checked_sub(1).and_then(|last| navigations.get(last));
    match before {
        Some(navigation) => Some(&navigation.to),
        None => navigations.get(later)?.from.as_deref(),
    }
}

impl Breadcrumbs {
    /// Reads an event. Returns `None` if it has another form.
    fn read(&mut self, json: &str) -> Option<()> {
        /// The only member that most events are parsed for.
        #[derive(Deserialize)]
        struct Head {
            r#type: u8,
        }
        let kind = serde_json::from_str::<Head>(json).ok()?.r#type;
        if ![META, CUSTOM].contains(&kind) {
            return None;
        }
        let event: Value = serde_json::from_str(json).ok()?;
        if kind == META {
            let at = millis_of_seconds(event.get("timestamp")?.as_f64()? / 1e3)?;
            let to = text_at(&event, "/data/href")?.to_owned();
            self.navigations.push(Navigation { at, from: None, to });
        } else if text_at(&event, "/data/tag") == Some("breadcrumb") {
            self.read_breadcrumb(event.pointer("/data/payload")?)?;
        }
        Some(())
    }

    fn read_breadcrumb(&mut self, payload: &Value) -> Option<()> {
        let at = millis_of_seconds(payload.get("timestamp")?.as_f64()?)?;
        let data = payload.get("data").unwrap_or(&Value::Null);
        let category = text_at(payload, "/category")?;
        if category == "navigation" {
            let from = text_at(data, "/from").map(str::to_owned);
            let to = text_at(data, "/to")?.to_owned();
            self.navigations.push(Navigation { at, from, to });
            return Some(());
        }
        let node = data.get("node").unwrap_or(&Value::Null);
        let element = Element::read(text_at(payload, "/message").unwrap_or_default(), node);
        let verdict = match category {
            "ui.click" => None,
            // A reaction after three seconds is slow, and no pain point.
            "ui.slowClickDetected" => Some(slow_click(data, &element.tag)?),
            "ui.multiClick" => Some(rage_click(data)?),
            _ => return None,
        };
        let node = data.get("nodeId").or_else(|| node.get("id")).and_then(Value::as_i64);
        let click = Click {
            id: ClickId { at, node: node.unwrap_or_default() },
            verdict,
            occurred_at: Timestamp::from_millis(at),
            label: element.label,
            selector: element.selector,
            route: text_at(data, "/url").and_then(route),
            user: None,
            browser: None,
            release: None,
            applied: None,
        };
        if self.clicks.len() < MAX_CLICKS {
            self.clicks.push(click);
        }
        Some(())
    }
}

/// Returns the verdict of a slow click and the number of clicks
/// (`docs/semantics/replay-insights.md`, "Derived pain points").
fn slow_click(data: &Value, tag: &str) -> Option<(PainKind, u64)> {
    let millis = data.get("timeAfterClickMs").and_then(Value::as_f64);
    let is_dead = text_at(data, "/endReason") == Some("timeout")
        && millis.is_some_and(|millis| millis >= DEAD_AFTER_MILLIS)
        && REACTING_TAGS.contains(&tag);
    let dead_click = (PainKind::DeadClick, clicks_of(data));
    is_dead.then(|| rage_click(data).unwrap_or(dead_click))
}

/// Returns the verdict if there are enough clicks for a rage click.
fn rage_click(data: &Value) -> Option<(PainKind, u64)> {
    let clicks = clicks_of(data);
    (clicks >= RAGE_CLICKS).then_some((PainKind::RageClick, clicks))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The cast saturates.
fn clicks_of(data: &Value) -> u64 {
    data.get("clickCount").and_then(Value::as_f64).map_or(1, |count| count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ID: &str = "ac012cadf588491bb76da90129e33c41";

    fn breadcrumb(category: &str, seconds: f64, data: &Value) -> Value {
        json!({"type": 5, "timestamp": seconds * 1e3, "data": {"tag": "breadcrumb", "payload": {
            "category": category, "timestamp": seconds, "message": "body > a#b", "data": data}}})
    }

    fn read(events: &[Value]) -> Segment {
        let event = json!({"replay_id": ID, "request": {"url": "https://h/last"},
            "user": {"id": "u"}, "release": "1"});
        let events = serde_json::to_string(events).unwrap();
        Segment::read(event.to_string().as_bytes(), events.as_bytes()).unwrap()
    }

    fn verdict_of(category: &str, tag: &str, data: &Value) -> Option<PainKind> {
        let mut data = data.clone();
        data["node"] = json!({"id": 3, "tagName": tag});
        data["nodeId"] = json!(3);
        read(&[breadcrumb(category, 1.5, &data)]).clicks.first()?.verdict.map(|(kind, _)| kind)
    }

    #[test]
    fn slow_clicks_are_dead_after_seven_seconds() {
        use PainKind::{DeadClick, RageClick};
        for (tag, reason, millis, clicks, expected) in [
            ("a", "timeout", 7_000, 1, Some(DeadClick)),
            ("button", "timeout", 7_000, 4, Some(DeadClick)),
            ("INPUT", "timeout", 7_001, 5, Some(RageClick)),
            ("div", "timeout", 7_000, 5, None),
            ("a", "mutation", 7_000, 5, None),
            ("a", "timeout", 6_999, 5, None),
        ] {
            let data =
                json!({"endReason": reason, "timeAfterClickMs": millis, "clickCount": clicks});
            let found = verdict_of("ui.slowClickDetected", tag, &data);
            assert_eq!(found, expected, "{tag} {reason} {millis} {clicks}");
        }
        let data = json!({"endReason": "timeout", "timeAfterClickMs": 7000});
        assert_eq!(verdict_of("ui.slowClickDetected", "a", &data), Some(DeadClick));
    }

    #[test]
    fn five_quick_clicks_are_a_rage_click() {
        let of = |clicks| verdict_of("ui.multiClick", "div", &json!({"clickCount": clicks}));
        assert_eq!(
            [of(4), of(5), of(60)],
            [None, Some(PainKind::RageClick), Some(PainKind::RageClick)]
        );
    }

    #[test]
    fn clicks_have_the_route_of_their_time() {
        let click = |seconds| breadcrumb("ui.click", seconds, &json!({"nodeId": 1}));
        let to = |seconds, from: &str, to: &str| {
            breadcrumb("navigation", seconds, &json!({"from": from, "to": to}))
        };
        let routes = |events: &[Value]| -> Vec<Option<String>> {
            read(events).clicks.into_iter().map(|click| click.route).collect()
        };
        let some = |route: &str| Some(route.to_owned());
        assert_eq!(routes(&[click(1.0)]), [some("/last")]);
        let events = [click(3.0), to(2.0, "/a/1", "/b/2?x"), click(1.0)];
        assert_eq!(routes(&events), [some("/b/:id"), some("/a/:id")]);
        let meta = json!({"type": 4, "timestamp": 500, "data": {"href": "https://h/meta#x"}});
        assert_eq!(routes(&[click(1.0), meta]), [some("/meta")]);
        let data = json!({"clickCount": 5, "nodeId": 1, "url": "https://h/own?q"});
        assert_eq!(routes(&[breadcrumb("ui.multiClick", 1.0, &data)]), [some("/own")]);
    }

    #[test]
    fn other_events_are_skipped() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        let deep: Value = json!({"type": 2, "data": deep});
        let events = [
            json!(null),
            json!({"type": "5"}),
            json!({"type": 5, "data": {"tag": "performanceSpan", "payload": {}}}),
            json!({"type": 5, "data": {"tag": "breadcrumb", "payload": {"category": "ui.click"}}}),
            breadcrumb("custom", 1.0, &json!("text")),
            deep,
            breadcrumb("ui.click", 1.25, &json!({"nodeId": 9})),
        ];
        let segment = read(&events);
        let found: Vec<_> = segment.clicks.iter().map(|click| click.id).collect();
        assert_eq!(found, [ClickId { at: 1_250, node: 9 }]);
        assert_eq!(segment.clicks[0].user.as_deref(), Some("u"));
    }

    #[test]
    fn segments_without_replay_id_are_malformed() {
        for (event, recording) in [("{}", "[]"), ("[", "[]"), ("{\"replay_id\":\"x\"}", "[]")] {
            let read = Segment::read(event.as_bytes(), recording.as_bytes());
            assert_eq!(read, Err(Malformed), "{event}");
        }
        let event = format!("{{\"replay_id\":\"{ID}\"}}");
        assert_eq!(Segment::read(event.as_bytes(), b"[{"), Err(Malformed));
        assert!(Segment::read(event.as_bytes(), b"[]").unwrap().is_empty());
    }
}
