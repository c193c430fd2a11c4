use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write;
use std::time::{Duration, Instant};

const TEXT: &[u8] = b"{\"event_id\":\"ac012cadf588491bb76da90129e33c41\"}\n{\"type\":\"x\"}\n{}";
/// `TEXT`, compressed by the Brotli library of sentry-sdk.
const BROTLI: &[u8] = include_bytes!("../../testdata/small.br");

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
fn inflates_by_header() {
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
fn inflates_by_first_bytes_despite_the_header() {
    for body in [gzip(TEXT), zlib(TEXT), zstd(TEXT)] {
        for header in ["", "identity", "br", "gzip", "deflate", "zstd"] {
            assert_eq!(inflate(&body, header).as_deref(), Ok(TEXT), "{header}");
        }
    }
}

#[test]
fn accepts_bodies_that_a_gateway_inflated() {
    for header in ["gzip", "deflate", "br", "zstd"] {
        assert_eq!(inflate(TEXT, header).as_deref(), Ok(TEXT), "{header}");
    }
}

#[test]
fn rejects_truncated_streams_and_unknown_codings() {
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
fn bombs_stop_at_the_limit() {
    let zeros = vec![b' '; MAX_INFLATED_BYTES + 1];
    let bombs =
        [("gzip", gzip(&zeros)), ("deflate", zlib(&zeros)), ("deflate", raw_deflate(&zeros))];
    for (header, body) in bombs.into_iter().chain([("zstd", zstd(&zeros))]) {
        assert!(body.len() < 50_000);
        assert!(matches!(inflate(&body, header), Err(IngestionFault::TooLarge(_))), "{header}");
        let largest = &zeros[1..];
        assert_eq!(inflate(&gzip(largest), "gzip").map(|b| b.len()), Ok(MAX_INFLATED_BYTES));
    }
    let bomb: &[u8] = include_bytes!("../../testdata/bomb.br");
    assert!(matches!(inflate(bomb, "br"), Err(IngestionFault::TooLarge(_))));
}

/// Bits in the order of DEFLATE and Brotli.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: u64, count: u32) {
        self.pending |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.extend(self.pending.to_le_bytes().first());
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Repeats a write up to 4 MiB. Eight repetitions are whole bytes.
    fn fill(mut self, write: impl Fn(&mut Self)) -> Vec<u8> {
        (0..8).for_each(|_| write(&mut self));
        let first = self.bytes.len();
        (0..8).for_each(|_| write(&mut self));
        let again = self.bytes.split_off(first);
        self.bytes.extend(again.repeat((MAX_WIRE_BYTES - first) / again.len()));
        self.bytes
    }
}

/// Writes a DEFLATE block with tables of its own and this number of literals.
fn block_of_tables(bits: &mut Bits, literals: usize) {
    bits.put(2 << 1, 3);
    bits.put(14 << 10, 14);
    // Code lengths (RFC 1951 §3.2.7): for 18, 0 and 1.
    for length in [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2] {
        bits.put(length, 3);
    }
    // The literal 0 and the end of the block have one bit each; 255 others have none.
    bits.put(0b11, 2);
    bits.put((138 - 11) << 1, 8);
    bits.put((117 - 11) << 1, 8);
    bits.put(0b1111, 4);
    bits.put(0, u32::try_from(literals).unwrap());
    bits.put(1, 1);
}

/// Writes a Brotli meta-block of one byte, with 512 tables of one code each (RFC 7932 §9.2).
fn meta_block_of_tables(bits: &mut Bits) {
    bits.put(0, 20 + 3 + 6 + 2);
    for _ in 0..2 {
        bits.put(127 << 4 | 7 << 1 | 1, 11);
        bits.put(1 << 1, 14);
    }
    for _ in 0..256 {
        bits.put(1 | u64::from(b'a') << 4, 12);
    }
    bits.put(1 | 8 << 4, 14);
    for _ in 0..256 {
        bits.put(1, 10);
    }
}

#[test]
fn bodies_with_many_parts_fail_fast() {
    const EMPTY_GZIP: [u8; 20] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let repeat = |part: &[u8]| part.repeat(MAX_WIRE_BYTES / part.len());
    let after = |start: &[u8], part: &[u8]| {
        [start, &part.repeat((MAX_WIRE_BYTES - start.len()) / part.len())].concat()
    };
    let in_gzip = Bits { bytes: EMPTY_GZIP[..10].to_vec(), ..Bits::default() };
    let mut trees = Bits::default();
    trees.put(0, 1);
    for (name, header, body) in [
        ("members", "gzip", repeat(&EMPTY_GZIP)),
        ("undeclared members", "", repeat(&EMPTY_GZIP)),
        ("stored blocks", "gzip", after(&EMPTY_GZIP[..10], &[0, 0, 0, 255, 255])),
        ("fixed blocks", "gzip", in_gzip.fill(|bits| bits.put(2, 10))),
        ("fixed blocks", "deflate", Bits::default().fill(|bits| bits.put(2, 10))),
        ("tables", "deflate", Bits::default().fill(|bits| block_of_tables(bits, 0))),
        ("tables and bytes", "deflate", Bits::default().fill(|bits| block_of_tables(bits, 50))),
        ("frames", "zstd", repeat(&zstd(b""))),
        ("frames to skip", "zstd", repeat(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])),
        ("raw blocks", "zstd", after(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58], &[0, 0, 0])),
        ("metadata", "br", after(&[0b0000_1100], &[0b0000_0110])),
        ("tables", "br", trees.fill(meta_block_of_tables)),
    ] {
        let started = Instant::now();
        let result = inflate(&body, header);
        let taken = started.elapsed();
        let outcome = format!("{name} of {header}: {result:?} after {taken:?}");
        assert!(
            matches!(&result, Err(IngestionFault::TooLarge(detail)) if detail.contains("parts")),
            "{outcome}"
        );
        // Not optimized, and other tests run; the release build takes less than 20 ms.
        assert!(taken < Duration::from_secs(1), "{outcome}");
        assert!(
            inflate_start(&body, header, 8_192).is_err() || name == "tables and bytes",
            "{outcome}"
        );
    }
}

