//! Decompresses bodies.
//!
//! A gateway can inflate a body and leave the header, and some clients compress without a header.
//! So these codings are tried in order: the header's, the one that the first bytes indicate, plain
//! text.
//!
//! A small body that inflates to little can still take long, if it has many parts: members, blocks,
//! tables. So each coding limits them, far above the number that encoders write.

mod brotli;
#[cfg(test)]
mod conformance;
mod deflate;
#[cfg(test)]
mod tests;
mod zstd;

use std::borrow::Cow;
use std::io::Read;

use super::IngestionFault;

/// Maximum bytes of a body on the wire. As base64 it fits into a Lambda request of 6 MB.
pub const MAX_WIRE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum bytes of an inflated body.
pub const MAX_INFLATED_BYTES: usize = 20 * 1024 * 1024;
/// Maximum gzip members, or zstd frames, in a body. Encoders write one, or one for each write of a
/// program that appends.
pub const MAX_MEMBERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The reason why inflating failed.
#[derive(Debug, PartialEq, Eq)]
enum InflateFault {
    Corrupt,
    TooManyParts,
}

/// The result of inflating.
#[derive(Debug)]
struct Inflated {
    bytes: Vec<u8>,
    /// `true` if there was no more than requested.
    is_whole: bool,
}

/// Returns the body without its compression. `content_encoding` is the header's value, or `""`.
pub fn inflate<'b>(
    body: &'b [u8],
    content_encoding: &str,
) -> Result<Cow<'b, [u8]>, IngestionFault> {
    if body.len() > MAX_WIRE_BYTES {
        return Err(IngestionFault::too_large(format!(
            "the body has {} bytes; at most {MAX_WIRE_BYTES} are allowed, so attach less data to \
             events",
            body.len()
        )));
    }
    match inflate_up_to(MAX_INFLATED_BYTES, body, content_encoding)? {
        None => Ok(Cow::Borrowed(body)),
        Some(inflated) if inflated.is_whole => Ok(Cow::Owned(inflated.bytes)),
        Some(_) => Err(IngestionFault::too_large(format!(
            "the decompressed body has more than {MAX_INFLATED_BYTES} bytes; attach less data to \
             events"
        ))),
    }
}

/// Returns the first `most` bytes of the body without its compression.
pub fn inflate_start<'b>(
    body: &'b [u8],
    content_encoding: &str,
    most: usize,
) -> Result<Cow<'b, [u8]>, IngestionFault> {
    let inflated = inflate_up_to(most, body, content_encoding)?;
    let start = body.get(..most).unwrap_or(body);
    Ok(inflated.map_or(Cow::Borrowed(start), |inflated| Cow::Owned(inflated.bytes)))
}

/// Returns the first `most` bytes of the inflated body, or `None` if it is not compressed.
fn inflate_up_to(
    most: usize,
    body: &[u8],
    content_encoding: &str,
) -> Result<Option<Inflated>, IngestionFault> {
    let declared = declared_coding(content_encoding)?;
    let by_magic = coding_by_magic(body);
    let candidates = match (declared, by_magic) {
        (ContentCoding::Identity, None) => return Ok(None),
        (ContentCoding::Identity, by_magic) => [by_magic, None, None],
        (declared, by_magic) => [Some(declared), by_magic, plain_text(body)],
    };
    for coding in candidates.into_iter().flatten() {
        match decode(body, coding, most) {
            Ok(inflated) => return Ok(inflated),
            Err(InflateFault::TooManyParts) => {
                return Err(IngestionFault::too_large(
                    "the compressed body has too many parts; compress it in one part",
                ));
            }
            Err(InflateFault::Corrupt) => {}
        }
    }
    Err(IngestionFault::malformed("the body does not match its content-encoding"))
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
            _ => {
                return Err(IngestionFault::malformed(
                    "unknown content-encoding; use gzip, deflate, br or zstd",
                ));
            }
        };
        if declared != ContentCoding::Identity {
            return Err(IngestionFault::malformed("more than one content-encoding; use one"));
        }
        declared = coding;
    }
    Ok(declared)
}

/// Returns the coding that the first bytes indicate. Brotli has no magic number.
fn coding_by_magic(body: &[u8]) -> Option<ContentCoding> {
    match body {
        [0x1f, 0x8b, ..] => Some(ContentCoding::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(ContentCoding::Zstd),
        [cmf, flg, ..] if is_zlib_header(*cmf, *flg) => Some(ContentCoding::Deflate),
        _ => None,
    }
}

/// `true` for a zlib header (RFC 1950 §2.2): method 8, a window of at most 32 KiB, a checksum.
fn is_zlib_header(cmf: u8, flg: u8) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && (u16::from(cmf) << 8 | u16::from(flg)) % 31 == 0
}

/// Returns `Identity` for plain text. Envelopes and events begin with `{`, after an optional byte
/// order mark and white space.
fn plain_text(body: &[u8]) -> Option<ContentCoding> {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    text.starts_with(b"{").then_some(ContentCoding::Identity)
}

fn decode(
    body: &[u8],
    coding: ContentCoding,
    most: usize,
) -> Result<Option<Inflated>, InflateFault> {
    let inflated = match coding {
        ContentCoding::Identity => return Ok(None),
        ContentCoding::Gzip => deflate::inflate_gzip(body, most),
        ContentCoding::Deflate => match deflate::inflate(body, true, most) {
            // Some clients send bare DEFLATE under this name (RFC 9110 §8.4.1.2).
            Err(InflateFault::Corrupt) => deflate::inflate(body, false, most),
            inflated => inflated,
        },
        ContentCoding::Brotli => brotli::inflate(body, most),
        ContentCoding::Zstd => zstd::inflate(body, most),
    };
    inflated.map(Some)
}

/// Reads up to `most` bytes, and notes whether there are more.
fn read_up_to(most: usize, reader: impl Read) -> Result<Inflated, InflateFault> {
    let mut bytes = Vec::new();
    let cap = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(cap).read_to_end(&mut bytes).map_err(|_| InflateFault::Corrupt)?;
    let is_whole = bytes.len() <= most;
    bytes.truncate(most);
    Ok(Inflated { bytes, is_whole })
}
