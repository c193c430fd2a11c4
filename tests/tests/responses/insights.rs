//! Replay insights and their pain points.

use serde_json::{Value, json};
use tests::insights::{id, upload};

use crate::recording::{Recording, Request, get, patch, post};

const INSIGHTS: &str = "/v0/projects/shop/replay-insights";
const NOWHERE: &str = "01902f3c-0000-7000-8000-ffffffffffff";

fn insight(id: &str) -> String {
    format!("{INSIGHTS}/{id}")
}

fn pain_points(id: &str) -> String {
    format!("{INSIGHTS}/{id}/pain-points")
}

fn split(id: &str) -> Request {
    post(format!("{INSIGHTS}/{id}/split"))
}

fn merge(id: &str) -> Request {
    post(format!("{INSIGHTS}/{id}/merge"))
}

/// Returns the body that creates an insight with these pain points.
fn creation(title: &str, numbers: std::ops::Range<usize>) -> Value {
    let mut body = upload(numbers);
    body["title"] = json!(title);
    body
}

/// Returns the body of a split that moves these pain points.
fn split_of(numbers: impl IntoIterator<Item = usize>) -> Value {
    json!({ "painPointIds": numbers.into_iter().map(id).collect::<Vec<_>>() })
}

/// An insight with three pain points in this and the previous month.
const WRITTEN: &str = r#"{"title":"Rage clicks on \"Pay\" 💥","description":"Line one\nline two","painPoints":[
    {"id":"0b24dd5a-0000-4000-8000-00000000000a","sessionId":"s-1","userId":"u-1","occurredAt":"2026-11-20T10:00:00Z",
    "title":"Five clicks","excerpt":"Clicked \"Pay\" five times"},
    {"id":"0B24DD5A-0000-4000-8000-00000000000B","sessionId":"s-2","userId":null,"occurredAt":"2026-10-01T10:00:00.5+02:00",
    "title":"Three clicks","excerpt":null},
    {"id":"0b24dd5a-0000-4000-8000-00000000000c","sessionId":"s-2","occurredAt":"2026-11-20T10:00:00Z","title":"Two é"}]}"#;

const REFUSED_CREATIONS: [(&str, &str); 14] = [
    ("no body", ""),
    ("not JSON", r#"{"title": }"#),
    ("an array", "[]"),
    ("an empty object", "{}"),
    ("null", r#"{"title":null,"painPoints":null}"#),
    ("no pain points", r#"{"title":"a","painPoints":[]}"#),
    ("wrong types", r#"{"title":1,"description":2,"painPoints":"3"}"#),
    ("unknown fields", r#"{"title":"a","status":"open","viewed":true,"painPoints":[]}"#),
    ("pain points without members", r#"{"title":"","painPoints":[{},1,null]}"#),
    (
        "wrong types of members",
        r#"{"title":"a","painPoints":[{"id":1,"sessionId":2,"userId":3,"occurredAt":4,"title":5,
        "excerpt":6,"replay":7}]}"#,
    ),
    (
        "ids",
        r#"{"title":"a","painPoints":[{"id":"a","sessionId":"s","occurredAt":"2026-11-20T10:00:00Z","title":"a"},
        {"id":"0b24dd5a00004000800000000000000a","sessionId":"s","occurredAt":"2026-11-20T10:00:00Z","title":"a"},
        {"id":"0b24dd5a-0000-9000-8000-00000000000a","sessionId":"s","occurredAt":"2026-11-20T10:00:00Z","title":"a"}]}"#,
    ),
    (
        "times and empty texts",
        r#"{"title":"a","painPoints":[{"id":"0b24dd5a-0000-4000-8000-0000000000aa","sessionId":"",
        "userId":"","occurredAt":"yesterday","title":"","excerpt":""}]}"#,
    ),
    (
        "one id, two pain points",
        r#"{"title":"a","painPoints":[{"id":"0b24dd5a-0000-4000-8000-0000000000aa","sessionId":"s",
        "occurredAt":"2026-11-20T10:00:00Z","title":"a"},{"id":"0b24dd5a-0000-4000-8000-0000000000AA","sessionId":"s",
        "occurredAt":"2026-11-20T10:00:00Z","title":"b"}]}"#,
    ),
    (
        "NUL and control characters",
        r#"{"title":"a\u0000","description":"\u0000","painPoints":[{"id":"\u0000","sessionId":
        "\u0000","userId":"\u0000","occurredAt":"\u0000","title":"a\u0009b","excerpt":"\u0000"}]}"#,
    ),
];

