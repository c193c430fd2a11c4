//! Brotli (RFC 7932).
//!
//! A stream does not state the number of its parts, so the decoder is watched while it is fed.
//! There are limits on input without output, and on codes in tables.

use std::cell::Cell;
use std::io::{Error, Read, Result as IoResult};

use brotli_decompressor::reader::DecompressorCustomAlloc;
use brotli_decompressor::{Allocator, HuffmanCode, StandardAlloc};

use super::{InflateFault, Inflated};

/// Bytes per feed, so the delay until the decoder is stopped.
const FED_BYTES: usize = 4 * 1024;
/// Bytes per read. The decoder can request as many bytes for it, and a few more.
const CHUNK_BYTES: usize = 16 * 1024;
/// Maximum bytes that are fed beyond the decoded bytes. No encoder lets a body grow by as much.
const MAX_LEAD: usize = 64 * 1024;
/// Maximum codes in all tables: eight times the number that an encoder created for 20 MiB of JSON.
const MAX_CODES: usize = 4 << 20;

type Memory<T> = <StandardAlloc as Allocator<T>>::AllocatedMemory;

/// Decodes a body, up to `most` bytes.
pub(super) fn inflate(body: &[u8], most: usize) -> Result<Inflated, InflateFault> {
    let (rest, lead, codes, is_stopped) =
        (Cell::new(body), Cell::new(0), Cell::new(0), Cell::new(false));
    let feed = Feed { rest: &rest, lead: &lead, codes: &codes, is_stopped: &is_stopped };
    let buffer: Memory<u8> = StandardAlloc::default().alloc_cell(FED_BYTES);
    let (bytes, words) = (StandardAlloc::default(), StandardAlloc::default());
    let tables = Tables { memory: StandardAlloc::default(), codes: &codes };
    let mut decoder = DecompressorCustomAlloc::new(feed, buffer, bytes, words, tables);

    let mut inflated = Vec::new();
    loop {
        let start = inflated.len();
        let room = most.saturating_add(1).saturating_sub(start).min(CHUNK_BYTES);
        inflated.resize(start + room, 0);
        let read = decoder.read(inflated.get_mut(start..).unwrap_or_default());
        inflated.truncate(start + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(0) => return Ok(Inflated { is_whole: true, bytes: inflated }),
            Ok(read) => lead.set(lead.get().saturating_sub(read)),
            Err(_) if is_stopped.get() => return Err(InflateFault::TooManyParts),
            Err(_) => return Err(InflateFault::Corrupt),
        }
        if inflated.len() > most {
            inflated.truncate(most);
            return Ok(Inflated { is_whole: false, bytes: inflated });
        }
    }
}

/// Feeds the decoder until a limit is reached.
struct Feed<'b> {
    rest: &'b Cell<&'b [u8]>,
    lead: &'b Cell<usize>,
    codes: &'b Cell<usize>,
    is_stopped: &'b Cell<bool>,
}

impl Read for Feed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        if self.lead.get() > MAX_LEAD || self.codes.get() > MAX_CODES {
            self.is_stopped.set(true);
            return Err(Error::other("too many parts"));
        }
        let mut rest = self.rest.get();
        let fed = rest.read(buffer)?;
        self.rest.set(rest);
        self.lead.set(self.lead.get().saturating_add(fed));
        Ok(fed)
    }
}

/// Allocates the decoder's memory for tables, and counts their codes.
struct Tables<'c> {
    memory: StandardAlloc,
    codes: &'c Cell<usize>,
}

impl Allocator<HuffmanCode> for Tables<'_> {
    type AllocatedMemory = Memory<HuffmanCode>;

    fn alloc_cell(&mut self, codes: usize) -> Self::AllocatedMemory {
        self.codes.set(self.codes.get().saturating_add(codes));
        self.memory.alloc_cell(codes)
    }

    fn free_cell(&mut self, memory: Self::AllocatedMemory) {
        Allocator::<HuffmanCode>::free_cell(&mut self.memory, memory);
    }
}
