//! Undoing the compression of a body.
//!
//! A gateway may have inflated a body and left the header, and some clients compress without one.
//! So the header's coding is tried first, then what the first bytes say, then plain text.
//!
//! A body may be small, inflate to little, and take long all the same, if it has many parts: members,
//! blocks, tables. So they are bounded for each coding, far from what encoders write.

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

/// The largest body on the wire, in bytes: what fits into a Lambda request of 6 MB as base64.
pub const MAX_WIRE_BYTES: usize = 4 * 1024 * 1024;
/// The largest inflated body, in bytes.
pub const MAX_INFLATED_BYTES: usize = 20 * 1024 * 1024;
/// The most members of gzip, or frames of zstd, one after the other. Encoders write one, or one for
/// each write of a program that appends.
pub const MAX_MEMBERS: usize = 64;

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
    TooManyParts,
}

/// What one attempt at inflating gave.
#[derive(Debug)]
struct Inflated {
    bytes: Vec<u8>,
    /// Whether there was no more than was asked for.
    is_whole: bool,
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
    match inflate_up_to(MAX_INFLATED_BYTES, body, content_encoding)? {
        None => Ok(Cow::Borrowed(body)),
        Some(inflated) if inflated.is_whole => Ok(Cow::Owned(inflated.bytes)),
        Some(_) => Err(IngestionFault::too_large(format!(
            "the body has more than {MAX_INFLATED_BYTES} bytes when it is decompressed"
        ))),
    }
}

/// The first `most` bytes of the body without its compression.
pub fn inflate_start<'b>(
    body: &'b [u8],
    content_encoding: &str,
    most: usize,
) -> Result<Cow<'b, [u8]>, IngestionFault> {
    let inflated = inflate_up_to(most, body, content_encoding)?;
    let start = body.get(..most).unwrap_or(body);
    Ok(inflated.map_or(Cow::Borrowed(start), |inflated| Cow::Owned(inflated.bytes)))
}

/// The first `most` bytes of a body without its compression; nothing where it has none.
fn inflate_up_to(
    most: usize,
    body: &[u8],
    content_encoding: &str,
) -> Result<Option<Inflated>, IngestionFault> {
    let declared = declared_coding(content_encoding)?;
    let told_by_magic = coding_by_magic(body);
    let candidates = match (declared, told_by_magic) {
        (ContentCoding::Identity, None) => return Ok(None),
        (ContentCoding::Identity, told_by_magic) => [told_by_magic, None, None],
        (declared, told_by_magic) => [Some(declared), told_by_magic, plain_text(body)],
    };
    for coding in candidates.into_iter().flatten() {
        match decode(body, coding, most) {
            Ok(inflated) => return Ok(inflated),
            Err(InflateFault::TooManyParts) => {
                return Err(IngestionFault::too_large(
                    "the body's compression has too many parts; compress it as one",
                ));
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

/// Reads up to `most` bytes, and whether that is all.
fn read_up_to(most: usize, reader: impl Read) -> Result<Inflated, InflateFault> {
    let mut bytes = Vec::new();
    let cap = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(cap).read_to_end(&mut bytes).map_err(|_| InflateFault::Corrupt)?;
    let is_whole = bytes.len() <= most;
    bytes.truncate(most);
    Ok(Inflated { bytes, is_whole })
}
