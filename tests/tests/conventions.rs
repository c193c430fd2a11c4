//! Rules of all operations on resources and lists (`docs/api-conventions.md`): a resource is found only in its own
//! project, and a cursor works only unchanged and for its list.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lambda_http::http::Method;
use serde_json::{Value, json};

use shared::app::Operation;
use shared::projects::role::Role;
use tests::app::{Item, PROJECT, TestApp};
use tests::call::{Call, Reply};
use tests::contract::example_body;
use tests::errors::project;
use tests::filling::{TABLES, fill};
use tests::operation_specs::{OPERATION_SPECS, OperationSpec};
use tests::people::add_member;
use tests::source_maps::{MAP, bundle_of, upload};

/// An id that no resource has.
const MISSING_ID: &str = "01902f3c-0000-7000-8000-ffffffffffff";

/// Returns a call of an operation in a project.
fn call(test: &TestApp, spec: &OperationSpec, project: &str) -> Call {
    let call = spec.call().key(&test.key);
    if spec.path.contains("{idOrSlug}") { call.parameter("idOrSlug", project) } else { call }
}

/// Returns the path parameter that names an operation's resource, and the list of such resources.
fn resource(path: &str) -> Option<(&'static str, &'static Operation, &'static str)> {
    let resources: [(&str, &Operation, &str); 5] = [
        ("/segments/{key}", &list_segments::OPERATION, "key"),
        ("{key}", &list_feature_flags::OPERATION, "key"),
        ("{insightId}", &list_insights::OPERATION, "id"),
        ("{collectionId}", &list_event_marker_collections::OPERATION, "id"),
        ("{errorId}", &list_errors::OPERATION, "errorId"),
    ];
    let (parameter, list, id) =
        resources.into_iter().find(|(parameter, ..)| path.contains(parameter))?;
    Some((parameter.split(['{', '}']).nth(1)?, list, id))
}

/// Returns the ids of the resources that an operation's path can name, at least two.
async fn ids(test: &TestApp, list: &'static Operation, id: &str) -> Vec<String> {
    let list = test.call(list);
    let items = test.pages(&list, 100).await.concat();
    let ids: Vec<String> = items.iter().map(|it| it[id].as_str().unwrap().to_owned()).collect();
    assert!(ids.len() > 1, "{}: {ids:?}", list.id());
    ids
}

/// Returns an app with at least two items in every list, and an empty project `other`.
async fn filled() -> TestApp {
    let test = TestApp::start().await;
    let of_test = project(&test.app.store, test.project_id).await;
    fill(&test, &of_test, 0).await;
    test.other_project().await;
    let create = async |operation, body: Value| {
        let call = test.call(operation);
        let reply = call.json(&body).send(&test.app).await;
        assert!(reply.status < 300, "{}", reply.text);
    };
    let flag = json!({"key": "banner", "name": "Banner", "type": "boolean"});
    create(&create_feature_flag::OPERATION, flag).await;
    for key in ["banner", "checkout"] {
        let change = test
            .call(&update_feature_flag::OPERATION)
            .parameter("key", key)
            .json(&json!({"enabled": true}));
        assert_eq!(change.send(&test.app).await.status, 200);
    }
    let conditions = json!([{"attribute": "plan", "operator": "in", "values": ["pro"]}]);
    let segment = json!({"key": "pro", "name": "Pro", "conditions": conditions});
    create(&create_segment::OPERATION, segment).await;
    tests::markers::filled(&test.app.store, test.project_id, 2).await;
    let maps = json!({"projects": [PROJECT], "version": "shop@2"});
    let bundle = bundle_of(&MAP.replace("cart.js", "pay.js"), MISSING_ID);
    upload(&test.app, &test.key, &bundle, &maps).await;
    for name in ["juno", "mira"] {
        let email = format!("{name}@example.com");
        add_member(&test, &email, "default", Role::Viewer, None).await;
        let invited = json!({"email": format!("{name}@example.org"), "role": "viewer"});
        create(&create_invitation::OPERATION, invited).await;
    }
    create(&create_api_key::OPERATION, json!({"name": "CI", "scopes": ["flags:read"]})).await;
    test
}

/// Returns the items of all tables except for quotas, because each request counts toward limits.
async fn stored(test: &TestApp) -> Vec<Item> {
    let mut stored = Vec::new();
    for table in TABLES.into_iter().filter(|table| *table != "quotas") {
        stored.extend(test.items(table).await);
    }
    stored
}

