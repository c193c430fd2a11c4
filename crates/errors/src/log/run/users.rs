//! The column of the user: a number for each event. Hashes take a third less than texts with the
//! same digits, and are counted without a text for each event.

use std::collections::BTreeSet;

use super::base::Base;
use super::column::{bytes_of_index, decode_indexes, encode_indexes};
use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_number};

const HASH_BYTES: usize = 8;
/// The hash of events without a user.
const NO_USER: u64 = 0;

/// Decodes the user of each event in the run with this base.
pub(super) fn decode(
    decoder: &mut Decoder,
    bytes: &[u8],
    base: &Base,
) -> Result<Vec<Option<u64>>, Damaged> {
    let events = base.events();
    let mut unread = Unread::column(bytes)?;
    if unread.length()? != events {
        return Err(Damaged("columns belong to different runs"));
    }
    let users = match unread.length()?.checked_sub(1) {
        None => hashes(&unread.part_of(events * HASH_BYTES, decoder)?).map(known).collect(),
        Some(distinct) => {
            let length = distinct.checked_mul(HASH_BYTES).ok_or(Damaged("too many users"))?;
            let hashes: Vec<u64> = hashes(unread.take(length)?).collect();
            if !hashes.is_sorted_by(|a, b| a < b) || hashes.first() == Some(&NO_USER) {
                return Err(Damaged("users are not in order"));
            }
            let width = bytes_of_index(distinct + 1);
            let part = unread.part_of(events * width, decoder)?;
            let indexes = decode_indexes(&part, width, events);
            if indexes.iter().any(|index| *index as usize > distinct) {
                return Err(Damaged("an event has an unknown user"));
            }
            let user = |index: &u32| hashes.get((*index as usize).checked_sub(1)?).copied();
            indexes.iter().map(user).collect()
        }
    };
    unread.end()?;
    Ok(users)
}

fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|hash| u64::from_be_bytes(*hash))
}

fn known(hash: u64) -> Option<u64> {
    (hash != NO_USER).then_some(hash)
}

/// Encodes the number of events, then the smaller of two layouts (before compression):
///
/// - the number of distinct users plus one, their hashes in ascending order, and a part with the
///   index of each event's user. Index 0 is no user. Hashes cannot be compressed.
/// - a zero, and a part with the hash of each event's user. Zeros are no user.
pub(super) fn encode(users: &[Option<u64>], encoder: &mut Encoder) -> Vec<u8> {
    let mut column = new_column();
    put_number(users.len(), &mut column);
    let distinct: BTreeSet<u64> = users.iter().copied().flatten().collect();
    let distinct: Vec<u64> = distinct.into_iter().collect();
    let width = bytes_of_index(distinct.len() + 1);
    if distinct.len() * HASH_BYTES + users.len() * width > users.len() * HASH_BYTES {
        put_number(0, &mut column);
        let hashes = users.iter().flat_map(|user| user.unwrap_or(NO_USER).to_be_bytes());
        encoder.put_part(&hashes.collect::<Vec<u8>>(), &mut column);
        return column;
    }
    put_number(distinct.len() + 1, &mut column);
    column.extend(distinct.iter().flat_map(|user| user.to_be_bytes()));
    let index = |user: &u64| super::position(&distinct, user).map_or(0, |index| index + 1);
    let indexes: Vec<u32> = users.iter().map(|user| user.as_ref().map_or(0, index)).collect();
    encoder.put_part(&encode_indexes(&indexes, width), &mut column);
    column
}
