//! Errors: delivery by SDKs, lists and counts.

mod interpret;

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use shared::app::Deadline;
use tests::errors::{SentEvent, envelope};

use crate::recording::{Recording, Request, get, patch, post};

const ERRORS: &str = "/v0/projects/shop/errors";
const QUERY: &str = "/v0/errors/timeseries/query";
const NOWHERE: &str = "01902f3c-0000-7000-8000-ffffffffffff";
const HOUR: Duration = Duration::from_hours(1);

fn delivery(endpoint: &str) -> Request {
    let request = post(format!("/api/<ingest id>/{endpoint}")).key(None);
    request.query("sentry_key", "<public key>")
}

fn error(id: &str) -> String {
    format!("{ERRORS}/{id}")
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// An event similar to those of the Python SDK.
const PYTHON: &str = r#"{"event_id":"0000000000000000000000000000a001","timestamp":"2026-11-21T04:10:00.5Z","platform":"python",
    "level":"error","release":"shop@1.2.3","environment":"production","server_name":"host","transaction":"/pay",
    "user":{"id":"7","email":"ann@example.com","ip_address":"203.0.113.7","geo":{"country_code":"de"}},
    "tags":{"plan":"pro"},"extra":{"password":"secret","n":1.50},"contexts":{"browser":{"name":"Firefox"},"os":{"name":"Linux"}},
    "request":{"url":"https://shop.example/pay?token=abc","headers":{"Authorization":"Bearer x","User-Agent":"f"},"cookies":"a=b"},
    "exception":{"values":[{"type":"KeyError","value":"'a'","stacktrace":{"frames":[{"function":"read","module":"store","lineno":7,
    "in_app":true}]}},{"type":"ValueError","value":"order 4711 is not paid","mechanism":{"type":"excepthook","handled":false},
    "stacktrace":{"frames":[{"function":"main","filename":"main.py","lineno":3,"in_app":true},{"function":"pay","filename":
    "pay.py","module":"shop.pay","lineno":12,"in_app":true}]}}]}}"#;

/// Store endpoint bodies with an event.
const EVENTS: [(&str, &str); 7] = [
    ("of Python", PYTHON),
    ("of Python, delivered again", PYTHON),
    (
        "a message",
        r#"{"event_id":"0000000000000000000000000000a002","message":"disk 3 is full","level":"warning","timestamp":1795233000}"#,
    ),
    (
        "a message with parameters",
        r#"{"event_id":"0000000000000000000000000000a003","logentry":{"message":"disk %s is full","formatted":"disk 9 is full",
        "params":["9"]},"level":"fatal","timestamp":"2026-11-21T04:00:00","tags":[["environment","staging"],["release","r1"]]}"#,
    ),
    (
        "a fingerprint",
        r#"{"event_id":"00000000-0000-0000-0000-00000000a004","fingerprint":["checkout","{{ default }}"],"message":"x",
        "contexts":{"device":{"family":"iPhone"},"client_os":{"name":"iOS"}}}"#,
    ),
    ("almost nothing", r#"{"event_id":"0000000000000000000000000000a005"}"#),
    (
        "what is not as it should be",
        r#"{"event_id":"0000000000000000000000000000A006","level":"loud","timestamp":"soon","exception":[{"type":7,"value":{}}],
        "tags":"x","user":[1],"contexts":null,"release":12,"environment":"","platform":"\ud800"}"#,
    ),
];

