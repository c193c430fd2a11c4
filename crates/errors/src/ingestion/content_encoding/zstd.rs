//! Zstandard (RFC 8878). Frames and blocks state their lengths, so they are counted before
//! decoding. An empty block costs little, and a block with tables much more.

use std::io::Read;

use zstd::stream::read::Decoder;

use super::{InflateFault, Inflated, MAX_MEMBERS, read_up_to};

/// Maximum window of a frame, as a power of two: 8 MiB, which RFC 8878 §3.1.1.1.2 recommends to
/// support. The library would allocate 128 MiB.
const WINDOW_LOG: u32 = 23;
/// Maximum blocks of a body. Encoders begin one every 8 KiB or more, and at each flush.
const MAX_BLOCKS: usize = 4_096;

/// Decodes all frames, up to `most` bytes.
pub(super) fn inflate(body: &[u8], most: usize) -> Result<Inflated, InflateFault> {
    count_blocks(body)?;
    let mut decoder = Decoder::with_buffer(body).map_err(|_| InflateFault::Corrupt)?;
    decoder.window_log_max(WINDOW_LOG).map_err(|_| InflateFault::Corrupt)?;
    read_up_to(most, decoder.by_ref())
}

/// Rejects a body with too many frames or blocks, without decoding any.
fn count_blocks(body: &[u8]) -> Result<(), InflateFault> {
    let (mut rest, mut frames, mut blocks) = (body, 0_usize, 0_usize);
    while !rest.is_empty() {
        frames += 1;
        if frames > MAX_MEMBERS {
            return Err(InflateFault::TooManyParts);
        }
        rest = after_frame(rest, &mut blocks)?;
    }
    Ok(())
}

fn after_frame<'b>(frame: &'b [u8], blocks: &mut usize) -> Result<&'b [u8], InflateFault> {
    let (magic, rest) = split::<4>(frame)?;
    match u32::from_le_bytes(magic) {
        // Skippable frames.
        0x184d_2a50..=0x184d_2a5f => {
            let (length, rest) = split::<4>(rest)?;
            skip(rest, usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX))
        }
        0xfd2f_b528 => {
            let ([descriptor], rest) = split::<1>(rest)?;
            let mut rest = skip(rest, header_bytes(descriptor))?;
            loop {
                *blocks += 1;
                if *blocks > MAX_BLOCKS {
                    return Err(InflateFault::TooManyParts);
                }
                let ([low, middle, high], after) = split::<3>(rest)?;
                let header = u32::from_le_bytes([low, middle, high, 0]);
                // A block of one repeated byte has length 1.
                let length = if header >> 1 & 3 == 1 { 1 } else { header >> 3 };
                rest = skip(after, usize::try_from(length).unwrap_or(usize::MAX))?;
                if header & 1 == 1 {
                    break;
                }
            }
            let has_checksum = descriptor >> 2 & 1 == 1;
            skip(rest, if has_checksum { 4 } else { 0 })
        }
        _ => Err(InflateFault::Corrupt),
    }
}

/// Returns the bytes of a frame's header after its descriptor (RFC 8878 §3.1.1.1): window,
/// dictionary, size.
fn header_bytes(descriptor: u8) -> usize {
    let is_single_segment = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    usize::from(!is_single_segment) + dictionary + size
}

fn split<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), InflateFault> {
    let (first, rest) = bytes.split_first_chunk::<N>().ok_or(InflateFault::Corrupt)?;
    Ok((*first, rest))
}

fn skip(bytes: &[u8], length: usize) -> Result<&[u8], InflateFault> {
    bytes.get(length..).ok_or(InflateFault::Corrupt)
}
