//! Undoing the compression of a body.
//!
//! A gateway may have inflated a body and left the header, and some clients compress without one.
//! So the header's coding is tried first, then what the first bytes say, then plain text.

use std::borrow::Cow;
use std::io::Read;

use brotli_decompressor::Decompressor;
use flate2::read::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::read::Decoder as ZstdDecoder;

use super::IngestionFault;

/// The largest body on the wire, in bytes: what fits into a Lambda request of 6 MB as base64.
pub const MAX_WIRE_BYTES: usize = 4 * 1024 * 1024;
/// The largest inflated body, in bytes.
pub const MAX_INFLATED_BYTES: usize = 20 * 1024 * 1024;
/// The largest window of a zstd frame, as a power of two: 8 MiB, which RFC 8878 §3.1.1.1.2 asks
/// decoders to support. The library would allocate 128 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;
const CHUNK_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Why one attempt at inflating failed.
#[derive(Debug, PartialEq, Eq)]
enum InflateFault {
    Corrupt,
    TooLarge,
}

/// The body without its compression. `content_encoding` is the header's value, empty if absent.
pub fn inflate<'b>(
    body: &'b [u8],
    content_encoding: &str,
) -> Result<Cow<'b, [u8]>, IngestionFault> {
    if body.len() > MAX_WIRE_BYTES {
        return Err(IngestionFault::too_large(format!(
            "the body has {} bytes; at most {MAX_WIRE_BYTES} are accepted: attach less to events",
            body.len()
        )));
    }
    let declared = declared_coding(content_encoding)?;
    let told_by_magic = coding_by_magic(body);
    let candidates = match (declared, told_by_magic) {
        (ContentCoding::Identity, None) => return Ok(Cow::Borrowed(body)),
        (ContentCoding::Identity, told_by_magic) => [told_by_magic, None, None],
        (declared, told_by_magic) => [Some(declared), told_by_magic, plain_text(body)],
    };
    for coding in candidates.into_iter().flatten() {
        match decode(body, coding) {
            Ok(inflated) => return Ok(inflated),
            Err(InflateFault::TooLarge) => {
                return Err(IngestionFault::too_large(format!(
                    "the body has more than {MAX_INFLATED_BYTES} bytes when it is decompressed"
                )));
            }
            Err(InflateFault::Corrupt) => {}
        }
    }
    Err(IngestionFault::malformed("the body is not compressed as its content-encoding says"))
}

fn declared_coding(header: &str) -> Result<ContentCoding, IngestionFault> {
    let mut declared = ContentCoding::Identity;
    for token in header.split(',').map(str::trim).filter(|token| !token.is_empty()) {
        let coding = match token.to_ascii_lowercase().as_str() {
            "identity" => continue,
            "gzip" | "x-gzip" => ContentCoding::Gzip,
            "deflate" => ContentCoding::Deflate,
            "br" => ContentCoding::Brotli,
            "zstd" => ContentCoding::Zstd,
            _ => return Err(IngestionFault::malformed("unknown content-encoding")),
        };
        if declared != ContentCoding::Identity {
            return Err(IngestionFault::malformed("more than one content-encoding"));
        }
        declared = coding;
    }
    Ok(declared)
}

/// What the first bytes say; Brotli has no magic number.
fn coding_by_magic(body: &[u8]) -> Option<ContentCoding> {
    match body {
        [0x1f, 0x8b, ..] => Some(ContentCoding::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(ContentCoding::Zstd),
        [cmf, flg, ..] if is_zlib_header(*cmf, *flg) => Some(ContentCoding::Deflate),
        _ => None,
    }
}

/// RFC 1950 §2.2: method 8, a window of at most 32 KiB, a checksum.
fn is_zlib_header(cmf: u8, flg: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && (u16::from(cmf) << 8 | u16::from(flg)) % 31 == 0
}

/// Envelopes and events both begin with `{`, perhaps after a byte order mark and white space.
fn plain_text(body: &[u8]) -> Option<ContentCoding> {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    text.starts_with(b"{").then_some(ContentCoding::Identity)
}

fn decode(body: &[u8], coding: ContentCoding) -> Result<Cow<'_, [u8]>, InflateFault> {
    match coding {
        ContentCoding::Identity => Ok(Cow::Borrowed(body)),
        ContentCoding::Gzip => read_to_cap(MultiGzDecoder::new(body)).map(Cow::Owned),
        ContentCoding::Deflate => match inflate_deflate(body, true) {
            // Some clients send bare DEFLATE under this name (RFC 9110 §8.4.1.2).
            Err(InflateFault::Corrupt) => inflate_deflate(body, false).map(Cow::Owned),
            inflated => inflated.map(Cow::Owned),
        },
        ContentCoding::Brotli => read_to_cap(Decompressor::new(body, CHUNK_BYTES)).map(Cow::Owned),
        ContentCoding::Zstd => {
            let mut decoder = ZstdDecoder::with_buffer(body).map_err(|_| InflateFault::Corrupt)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| InflateFault::Corrupt)?;
            read_to_cap(decoder).map(Cow::Owned)
        }
    }
}

