//! Checks responses against `openapi.yaml`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::call::Reply;

/// The API description.
pub static OPENAPI: LazyLock<Value> = LazyLock::new(|| {
    let path = crate::workspace().join("openapi.yaml");
    let text = std::fs::read_to_string(path).expect("openapi.yaml is readable");
    yaml_serde::from_str(&text).expect("openapi.yaml is YAML")
});

/// Panics unless `openapi.yaml` documents this response: status, body and headers.
pub fn check(operation_id: &str, reply: &Reply) {
    let described = described(operation_id);
    let responses = &described["responses"];
    let documented = match &responses[reply.status.to_string()] {
        Value::Null => &responses["default"],
        response => response,
    };
    let response = resolve(documented);
    assert!(!response.is_null(), "{operation_id} does not document {}", reply.status);

    let content = &response["content"];
    if content.is_null() {
        assert_eq!(reply.body, Value::Null, "{operation_id} {} has no body", reply.status);
    } else if let Some(page) = content.get("text/html") {
        assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
        assert_valid(&page["schema"], &reply.body);
    } else {
        assert_eq!(reply.headers["content-type"], "application/json");
        assert_valid(&content["application/json"]["schema"], &reply.body);
    }
    if let Some(headers) = response["headers"].as_object() {
        for (name, header) in headers {
            let header = resolve(header);
            match reply.headers.get(name.as_str()).map(|value| value.to_str().expect("ASCII")) {
                None => assert_ne!(header["required"], true, "{name} is missing"),
                Some(value) => {
                    // Headers are text. Their schemas describe the value that the text represents.
                    let parsed: Value = match serde_json::from_str(value) {
                        Ok(parsed @ (Value::Number(_) | Value::Bool(_))) => parsed,
                        _ => json!(value),
                    };
                    assert_valid(&header["schema"], &parsed);
                }
            }
        }
    }
    let header = |name| reply.headers.get(name).and_then(|value| value.to_str().ok());
    if !operation_id.starts_with("serve-console") {
        let has_etag = reply.headers.contains_key("etag");
        let caching = if has_etag { "private, no-cache" } else { "no-store" };
        assert_eq!(header("cache-control"), Some(caching), "{operation_id}");
    }
    if described["security"].is_null() {
        let vary = header("vary").unwrap_or_default();
        let is_known =
            ["authorization, x-api-key", "authorization, x-api-key, cookie"].contains(&vary);
        assert!(is_known, "{operation_id}: {vary}");
    }
    for name in ["x-request-id", "access-control-allow-origin", "access-control-expose-headers"] {
        assert!(reply.headers.contains_key(name), "every response has {name}");
    }
    // Bodies of other protocols have their own format.
    if content["application/json"]["schema"]["$ref"] == "#/components/schemas/Problem" {
        assert_eq!(reply.body["requestId"], reply.headers["x-request-id"].to_str().expect("ASCII"));
        assert_eq!(reply.body["type"], format!("/problems/{}", reply.code()));
        assert_eq!(reply.body["status"], reply.status);
    }
}

/// Returns the description of an operation.
pub fn described(operation_id: &str) -> &'static Value {
    let paths = OPENAPI["paths"].as_object().expect("openapi.yaml has paths");
    paths
        .values()
        .filter_map(Value::as_object)
        .flat_map(|path| path.values())
        .find(|operation| operation["operationId"] == operation_id)
        .unwrap_or_else(|| panic!("openapi.yaml has no operation {operation_id}"))
}

/// Returns the first example of an operation's JSON body, if it has one.
pub fn example_body(operation_id: &str) -> Option<&'static Value> {
    let content = &resolve(&described(operation_id)["requestBody"])["content"]["application/json"];
    let examples = content["examples"].as_object().into_iter().flatten();
    let named = examples.map(|(_, example)| &resolve(example)["value"]);
    named.chain(content.get("example")).next()
}

/// Panics unless a value is valid under a schema of `openapi.yaml`.
pub fn assert_valid(schema: &Value, value: &Value) {
    let validator = validator(schema);
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "openapi.yaml does not describe {value}:\n{}", errors.join("\n"));
}

/// Returns the validator of a schema. Validators are cached, because creating one takes much longer
/// than using it.
fn validator(schema: &Value) -> Arc<Validator> {
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> =
        LazyLock::new(Mutex::default);
    let create = || {
        // `$ref`s of the description start at its root.
        let mut document = schema.clone();
        if let Some(schema) = document.as_object_mut() {
            schema.insert("components".to_owned(), OPENAPI["components"].clone());
        }
        Arc::new(jsonschema::draft202012::new(&document).expect("the schema is valid"))
    };
    let mut validators = VALIDATORS.lock().expect("not poisoned");
    Arc::clone(validators.entry(schema.to_string()).or_insert_with(create))
}

/// Resolves a `$ref`, or returns the value itself.
pub fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            OPENAPI.pointer(reference.trim_start_matches('#')).expect("the reference resolves")
        }
        None => value,
    }
}
