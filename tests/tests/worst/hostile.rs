//! Hostile requests that any client can send to any operation, with a key and without.

use lambda_http::http::Method;
use serde_json::{Value, json};

use flags::ofrep::MAX_BODY_BYTES;
use insights::draft::MAX_PAIN_POINTS_BYTES;
use shared::app::Access;
use tests::call::Call;
use tests::contract::resolve;
use tests::operation_specs::OperationSpec;

use super::{Case, Expected, Fixture};

/// Returns the fields of a schema's objects that are lists.
fn lists(schema: &'static Value) -> Vec<&'static str> {
    let choices =
        ["oneOf", "allOf"].map(|it| schema[it].as_array()).into_iter().flatten().flatten();
    let own = schema["properties"].as_object().into_iter().flatten();
    let own = own.filter(|(_, field)| {
        let kind = &resolve(field)["type"];
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("array")))
    });
    own.map(|(name, _)| name.as_str()).chain(choices.flat_map(|it| lists(resolve(it)))).collect()
}

/// Maximum bytes of the request line and headers in an HTTP API (API Gateway, quotas).
const HEAD_BYTES: usize = 10_000;
/// Maximum body that fits into a 6 MB event as base64.
const WIRE_BYTES: usize = 4_400_000;
/// Maximum body of most operations.
pub(super) const BODY_BYTES: usize = 256 * 1024;

/// Returns large, deep and numerous inputs, unauthenticated and with a key.
pub(super) fn cases(fixture: &Fixture, described: &OperationSpec, found: &Call) -> Vec<Case> {
    let unauthenticated_result = match described.operation.access {
        Access::Public(_) => Expected::Anything,
        _ => Expected::Rejection,
    };
    let unknown_key = "f".repeat(HEAD_BYTES / 4);
    let unauthenticated = filled(described, HEAD_BYTES / 4).key(&unknown_key);
    let largest = unauthenticated.clone().bytes("[".repeat(WIRE_BYTES)).base64();
    let mut cases = vec![
        Case::hostile("largest unauthenticated body", unauthenticated_result, largest),
        Case::hostile(
            "long unauthenticated head",
            unauthenticated_result,
            with_long_head(unauthenticated, described),
        ),
    ];
    let has_no_key = matches!(described.operation.access, Access::Dsn(_) | Access::Public(_));
    // Only one request can delete a resource.
    if has_no_key || described.method == Method::DELETE {
        return cases;
    }
    let known = found.clone().key(&fixture.test.key);
    let head = with_long_head(known.clone(), described);
    cases.push(Case::hostile("a long head", Expected::Anything, head));
    for (name, body) in bodies(described) {
        let call = known.clone().header("content-type", "application/json").bytes(body);
        cases.push(Case::hostile(&name, Expected::Anything, call));
    }
    cases
}

/// Returns a call with long path parameters.
fn filled(described: &OperationSpec, bytes: usize) -> Call {
    let in_path = described.parameters.iter().filter(|it| it["in"] == "path");
    let names: Vec<&str> = in_path.filter_map(|it| it["name"].as_str()).collect();
    let each = bytes / names.len().max(1);
    names.into_iter().fold(described.call(), |call, name| call.parameter(name, "a".repeat(each)))
}

/// Sets all headers and query parameters of an operation to the same length.
fn with_long_head(call: Call, described: &OperationSpec) -> Call {
    let of = |place: &'static str| {
        let found = described.parameters.iter().filter(move |it| it["in"] == place);
        found.filter_map(|it| it["name"].as_str())
    };
    let count = of("query").chain(of("header")).count() + 2;
    let each = HEAD_BYTES / 2 / count;
    let call = of("query").fold(call, |call, name| call.query(name, "9".repeat(each)));
    let tags = "\"1\",".repeat(each / 4);
    let call = of("header").fold(call, |call, name| call.header(&name.to_lowercase(), &tags));
    call.header("accept", &"*/*;q=0.1,".repeat(each / 10)).header("x", &",".repeat(each))
}

/// Returns the maximum bytes of an operation's body.
fn max_bytes(described: &OperationSpec) -> usize {
    match described.id {
        "create-insight" | "add-pain-points" => MAX_PAIN_POINTS_BYTES,
        _ if described.path.contains("/ofrep/") => MAX_BODY_BYTES,
        _ => BODY_BYTES,
    }
}

/// Returns JSON bodies with the maximum size of an operation.
fn bodies(described: &OperationSpec) -> Vec<(String, Vec<u8>)> {
    let json = described.contents.iter().find(|(media_type, _)| *media_type == "application/json");
    let Some((_, json)) = json else { return Vec::new() };
    let lists = lists(resolve(&json["schema"]));
    let bytes = max_bytes(described);
    let repeated = |open: &str, item: &str, close: &str| {
        let count = (bytes - open.len() - close.len()) / item.len();
        let mut text = format!("{open}{}", item.repeat(count));
        text.truncate(text.len() - 1);
        (text + close).into_bytes()
    };
    let deep = format!("{}{},", "[".repeat(30), "]".repeat(30));
    let fields: Vec<String> = (0..bytes / 10).map(|at| format!("\"{at:05x}\":0")).collect();
    let mut all = vec![
        ("lists in lists".to_owned(), repeated("[", &deep, "]")),
        ("many fields".to_owned(), format!("{{{}}}", fields.join(",")).into_bytes()),
        ("one field many times".to_owned(), repeated("{", "\"\":0,", "}")),
        ("escapes".to_owned(), repeated("{\"name\":\"", "\\u00e9 ", "\"}")),
        ("digits".to_owned(), repeated("{\"limit\":", "9", "}")),
    ];
    for list in lists {
        let open = format!("{{\"{list}\":[");
        all.push((format!("numbers as {list}"), repeated(&open, "0,", "]}")));
        all.push((format!("objects as {list}"), repeated(&open, "{},", "]}")));
    }
    all
}
