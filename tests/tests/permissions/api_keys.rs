//! Every operation asks for a key of the scope that `openapi.yaml` names, before it looks at anything
//! else.

use std::collections::BTreeMap;

use shared::models::api_key::{ApiKeyRecord, Scope};
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Operation};
use tests::contract::OPENAPI;

use super::errors::interpret;
use super::operation;

/// Every operation that `openapi.yaml` gives a scope.
fn operations() -> [Operation; 29] {
    [
        operation!(add_event_markers),
        operation!(add_pain_points),
        operation!(create_event_marker_collection),
        operation!(create_feature_flag),
        operation!(create_insight),
        operation!(delete_event_marker_collection),
        operation!(delete_feature_flag),
        operation!(evaluate_feature_flag),
        operation!(evaluate_feature_flags),
        operation!(get_email_preferences),
        operation!(get_error),
        operation!(get_event_marker_collection),
        operation!(get_feature_flag),
        operation!(get_insight),
        interpret(),
        operation!(list_error_events),
        operation!(list_errors),
        operation!(list_event_marker_collections),
        operation!(list_event_markers),
        operation!(list_feature_flags),
        operation!(list_insights),
        operation!(list_pain_points),
        operation!(merge_insights),
        operation!(query_error_timeseries),
        operation!(split_insight),
        operation!(update_email_preferences),
        operation!(update_error),
        operation!(update_feature_flag),
        operation!(update_insight),
    ]
}

/// The scopes of `openapi.yaml`, by operation.
fn scopes() -> BTreeMap<&'static str, Scope> {
    let paths = OPENAPI["paths"].as_object().unwrap().values();
    let described = paths.flat_map(|path| path.as_object().unwrap().values());
    let scope_of = |operation: &'static serde_json::Value| {
        let scope = operation["x-required-scope"].as_str()?;
        // A path with a slash at its end is an operation of its own there.
        let id = operation["operationId"].as_str()?.trim_end_matches("-with-slash");
        Some((id, scope.parse().unwrap()))
    };
    described.filter_map(scope_of).collect()
}

/// A call that names things that are not there.
fn call(operation: Operation) -> Call {
    let call = operation.call().parameter("idOrSlug", PROJECT);
    let ids = ["key", "insightId", "collectionId", "errorId"];
    ids.into_iter().fold(call, |call, name| call.parameter(name, "nothing"))
}

#[tokio::test]
async fn every_operation_of_the_api_description_asks_for_a_key_of_its_scope_first() {
    let test = TestApp::start().await;
    let mut scopes = scopes();
    for operation in operations() {
        let id = operation.id;
        let needed = scopes.remove(id).unwrap_or_else(|| panic!("{id} has no scope"));
        test.assert_asks_for(needed, &call(operation)).await;
        let insider = [needed].into();
        let insider = test.key_with(|key| ApiKeyRecord { scopes: insider, ..key }).await;
        let reply = call(operation).key(&insider).send(&test.app).await;
        assert!(!matches!(reply.status, 401 | 403), "{id}: {}", reply.body);
    }
    assert!(scopes.is_empty(), "not called: {scopes:?}");
}