#[test]
fn accepts_as_many_parts_as_encoders_write() {
    let noise: Vec<u8> = (0..1_000_000_u64)
        .map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
        .collect();
    let mut flushed = GzEncoder::new(Vec::new(), Compression::fast());
    for piece in noise.chunks(noise.len() / 200) {
        flushed.write_all(piece).unwrap();
        flushed.flush().unwrap();
    }
    let members = |encode: fn(&[u8]) -> Vec<u8>| {
        noise.chunks(noise.len() / MAX_MEMBERS + 1).flat_map(encode).collect::<Vec<_>>()
    };
    let stored = |piece: &[u8]| {
        let header = (u32::try_from(piece.len() - 1).unwrap() << 4 | 1 << 20).to_le_bytes();
        [&header[..3], piece].concat()
    };
    // The window's size, then byte-aligned meta-blocks.
    let mut brotli = vec![stored(&noise[..50_000])];
    brotli.extend(noise[50_000..].chunks(50_000).map(|piece| {
        let header = (u32::try_from(piece.len() - 1).unwrap() << 3 | 1 << 19).to_le_bytes();
        [&header[..3], piece].concat()
    }));
    brotli.push(vec![3]);
    for (name, header, body) in [
        ("one", "gzip", gzip(&noise)),
        ("flushed", "gzip", flushed.finish().unwrap()),
        ("members", "gzip", members(gzip)),
        ("frames", "zstd", members(zstd)),
        ("one", "zstd", zstd(&noise)),
        ("one", "deflate", raw_deflate(&noise)),
        ("meta-blocks", "br", brotli.concat()),
    ] {
        assert!(inflate(&body, header).as_deref() == Ok(&noise[..]), "{name} of {header}");
    }
    let one_more = [members(gzip), gzip(b"")].concat();
    assert!(matches!(inflate(&one_more, "gzip"), Err(IngestionFault::TooLarge(_))));
    let one_more = [members(zstd), zstd(b"")].concat();
    assert!(matches!(inflate(&one_more, "zstd"), Err(IngestionFault::TooLarge(_))));
}

#[test]
fn gzip_members_need_headers_and_checksums() {
    let mut named = flate2::GzBuilder::new()
        .filename("a")
        .comment("b")
        .extra([1, 2, 3])
        .write(Vec::new(), Compression::best());
    named.write_all(TEXT).unwrap();
    let body = named.finish().unwrap();
    assert_eq!(inflate(&body, "gzip").as_deref(), Ok(TEXT));
    for (place, what) in [
        (2, "method"),
        (3, "reserved flag"),
        (body.len() - 8, "checksum"),
        (body.len() - 1, "length"),
    ] {
        let mut corrupt = body.clone();
        corrupt[place] ^= 0x80;
        assert!(matches!(inflate(&corrupt, "gzip"), Err(IngestionFault::Malformed(_))), "{what}");
    }
    let second_refers_to_the_first =
        [gzip(TEXT), EMPTY_HEADER.to_vec(), vec![0x03, 0x82, 0, 0]].concat();
    assert!(inflate(&second_refers_to_the_first, "gzip").is_err());
}

const EMPTY_HEADER: [u8; 10] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 255];

#[test]
fn inflates_only_the_start_of_a_body() {
    let large = [TEXT, &vec![b' '; MAX_INFLATED_BYTES]].concat();
    for (header, body) in
        [("gzip", gzip(&large)), ("zstd", zstd(&large)), ("deflate", zlib(&large))]
    {
        for most in [0, 1, 50, 8_192] {
            assert_eq!(
                inflate_start(&body, header, most).as_deref(),
                Ok(&large[..most]),
                "{header}"
            );
        }
    }
    assert_eq!(inflate_start(BROTLI, "br", 5).as_deref(), Ok(&TEXT[..5]));
    assert_eq!(inflate_start(TEXT, "", 5).as_deref(), Ok(&TEXT[..5]));
    assert_eq!(inflate_start(TEXT, "gzip", 5_000).as_deref(), Ok(TEXT));
}

#[test]
fn rejects_more_than_4_mib_on_the_wire() {
    let body = vec![b' '; MAX_WIRE_BYTES + 1];
    assert!(matches!(inflate(&body, ""), Err(IngestionFault::TooLarge(_))));
    assert!(inflate(&body[1..], "").is_ok());
}

#[test]
fn rejects_zstd_windows_over_8_mib() {
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
    fn round_trips_compressed_bodies(body in proptest::collection::vec(any::<u8>(), 0..2_000)) {
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
