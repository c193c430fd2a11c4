//! DEFLATE (RFC 1951), bare, in zlib's frame (RFC 1950) or in gzip's members (RFC 1952).
//!
//! Building the tables of a block takes as long as inflating kilobytes, but a block can have only
//! 10 bits. So blocks are counted, which the engine below `flate2` supports.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::{InflateFault, Inflated, MAX_MEMBERS};

/// Blocks that any body can have. Encoders begin one every 5 kB or more, and at each flush.
const FREE_BLOCKS: usize = 256;
/// Inflated bytes that allow one more block.
const BYTES_PER_BLOCK: usize = 4_096;
/// Minimum growth of the output.
const CHUNK_BYTES: usize = 64 * 1024;

/// Flags for whole blocks in an output that does not wrap.
const BLOCKS: u32 = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
    | inflate_flags::TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY;
/// Flags for zlib's frame, whose checksum is compared.
const ZLIB: u32 = BLOCKS
    | inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
    | inflate_flags::TINFL_FLAG_COMPUTE_ADLER32;

/// Inflates one stream, with or without zlib's frame, up to `most` bytes.
pub(super) fn inflate(body: &[u8], in_zlib: bool, most: usize) -> Result<Inflated, InflateFault> {
    let mut output = Output::new(most);
    let rest = output.inflate(body, if in_zlib { ZLIB } else { BLOCKS }, 0)?;
    Ok(Inflated { is_whole: rest.is_some(), bytes: output.finish() })
}

/// Inflates all members of gzip, up to `most` bytes.
pub(super) fn inflate_gzip(body: &[u8], most: usize) -> Result<Inflated, InflateFault> {
    let mut output = Output::new(most);
    let (mut rest, mut members) = (body, 0_usize);
    while !rest.is_empty() {
        members += 1;
        if members > MAX_MEMBERS {
            return Err(InflateFault::TooManyParts);
        }
        let deflated = after_gzip_header(rest).ok_or(InflateFault::Corrupt)?;
        let start = output.written;
        let Some(after) = output.inflate(deflated, BLOCKS, start)? else {
            return Ok(Inflated { is_whole: false, bytes: output.finish() });
        };
        let (trailer, after) = after.split_first_chunk::<8>().ok_or(InflateFault::Corrupt)?;
        let member = output.buffer.get(start..output.written).unwrap_or_default();
        let length = u32::try_from(member.len()).unwrap_or(u32::MAX);
        let expected = [crc32fast::hash(member).to_le_bytes(), length.to_le_bytes()];
        if trailer[..] != *expected.as_flattened() {
            return Err(InflateFault::Corrupt);
        }
        rest = after;
    }
    Ok(Inflated { is_whole: true, bytes: output.finish() })
}

/// Returns the data after a member's header (RFC 1952 §2.3).
fn after_gzip_header(member: &[u8]) -> Option<&[u8]> {
    const CRC: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    const RESERVED: u8 = 0b1110_0000;
    let (fixed, mut rest) = member.split_first_chunk::<10>()?;
    let [0x1f, 0x8b, 8, flags, ..] = *fixed else { return None };
    if flags & RESERVED != 0 {
        return None;
    }
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & CRC != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

/// The output so far.
struct Output {
    buffer: Vec<u8>,
    written: usize,
    most: usize,
    blocks: usize,
}

impl Output {
    fn new(most: usize) -> Self {
        Self { buffer: Vec::new(), written: 0, most, blocks: 0 }
    }

    fn finish(mut self) -> Vec<u8> {
        self.buffer.truncate(self.written.min(self.most));
        self.buffer
    }

    /// Inflates one stream, independent of the output before `start`. Returns the data after the
    /// stream, or `None` if the output was full before the stream's end.
    fn inflate<'b>(
        &mut self,
        stream: &'b [u8],
        flags: u32,
        start: usize,
    ) -> Result<Option<&'b [u8]>, InflateFault> {
        let mut engine = DecompressorOxide::new();
        let mut rest = stream;
        loop {
            let written = self.written.saturating_sub(start);
            let output = self.buffer.get_mut(start..).unwrap_or_default();
            let (status, read, wrote) = decompress(&mut engine, rest, output, written, flags);
            rest = rest.get(read..).unwrap_or_default();
            self.written += wrote;
            match status {
                TINFLStatus::Done | TINFLStatus::HasMoreOutput if self.written > self.most => {
                    return Ok(None);
                }
                TINFLStatus::Done => return Ok(Some(rest)),
                TINFLStatus::BlockBoundary => self.count_block()?,
                TINFLStatus::HasMoreOutput => self.grow(),
                _ => return Err(InflateFault::Corrupt),
            }
        }
    }

    fn count_block(&mut self) -> Result<(), InflateFault> {
        self.blocks += 1;
        let allowed = FREE_BLOCKS + self.written / BYTES_PER_BLOCK;
        if self.blocks > allowed { Err(InflateFault::TooManyParts) } else { Ok(()) }
    }

    fn grow(&mut self) {
        // One byte more distinguishes a body that just fits from one that does not.
        let cap = self.most.saturating_add(1);
        let length = self.buffer.len().saturating_mul(2).max(CHUNK_BYTES).min(cap);
        self.buffer.resize(length, 0);
    }
}