/// Envelope endpoint bodies.
const ENVELOPES: [(&str, &str); 17] = [
    (
        "an event without a length",
        "{}\n{\"type\":\"event\"}\n{\"event_id\":\"0000000000000000000000000000b001\",\"message\":\"a\"}\n",
    ),
    (
        "an id in the header",
        "{\"event_id\":\"0000000000000000000000000000b002\"}\n{\"type\":\"event\",\"length\":15}\n{\"message\":\"b\"}",
    ),
    (
        "a session beside an event",
        "{}\n{\"type\":\"session\",\"length\":2}\n{}\n{\"type\":\"event\"}\n{\"event_id\":\"0000000000000000000000000000b003\",\"message\":\"c\"}",
    ),
    ("only a session", "{}\n{\"type\":\"session\"}\n{}\n"),
    (
        "a transaction",
        "{\"event_id\":\"0000000000000000000000000000b004\"}\n{\"type\":\"transaction\"}\n{}\n",
    ),
    ("a header and nothing else", "{}"),
    (
        "a DSN in the header",
        "{\"dsn\":\"https://<public key>@errors.example/<ingest id>\"}\n{\"type\":\"event\"}\n{\"event_id\":\"0000000000000000000000000000b005\",\"message\":\"d\"}",
    ),
    ("no body", ""),
    ("not JSON", "nonsense"),
    ("an array in the header", "[]\n"),
    ("an id that is none", "{\"event_id\":\"7\"}\n{\"type\":\"event\"}\n{}\n"),
    (
        "an id of zeros",
        "{\"event_id\":\"00000000000000000000000000000000\"}\n{\"type\":\"event\"}\n{}\n",
    ),
    ("an item without a type", "{}\n{}\n{}\n"),
    ("a length of text", "{}\n{\"type\":\"event\",\"length\":\"2\"}\n{}\n"),
    ("a length that is too large", "{}\n{\"type\":\"event\",\"length\":99}\n{}\n"),
    ("a length that is too small", "{}\n{\"type\":\"event\",\"length\":1}\n{}\n"),
    ("an event that is no object", "{}\n{\"type\":\"event\"}\n[1]\n"),
];

