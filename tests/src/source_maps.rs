//! Artifact bundles, and the requests with which Sentry's tools upload them.

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use source_maps::CHUNK_BYTES;
use source_maps::bundle::Checksum;
use source_maps::store::{ProjectMaps, Upload};
use zip::write::SimpleFileOptions;

use shared::app::{App, Operation};
use shared::http::Method;
use shared::projects::project::ProjectId;

use crate::call::{Call, Reply};

/// The debug ID of [`bundle_of`].
pub const DEBUG_ID: &str = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";
/// A map of one source, whose generated line 1 has `checkout` at column 1 and its call of `total` at
/// column 11.
pub const MAP: &str = r#"{"version":3,"sources":["webpack://shop/./src/cart.js"],"names":["checkout"],"sourcesContent":["import x from 'y';\nexport function total(items) {\n  return items.sum();\n}\nfunction checkout(cart) {\n  return total(cart.items);\n}\n"],"mappings":"AAIAA,UACS"}"#;

/// Returns a bundle with a manifest and files.
pub fn bundle(manifest: &Value, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut zip = zip::ZipWriter::new(&mut bytes);
    let manifest = manifest.to_string();
    for (name, content) in files.iter().chain([&("manifest.json", manifest.as_bytes())]) {
        zip.start_file(*name, SimpleFileOptions::default()).expect("the file starts");
        zip.write_all(content).expect("the file is written");
    }
    zip.finish().expect("the archive is complete");
    [b"SYSB\x02\0\0\0".as_slice(), &bytes.into_inner()].concat()
}

/// Returns the bundle of one script and its map, with a debug ID.
pub fn bundle_of(map: &str, debug_id: &str) -> Vec<u8> {
    let script = json!({"debug-id": debug_id, "sourcemap": "app.js.map"});
    let manifest = json!({"org": "default", "project": "shop", "files": {
        "files/_/_/app.js": {"type": "minified_source", "url": "~/app.js", "headers": script},
        "files/_/_/app.js.map":
            {"type": "source_map", "url": "~/app.js.map", "headers": {"debug-id": debug_id}},
    }});
    let files = [("files/_/_/app.js", b"x".as_slice()), ("files/_/_/app.js.map", map.as_bytes())];
    bundle(&manifest, &files)
}

/// Returns a call under `/api/0/`.
pub fn tool_call(key: &str, method: Method, path: &str) -> Call {
    let operation: &'static Operation = &upload_source_maps::OPERATION;
    Call::of(operation)
        .method(method)
        .parameter("path", path)
        .header("authorization", &format!("Bearer {key}"))
}

/// Asks for the assembly of a bundle.
pub async fn assemble(app: &App, key: &str, bundle: &[u8], upload: &Value) -> Reply {
    let chunks: Vec<String> =
        bundle.chunks(CHUNK_BYTES).map(|chunk| Checksum::of(chunk).to_string()).collect();
    let mut body = json!({"checksum": Checksum::of(bundle).to_string(), "chunks": chunks});
    for (name, value) in upload.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let path = "organizations/default/artifactbundle/assemble";
    tool_call(key, Method::POST, path).json(&body).send(app).await
}

/// Uploads the chunks of a bundle.
pub async fn put_chunks(app: &App, key: &str, bundle: &[u8]) -> Reply {
    let mut body = Vec::new();
    for chunk in bundle.chunks(CHUNK_BYTES) {
        let name = Checksum::of(chunk);
        body.extend_from_slice(
            format!(
                "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
                 content-type: application/octet-stream\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b--\r\n");
    let call = tool_call(key, Method::POST, "organizations/default/chunk-upload");
    call.header("content-type", "multipart/form-data; boundary=b")
        .bytes(body)
        .base64()
        .send(app)
        .await
}

/// Queues a bundle for the job, like a large one.
pub async fn queue(app: &App, project: ProjectId, bundle: &[u8]) {
    let upload = Upload {
        organization: "default".to_owned(),
        checksum: Checksum::of(bundle),
        chunks: bundle.chunks(CHUNK_BYTES).map(Checksum::of).collect(),
        release: Some("shop@2".to_owned()),
        dist: None,
    };
    let store = ProjectMaps::new(&app.store, project);
    store.queue_bundle(&upload, app.clock.now()).await.expect("the bundle is queued");
}

/// Uploads and assembles a bundle.
pub async fn upload(app: &App, key: &str, bundle: &[u8], upload: &Value) -> Reply {
    assert_eq!(put_chunks(app, key, bundle).await.status, 200);
    assemble(app, key, bundle, upload).await
}

/// Returns an event of a browser whose frames are at columns of the script `app.js`, line 1.
pub fn event(
    id: u128,
    debug_id: Option<&str>,
    release: &str,
    columns: &[u32],
    name: &str,
) -> String {
    let frame = |column: &u32| {
        json!({"filename": "https://shop.example.com/app.js", "function": name, "in_app": true,
            "lineno": 1, "colno": column})
    };
    let frames: Vec<Value> = columns.iter().map(frame).collect();
    let images: Vec<Value> = debug_id.into_iter().map(|id| {
        json!({"type": "sourcemap", "code_file": "https://shop.example.com/app.js", "debug_id": id})
    }).collect();
    json!({
        "event_id": format!("{id:032x}"), "platform": "javascript", "release": release,
        "debug_meta": {"images": images},
        "exception": {"values": [{"type": "TypeError", "value": "x is undefined",
            "stacktrace": {"frames": frames}}]},
    })
    .to_string()
}
