//! Uploaded chunks of source maps: any body is rejected, or each of its chunks is within the limits
//! and has its checksum. A valid body has the chunks that were sent.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::FutureExt;
use lambda_http::http::HeaderValue;
use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::{Body, Request};
use shared::http::{ApiRequest, StatusCode};
use source_maps::bundle::Checksum;
use source_maps::http::read_chunks;
use source_maps::{CHUNK_BYTES, CHUNKS_PER_REQUEST};

/// Statuses of a rejected body.
const REJECTED: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNSUPPORTED_MEDIA_TYPE];

type Chunks = Vec<(Checksum, Vec<u8>)>;

fn read(content_type: &[u8], body: &[u8]) -> Option<Result<Chunks, StatusCode>> {
    let mut request = Request::new(Body::Binary(body.to_vec()));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_bytes(content_type).ok()?);
    let incoming = ApiRequest::new("upload-source-maps", request);
    let read = read_chunks(&incoming).now_or_never().expect("the body is in memory");
    let chunks = read.map(|chunks| {
        chunks.into_iter().map(|(checksum, bytes)| (checksum, bytes.to_vec())).collect()
    });
    Some(chunks.map_err(|problem| problem.status()))
}

/// The first line is a `content-type` header, the rest a body.
pub(crate) fn chunks(bytes: &[u8]) {
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let [content_type, body] = [(); 2].map(|()| lines.next().unwrap_or_default());
    let chunks = read(content_type, body);
    assert_eq!(chunks, read(content_type, body), "reading is not deterministic");
    match chunks {
        Some(Ok(chunks)) => {
            assert!(chunks.len() <= CHUNKS_PER_REQUEST);
            for (checksum, chunk) in &chunks {
                assert!(chunk.len() <= CHUNK_BYTES);
                assert_eq!(Checksum::of(chunk), *checksum);
            }
        }
        Some(Err(status)) => assert!(REJECTED.contains(&status), "{status}"),
        None => {}
    }
    check_round_trip(bytes);
}

/// Checks that a plain and a compressed chunk are read as they were sent.
fn check_round_trip(chunk: &[u8]) {
    let checksum = Checksum::of(chunk);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(chunk).expect("the chunk is compressed");
    let compressed = encoder.finish().expect("the chunk is compressed");
    // The chunk cannot contain its own checksum.
    let boundary = format!("b{checksum}");
    let mut body = Vec::new();
    for (name, content) in [("file", chunk), ("file_gzip", &compressed)] {
        let headers = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"; \
             filename=\"{checksum}\"\r\n\r\n"
        );
        body.extend_from_slice(headers.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = format!("multipart/form-data; boundary={boundary}");
    let sent = (checksum, chunk.to_vec());
    let read = read(content_type.as_bytes(), &body);
    assert_eq!(read, Some(Ok(vec![sent.clone(), sent])), "a chunk was changed");
}