/// Bodies of queries over the project.
const QUERIES: [(&str, &str); 45] = [
    ("the last week", r#"{"projectIds":["shop"]}"#),
    (
        "null in every optional field",
        r#"{"projectIds":["shop"],"from":null,"to":null,"limit":null,"searchQuery":null,"status":null,"filters":null}"#,
    ),
    ("an hour", r#"{"projectIds":["shop"],"from":1795231000000,"to":1795234600000,"limit":5}"#),
    ("four hours", r#"{"projectIds":["shop"],"from":1795220160000,"to":1795234560000,"limit":4}"#),
    ("a day", r#"{"projectIds":["shop"],"from":1795148160000,"to":1795234560000,"limit":4}"#),
    ("a month", r#"{"projectIds":["shop"],"from":1792642560000,"limit":9}"#),
    ("in seconds", r#"{"projectIds":["shop"],"from":1794629760,"to":1795234560}"#),
    (
        "with fractions",
        r#"{"projectIds":["shop"],"from":1.7952e12,"to":1795234560000.5,"limit":3}"#,
    ),
    ("from long ago", r#"{"projectIds":["shop"],"from":0,"limit":2}"#),
    ("to come", r#"{"projectIds":["shop"],"from":1895234560000,"to":1895234660000}"#),
    ("by id and by slug", r#"{"projectIds":["shop","<project>","shop"],"limit":1}"#),
    ("open", r#"{"projectIds":["shop"],"limit":1,"status":"open"}"#),
    ("resolved", r#"{"projectIds":["shop"],"limit":1,"status":"resolved"}"#),
    ("searching a word", r#"{"projectIds":["shop"],"limit":1,"searchQuery":"disk"}"#),
    ("searching two words", r#"{"projectIds":["shop"],"limit":1,"searchQuery":"DISK full"}"#),
    ("searching a phrase", r#"{"projectIds":["shop"],"limit":1,"searchQuery":"\"is full\""}"#),
    (
        "searching by a filter",
        r#"{"projectIds":["shop"],"limit":1,"searchQuery":"environment:production order"}"#,
    ),
    ("searching nothing", r#"{"projectIds":["shop"],"limit":1,"searchQuery":"  "}"#),
    (
        "is",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"environment","operator":"is","value":"production"}]}"#,
    ),
    (
        "is_not",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"level","operator":"is_not","value":"error"}]}"#,
    ),
    (
        "contains",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"release","operator":"contains","value":"SHOP"}]}"#,
    ),
    (
        "not_contains",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"transaction","operator":"not_contains","value":"pay"}]}"#,
    ),
    (
        "is_set",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"browser","operator":"is_set","value":""}]}"#,
    ),
    (
        "is_not_set",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"country","operator":"is_not_set","value":""}]}"#,
    ),
    (
        "two filters of a category",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"level","operator":"is","value":"error"},
        {"categoryId":"level","operator":"is","value":"fatal"},{"categoryId":"handled","operator":"is","value":"true"}]}"#,
    ),
    (
        "not handled",
        r#"{"projectIds":["shop"],"limit":1,"filters":[{"categoryId":"handled","operator":"is","value":"false"}]}"#,
    ),
    ("rejected: no body", ""),
    ("rejected: not JSON", "{"),
    ("rejected: an array", "[]"),
    ("rejected: an empty object", "{}"),
    ("rejected: no projects", r#"{"projectIds":[]}"#),
    ("rejected: projects that are no texts", r#"{"projectIds":[1,null,"shop","\u0000"]}"#),
    (
        "rejected: an unknown project",
        r#"{"projectIds":["shop","missing","also missing","missing"]}"#,
    ),
    (
        "rejected: wrong types",
        r#"{"projectIds":"shop","from":"0","to":true,"limit":"1","searchQuery":1,"status":2,"filters":{}}"#,
    ),
    (
        "rejected: from after to",
        r#"{"projectIds":["shop"],"from":1795234560000,"to":1795234550000}"#,
    ),
    ("rejected: from after now", r#"{"projectIds":["shop"],"from":1895234560000}"#),
    ("rejected: limit 0", r#"{"projectIds":["shop"],"limit":0}"#),
    ("rejected: limit 1001", r#"{"projectIds":["shop"],"limit":1001}"#),
    ("rejected: half a limit", r#"{"projectIds":["shop"],"limit":0.5}"#),
    ("rejected: another status", r#"{"projectIds":["shop"],"status":"closed"}"#),
    ("rejected: filters without members", r#"{"projectIds":["shop"],"filters":[{},1,null]}"#),
    (
        "rejected: filters",
        r#"{"projectIds":["shop"],"filters":[{"categoryId":"colour","operator":"is","value":"a"},
        {"categoryId":"level","operator":"gt","value":"a"},{"categoryId":"level","operator":"like","value":"a"},
        {"categoryId":"level","operator":"is_set","value":"a"},{"categoryId":"level","operator":"is","value":1}]}"#,
    ),
    ("rejected: an unknown field", r#"{"projectIds":["shop"],"projects":["shop"]}"#),
    ("rejected: a field twice", r#"{"projectIds":["shop"],"projectIds":["shop"]}"#),
    ("rejected: NUL in a search", r#"{"projectIds":["shop"],"searchQuery":"\u0000"}"#),
];

/// Patches of an error, in order.
const PATCHES: [(&str, &str); 14] = [
    ("nothing", "{}"),
    ("resolved", r#"{"status":"resolved"}"#),
    ("resolved again", r#"{"status":"resolved"}"#),
    ("ignored", r#"{"status":"ignored"}"#),
    ("null resets", r#"{"status":null}"#),
    ("resolved at last", r#"{"status":"resolved"}"#),
    ("rejected: another status", r#"{"status":"closed"}"#),
    ("rejected: a number", r#"{"status":1}"#),
    ("rejected: unknown fields", r#"{"status":"open","title":"x","count":0}"#),
    ("rejected: a field twice", r#"{"status":"open","status":"ignored"}"#),
    ("rejected: NUL", r#"{"status":"open\u0000"}"#),
    ("rejected: an array", "[]"),
    ("rejected: no body", ""),
    ("rejected: not JSON", "{status}"),
];

const LISTS: [(&str, &[(&str, &str)]); 11] = [
    ("all", &[]),
    ("open", &[("status", "open")]),
    ("resolved", &[("status", "resolved")]),
    ("ignored", &[("status", "ignored")]),
    ("rejected: another status", &[("status", "Open")]),
    ("rejected: no status", &[("status", "")]),
    ("rejected: limit 0", &[("limit", "0")]),
    ("rejected: limit 101", &[("limit", "101")]),
    ("rejected: limit of text", &[("limit", "all")]),
    ("rejected: a cursor of text", &[("cursor", "x")]),
    ("rejected: everything", &[("cursor", ""), ("status", "x"), ("limit", "")]),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("errors").await;
    let r = &mut recording;

    r.send("list: nothing", get(ERRORS)).await;
    r.send("query: nothing", post(QUERY).text(r#"{"projectIds":["shop"],"limit":3}"#)).await;
    for (name, body) in EVENTS {
        r.send(&format!("store: {name}"), delivery("store/").bytes(body)).await;
    }
    for (name, body) in ENVELOPES {
        r.send(&format!("envelope: {name}"), delivery("envelope/").bytes(body)).await;
    }
    deliveries(r).await;
    credentials(r).await;
    compressed(r).await;

    let list = r.send("list: for ids", get(ERRORS)).await;
    let ids: Vec<String> = list.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|item| item["errorId"].as_str().unwrap().to_owned())
        .collect();
    for (number, id) in ids.iter().take(6).enumerate() {
        r.send(&format!("get: number {number}"), get(error(id))).await;
        r.send(&format!("events: of number {number}"), get(format!("{ERRORS}/{id}/events"))).await;
    }
    let id = &ids[0];
    r.send("get: in the project by its id", get(format!("/v0/projects/<project>/errors/{id}")))
        .await;
    r.send("get rejected: an unknown id", get(error(NOWHERE))).await;
    r.send("get rejected: no id", get(error("nonsense"))).await;
    r.send("events rejected: an unknown id", get(format!("{ERRORS}/{NOWHERE}/events"))).await;
    let wrong = get(format!("{ERRORS}/nonsense/events")).query("limit", "0").query("cursor", "x");
    r.send("events rejected: everything", wrong).await;

    for (name, body) in PATCHES {
        r.send(&format!("patch, {name}"), patch(error(id)).text(body)).await;
    }
    versions(r, id).await;
    for (name, parameters) in LISTS {
        let list =
            parameters.iter().fold(get(ERRORS), |list, (name, value)| list.query(name, value));
        r.send(&format!("list, {name}"), list).await;
    }
    r.send_pages("list", &get(ERRORS).query("limit", 4)).await;
    r.send_pages("list the open", &get(ERRORS).query("limit", 5).query("status", "open")).await;
    for (name, body) in QUERIES {
        r.send(&format!("query, {name}"), post(QUERY).text(body)).await;
    }
    limits(r).await;
    later(r, id).await;
    recording.finish();
}

/// Delivers events of earlier days, and many events of one error.
async fn deliveries(r: &mut Recording) {
    let now = r.test.app.clock.now();
    for (number, ago) in (0..6).map(|number| (number, HOUR * (number * 30))) {
        let event =
            SentEvent::new(u64::from(number), now.minus(ago), "TypeError", "x is not a function")
                .with("environment", if number % 2 == 0 { "production" } else { "staging" })
                .with("release", &format!("web@1.{number}.0"))
                .with("browser", "Chrome");
        let name = format!("envelope: number {number} of an error");
        r.send(&name, delivery("envelope/").bytes(event.envelope())).await;
    }
    for (name, at) in [
        ("an event of 100 days ago", now.minus(100 * 24 * HOUR)),
        ("an event to come", now.plus(48 * HOUR)),
    ] {
        let event = SentEvent::new(50, at, "RangeError", name);
        r.send(name, delivery("envelope").bytes(event.envelope())).await;
    }
    let id = |n| format!("0000000000000000000000000000c00{n}");
    let both = [
        ("event", json!({"event_id": id(1), "message": "first"}).to_string()),
        ("event", json!({"event_id": id(1), "message": "second"}).to_string()),
    ];
    let both = envelope(&json!({"event_id": id(1)}), &both);
    r.send("envelope: two events", delivery("envelope/").bytes(both)).await;
    let long = json!({"event_id": id(2), "message": "m".repeat(10_000), "extra": {"long": "x".repeat(20_000)}});
    r.send("store: long texts", delivery("store").bytes(long.to_string())).await;
    let deep =
        format!(r#"{{"event_id":"{}","extra":{}1{}}}"#, id(3), "[".repeat(70), "]".repeat(70));
    r.send("store: deep nesting", delivery("store").bytes(deep)).await;
    let large = format!(r#"{{"event_id":"{}","message":"{}"}}"#, id(4), "m".repeat(1_048_577));
    r.send("store rejected: a large event", delivery("store").bytes(large.clone())).await;
    let large = envelope(&json!({}), &[("event", large)]);
    r.send("envelope rejected: a large event", delivery("envelope/").bytes(large)).await;
    r.send("envelope rejected: a long header", delivery("envelope/").bytes("x".repeat(8_193)))
        .await;
    let items = vec![("session", "{}".to_owned()); 101];
    r.send("envelope: many items", delivery("envelope/").bytes(envelope(&json!({}), &items))).await;
    for (name, body) in [("no body", ""), ("not JSON", "{"), ("an array", "[]"), ("text", "\"a\"")]
    {
        r.send(&format!("store rejected: {name}"), delivery("store/").bytes(body)).await;
    }
    r.send("store: an id that is none", delivery("store/").bytes(r#"{"event_id":"7"}"#)).await;
    let latin = delivery("store/").bytes(
        b"{\"event_id\":\"0000000000000000000000000000c005\",\"message\":\"\xe9\"}".as_slice(),
    );
    r.send("store: Latin-1", latin).await;
}

async fn credentials(r: &mut Recording) {
    let body = "{}\n";
    let bare = || post("/api/<ingest id>/envelope/").key(None).bytes(body);
    r.send("envelope rejected: no key", bare()).await;
    let sentry = "Sentry sentry_version=7, sentry_client=x/1, sentry_key=<public key>";
    r.send("envelope: a key in x-sentry-auth", bare().header("x-sentry-auth", sentry)).await;
    r.send("envelope: a key in authorization", bare().header("authorization", sentry)).await;
    r.send(
        "envelope: a key in both places",
        delivery("envelope/").bytes(body).header("x-sentry-auth", sentry),
    )
    .await;
    let other = "Sentry sentry_key=0123456789abcdef0123456789abcdef";
    r.send("envelope rejected: another key", bare().header("x-sentry-auth", other)).await;
    r.send(
        "envelope rejected: two keys",
        delivery("envelope/").bytes(body).header("x-sentry-auth", other),
    )
    .await;
    r.send("envelope rejected: no key in the header", bare().header("x-sentry-auth", "Sentry x=1"))
        .await;
    r.send("envelope rejected: an API key", bare().key(Some("<key>"))).await;
    r.send("envelope rejected: a key that is none", bare().query("sentry_key", "key")).await;
    let elsewhere = || post("/api/1/envelope/").key(None).query("sentry_key", "<public key>");
    r.send("envelope rejected: an unknown project", elsewhere().bytes(body)).await;
    r.send("envelope rejected: the key comes first", elsewhere().bytes("x")).await;
    let named = post("/api/shop/store/").key(None).query("sentry_key", "<public key>");
    r.send("store rejected: a slug", named.bytes("{}")).await;
    let dsn = "{\"dsn\":\"https://0123456789abcdef0123456789abcdef@errors.example/1\"}\n";
    r.send("envelope rejected: the DSN of another project", delivery("envelope/").bytes(dsn)).await;
    r.send(
        "envelope rejected: a DSN that is none",
        delivery("envelope/").bytes("{\"dsn\":\"x\"}\n"),
    )
    .await;
}

async fn compressed(r: &mut Recording) {
    let text = |n: u8| {
        format!(
            "{{}}\n{{\"type\":\"event\"}}\n{{\"event_id\":\"0000000000000000000000000000d00{n}\",\"message\":\"packed\"}}\n"
        )
    };
    for (number, name, coding) in
        [(1, "gzip", "gzip"), (2, "gzip, unsaid", ""), (3, "gzip, called deflate", "deflate")]
    {
        let body = delivery("envelope/").bytes(gzip(&text(number))).shown(text(number));
        r.send(&format!("envelope: {name}"), body.header("content-encoding", coding)).await;
    }
    let plain = delivery("envelope/").bytes(text(4)).header("content-encoding", "gzip");
    r.send("envelope: plain, called gzip", plain).await;
    let whole = gzip(&text(5));
    let cut = delivery("envelope/").bytes(&whole[..whole.len() / 2]).shown("half of a gzip");
    r.send("envelope rejected: half a gzip", cut.header("content-encoding", "gzip")).await;
    let unknown = delivery("envelope/").bytes(gzip(&text(6))).shown(text(6));
    r.send("envelope rejected: an unknown coding", unknown.header("content-encoding", "compress"))
        .await;
    let bomb =
        delivery("envelope/").bytes(gzip(&"\n".repeat(20 * 1024 * 1024 + 1))).shown("a bomb");
    r.send("envelope rejected: a bomb", bomb.header("content-encoding", "gzip")).await;
    let large = delivery("envelope/").bytes(" ".repeat(4 * 1024 * 1024 + 1));
    r.send("envelope rejected: a large body", large).await;
    for (name, endpoint, body) in [
        ("envelope without a slash rejected: not JSON", "envelope", "x"),
        ("store without a slash rejected: not JSON", "store", "x"),
    ] {
        r.send(name, delivery(endpoint).bytes(body)).await;
        r.send(
            &format!("{name}, no key"),
            post(format!("/api/<ingest id>/{endpoint}")).key(None).bytes("{}"),
        )
        .await;
    }
}

async fn versions(r: &mut Recording, id: &str) {
    let open = || patch(error(id)).text(r#"{"status":"open"}"#);
    for (name, tag) in
        [("the first version", "\"1\""), ("a weak tag", "W/\"1\""), ("nonsense", "x"), ("any", "*")]
    {
        r.send(&format!("patch if-match: {name}"), open().header("if-match", tag)).await;
    }
    let current = r.send("get: for its version", get(error(id))).await;
    let etag = current.headers["etag"].to_str().unwrap();
    r.send("patch if-match: its version", open().header("if-match", etag)).await;
    r.send("patch rejected: an unknown error", patch(error(NOWHERE)).text("{}")).await;
    r.send("patch rejected: no id", patch(error("nonsense")).text("{}")).await;
    let typed = patch(error(id)).bytes(r#"{"status":"ignored"}"#);
    r.send("patch: a merge patch", typed.header("content-type", "application/merge-patch+json"))
        .await;
    let csv = patch(error(id)).bytes("{}").header("content-type", "text/csv");
    r.send("patch rejected: another type", csv).await;
    r.send("patch rejected: a large body", patch(error(id)).text(" ".repeat(262_145))).await;
}

async fn limits(r: &mut Recording) {
    let query = |field: &str, value: Value| {
        let mut body = json!({"projectIds": ["shop"], "limit": 1});
        body[field] = value;
        post(QUERY).json(&body)
    };
    let filter = json!({"categoryId": "level", "operator": "is", "value": "error"});
    let names: Vec<String> = (0..51).map(|n| format!("p{n}")).collect();
    r.send("query rejected: many filters", query("filters", json!(vec![filter; 21]))).await;
    r.send("query rejected: many projects", query("projectIds", json!(names))).await;
    r.send("query rejected: a long search", query("searchQuery", json!("é".repeat(1_025)))).await;
    r.send("query rejected: a large body", post(QUERY).text(" ".repeat(262_145))).await;
    let plain = post(QUERY).bytes("{}").header("content-type", "text/plain");
    r.send("query rejected: plain text", plain).await;
}

/// A resolved error regresses, and days are packed.
async fn later(r: &mut Recording, id: &str) {
    let resolved = patch(error(id)).text(r#"{"status":"resolved"}"#);
    r.send("later: resolved", resolved).await;
    let again = PYTHON.replace("a001", "e001").replace("04:10:00.5Z", "05:30:00Z");
    r.send("later: it happens again", delivery("store/").bytes(again)).await;
    r.send("later: get", get(error(id))).await;
    r.send("later: events", get(format!("{ERRORS}/{id}/events"))).await;
    r.send_pages(
        "later: one event at a time",
        &get(format!("{ERRORS}/{id}/events")).query("limit", 1),
    )
    .await;
    r.test.pass(50 * HOUR);
    (pack_error_log::JOB.run)(&r.test.app, Deadline::after(Duration::from_mins(1))).await.unwrap();
    r.send("packed: list", get(ERRORS)).await;
    r.send("packed: get", get(error(id))).await;
    for (name, body) in &QUERIES[10..26] {
        r.send(&format!("packed: query, {name}"), post(QUERY).text(*body)).await;
    }
    let month = r#"{"projectIds":["shop"],"from":1792642560000}"#;
    r.send("packed: query, a month", post(QUERY).text(month)).await;
}
