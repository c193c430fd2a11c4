//! The base column: which errors occurred in which hours, how often.

use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_number};
use super::totals::Totals;
use super::{Fingerprint, MAX_EVENTS};
use crate::error_tracking::log::day::Hours;

const HOURS_BYTES: usize = 3;
const FINGERPRINT_BYTES: usize = 16;

/// Events of one error in one hour: neighbours in all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The index of its fingerprint.
    pub fingerprint: u32,
    /// The hour of the day.
    pub hour: u8,
    pub(super) count: u32,
}

impl Run {
    pub(super) fn new(fingerprint: u32, hour: u8, count: u32) -> Self {
        Self { fingerprint, hour, count }
    }

    /// How many events it has: at least one.
    pub fn count(&self) -> usize {
        self.count as usize
    }
}

/// The base of a segment, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    fingerprints: Vec<Fingerprint>,
    runs: Vec<Run>,
    events: usize,
}

impl Base {
    /// Decodes the base column.
    pub fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut unread = Unread::column(bytes)?;
        let fingerprint_count = unread.length()?;
        let length = fingerprint_count.checked_mul(FINGERPRINT_BYTES);
        let fingerprints = unread.take(length.ok_or(Damaged("too many fingerprints"))?)?;
        let fingerprints: Vec<Fingerprint> =
            fingerprints.as_chunks().0.iter().map(|bytes| Fingerprint(*bytes)).collect();
        if !fingerprints.is_sorted_by(|a, b| a < b) {
            return Err(Damaged("fingerprints are not in order"));
        }
        // An hour of a fingerprint takes its count: at most four bytes.
        let most = fingerprint_count.saturating_mul(HOURS_BYTES + 24 * 4);
        let part = unread.part_up_to(most, decoder)?;
        unread.end()?;
        let (runs, events) = decode_runs(fingerprint_count, &part)?;
        Ok(Self { fingerprints, runs, events })
    }

    /// How many events the segment has.
    pub fn events(&self) -> usize {
        self.events
    }

    /// The distinct fingerprints, in ascending order.
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    /// The runs, in the order in which all columns list events.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// How many events each fingerprint has in some hours; it may come several times.
    pub fn events_by_fingerprint(&self, hours: Hours) -> impl Iterator<Item = (Fingerprint, u64)> {
        let runs = self.runs.iter().filter(move |run| hours.contains(run.hour));
        runs.map(|run| (self.fingerprint(run), u64::from(run.count)))
    }

    /// How many events and fingerprints each hour has, and the segment as a whole.
    pub fn totals(&self) -> Totals {
        Totals::new(&self.runs)
    }

    pub(super) fn fingerprint(&self, run: &Run) -> Fingerprint {
        let fingerprint = self.fingerprints.get(run.fingerprint as usize);
        // Decoding makes runs of known fingerprints only.
        fingerprint.copied().unwrap_or(Fingerprint([0; FINGERPRINT_BYTES]))
    }
}

/// The number of fingerprints, they themselves (hashes, which nothing can compress), and a part:
/// the hours of each fingerprint, then the number of events in each of these hours.
pub(super) fn encode(fingerprints: &[Fingerprint], runs: &[Run], encoder: &mut Encoder) -> Vec<u8> {
    let mut column = new_column();
    put_number(fingerprints.len(), &mut column);
    column.extend(fingerprints.iter().flat_map(|fingerprint| fingerprint.0));
    let mut part = Vec::new();
    for runs in runs.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
        let hours: Hours = runs.iter().map(|run| run.hour).collect();
        part.extend(hours.bits().to_le_bytes().into_iter().take(HOURS_BYTES));
    }
    for run in runs {
        put_number(run.count(), &mut part);
    }
    encoder.put_part(&part, &mut column);
    column
}

fn decode_runs(fingerprints: usize, part: &[u8]) -> Result<(Vec<Run>, usize), Damaged> {
    let mut unread = Unread::part(part);
    let hours = unread.take(fingerprints.saturating_mul(HOURS_BYTES))?;
    let mut runs = Vec::with_capacity(part.len() - hours.len());
    let mut events = 0_usize;
    for (fingerprint, [low, middle, high]) in (0_u32..).zip(hours.as_chunks().0) {
        let hours = Hours::from_bits(u32::from_le_bytes([*low, *middle, *high, 0]));
        let hours = hours.filter(|hours| !hours.is_empty());
        for hour in hours.ok_or(Damaged("a fingerprint has no events"))?.iter() {
            let count = unread.number()?;
            events = events.saturating_add(count as usize);
            if count == 0 || events > MAX_EVENTS {
                return Err(Damaged("an hour has no events, or too many"));
            }
            runs.push(Run::new(fingerprint, hour, count));
        }
    }
    unread.end()?;
    Ok((runs, events))
}