fn assert_not_found(reply: &Reply, of: &str) {
    let is_ofrep = reply.body["errorCode"] == "FLAG_NOT_FOUND";
    assert!(is_ofrep || reply.code().ends_with("_not_found"), "{of}: {}", reply.text);
    assert_eq!(reply.status, 404, "{of}");
    assert_ne!(reply.code(), "project_not_found", "{of}");
}

#[tokio::test]
async fn resources_are_found_only_in_their_own_project() {
    let test = filled().await;
    let before = stored(&test).await;
    let mut operations = 0;
    for spec in OPERATION_SPECS.iter() {
        let Some((parameter, list, field)) = resource(spec.path) else { continue };
        operations += 1;
        let id = ids(&test, list, field).await.swap_remove(0);
        let send = async |project: &str, id: &str| {
            let call = call(&test, spec, project).parameter(parameter, id);
            let call = example_body(spec.id).into_iter().fold(call, Call::json);
            call.send(&test.app).await
        };
        let places = [("other", id.as_str()), (PROJECT, MISSING_ID)];
        // Texts that are not ids, and keys of other items in the table of flags.
        let simple = id.replace('-', "");
        let others: &[&str] = match parameter {
            "insightId" => &[],
            "key" => &["#", "%23", "/staff", "!checkout", "CHECKOUT", "-f", "é", "%C3%28", " f"],
            _ => &["nonsense", &simple, &format!("{{{id}}}"), "%00"],
        };
        for (project, id) in places.into_iter().chain(others.iter().map(|id| (PROJECT, *id))) {
            assert_not_found(&send(project, id).await, &format!("{} {id}", spec.id));
        }
        // Ids and the project's id are accepted in upper case.
        if spec.method == Method::GET {
            let id = if parameter == "key" { id } else { id.to_uppercase() };
            let reply = send(&test.project_id.to_string().to_uppercase(), &id).await;
            assert_eq!(reply.status, 200, "{}: {}", spec.id, reply.text);
        }
    }
    assert!(operations > 20, "{operations}");
    let after = stored(&test).await;
    let changed: Vec<_> = after.iter().filter(|item| !before.contains(item)).collect();
    assert!(changed.is_empty() && after.len() == before.len(), "{changed:?}");
}

#[tokio::test]
async fn cursors_work_only_unchanged_and_for_their_list() {
    let test = filled().await;
    // Each list, and the same list of another resource or project.
    let mut lists = Vec::new();
    for spec in OPERATION_SPECS.iter() {
        if !spec.parameters.iter().any(|parameter| parameter["name"] == "cursor") {
            continue;
        }
        let list = call(&test, spec, PROJECT);
        if let Some((parameter, resources, field)) = resource(spec.path) {
            // Other resources of the kind can have too few items for a second page.
            let ids = ids(&test, resources, field).await;
            lists.extend(ids.iter().map(|id| list.clone().parameter(parameter, id)));
        } else {
            if spec.path.contains("{idOrSlug}") {
                let of_other = call(&test, spec, "other");
                let reply = of_other.clone().send(&test.app).await;
                assert_eq!(reply.body["items"], json!([]), "{} of an empty project", spec.id);
                lists.push(of_other);
            }
            lists.push(list);
        }
    }
    let mut with_pages = std::collections::BTreeSet::new();
    for (at, list) in lists.iter().enumerate() {
        let first = list.clone().query("limit", 1).send(&test.app).await;
        assert_eq!(first.status, 200, "{}: {}", list.id(), first.text);
        let Some(cursor) = first.body["nextCursor"].as_str() else { continue };
        with_pages.insert(list.id());
        let swapped = if cursor.ends_with('A') { 'E' } else { 'A' };
        let changed = format!("{}{swapped}", &cursor[..cursor.len() - 1]);
        let changed = [&changed, &cursor[1..], "", "AAAA", &format!("{cursor}A")];
        let others = lists.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.map(|(_, other)| (other, cursor));
        for (other, cursor) in others.chain(changed.iter().map(|cursor| (list, *cursor))) {
            let reply = other.clone().query("cursor", cursor).send(&test.app).await;
            let expected = [("query:cursor", "invalid_value")];
            assert_eq!(reply.violations(), expected, "{} in {}", list.id(), other.id());
        }
        let second = list.clone().query("cursor", cursor).send(&test.app).await;
        assert_eq!(second.status, 200, "{}: {}", list.id(), second.text);
    }
    let all: std::collections::BTreeSet<_> = lists.iter().map(Call::id).collect();
    assert_eq!(with_pages, all, "a list has only one page");
}
