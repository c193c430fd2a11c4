//! The users column: the user of each event.

use std::collections::BTreeSet;

use super::base::Base;
use super::column::{bytes_of_index, decode_indexes, encode_indexes};
use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column, put_number};
use crate::attribute::UserHash;

const HASH_BYTES: usize = 8;
/// The hash of events without a user.
const NO_USER: [u8; HASH_BYTES] = [0; HASH_BYTES];

/// The decoded user of each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users(Vec<Option<UserHash>>);

impl Users {
    /// Decodes the users column of the run with this base.
    pub fn decode(decoder: &mut Decoder, bytes: &[u8], base: &Base) -> Result<Self, Damaged> {
        let events = base.events();
        let mut unread = Unread::column(bytes)?;
        if unread.length()? != events {
            return Err(Damaged("columns belong to different runs"));
        }
        let users = match unread.length()?.checked_sub(1) {
            None => {
                let part = unread.part_of(events * HASH_BYTES, decoder)?;
                part.as_chunks().0.iter().map(|hash| UserHash::from_bytes(*hash)).collect()
            }
            Some(distinct) => {
                let length = distinct.checked_mul(HASH_BYTES).ok_or(Damaged("too many users"))?;
                let hashes = unread.take(length)?.as_chunks::<HASH_BYTES>().0;
                if !hashes.is_sorted_by(|a, b| a < b) || hashes.first() == Some(&NO_USER) {
                    return Err(Damaged("users are not in order"));
                }
                let width = bytes_of_index(distinct + 1);
                let part = unread.part_of(events * width, decoder)?;
                let indexes = decode_indexes(&part, width, events);
                if indexes.iter().any(|index| *index as usize > distinct) {
                    return Err(Damaged("an event has an unknown user"));
                }
                let user = |index: &u32| {
                    let hash = (*index as usize).checked_sub(1).and_then(|index| hashes.get(index));
                    hash.and_then(|hash| UserHash::from_bytes(*hash))
                };
                indexes.iter().map(user).collect()
            }
        };
        unread.end()?;
        Ok(Self(users))
    }

    /// Returns the column of a run whose events have no users.
    pub(super) fn unset(base: &Base) -> Self {
        Self(vec![None; base.events()])
    }

    /// Returns the user of each event, in the order of the base's error hours.
    pub fn of_events(&self) -> &[Option<UserHash>] {
        &self.0
    }
}

/// Encodes the number of events, then the smaller of two layouts (before compression):
///
/// - the number of distinct users plus one, their hashes in ascending order, and a part with the
///   index of each event's user. Index 0 is no user. Hashes cannot be compressed.
/// - a zero, and a part with the hash of each event's user. Zeros are no user.
pub(super) fn encode(users: &[Option<UserHash>], encoder: &mut Encoder) -> Vec<u8> {
    let mut column = new_column();
    put_number(users.len(), &mut column);
    let distinct: BTreeSet<UserHash> = users.iter().copied().flatten().collect();
    let distinct: Vec<UserHash> = distinct.into_iter().collect();
    let width = bytes_of_index(distinct.len() + 1);
    if distinct.len() * HASH_BYTES + users.len() * width > users.len() * HASH_BYTES {
        put_number(0, &mut column);
        let hashes = users.iter().flat_map(|user| user.map_or(NO_USER, UserHash::to_bytes));
        encoder.put_part(&hashes.collect::<Vec<u8>>(), &mut column);
        return column;
    }
    put_number(distinct.len() + 1, &mut column);
    column.extend(distinct.iter().flat_map(|user| user.to_bytes()));
    let index = |user: &UserHash| super::position(&distinct, user).map_or(0, |index| index + 1);
    let indexes: Vec<u32> = users.iter().map(|user| user.as_ref().map_or(0, index)).collect();
    encoder.put_part(&encode_indexes(&indexes, width), &mut column);
    column
}
