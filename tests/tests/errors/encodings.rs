//! Bodies, as SDKs and gateways compress and encode them.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::json;
use tests::call::{Call, Gateway};
use tests::errors::{SentEvent, envelope};

use super::{ENVELOPE, STORE, Tracker, delivery};

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn bare_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(body, 3).unwrap()
}

/// Returns a stream with one uncompressed meta-block and an empty last one (RFC 7932 §9.2).
fn brotli(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() - 1).unwrap();
    assert!(length < 1 << 16);
    let header = (length << 4 | 1 << 20).to_le_bytes();
    [&header[..3], body, &[3]].concat()
}

#[tokio::test]
async fn codings_are_detected_by_header_or_bytes() {
    type Encode = fn(&[u8]) -> Vec<u8>;
    let tracker = Tracker::start().await;
    let codings: [(Encode, &[Option<&str>]); 6] = [
        (gzip, &[Some("gzip"), Some("x-gzip"), Some("GZIP"), None, Some("identity")]),
        (zlib, &[Some("deflate"), None]),
        (bare_deflate, &[Some("deflate")]),
        (brotli, &[Some("br")]),
        (zstd, &[Some("zstd"), None]),
        // A gateway can inflate a body and keep the header.
        (<[u8]>::to_vec, &[None, Some("identity"), Some("gzip"), Some("br"), Some("zstd")]),
    ];
    let mut sent = 0;
    for (encode, headers) in codings {
        for header in headers {
            for gateway in [Gateway::HttpApi, Gateway::RestApi] {
                for path in [ENVELOPE, STORE] {
                    sent += 1;
                    let event = SentEvent::new(sent, tracker.now(), "TypeError", "é 💥");
                    let body = if path.contains("store") {
                        event.payload().to_string()
                    } else {
                        event.envelope()
                    };
                    let call = delivery(&tracker.project, path).gateway(gateway);
                    // API Gateway encodes all bodies of some types as base64.
                    let mut call = call.bytes(encode(body.as_bytes()));
                    if sent % 3 == 0 {
                        call = call.base64();
                    }
                    if let Some(header) = header {
                        call = call.header("content-encoding", header);
                    }
                    let reply = call.send(&tracker.test.app).await;
                    let expected = (200, &json!({ "id": event.id }));
                    assert_eq!((reply.status, &reply.body), expected, "{header:?}");
                }
            }
        }
    }
    let error = tracker.the_error().await;
    assert_eq!((&error["message"], &error["count"]), (&json!("é 💥"), &json!(sent)));
}

#[tokio::test]
async fn rejects_bodies_that_inflate_beyond_20_mib() {
    let tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x").envelope();
    let large = |bytes: usize| {
        let padding = "\n".repeat(bytes - event.len());
        format!("{event}{padding}").into_bytes()
    };
    let mib = 1 << 20;
    for (body, coding, status) in [
        (gzip(&large(20 * mib)), "gzip", 200),
        (gzip(&large(20 * mib + 1)), "gzip", 413),
        (zlib(&large(21 * mib)), "deflate", 413),
        (zstd(&large(21 * mib)), "zstd", 413),
        (zstd(&large(21 * mib)), "identity", 413),
    ] {
        assert!(body.len() < mib);
        let call = delivery(&tracker.project, ENVELOPE).bytes(body);
        let reply = call.header("content-encoding", coding).send(&tracker.test.app).await;
        assert_eq!(reply.status, status, "{coding}: {}", reply.body);
    }
}

#[tokio::test]
async fn corrupted_compressed_bodies_return_400() {
    let tracker = Tracker::start().await;
    let whole = gzip(SentEvent::new(1, tracker.now(), "TypeError", "x").envelope().as_bytes());
    let cut = whole[..whole.len() / 2].to_vec();
    for (body, coding) in [
        (cut.clone(), "gzip"),
        (cut, ""),
        (whole.clone(), "compress"),
        (whole.clone(), "gzip, br"),
        (vec![0xff; 100], "br"),
        (vec![0xff; 100], "gzip"),
    ] {
        let call = delivery(&tracker.project, ENVELOPE).bytes(body);
        let reply = call.header("content-encoding", coding).send(&tracker.test.app).await;
        assert_eq!(reply.status, 400, "{coding}");
        assert!(reply.body["detail"].is_string(), "{}", reply.body);
    }
}

#[tokio::test]
async fn unauthenticated_bodies_inflate_to_one_line_at_most() {
    let tracker = Tracker::start().await;
    let ingest_id = tracker.project.ingest_id;
    let to = |path: &str| {
        let call = Call::of(&ingest_error_events::OPERATION).path(path);
        call.parameter("ingestId", ingest_id).header("content-encoding", "gzip")
    };
    let bomb = gzip(&vec![b' '; 21 << 20]);
    let wrong = "f".repeat(32);
    for path in [ENVELOPE, STORE] {
        for body in [bomb.clone(), b"no gzip".to_vec()] {
            let call = to(path).query("sentry_key", &wrong).bytes(body);
            assert_eq!(call.send(&tracker.test.app).await.status, 403, "{path}");
        }
    }
    let reply = to(STORE).bytes(bomb).send(&tracker.test.app).await;
    assert_eq!(reply.status, 403);
    // The first line of an envelope can contain the key.
    let key = tracker.project.public_key.to_string();
    for (key, padding, status) in
        [(&key, 0, 200), (&wrong, 0, 403), (&wrong, 21 << 20, 403), (&key, 21 << 20, 413)]
    {
        let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
        let header = json!({ "dsn": format!("https://{key}@example.com/{ingest_id}") });
        let text = envelope(&header, &[("event", event.payload().to_string())]);
        let body = gzip(format!("{text}{}", "\n".repeat(padding)).as_bytes());
        let reply = to(ENVELOPE).bytes(body).send(&tracker.test.app).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}

#[tokio::test]
async fn rejects_bodies_with_many_gzip_members() {
    let tracker = Tracker::start().await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x").envelope();
    let (first, second) = event.as_bytes().split_at(event.len() / 2);
    let members = |empty: usize| [gzip(first), gzip(b"").repeat(empty), gzip(second)].concat();
    for (empty, status) in [(62, 200), (63, 413), (200_000, 413)] {
        let call = delivery(&tracker.project, ENVELOPE).bytes(members(empty));
        let reply = call.header("content-encoding", "gzip").send(&tracker.test.app).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}
