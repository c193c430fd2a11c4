//! Brotli (RFC 7932). Nothing outside of it tells its parts, so what the decoder does is watched while
//! it is fed: how much it takes without giving anything, and how many codes it makes tables for.

use std::cell::Cell;
use std::io::{Error, Read, Result as IoResult};

use brotli_decompressor::reader::DecompressorCustomAlloc;
use brotli_decompressor::{Allocator, HuffmanCode, StandardAlloc};

use super::{InflateFault, Inflated};

/// What is fed at once: how late the decoder is stopped.
const FED_BYTES: usize = 4 * 1024;
/// What is read at once, for which the decoder may ask for as much and a little more.
const CHUNK_BYTES: usize = 16 * 1024;
/// How many bytes may be fed beyond those that came out. No encoder lets a body grow by as much.
const MAX_LEAD: usize = 64 * 1024;
/// How many codes tables may have, altogether: eight times as many as an encoder made for 20 MiB of JSON.
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

/// Feeds the decoder, until it has done too much.
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

/// Gives the decoder memory for tables, and counts their codes.
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