/// Reads everything, but never more than one byte over the cap.
fn read_to_cap(reader: impl Read) -> Result<Vec<u8>, InflateFault> {
    let mut inflated = Vec::new();
    let cap = u64::try_from(MAX_INFLATED_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(cap).read_to_end(&mut inflated).map_err(|_| InflateFault::Corrupt)?;
    if inflated.len() > MAX_INFLATED_BYTES { Err(InflateFault::TooLarge) } else { Ok(inflated) }
}

/// Inflates by hand: the library's reader takes a truncated stream for a complete one.
fn inflate_deflate(body: &[u8], zlib_header: bool) -> Result<Vec<u8>, InflateFault> {
    let mut state = Decompress::new(zlib_header);
    let mut inflated = Vec::new();
    loop {
        let (read, written) = (state.total_in(), inflated.len());
        let rest = usize::try_from(read).ok().and_then(|read| body.get(read..));
        inflated.reserve(CHUNK_BYTES);
        let status = state
            .decompress_vec(rest.unwrap_or_default(), &mut inflated, FlushDecompress::None)
            .map_err(|_| InflateFault::Corrupt)?;
        if inflated.len() > MAX_INFLATED_BYTES {
            return Err(InflateFault::TooLarge);
        }
        let stuck = state.total_in() == read && inflated.len() == written;
        match status {
            Status::StreamEnd => return Ok(inflated),
            Status::Ok | Status::BufError if stuck => return Err(InflateFault::Corrupt),
            Status::Ok | Status::BufError => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &[u8] =
        b"{\"event_id\":\"ac012cadf588491bb76da90129e33c41\"}\n{\"type\":\"x\"}\n{}";
    /// `TEXT` as the Brotli library of sentry-sdk compresses it.
    const BROTLI: &[u8] = include_bytes!("../testdata/small.br");

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ::zstd::bulk::compress(bytes, 3).unwrap()
    }

    #[test]
    fn inflates_what_the_header_says() {
        for (header, body) in [
            ("gzip", gzip(TEXT)),
            ("x-gzip", gzip(TEXT)),
            ("GZIP", gzip(TEXT)),
            ("deflate", zlib(TEXT)),
            ("deflate", raw_deflate(TEXT)),
            ("br", BROTLI.to_vec()),
            ("zstd", zstd(TEXT)),
            ("identity, gzip", gzip(TEXT)),
            ("", TEXT.to_vec()),
            ("identity", TEXT.to_vec()),
        ] {
            assert_eq!(inflate(&body, header).as_deref(), Ok(TEXT), "{header}");
        }
    }

    #[test]
    fn inflates_what_the_bytes_say_where_the_header_does_not() {
        for body in [gzip(TEXT), zlib(TEXT), zstd(TEXT)] {
            for header in ["", "identity", "br", "gzip", "deflate", "zstd"] {
                assert_eq!(inflate(&body, header).as_deref(), Ok(TEXT), "{header}");
            }
        }
    }

    #[test]
    fn takes_a_body_that_a_gateway_has_inflated() {
        for header in ["gzip", "deflate", "br", "zstd"] {
            assert_eq!(inflate(TEXT, header).as_deref(), Ok(TEXT), "{header}");
        }
    }

    #[test]
    fn refuses_truncated_and_undeclared_streams() {
        for (header, body) in [
            ("gzip", gzip(TEXT)),
            ("deflate", zlib(TEXT)),
            ("deflate", raw_deflate(TEXT)),
            ("br", BROTLI.to_vec()),
            ("zstd", zstd(TEXT)),
        ] {
            let truncated = &body[..body.len() - 6];
            let fault = inflate(truncated, header);
            assert!(matches!(fault, Err(IngestionFault::Malformed(_))), "{header} {fault:?}");
        }
        for header in ["compress", "gzip, br"] {
            assert!(matches!(inflate(TEXT, header), Err(IngestionFault::Malformed(_))));
        }
    }

    #[test]
    fn stops_a_bomb_at_the_cap() {
        let zeros = vec![b' '; MAX_INFLATED_BYTES + 1];
        let bombs =
            [("gzip", gzip(&zeros)), ("deflate", zlib(&zeros)), ("deflate", raw_deflate(&zeros))];
        for (header, body) in bombs.into_iter().chain([("zstd", zstd(&zeros))]) {
            assert!(body.len() < 50_000);
            assert!(matches!(inflate(&body, header), Err(IngestionFault::TooLarge(_))), "{header}");
            let largest = &zeros[1..];
            assert_eq!(inflate(&gzip(largest), "gzip").map(|b| b.len()), Ok(MAX_INFLATED_BYTES));
        }
        let bomb: &[u8] = include_bytes!("../testdata/bomb.br");
        assert!(matches!(inflate(bomb, "br"), Err(IngestionFault::TooLarge(_))));
    }

    #[test]
    fn refuses_more_than_4_mib_on_the_wire() {
        let body = vec![b' '; MAX_WIRE_BYTES + 1];
        assert!(matches!(inflate(&body, ""), Err(IngestionFault::TooLarge(_))));
        assert!(inflate(&body[1..], "").is_ok());
    }

    #[test]
    fn refuses_a_zstd_window_beyond_8_mib() {
        let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.write_all(TEXT).unwrap();
        let frame = encoder.finish().unwrap();
        assert!(matches!(inflate(&frame, "zstd"), Err(IngestionFault::Malformed(_))));
    }

    proptest! {
        #[test]
        fn never_panics(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            header in "(gzip|deflate|br|zstd|identity|)",
        ) {
            let _ = inflate(&body, &header);
        }

        #[test]
        fn gives_back_what_was_compressed(body in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            for (header, compressed) in [
                ("gzip", gzip(&body)),
                ("zstd", zstd(&body)),
                ("deflate", zlib(&body)),
                ("deflate", raw_deflate(&body)),
            ] {
                let inflated = inflate(&compressed, header);
                prop_assert_eq!(inflated.as_deref(), Ok(&body[..]), "{}", header);
            }
        }
    }
}
