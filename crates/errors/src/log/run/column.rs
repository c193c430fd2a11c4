//! The column of an attribute: the distinct values, and the value of each event.

use std::collections::BTreeSet;

use super::MAX_VALUES_BYTES;
use super::base::Base;
use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_bytes, put_number};
use crate::category::Category;
use crate::log::row::EventRow;

/// The decoded column of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    values: Vec<Option<Box<str>>>,
    indexes: Vec<u32>,
}

impl Column {
    /// Decodes the column of an attribute in the run with this base.
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

    /// Returns the column of an attribute that no event of the run has.
    pub(super) fn unset(base: &Base) -> Self {
        Self { values: vec![None], indexes: vec![0; base.events()] }
    }

    /// Returns the column with the value of each event.
    pub(super) fn of_events(events: impl Iterator<Item = Option<Box<str>>>) -> Self {
        let values: Vec<Option<Box<str>>> = events.collect();
        let indexes = (0..).take(values.len()).collect();
        Self { values, indexes }
    }

    /// Returns the values, which are distinct except those of users. `None` is the value of events
    /// without the attribute.
    pub fn values(&self) -> impl Iterator<Item = Option<&str>> {
        self.values.iter().map(Option::as_deref)
    }

    /// Returns the index of each event's value in [`values`](Self::values), in the order of the
    /// base's error hours.
    pub fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// Returns the value of each event, in the order of the base's error hours.
    pub fn values_of_events(&self) -> impl Iterator<Item = Option<&str>> {
        self.indexes.iter().map(|index| self.values.get(*index as usize)?.as_deref())
    }
}

/// Returns the distinct values of a category in ascending order, `None` first.
pub(super) fn distinct_values(rows: &[EventRow], category: Category) -> Vec<Option<&str>> {
    let values: BTreeSet<_> = rows.iter().map(|row| row.attributes.text(category)).collect();
    values.into_iter().collect()
}

/// Returns the bytes of the distinct values of an encoded column before compression.
pub(super) fn values_length(column: &[u8]) -> Result<usize, Damaged> {
    let mut unread = Unread::column(column)?;
    let (_events, _values) = (unread.length()?, unread.length()?);
    Ok(unread.length()? / 2)
}

/// Returns an upper bound of the bytes of values before compression.
pub(super) fn encoded_length(values: &[Option<&str>]) -> usize {
    const LENGTH_BYTES: usize = 5;
    values.iter().flatten().map(|value| value.len() + LENGTH_BYTES).sum()
}

/// Encodes the number of events, the number of values, a part with the values, and a part with the
/// indexes. The number of values is doubled, plus one if some events have no value.
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

/// Encodes indexes of `width` bytes each: first the lowest byte of every index, then the next
/// bytes.
pub(super) fn encode_indexes(indexes: &[u32], width: usize) -> Vec<u8> {
    let byte_planes = (0..width).flat_map(|place| {
        indexes.iter().map(move |index| index.to_le_bytes().get(place).copied().unwrap_or_default())
    });
    byte_planes.collect()
}

/// Returns the bytes of an index into `count` values: 0 for a single value.
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
        values.push(Some(value.ok_or(Damaged("a value is empty or not UTF-8"))?.into()));
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