/// Patches, in order.
const PATCHES: [(&str, &str); 18] = [
    ("nothing", "{}"),
    ("viewed", r#"{"viewed":true}"#),
    ("viewed again", r#"{"viewed":true}"#),
    ("status and title", r#"{"status":"resolved","title":"Pay twice"}"#),
    ("ignored", r#"{"status":"ignored","description":"é"}"#),
    ("null resets", r#"{"status":null,"viewed":null,"description":null}"#),
    ("rejected: a title of null", r#"{"title":null}"#),
    ("rejected: an empty title", r#"{"title":""}"#),
    ("rejected: merged", r#"{"status":"merged"}"#),
    ("rejected: another status", r#"{"status":"Open"}"#),
    ("rejected: wrong types", r#"{"title":1,"description":2,"status":3,"viewed":"yes"}"#),
    ("rejected: unknown fields", r#"{"id":"x","occurrences":3,"mergedInto":null}"#),
    ("rejected: a field twice", r#"{"viewed":true,"viewed":false}"#),
    ("rejected: NUL", r#"{"title":"\u0000","description":"\u0000","status":"\u0000"}"#),
    ("rejected: an array", "[]"),
    ("rejected: no body", ""),
    ("rejected: not JSON", "viewed"),
    ("rejected: two values", "{}{}"),
];

const REFUSED_SPLITS: [(&str, &str); 9] = [
    ("no body", ""),
    ("an empty object", "{}"),
    ("none", r#"{"painPointIds":[]}"#),
    ("null", r#"{"painPointIds":null,"title":null}"#),
    ("wrong types", r#"{"painPointIds":{},"title":1,"description":2}"#),
    ("ids", r#"{"painPointIds":["a",1,null,""]}"#),
    (
        "an id twice",
        r#"{"painPointIds":["0b24dd5a-0000-4000-8000-00000000000a","0B24DD5A-0000-4000-8000-00000000000A"]}"#,
    ),
    (
        "unknown pain points",
        r#"{"painPointIds":["0b24dd5a-0000-4000-8000-00000000000a","0b24dd5a-0000-4000-8000-0000000000ff"],
        "title":"x"}"#,
    ),
    (
        "an unknown field and an empty title",
        r#"{"painPointIds":["0b24dd5a-0000-4000-8000-00000000000a"],"title":"","into":"x"}"#,
    ),
];

const REFUSED_MERGES: [(&str, &str); 8] = [
    ("no body", ""),
    ("an empty object", "{}"),
    ("null", r#"{"into":null}"#),
    ("a number", r#"{"into":1}"#),
    ("into no id", r#"{"into":"nonsense"}"#),
    ("an unknown insight", r#"{"into":"01902f3c-0000-7000-8000-ffffffffffff"}"#),
    ("an unknown field", r#"{"into":"01902f3c-0000-7000-8000-ffffffffffff","from":"x"}"#),
    ("an array", "[1]"),
];

const LISTS: [(&str, &[(&str, &str)]); 12] = [
    ("all", &[]),
    ("open", &[("status", "open")]),
    ("merged", &[("status", "merged")]),
    ("resolved", &[("status", "resolved")]),
    ("the first two", &[("limit", "2")]),
    ("rejected: another status", &[("status", "closed")]),
    ("rejected: no status", &[("status", "")]),
    ("rejected: limit 0", &[("limit", "0")]),
    ("rejected: limit 101", &[("limit", "101")]),
    ("rejected: a cursor of text", &[("cursor", "x")]),
    ("rejected: everything", &[("cursor", ""), ("status", "OPEN"), ("limit", "1.5")]),
    ("rejected: the second status does not count", &[("status", "x"), ("status", "open")]),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("insights").await;
    let r = &mut recording;

    r.send("list: nothing", get(INSIGHTS)).await;
    let written = r.send("create: as written", post(INSIGHTS).text(WRITTEN)).await;
    let written = written.body["id"].as_str().unwrap().to_owned();
    let many = r.send("create: twenty", post(INSIGHTS).json(&creation("Twenty", 0..20))).await;
    let many = many.body["id"].as_str().unwrap().to_owned();
    let few = r.send("create: three", post(INSIGHTS).json(&creation("Three", 20..23))).await;
    let few = few.body["id"].as_str().unwrap().to_owned();
    for (name, body) in REFUSED_CREATIONS {
        r.send(&format!("create rejected: {name}"), post(INSIGHTS).text(body)).await;
    }
    let taken = creation("Taken", 15..30);
    r.send("create rejected: pain points of another insight", post(INSIGHTS).json(&taken)).await;
    r.send(
        "create rejected: five hundred and one",
        post(INSIGHTS).json(&creation("a", 1_000..1_501)),
    )
    .await;
    r.send("create rejected: long texts", post(INSIGHTS).json(&long_texts())).await;
    r.send("create rejected: a large body", post(INSIGHTS).text(" ".repeat(1_048_577))).await;
    r.send(
        "create rejected: a body that is large elsewhere",
        post(INSIGHTS).text(" ".repeat(262_145)),
    )
    .await;
    let plain = post(INSIGHTS).bytes("{}").header("content-type", "text/plain");
    r.send("create rejected: plain text", plain).await;
    r.send("create rejected: an unknown project", post("/v0/projects/missing/replay-insights"))
        .await;

    let once = |title: &str, key: &str| {
        post(INSIGHTS).json(&creation(title, 40..42)).header("idempotency-key", key)
    };
    r.send("create once", once("Once", "key")).await;
    r.send("create once: again", once("Once", "key")).await;
    r.send("create once: another body", once("Twice", "key")).await;
    r.send("create once: another key", once("Once", "other")).await;
    r.send("create once: an empty key", once("Once", "")).await;

    adding(r, &written, &many).await;
    for (name, body) in PATCHES {
        r.send(&format!("patch, {name}"), patch(insight(&written)).text(body)).await;
    }
    versions(r, &written).await;
    reading(r, &written, &many).await;
    splitting(r, &written, &many).await;
    merging(r, &written, &many, &few).await;
    for (name, parameters) in LISTS {
        let list =
            parameters.iter().fold(get(INSIGHTS), |list, (name, value)| list.query(name, value));
        r.send(&format!("list, {name}"), list).await;
    }
    r.send_pages("list", &get(INSIGHTS).query("limit", 2)).await;
    r.send_pages("list the open", &get(INSIGHTS).query("limit", 1).query("status", "open")).await;

    recording.finish();
}

fn long_texts() -> Value {
    let mut body = creation("a", 50..51);
    body["title"] = json!("é".repeat(201));
    body["description"] = json!("é".repeat(2_001));
    let pain_point = &mut body["painPoints"][0];
    pain_point["sessionId"] = json!("s".repeat(201));
    pain_point["userId"] = json!("u".repeat(201));
    pain_point["title"] = json!("t".repeat(201));
    pain_point["excerpt"] = json!("e".repeat(2_001));
    body
}

async fn adding(r: &mut Recording, written: &str, many: &str) {
    let add = |id: &str, numbers| post(pain_points(id)).json(&upload(numbers));
    r.send("add: two", add(written, 60..62)).await;
    r.send("add: one of them again", add(written, 61..63)).await;
    r.send("add: nothing new", add(written, 60..63)).await;
    r.send("add rejected: of another insight", add(written, 0..12)).await;
    r.send("add rejected: to no insight", add(NOWHERE, 70..71)).await;
    r.send("add rejected: no id", add("nonsense", 70..71)).await;
    r.send("add rejected: five hundred and one", add(many, 1_000..1_501)).await;
    for (name, body) in [
        ("no body", ""),
        ("an empty object", "{}"),
        ("no pain points", r#"{"painPoints":[]}"#),
        ("a title", r#"{"title":"a","painPoints":[{}]}"#),
        ("not JSON", "{'painPoints':[]}"),
    ] {
        r.send(&format!("add rejected: {name}"), post(pain_points(many)).text(body)).await;
        let nowhere = post(pain_points(NOWHERE)).text(body);
        r.send(&format!("add rejected: {name}, to no insight"), nowhere).await;
    }
    let once = |numbers| add(many, numbers).header("idempotency-key", "key");
    r.send("add once", once(80..82)).await;
    r.send("add once: again", once(80..82)).await;
    r.send("add once: another body", once(80..83)).await;
    let bad = add("nonsense", 80..81).header("idempotency-key", "");
    r.send("add rejected: path and header", bad).await;
}

async fn versions(r: &mut Recording, id: &str) {
    let viewed = || patch(insight(id)).text(r#"{"viewed":true}"#);
    for (name, tag) in [
        ("the first version", "\"1\""),
        ("any version", "*"),
        ("a list with a hole", "\"2\",, \"3\""),
        ("a weak tag", "W/\"7\""),
        ("nonsense", "7"),
        ("an empty tag", ""),
    ] {
        r.send(&format!("patch if-match: {name}"), viewed().header("if-match", tag)).await;
    }
    let current = r.send("get: for its version", get(insight(id))).await;
    let etag = current.headers["etag"].to_str().unwrap();
    r.send("patch if-match: its version", viewed().header("if-match", etag)).await;
    r.send("patch rejected: an unknown insight", patch(insight(NOWHERE)).text("{}")).await;
    r.send("patch rejected: no id", patch(insight("nonsense")).text("{}")).await;
    let typed = patch(insight(id)).bytes(r#"{"title":"Typed"}"#);
    let typed = typed.header("content-type", "application/merge-patch+json; charset=utf-8");
    r.send("patch: a merge patch", typed).await;
    let csv = patch(insight(id)).bytes("{}").header("content-type", "text/csv");
    r.send("patch rejected: another type", csv).await;
    let long = json!({"title": "é".repeat(201), "description": "é".repeat(2_001)});
    r.send("patch rejected: long texts", patch(insight(id)).json(&long)).await;
    r.send("patch rejected: a large body", patch(insight(id)).text(" ".repeat(262_145))).await;
}

async fn reading(r: &mut Recording, written: &str, many: &str) {
    r.send("get: as written", get(insight(written))).await;
    r.send("get: twenty", get(insight(many))).await;
    r.send("get: in upper case", get(insight(&NOWHERE.to_uppercase()))).await;
    r.send("get rejected: no id", get(insight("nonsense"))).await;
    r.send("get rejected: an id in braces", get(insight("%7Ba%7D"))).await;
    r.send("pain points: as written", get(pain_points(written))).await;
    r.send("pain points rejected: no insight", get(pain_points(NOWHERE))).await;
    let wrong = get(pain_points("nonsense")).query("limit", "0").query("cursor", "x");
    r.send("pain points rejected: everything", wrong).await;
    r.send_pages("pain points", &get(pain_points(many)).query("limit", 9)).await;
}

async fn splitting(r: &mut Recording, written: &str, many: &str) {
    for (name, body) in REFUSED_SPLITS {
        r.send(&format!("split rejected: {name}"), split(written).text(body)).await;
    }
    r.send("split rejected: all of them", split(many).json(&split_of((0..20).chain(80..82)))).await;
    r.send("split rejected: of no insight", split(NOWHERE).json(&split_of([0]))).await;
    r.send("split rejected: no id", split("nonsense").json(&split_of([0]))).await;
    r.send("split: the smallest", split(many).json(&split_of([19, 3]))).await;
    r.send("split: again", split(many).json(&split_of([3, 19]))).await;
    let mut titled = split_of(0..3);
    titled["title"] = json!("Split off");
    titled["description"] = json!("By hand");
    r.send("split: with a title", split(many).json(&titled)).await;
    let once = |numbers: std::ops::Range<usize>| {
        split(many).json(&split_of(numbers)).header("idempotency-key", "key")
    };
    r.send("split once", once(4..6)).await;
    r.send("split once: again", once(4..6)).await;
    r.send("split once: another body", once(6..7)).await;
    r.send("split: what is gone, under another title", split(many).json(&split_of([19]))).await;
    r.send("get: what is left", get(insight(many))).await;
}

async fn merging(r: &mut Recording, written: &str, many: &str, few: &str) {
    for (name, body) in REFUSED_MERGES {
        r.send(&format!("merge rejected: {name}"), merge(written).text(body)).await;
    }
    let into = |id: &str, into: &str| merge(id).json(&json!({ "into": into }));
    r.send("merge rejected: into itself", into(few, few)).await;
    r.send("merge rejected: of no insight", into(NOWHERE, few)).await;
    r.send("merge rejected: no id", into("nonsense", few)).await;
    let once = || into(few, many).header("idempotency-key", "key");
    r.send("merge once", once()).await;
    r.send("merge once: again", once()).await;
    r.send("merge: without the key", into(few, many)).await;
    let other = into(few, written).header("idempotency-key", "key");
    r.send("merge once: into another", other).await;
    r.send("merge rejected: merged into another", into(few, written)).await;
    r.send("merge rejected: into a merged one", into(written, few)).await;
    r.send("get: merged", get(insight(few))).await;
    r.send("pain points: merged", get(pain_points(few))).await;
    r.send("patch rejected: merged", patch(insight(few)).text(r#"{"viewed":true}"#)).await;
    r.send("add rejected: merged", post(pain_points(few)).json(&upload(90..91))).await;
    r.send("split rejected: merged", split(few).json(&split_of([20]))).await;
    r.send("get: the receiving insight", get(insight(many))).await;
}
