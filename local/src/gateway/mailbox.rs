//! Fakes of Amazon SES and Amazon EventBridge: they accept messages in the services' protocols and
//! store them. `/mail` shows them.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Map, Value as Json, json};
use shared::text::escape_html;
use shared::timestamp::Timestamp;

/// Page with emails and events. In JSON, a list of emails.
const PAGE: &str = "/mail";
/// List of events in JSON.
const EVENTS: &str = "/mail/events";
/// Path of the fake SES, and its operation `SendEmail` (Amazon SES API v2).
pub const SES_PATH: &str = "/.aws/ses";
const OUTBOUND: &str = "/.aws/ses/v2/email/outbound-emails";
/// Path of the fake EventBridge. A header names the operation.
pub const EVENT_BRIDGE_PATH: &str = "/.aws/eventbridge";
const TARGET: &str = "x-amz-target";
const PUT_EVENTS: &str = "AWSEvents.PutEvents";

/// `true` for a path that pages of other origins must not use.
pub(super) fn is_private(path: &str) -> bool {
    ["/mail", "/.aws"].iter().any(|root| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Maximum number of stored emails, and of stored events.
const MAX_MESSAGES: usize = 20_000;

/// All sent messages, newest first.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    emails: Mutex<VecDeque<Json>>,
    events: Mutex<VecDeque<Json>>,
}

impl Mailbox {
    /// Returns the response if the request is for the mailbox.
    pub(super) fn respond(
        &self,
        parts: &Parts,
        body: Option<&Bytes>,
        now: Timestamp,
    ) -> Option<Response<Bytes>> {
        let path = parts.uri.path();
        match (&parts.method, path.trim_end_matches('/')) {
            (&Method::GET, PAGE) => Some(self.show(parts)),
            (&Method::GET, EVENTS) => Some(self.list_events()),
            (&Method::POST, OUTBOUND) => Some(self.accept_email(body?, now)),
            (&Method::POST, EVENT_BRIDGE_PATH) => Some(self.accept_events(parts, body?, now)),
            _ => None,
        }
    }

    fn show(&self, parts: &Parts) -> Response<Bytes> {
        let accept = parts.headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let emails = self.emails.lock().unwrap_or_else(PoisonError::into_inner);
        if accept.contains("application/json") {
            let emails: Vec<&Json> = emails.iter().collect();
            return response(StatusCode::OK, "application/json", json!(emails).to_string());
        }
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        response(StatusCode::OK, "text/html; charset=utf-8", page(&emails, &events))
    }

    fn list_events(&self) -> Response<Bytes> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let events: Vec<&Json> = events.iter().collect();
        response(StatusCode::OK, "application/json", json!(events).to_string())
    }

    fn accept_email(&self, body: &Bytes, now: Timestamp) -> Response<Bytes> {
        let sent: Json = serde_json::from_slice(body).unwrap_or_default();
        let Some(email) = email_of(&sent, now) else {
            let body =
                json!({"message": "the email has no subject, body or recipient"}).to_string();
            let mut rejected = response(StatusCode::BAD_REQUEST, "application/json", body);
            let kind = HeaderValue::from_static("BadRequestException");
            rejected.headers_mut().insert(HeaderName::from_static("x-amzn-errortype"), kind);
            return rejected;
        };
        let id = keep(&self.emails, email);
        let output = json!({"MessageId": format!("local-{id}")}).to_string();
        response(StatusCode::OK, "application/json", output)
    }

    fn accept_events(&self, parts: &Parts, body: &Bytes, now: Timestamp) -> Response<Bytes> {
        let target = parts.headers.get(TARGET).and_then(|it| it.to_str().ok());
        let sent: Json = serde_json::from_slice(body).unwrap_or_default();
        let entries = sent["Entries"].as_array().filter(|_| target == Some(PUT_EVENTS));
        let Some(entries) = entries else {
            let body = json!({"__type": "ValidationException", "message": "not PutEvents"});
            return response(StatusCode::BAD_REQUEST, JSON_1_1, body.to_string());
        };
        let results = entries.iter().map(|entry| {
            let detail = entry["Detail"].as_str().unwrap_or_default();
            let event = json!({
                "bus": entry["EventBusName"], "source": entry["Source"], "at": now,
                "detailType": entry["DetailType"],
                "detail": serde_json::from_str::<Json>(detail).unwrap_or_default(),
            });
            json!({"EventId": format!("local-{}", keep(&self.events, event))})
        });
        let results: Vec<Json> = results.collect();
        let output = json!({"FailedEntryCount": 0, "Entries": results}).to_string();
        response(StatusCode::OK, JSON_1_1, output)
    }
}

/// Media type of AWS's JSON protocol.
const JSON_1_1: &str = "application/x-amz-json-1.1";

fn keep(list: &Mutex<VecDeque<Json>>, item: Json) -> usize {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.push_front(item);
    list.truncate(MAX_MESSAGES);
    list.len()
}

/// Returns the stored form of an email.
fn email_of(sent: &Json, now: Timestamp) -> Option<Json> {
    let simple = &sent["Content"]["Simple"];
    let to = sent["Destination"]["ToAddresses"].as_array()?.first()?;
    let mut headers = Map::new();
    headers.insert("From".to_owned(), sent["FromEmailAddress"].clone());
    for header in simple["Headers"].as_array().into_iter().flatten() {
        headers.insert(header["Name"].as_str()?.to_owned(), header["Value"].clone());
    }
    let text = |part: &Json| part["Data"].as_str().map(str::to_owned);
    Some(json!({
        "to": to, "subject": text(&simple["Subject"])?, "text": text(&simple["Body"]["Text"])?,
        "html": text(&simple["Body"]["Html"])?, "headers": headers, "at": now,
    }))
}

