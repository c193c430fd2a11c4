//! Bodies of any encoding: output is limited and deterministic. For gzip and DEFLATE, it equals the
//! output of another implementation.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use errors::ingestion::{MAX_INFLATED_BYTES, inflate, inflate_start};

/// Values of `content-encoding`, chosen by the first byte.
const CODINGS: [&str; 7] = ["", "gzip", "deflate", "br", "zstd", "identity", "gzip, br"];
/// Bytes of a requested start.
const START: usize = 100;

pub(crate) fn inflating(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let coding = CODINGS[usize::from(*choice) % CODINGS.len()];
    let whole = inflate(body, coding);
    assert_eq!(whole, inflate(body, coding), "inflating is not deterministic");
    let start = inflate_start(body, coding, START);
    if let Ok(start) = &start {
        assert!(start.len() <= START);
    }
    let Ok(whole) = whole else { return };
    assert!(whole.len() <= MAX_INFLATED_BYTES);
    // Without a header, the body's encoding is detected.
    if coding.is_empty() {
        let start = start.expect("the start is readable");
        assert_eq!(start.as_ref(), &whole[..whole.len().min(START)]);
    }
    let is_inflated = whole.as_ref() != body;
    if is_inflated && body.starts_with(&[0x1f, 0x8b]) && matches!(coding, "" | "gzip") {
        assert_eq!(read(MultiGzDecoder::new(body)).as_deref(), Some(whole.as_ref()));
    }
    if is_inflated && coding == "deflate" {
        // The first decoder that succeeds decides between zlib and raw DEFLATE.
        let others = [read(ZlibDecoder::new(body)), read(DeflateDecoder::new(body))];
        let found = others.iter().flatten().any(|other| other.as_slice() == whole.as_ref());
        assert!(found || has_other_magic(body));
    }
}

/// `true` if the body could have been read as another encoding than DEFLATE.
fn has_other_magic(body: &[u8]) -> bool {
    body.starts_with(&[0x1f, 0x8b]) || body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}

fn read(decoder: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_INFLATED_BYTES).expect("the limit fits");
    decoder.take(most + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
