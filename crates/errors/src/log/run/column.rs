//! The column of an attribute: its distinct values, and which of them each event has.

use std::collections::BTreeSet;

use super::MAX_VALUES_BYTES;
use super::base::Base;
use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_bytes, put_number};
use crate::attribute::Attribute;
use crate::log::row::EventRow;

/// The values of one attribute, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    values: Vec<Option<Box<str>>>,
    indexes: Vec<u32>,
}

impl Column {
    /// Decodes an attribute's column of the run that has this base.
    pub fn decode(decoder: &mut Decoder, bytes: &[u8], base: &Base) -> Result<Self, Damaged> {
        let mut unread = Unread::column(bytes)?;
        if unread.length()? != base.events() {
            return Err(Damaged("columns belong to different runs"));
        }
        let head = unread.length()?;
        let (set_count, has_unset) = (head / 2, head % 2 == 1);
        let part = unread.part_up_to(MAX_VALUES_BYTES, decoder)?;
        let values = decode_values(&part, set_count, has_unset)?;
        let width = bytes_of_index(values.len());
        let part = unread.part_of(base.events() * width, decoder)?;
        unread.end()?;
        let indexes = decode_indexes(&part, width, base.events());
        if indexes.iter().any(|index| *index as usize >= values.len()) {
            return Err(Damaged("an event has an unknown value"));
        }
        Ok(Self { values, indexes })
    }

    /// The column of an attribute that none of the run's events has.
    pub(super) fn unset(base: &Base) -> Self {
        Self { values: vec![None], indexes: vec![0; base.events()] }
    }

    /// The distinct values; events without the attribute have `None`.
    pub fn values(&self) -> impl Iterator<Item = Option<&str>> {
        self.values.iter().map(Option::as_deref)
    }

    /// Which of the values each event has, in the order of the base's hours of errors.
    pub fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// The value of each event, in the order of the base's hours of errors.
    pub fn values_of_events(&self) -> impl Iterator<Item = Option<&str>> {
        self.indexes.iter().map(|index| self.values.get(*index as usize)?.as_deref())
    }
}

/// The distinct values of an attribute in ascending order, the missing one first.
pub(super) fn distinct_values(rows: &[EventRow], attribute: Attribute) -> Vec<Option<&str>> {
    let values: BTreeSet<_> = rows.iter().map(|row| row.attributes.get(attribute)).collect();
    values.into_iter().collect()
}

/// The bytes that the distinct values of an encoded column take before they are compressed.
pub(super) fn values_length(column: &[u8]) -> Result<usize, Damaged> {
    let mut unread = Unread::column(column)?;
    let (_events, _values) = (unread.length()?, unread.length()?);
    Ok(unread.length()? / 2)
}

/// The most bytes that values take before they are compressed.
pub(super) fn encoded_length(values: &[Option<&str>]) -> usize {
    const LENGTH_BYTES: usize = 5;
    values.iter().flatten().map(|value| value.len() + LENGTH_BYTES).sum()
}

/// The number of events; the number of set values, times two, plus one if some events have none; a
/// part with the set values; a part with the indexes, all their lowest bytes first.
pub(super) fn encode(values: &[Option<&str>], indexes: &[u32], encoder: &mut Encoder) -> Vec<u8> {
    let mut column = new_column();
    put_number(indexes.len(), &mut column);
    let set: Vec<&str> = values.iter().copied().flatten().collect();
    put_number(set.len() * 2 + usize::from(set.len() < values.len()), &mut column);
    let mut part = Vec::new();
    for value in set {
        put_bytes(value.as_bytes(), &mut part);
    }
    encoder.put_part(&part, &mut column);
    encoder.put_part(&encode_indexes(indexes, bytes_of_index(values.len())), &mut column);
    column
}

/// Indexes of so many bytes each, all their lowest bytes first.
pub(super) fn encode_indexes(indexes: &[u32], width: usize) -> Vec<u8> {
    let byte_planes = (0..width).flat_map(|place| {
        indexes.iter().map(move |index| index.to_le_bytes().get(place).copied().unwrap_or_default())
    });
    byte_planes.collect()
}

/// How many bytes tell `count` values apart: none, if there is only one.
pub(super) fn bytes_of_index(count: usize) -> usize {
    match count {
        0..=1 => 0,
        2..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 3,
    }
}

fn decode_values(
    part: &[u8],
    set_count: usize,
    has_unset: bool,
) -> Result<Vec<Option<Box<str>>>, Damaged> {
    // Each value has a length and at least one byte.
    if set_count > part.len() / 2 {
        return Err(Damaged("values are missing"));
    }
    let mut unread = Unread::part(part);
    let mut values = Vec::with_capacity(set_count + 1);
    values.extend(has_unset.then_some(None));
    for _ in 0..set_count {
        let value = std::str::from_utf8(unread.bytes()?);
        let value = value.ok().filter(|value| !value.is_empty());
        values.push(Some(value.ok_or(Damaged("a value is no text"))?.into()));
    }
    unread.end()?;
    Ok(values)
}

pub(super) fn decode_indexes(part: &[u8], width: usize, events: usize) -> Vec<u32> {
    if width == 0 {
        return vec![0; events];
    }
    let mut planes = part.chunks_exact(events.max(1));
    let lowest = planes.next().unwrap_or_default();
    let mut indexes: Vec<u32> = lowest.iter().map(|byte| u32::from(*byte)).collect();
    for (plane, shift) in planes.zip([8, 16]) {
        for (index, byte) in indexes.iter_mut().zip(plane) {
            *index |= u32::from(*byte) << shift;
        }
    }
    indexes
}
