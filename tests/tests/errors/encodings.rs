//! Compressed bodies at their limits.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::json;
use tests::call::Call;
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

fn zstd(body: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(body, 3).unwrap()
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
