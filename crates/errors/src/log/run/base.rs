//! The base column: the number of events per error and hour.

use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_number};
use super::totals::Totals;
use super::{Fingerprint, MAX_EVENTS};
use crate::log::day::Hours;

const HOURS_BYTES: usize = 3;
const FINGERPRINT_BYTES: usize = 16;

/// The events of one error in one hour, which are adjacent in all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorHour {
    /// The index of the fingerprint.
    pub fingerprint: u32,
    /// The hour of the day.
    pub hour: u8,
    pub(super) count: u32,
}

impl ErrorHour {
    pub(super) fn new(fingerprint: u32, hour: u8, count: u32) -> Self {
        Self { fingerprint, hour, count }
    }

    /// Returns the number of events, at least 1.
    pub fn count(&self) -> usize {
        self.count as usize
    }
}

/// The decoded base column of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    fingerprints: Vec<Fingerprint>,
    error_hours: Vec<ErrorHour>,
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
        // Each hour of a fingerprint has a count of at most four bytes.
        let most = fingerprint_count.saturating_mul(HOURS_BYTES + 24 * 4);
        let part = unread.part_up_to(most, decoder)?;
        unread.end()?;
        let (error_hours, events) = decode_error_hours(fingerprint_count, &part)?;
        Ok(Self { fingerprints, error_hours, events })
    }

    /// Returns the number of events of the run.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Returns the distinct fingerprints in ascending order.
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    /// Returns the error hours in the order in which all columns list events.
    pub fn error_hours(&self) -> &[ErrorHour] {
        &self.error_hours
    }

    /// Returns the numbers of events and fingerprints of each hour and of the whole run.
    pub fn totals(&self) -> Totals {
        Totals::new(&self.error_hours)
    }

    pub(super) fn fingerprint(&self, error_hour: &ErrorHour) -> Fingerprint {
        let fingerprint = self.fingerprints.get(error_hour.fingerprint as usize);
        // Decoded error hours always have a valid index.
        fingerprint.copied().unwrap_or(Fingerprint([0; FINGERPRINT_BYTES]))
    }
}

/// Encodes the number of fingerprints, the fingerprints, and a part. The part has the hours of each
/// fingerprint, then the number of events in each of these hours. Fingerprints are hashes, which
/// cannot be compressed.
pub(super) fn encode(
    fingerprints: &[Fingerprint],
    error_hours: &[ErrorHour],
    encoder: &mut Encoder,
) -> Vec<u8> {
    let mut column = new_column();
    put_number(fingerprints.len(), &mut column);
    column.extend(fingerprints.iter().flat_map(|fingerprint| fingerprint.0));
    let mut part = Vec::new();
    for error_hours in error_hours.chunk_by(|a, b| a.fingerprint == b.fingerprint) {
        let hours: Hours = error_hours.iter().map(|error_hour| error_hour.hour).collect();
        part.extend(hours.bits().to_le_bytes().into_iter().take(HOURS_BYTES));
    }
    for error_hour in error_hours {
        put_number(error_hour.count(), &mut part);
    }
    encoder.put_part(&part, &mut column);
    column
}

fn decode_error_hours(
    fingerprints: usize,
    part: &[u8],
) -> Result<(Vec<ErrorHour>, usize), Damaged> {
    let mut unread = Unread::part(part);
    let hours = unread.take(fingerprints.saturating_mul(HOURS_BYTES))?;
    let mut error_hours = Vec::with_capacity(part.len() - hours.len());
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
            error_hours.push(ErrorHour::new(fingerprint, hour, count));
        }
    }
    unread.end()?;
    Ok((error_hours, events))
}
