//! Event marker collections and their events.

use serde_json::{Value, json};

use crate::recording::{Recording, Request, delete, get, post};

const COLLECTIONS: &str = "/v0/projects/shop/event-marker-collections";
const NOWHERE: &str = "01902f3c-0000-7000-8000-ffffffffffff";

fn collection(id: &str) -> String {
    format!("{COLLECTIONS}/{id}")
}

fn events(id: &str) -> String {
    format!("{COLLECTIONS}/{id}/events")
}

const CREATIONS: [(&str, &str); 5] = [
    ("create: a name", r#"{"name":"Releases"}"#),
    (
        "create: a description",
        r#"{"name":"Incidents 💥","description":"What went \"wrong\"\nand when"}"#,
    ),
    ("create: null for a description", r#"{"name":"Campaigns","description":null}"#),
    ("create: the same name", r#"{"name":"Releases"}"#),
    ("create: an empty description", r#"{"name":"x","description":""}"#),
];

const REFUSED_CREATIONS: [(&str, &str); 11] = [
    ("no body", ""),
    ("not JSON", r#"{"name""#),
    ("an array", r#"["Releases"]"#),
    ("an empty object", "{}"),
    ("null", r#"{"name":null}"#),
    ("an empty name", r#"{"name":""}"#),
    ("wrong types", r#"{"name":1,"description":[]}"#),
    ("an unknown field", r#"{"name":"a","title":"a"}"#),
    ("a field twice", r#"{"name":"a","name":"b"}"#),
    ("NUL and a control character", r#"{"name":"a\u0001","description":"\u0000"}"#),
    ("a number with an exponent", r#"{"name":1e3}"#),
];

const ADDITIONS: [(&str, &str); 4] = [
    ("add: one", r#"{"events":[{"name":"v1.0.0","occurredAt":"2026-11-20T10:00:00Z"}]}"#),
    (
        "add: three",
        r#"{"events":[{"name":"v1.2.0","occurredAt":"2026-11-21T12:00:00.123456+02:00","description":"Third","attributes":
        {"commit":"abc","b/c~d":"","ä":"é 💥"}},{"name":"v1.1.0","occurredAt":"2026-11-20T23:30:00-01:30","attributes":{}},
        {"name":"v1.1.0","occurredAt":"2026-11-21T01:00:00Z","description":null,"attributes":null}]}"#,
    ),
    ("add: before 1970", r#"{"events":[{"name":"Moon","occurredAt":"1969-07-20T20:17:40Z"}]}"#),
    (
        "add: far away",
        r#"{"events":[{"name":"End","occurredAt":"9999-12-31T23:59:59.999Z"},
        {"name":"Leap","occurredAt":"2016-12-31t23:59:60z"}]}"#,
    ),
];

const REFUSED_ADDITIONS: [(&str, &str); 13] = [
    ("no body", ""),
    ("not JSON", "[,]"),
    ("an empty object", "{}"),
    ("null", r#"{"events":null}"#),
    ("no events", r#"{"events":[]}"#),
    ("an object of events", r#"{"events":{}}"#),
    ("events without members", r#"{"events":[{},1,null]}"#),
    ("wrong types", r#"{"events":[{"name":1,"occurredAt":2,"description":3,"attributes":4}]}"#),
    (
        "attributes",
        r#"{"events":[{"name":"a","occurredAt":"2026-11-20T10:00:00Z","attributes":{"":"a","n":1,"b":null,
        "c":"\u0000","d\u0000":"d","e":"1","e":"2"}}]}"#,
    ),
    (
        "times",
        r#"{"events":[{"name":"a","occurredAt":"2026-11-20T10:00:00"},{"name":"a","occurredAt":"2026-11-20"},
        {"name":"a","occurredAt":"1795234560000"},{"name":"a","occurredAt":""},{"name":"a","occurredAt":"2026-02-30T00:00:00Z"},
        {"name":"a","occurredAt":"2026-11-20 10:00:00Z"},{"name":"a","occurredAt":"10000-01-01T00:00:00Z"}]}"#,
    ),
    (
        "unknown fields",
        r#"{"events":[{"name":"a","occurredAt":"2026-11-20T10:00:00Z","at":1}],"event":1}"#,
    ),
    ("an empty name", r#"{"events":[{"name":"","occurredAt":"2026-11-20T10:00:00Z"}]}"#),
    ("a control character", r#"{"events":[{"name":"a\nb","occurredAt":"2026-11-20T10:00:00Z"}]}"#),
];

/// Ranges and pages of the event list.
const EVENT_LISTS: [(&str, &[(&str, &str)]); 17] = [
    ("all", &[]),
    ("from", &[("from", "1795132800000")]),
    ("to", &[("to", "1795132800000")]),
    ("from and to", &[("from", "1795132800000"), ("to", "1795219200000")]),
    ("nothing in between", &[("from", "0"), ("to", "1")]),
    ("before 1970", &[("from", "-99999999999999"), ("to", "0")]),
    ("two", &[("limit", "2")]),
    ("rejected: from after to", &[("from", "2"), ("to", "1")]),
    ("rejected: from equals to", &[("from", "1"), ("to", "1")]),
    ("rejected: from of text", &[("from", "today")]),
    ("rejected: a fraction", &[("to", "1.5")]),
    ("rejected: a large number", &[("to", "99999999999999999999")]),
    ("rejected: empty", &[("from", ""), ("to", "")]),
    ("rejected: limit 0", &[("limit", "0")]),
    ("rejected: limit 101", &[("limit", "101")]),
    ("rejected: a cursor of text", &[("cursor", "nonsense")]),
    ("rejected: everything", &[("cursor", ""), ("limit", "-1"), ("from", "x"), ("to", "y")]),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("markers").await;
    let r = &mut recording;

    r.send("list: nothing", get(COLLECTIONS)).await;
    let mut ids = Vec::new();
    for (name, body) in CREATIONS {
        let created = r.send(name, post(COLLECTIONS).text(body)).await;
        ids.push(created.body["id"].as_str().unwrap().to_owned());
    }
    for (name, body) in REFUSED_CREATIONS {
        r.send(&format!("create rejected: {name}"), post(COLLECTIONS).text(body)).await;
    }
    let long = json!({"name": "é".repeat(201), "description": "é".repeat(2_001)});
    r.send("create rejected: long texts", post(COLLECTIONS).json(&long)).await;
    rejected_bodies(r, "create", &|| post(COLLECTIONS)).await;
    r.send(
        "create rejected: an unknown project",
        post("/v0/projects/missing/event-marker-collections"),
    )
    .await;

    let once = |name: &str, key: &str| {
        let body = format!(r#"{{"name":"{name}"}}"#);
        post(COLLECTIONS).text(body).header("idempotency-key", key)
    };
    r.send("create once", once("Once", "key")).await;
    r.send("create once: again", once("Once", "key")).await;
    r.send("create once: another body", once("Twice", "key")).await;
    r.send("create once: a key of other letters", once("Once", "é")).await;

    let [releases, incidents] = [&ids[0], &ids[1]];
    for (name, body) in ADDITIONS {
        r.send(name, post(events(releases)).text(body)).await;
    }
    for (name, body) in REFUSED_ADDITIONS {
        r.send(&format!("add rejected: {name}"), post(events(releases)).text(body)).await;
    }
    too_much(r, releases).await;
    rejected_bodies(r, "add", &|| post(events(releases))).await;
    let first = ADDITIONS[0].1;
    let once = |id: &str| post(events(id)).text(first).header("idempotency-key", "key");
    r.send("add once", once(incidents)).await;
    r.send("add once: again", once(incidents)).await;
    r.send("add once: to another collection", once(releases)).await;
    r.send("add rejected: to no collection", post(events(NOWHERE)).text(first)).await;
    r.send("add rejected: no id", post(events("nonsense")).text(first)).await;
    r.send("add rejected: nothing, to no collection", post(events("nonsense")).text("{}")).await;

    r.send("get", get(collection(releases))).await;
    r.send("get: another", get(collection(incidents))).await;
    r.send(
        "get: by the project's id",
        get(format!("/v0/projects/<project>/event-marker-collections/{releases}")),
    )
    .await;
    r.send("get rejected: an unknown id", get(collection(NOWHERE))).await;
    r.send("get rejected: no id", get(collection("nonsense"))).await;
    for (name, parameters) in EVENT_LISTS {
        let list = parameters
            .iter()
            .fold(get(events(releases)), |list, (name, value)| list.query(name, value));
        r.send(&format!("events: {name}"), list).await;
    }
    r.send("events: rejected: no collection", get(events(NOWHERE))).await;
    r.send("events: rejected: no id, and a bad limit", get(events("x")).query("limit", "x")).await;
    r.send_pages("events", &get(events(releases)).query("limit", 3)).await;
    r.send_pages("list", &get(COLLECTIONS).query("limit", 2)).await;
    r.send("list: all", get(COLLECTIONS)).await;
    r.send(
        "list rejected: limit and cursor",
        get(COLLECTIONS).query("limit", "0").query("cursor", "x"),
    )
    .await;

    r.send("delete", delete(collection(releases))).await;
    r.send("delete: again", delete(collection(releases))).await;
    r.send("delete rejected: no id", delete(collection("nonsense"))).await;
    r.send("get: deleted", get(collection(releases))).await;
    r.send("events: deleted", get(events(releases))).await;
    r.send("add rejected: deleted", post(events(releases)).text(first)).await;
    r.send("list: after a deletion", get(COLLECTIONS).query("limit", 100)).await;
    recording.finish();
}

async fn too_much(r: &mut Recording, id: &str) {
    let event = |field: &str, value: Value| {
        let mut event = json!({"name": "a", "occurredAt": "2026-11-20T10:00:00Z"});
        event[field] = value;
        event
    };
    let attributes =
        |count: usize| (0..count).map(|n| (format!("a{n}"), json!(""))).collect::<Value>();
    let add = |added: Vec<Value>| post(events(id)).json(&json!({ "events": added }));
    r.send(
        "add rejected: long texts",
        add(vec![
            event("name", json!("é".repeat(201))),
            event("description", json!("é".repeat(2_001))),
            event("attributes", json!({"k".repeat(101): "v", "l": "v".repeat(1_001)})),
            event("attributes", attributes(51)),
        ]),
    )
    .await;
    r.send("add rejected: many events", add(vec![event("name", json!("a")); 101])).await;
    r.send("add: fifty attributes", add(vec![event("attributes", attributes(50))])).await;
}

/// Bodies that every operation rejects.
async fn rejected_bodies(r: &mut Recording, name: &str, request: &impl Fn() -> Request) {
    r.send(&format!("{name} rejected: a large body"), request().text(" ".repeat(262_145))).await;
    let plain = request().bytes("{}").header("content-type", "text/plain");
    r.send(&format!("{name} rejected: plain text"), plain).await;
    let latin = request().bytes(b"{\"name\": \"\xe9\"}".as_slice());
    r.send(&format!("{name} rejected: Latin-1"), latin).await;
}
