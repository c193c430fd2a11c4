//! The browser SDK in Chromium, with tracing and replay enabled.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tests::browser;
use tests::stack::Stack;

use crate::recording_proxy::{Exchange, RecordingProxy};

use super::{
    LAST, PAYMENTS, Program, ReportedError, handled, imported_late, reported_errors, unhandled,
};

/// Filter value `browser` of the page's events. Browser SDKs let the server read the `user-agent`
/// header.
const BROWSER: Option<&str> = Some("Chrome");

/// Maximum delay between the proxy's response and its arrival at the page.
const DELIVERY_DELAY: Duration = Duration::from_millis(100);

/// With tracing, the transaction of an event is the page.
const PAGE: &str = "/";

/// Checks that a page reports each of its errors, and that none of its requests fails or is
/// blocked. After its first session, it sends no items that are dropped.
pub(super) async fn reports_each_error(stack: &Stack) {
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let chromium = browser();
    let command = ["browser", "node", "visit.mjs", &chromium];
    let (page, status, stderr) = Program::run(stack, &proxy.base_url, "browser", &command).await;
    assert_eq!(status, Some(0), "{stderr}");

    let seen: Value = serde_json::from_str(&page.output).unwrap();
    assert_eq!(seen["failed"], json!([]), "{seen}");
    assert_eq!(seen["left"], true, "events were not sent: {seen}");
    // Browsers report blocked access here, too.
    assert_eq!(seen["messages"], json!([]), "{seen}");
    let uncaught: BTreeSet<&str> = texts(&seen["errors"]).collect();
    assert_eq!(uncaught, BTreeSet::from(["the last one", "the warehouse hung up"]));
    let requests = seen["requests"].as_array().unwrap();
    let of_the_sdk: Vec<&Value> =
        requests.iter().filter(|request| request["origin"] == proxy.base_url.as_str()).collect();
    assert!(of_the_sdk.iter().all(|it| matches!(it["status"].as_u64(), Some(200 | 204))), "{seen}");

    let exchanges = proxy.exchanges();
    let has = |exchange: &Exchange, kind: &str| {
        let kind = format!("{{\"type\":\"{kind}\"");
        String::from_utf8_lossy(&exchange.body).contains(&kind)
    };
    // Requests that were sent before the first response cannot depend on it.
    let first = exchanges.iter().find(|it| has(it, "session")).expect("a session is sent");
    let from = first.responded_at + DELIVERY_DELAY;
    for kind in ["session", "span", "transaction"] {
        let sent = exchanges.iter().find(|it| it.at > from && has(it, kind));
        assert!(sent.is_none(), "{kind}: {sent:?}");
    }
    assert!(exchanges.iter().all(|it| matches!(it.status, 200 | 204)), "{exchanges:?}");

    let errors = page.errors().await;
    let expected = [
        ReportedError { culprit: PAGE, ..imported_late() },
        handled("PaymentError", PAGE, &[PAYMENTS[0], "order 2 at 10.0.0.2 is not found"]),
        unhandled("RangeError", PAGE, LAST),
        unhandled("URIError", PAGE, "the warehouse hung up"),
    ];
    let arrived: Vec<ReportedError<'_>> = reported_errors(&errors);
    assert_eq!(arrived, expected, "{}", page.output);
    page.check_timeseries(&errors).await;
    page.check_categories(&errors).await;
    let all = errors.iter().map(|error| error.events.len()).sum::<usize>();
    let is_set = json!({"categoryId": "browser", "operator": "is_set", "value": ""});
    assert_eq!(page.count(is_set).await, if BROWSER.is_some() { all } else { 0 });
    if let Some(browser) = BROWSER {
        let is = json!({"categoryId": "browser", "operator": "is", "value": browser});
        assert_eq!(page.count(is).await, all);
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