/// The console's style: its fonts, grays and row borders.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:light-dark(#e6e6ea,#2a2b31);--quiet:light-dark(#61636c,#9c9ea8)}\
body{font:14px/1.45 system-ui,sans-serif;font-variant-numeric:tabular-nums;margin:0 auto;max-width:1280px;\
padding:24px 32px 64px;color:light-dark(#1b1c20,#e9e9ec);background:light-dark(#fff,#131417)}\
h1{font-size:20px;line-height:1.3;margin:24px 0 12px}small,td:first-child{color:var(--quiet);font-size:12px}\
details{border-bottom:1px solid var(--line)}summary{padding:10px 0;cursor:pointer}\
summary small{float:right}iframe{width:100%;height:30rem;border:1px solid var(--line);border-radius:8px;\
background:#fff}pre,code{font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace}pre{white-space:pre-wrap}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}\
td{padding:8px 24px 8px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}\
td:last-child{padding-right:0;white-space:normal;overflow-wrap:anywhere}\
@media(max-width:600px){body{padding:12px 16px 32px}summary small{float:none;display:block}\
tr{display:block;padding:8px 0;border-bottom:1px solid var(--line)}td{display:block;padding:0;border:0}}";

fn page(emails: &VecDeque<Json>, events: &VecDeque<Json>) -> String {
    let mut body = String::new();
    let shown = |value: &Json| escape_html(value.as_str().unwrap_or_default());
    // Writing to a string cannot fail.
    for email in emails {
        let _ = write!(
            body,
            "<details><summary><b>{}</b> to {} <small>{}</small></summary>\n\
             <iframe sandbox=\"allow-popups\" srcdoc=\"{}\"></iframe>\n<pre>{}</pre></details>\n",
            shown(&email["subject"]),
            shown(&email["to"]),
            shown(&email["at"]),
            shown(&email["html"]),
            shown(&email["text"]),
        );
    }
    let emails =
        if emails.is_empty() { "<p>No emails have been sent yet.</p>" } else { body.as_str() };
    let mut event_rows = String::new();
    for event in events {
        let detail = escape_html(&event["detail"].to_string());
        let _ = writeln!(
            event_rows,
            "<tr><td>{}<td>{}<td><code>{detail}</code>",
            shown(&event["at"]),
            shown(&event["detailType"])
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Emails</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <style>{STYLE}</style>\n\
         <h1>Emails</h1>\n{emails}\n<h1>Events</h1>\n<div class=\"scroll\"><table>{event_rows}</table></div>\n\
         </html>\n"
    )
}

fn response(status: StatusCode, media_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn send(mailbox: &Mailbox, request: Request<Json>) -> (StatusCode, String) {
        let (parts, body) = request.into_parts();
        let body = Bytes::from(body.to_string());
        let now = Timestamp::from_millis(1_795_234_560_000);
        let response = mailbox.respond(&parts, Some(&body), now).unwrap();
        (response.status(), String::from_utf8(response.body().to_vec()).unwrap())
    }

    fn part(text: &str) -> Json {
        json!({"Data": text, "Charset": "UTF-8"})
    }

    #[test]
    fn emails_are_shown_newest_first() {
        let mailbox = Mailbox::default();
        for subject in ["one", "<two>"] {
            let email = json!({
                "FromEmailAddress": "a@b.de", "Destination": {"ToAddresses": ["c@d.de"]},
                "Content": {"Simple": {
                    "Subject": part(subject), "Body": {"Text": part("t"), "Html": part("<p>h</p>")},
                    "Headers": [{"Name": "List-Unsubscribe", "Value": "<https://x>"}],
                }},
            });
            let request = Request::post(OUTBOUND).body(email).unwrap();
            assert_eq!(send(&mailbox, request).0, StatusCode::OK);
        }
        let request = Request::get("/mail").header("accept", "application/json");
        let (_, shown) = send(&mailbox, request.body(Json::Null).unwrap());
        let shown: Json = serde_json::from_str(&shown).unwrap();
        assert_eq!(
            shown[1],
            json!({
                "to": "c@d.de", "subject": "one", "text": "t", "html": "<p>h</p>",
                "headers": {"From": "a@b.de", "List-Unsubscribe": "<https://x>"},
                "at": "2026-11-21T04:16:00.000Z",
            })
        );
        let (_, page) = send(&mailbox, Request::get("/mail").body(Json::Null).unwrap());
        assert!(
            page.contains("<b>&lt;two&gt;</b> to c@d.de") && page.contains("&lt;p&gt;h"),
            "{page}"
        );
        let rejected = send(&mailbox, Request::post(OUTBOUND).body(json!({})).unwrap());
        assert_eq!(rejected.0, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn each_event_is_stored_and_confirmed() {
        let mailbox = Mailbox::default();
        let entry = json!({
            "Source": "waymark", "DetailType": "error.created", "Detail": "{\"id\":\"<1>\"}",
            "EventBusName": "default",
        });
        let request = Request::post("/.aws/eventbridge/").header(TARGET, PUT_EVENTS);
        let request = request.body(json!({"Entries": [entry, entry]})).unwrap();
        let (status, output) = send(&mailbox, request);
        let output: Json = serde_json::from_str(&output).unwrap();
        assert_eq!((status, &output["FailedEntryCount"]), (StatusCode::OK, &json!(0)));
        assert_eq!(output["Entries"].as_array().unwrap().len(), 2);
        let (_, page) = send(&mailbox, Request::get("/mail").body(Json::Null).unwrap());
        assert!(page.contains("error.created") && page.contains("&lt;1&gt;"), "{page}");
    }
}
