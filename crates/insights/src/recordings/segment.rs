//! A segment of a recording: the items `replay_event` and `replay_recording`.

use serde_json::Value;

use super::element::Element;
use super::{
    Malformed, PainKind, ReplayId, each_event, millis_of_seconds, release_of, route, text_at,
    user_agent_of, user_of, value_at,
};

/// Clicks within 7 seconds that are a rage click.
const RAGE_CLICKS: u64 = 5;
/// Time without a reaction after which a click is dead, in milliseconds.
const DEAD_AFTER_MILLIS: f64 = 7_000.0;
/// Tags of elements that must react to clicks.
const REACTING_TAGS: [&str; 3] = ["a", "button", "input"];
/// Most clicks that are read of a segment. The SDK sends a segment every five seconds.
const MAX_CLICKS: usize = 500;

/// The data of a segment that pain points need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The replay.
    pub replay: ReplayId,
    /// The circumstances of the segment.
    pub context: SegmentContext,
    /// The clicks, in the order of the recording.
    pub(super) clicks: Vec<SegmentClick>,
}

/// The circumstances of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentContext {
    /// The identity of the user.
    pub user: Option<String>,
    /// The User-Agent of the page.
    pub user_agent: Option<String>,
    /// The release of the page.
    pub release: Option<String>,
}

/// A click, or the SDK's verdict on a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentClick {
    /// Time of the click in milliseconds, by the clock of the browser.
    pub(super) at: i64,
    /// The ID of the node in the recording.
    pub(super) node: i64,
    /// The verdict and the number of clicks.
    pub(super) verdict: Option<(PainKind, u64)>,
    /// The label of the element.
    pub(super) label: String,
    /// The selector of the element.
    pub(super) selector: String,
    /// The route of the page.
    pub(super) route: Option<String>,
}

/// A change of the page's address.
struct Navigation {
    at: i64,
    from: Option<String>,
    to: String,
}

impl Segment {
    /// Reads a segment. `recording` is the JSON text of the item `replay_recording`, without its
    /// header line and its compression.
    ///
    /// # Errors
    /// [`Malformed`] if an item is not JSON of the expected form.
    pub fn read(replay_event: &[u8], recording: &[u8]) -> Result<Self, Malformed> {
        let event: Value = serde_json::from_slice(replay_event).map_err(|_| Malformed)?;
        let replay = text_at(&event, &["replay_id"]).and_then(ReplayId::parse).ok_or(Malformed)?;
        let mut clicks = Vec::new();
        let mut navigations = Vec::new();
        each_event(recording, |event| match read_event(event) {
            Some(Found::Click(click)) if clicks.len() < MAX_CLICKS => clicks.push(click),
            Some(Found::Navigation(navigation)) => navigations.push(navigation),
            _ => {}
        })?;
        navigations.sort_by_key(|navigation| navigation.at);
        let page = text_at(&event, &["request", "url"]);
        let clicks = clicks.into_iter().map(|(mut click, url)| {
            let url = url.as_deref().or_else(|| address_at(&navigations, click.at)).or(page);
            click.route = url.and_then(route);
            click
        });
        let context = SegmentContext {
            user: user_of(&event),
            user_agent: user_agent_of(&event),
            release: release_of(&event),
        };
        Ok(Self { replay, context, clicks: clicks.collect() })
    }

    /// `true` if the segment has no clicks.
    pub fn is_empty(&self) -> bool {
        self.clicks.is_empty()
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

enum Found {
    /// A click, and its own address.
    Click((SegmentClick, Option<String>)),
    Navigation(Navigation),
}

fn read_event(json: &[u8]) -> Option<Found> {
    /// The only member that most events are parsed for.
    #[derive(serde::Deserialize)]
    struct Head {
        r#type: u8,
    }
    match serde_json::from_slice::<Head>(json).ok()?.r#type {
        4 => {
            let event: Value = serde_json::from_slice(json).ok()?;
            let at = event.get("timestamp")?.as_f64().and_then(|it| millis_of_seconds(it / 1e3))?;
            let to = text_at(&event, &["data", "href"])?.to_owned();
            Some(Found::Navigation(Navigation { at, from: None, to }))
        }
        5 => {
            let event: Value = serde_json::from_slice(json).ok()?;
            let data =
                event.get("data").filter(|data| text_at(data, &["tag"]) == Some("breadcrumb"));
            read_breadcrumb(data?.get("payload")?)
        }
        _ => None,
    }
}

fn read_breadcrumb(payload: &Value) -> Option<Found> {
    let at = millis_of_seconds(payload.get("timestamp")?.as_f64()?)?;
    let data = payload.get("data").unwrap_or(&Value::Null);
    let category = text_at(payload, &["category"])?;
    if category == "navigation" {
        let from = text_at(data, &["from"]).map(str::to_owned);
        let to = text_at(data, &["to"])?.to_owned();
        return Some(Found::Navigation(Navigation { at, from, to }));
    }
    let node = data.get("node").unwrap_or(&Value::Null);
    let message = text_at(payload, &["message"]).unwrap_or_default();
    let verdict = match category {
        "ui.click" => None,
        "ui.slowClickDetected" | "ui.multiClick" => {
            // A reaction after three seconds is slow, and no pain point.
            Some(verdict(category, data, &Element::read(message, node).tag)?)
        }
        _ => return None,
    };
    let node_id = data.get("nodeId").or_else(|| node.get("id")).and_then(Value::as_i64);
    let element = Element::read(message, node);
    let click = SegmentClick {
        at,
        node: node_id.unwrap_or_default(),
        verdict,
        label: element.label,
        selector: element.selector,
        route: None,
    };
    Some(Found::Click((click, text_at(data, &["url"]).map(str::to_owned))))
}

/// Returns the verdict of a breadcrumb and the number of clicks
/// (`docs/semantics/replay-insights.md`, "Derived pain points").
fn verdict(category: &str, data: &Value, tag: &str) -> Option<(PainKind, u64)> {
    let number = |name| value_at(data, &[name]).and_then(Value::as_f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The cast saturates.
    let clicks = number("clickCount").map_or(1, |count| count as u64);
    let is_rage = clicks >= RAGE_CLICKS;
    if category == "ui.multiClick" {
        return is_rage.then_some((PainKind::RageClick, clicks));
    }
    let is_dead = text_at(data, &["endReason"]) == Some("timeout")
        && number("timeAfterClickMs").is_some_and(|millis| millis >= DEAD_AFTER_MILLIS)
        && REACTING_TAGS.contains(&tag);
    let kind = if is_rage { PainKind::RageClick } else { PainKind::DeadClick };
    is_dead.then_some((kind, clicks))
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
        let found: Vec<_> = segment.clicks.iter().map(|click| (click.at, click.node)).collect();
        assert_eq!(found, [(1_250, 9)]);
        assert_eq!(segment.context.user.as_deref(), Some("u"));
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
