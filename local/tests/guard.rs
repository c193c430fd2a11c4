//! Web pages of other sites can call only the API of the local stack.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use local::engine::Engine;
use local::environment;
use local::gateway::{Gateway, GatewayOptions};
use local::guard::{Guard, hidden_address};
use local::template::read_tables;
use reqwest::{Client, Method, Response};
use shared::dynamodb::{Store, client};

const FOREIGN: &str = "https://evil.example";

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Sends a request with headers.
async fn send(method: Method, url: &str, headers: &[(&str, &str)]) -> Response {
    let request = Client::new().request(method, url);
    let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
    request.send().await.unwrap()
}

/// Returns the status of a response, and whether it lets pages read it.
fn outcome(response: &Response) -> (u16, bool) {
    let headers = response.headers();
    let lets_pages = headers.keys().any(|it| it.as_str().starts_with("access-control-"));
    (response.status().as_u16(), lets_pages)
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn gateway_rejects_foreign_hosts_and_pages() {
    let (listener, url) = listen();
    let options = GatewayOptions {
        workspace: workspace(),
        functions: "http://127.0.0.1:9".to_owned(),
        patience: Duration::from_secs(1),
        report: Box::new(|_| ()),
    };
    let _gateway = Gateway::start(listener, options).unwrap();
    let preflight = [("origin", FOREIGN), ("access-control-request-method", "POST")];
    for path in ["/v0/me", "/mail", "/docs", "/console", "/.aws/ses/v2/email/outbound-emails"] {
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            let headers = [("host", "evil.example:9000"), ("origin", "http://evil.example:9000")];
            let response = send(method, &format!("{url}{path}"), &headers).await;
            assert_eq!(outcome(&response), (403, false), "{path}");
        }
    }
    for path in ["/mail", "/mail/", "/mail/events", "/.aws/eventbridge", "/.aws/ses/v2/email/x"] {
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            let response = send(method, &format!("{url}{path}"), &preflight).await;
            assert_eq!(outcome(&response), (403, false), "{path}");
        }
    }
    // Pages can call the API. The stack's own page can use its mailbox.
    let response = send(Method::OPTIONS, &format!("{url}/v0/me"), &preflight).await;
    assert_eq!(outcome(&response), (204, true));
    let response = send(Method::GET, &format!("{url}/mail"), &[("origin", &url)]).await;
    assert_eq!(outcome(&response), (200, false));
}

#[tokio::test]
async fn dynamodb_rejects_foreign_hosts_and_pages() {
    let tables = read_tables(&workspace().join("template.yaml")).unwrap();
    let engine = Engine::start(hidden_address(), None, &tables).unwrap();
    let (listener, url) = listen();
    let _guard = Guard::start(listener, engine.endpoint()).unwrap();
    let preflight = [("origin", FOREIGN), ("access-control-request-headers", "x-amz-target")];
    let rebound = [("host", "evil.example:8000")];
    for headers in [&preflight[..], &rebound[..]] {
        for method in [Method::GET, Method::POST, Method::OPTIONS] {
            let response = send(method, &url, headers).await;
            assert_eq!(outcome(&response), (403, false), "{headers:?}");
        }
    }
    // Programs can use it.
    let store = Store::new(client::for_endpoint(&url).unwrap(), environment::table_prefix());
    assert!(store.list_api_keys().await.unwrap().is_empty());
}

#[tokio::test]
async fn files_are_readable_by_their_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let (data, variables) = (folder.path().join("dynamodb.sqlite"), folder.path().join("env"));
    // The file of an earlier run.
    std::fs::write(&variables, "A=1\nB=2\nC=3\n").unwrap();
    environment::write(&variables, &[("A", "2".to_owned())]).unwrap();
    assert_eq!(std::fs::read_to_string(&variables).unwrap(), "A=2\n");
    let tables = read_tables(&workspace().join("template.yaml")).unwrap();
    let engine = Engine::start((Ipv4Addr::LOCALHOST, 0).into(), Some(&data), &tables).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file:?}");
    }
    engine.stop().await;
}
