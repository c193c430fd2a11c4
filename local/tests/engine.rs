//! Tests of the embedded DynamoDB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use local::demo;
use local::engine::{Engine, EngineError};
use local::environment::table_prefix;
use local::template::{Table, read_tables};
use serde_json::Value;
use shared::dynamodb::{Store, client};

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn tables() -> Vec<Table> {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
    read_tables(Path::new(template)).unwrap()
}

fn store(engine: &Engine) -> Store {
    Store::new(client::for_endpoint(&engine.endpoint()).unwrap(), table_prefix())
}

#[tokio::test]
async fn file_data_and_demo_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (data, key_file) = (folder.path().join("data"), folder.path().join("key"));
    let engine = Engine::start(any_port(), Some(&data), &tables()).unwrap();
    let key = demo::ensure(&store(&engine), &key_file).await.unwrap().key;
    let project = demo::ensure_project(&store(&engine), demo::SLUG, "Demo").await.unwrap();
    engine.stop().await;

    let engine = Engine::start(any_port(), Some(&data), &tables()).unwrap();
    assert_eq!(demo::ensure(&store(&engine), &key_file).await.unwrap().key, key);
    let again = demo::ensure_project(&store(&engine), demo::SLUG, "Demo").await.unwrap();
    assert_eq!(again, project);
    assert_eq!(store(&engine).list_api_keys().await.unwrap().len(), 1);

    // A lost key file is replaced with a new key.
    std::fs::remove_file(&key_file).unwrap();
    assert_ne!(demo::ensure(&store(&engine), &key_file).await.unwrap().key, key);
}

#[tokio::test]
async fn demo_key_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    let engine = Engine::start(any_port(), None, &tables()).unwrap();
    demo::ensure(&store(&engine), &key_file).await.unwrap();
    assert_eq!(std::fs::metadata(&key_file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn tables_with_other_keys_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Engine::start(any_port(), Some(&data), &tables()).unwrap().stop().await;
    let mut changed = tables();
    changed[0].create["KeySchema"][0]["AttributeName"] = "other".into();
    let rejected = Engine::start(any_port(), Some(&data), &changed).err();
    assert!(matches!(&rejected, Some(EngineError::OtherKeys(name)) if *name == changed[0].name));
    assert!(rejected.unwrap().to_string().contains("make reset"));
}

#[tokio::test]
async fn tables_without_a_declared_index_are_rejected() {
    for (name, indexes) in
        [("feature-flags", "LocalSecondaryIndexes"), ("people", "GlobalSecondaryIndexes")]
    {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let table = tables().into_iter().find(|table| table.name.ends_with(name)).unwrap();
        let mut before = table.clone();
        let create = before.create.as_object_mut().unwrap();
        assert!(create.remove(indexes).is_some());
        // Only key attributes can be defined.
        let keys = create["KeySchema"].as_array().unwrap().clone();
        let is_of_a_key = |attribute: &Value| {
            keys.iter().any(|key| key["AttributeName"] == attribute["AttributeName"])
        };
        create["AttributeDefinitions"].as_array_mut().unwrap().retain(is_of_a_key);
        Engine::start(any_port(), Some(&data), &[before]).unwrap().stop().await;
        let rejected = Engine::start(any_port(), Some(&data), std::slice::from_ref(&table)).err();
        assert!(matches!(&rejected, Some(EngineError::OtherKeys(name)) if *name == table.name));
    }
}

#[tokio::test]
async fn used_addresses_are_named() {
    let engine = Engine::start(any_port(), None, &[]).unwrap();
    let address: SocketAddr = engine.endpoint().trim_start_matches("http://").parse().unwrap();
    let rejected = Engine::start(address, None, &[]).err().unwrap();
    assert!(rejected.to_string().starts_with(&format!("cannot listen on {address}")));
}
