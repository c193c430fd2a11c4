//! Signatures of derived pain points, and the insights that they belong to
//! (`docs/semantics/replay-insights.md`, "Signatures").
//!
//! An insight holds the signatures of its derived pain points. One insight owns a signature: later
//! pain points go there. If a split moves all pain points of a signature that the source owns, the
//! source forwards the signature to the new insight.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use shared::timestamp::Timestamp;

use crate::InsightId;
use crate::evidence::Evidence;

/// Most signatures that an insight holds, and most that it forwards. Pain points of others stay
/// with the insight when it is split.
const MAX_SIGNATURES: usize = 1_000;
/// Milliseconds of an hour.
const HOUR_MILLIS: i64 = 3_600_000;

/// The first 128 bits of the SHA-256 of a pain point's kind, selector and route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signature(u128);

impl Signature {
    /// Returns the signature of these texts, which contain no NUL.
    pub fn of(texts: [&str; 3]) -> Self {
        let digest: [u8; 32] = Sha256::digest(texts.join("\0")).into();
        Self(digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first)))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// A signature in an insight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    /// Number of listed pain points.
    count: u32,
    /// `true` if later pain points go to this insight.
    is_owner: bool,
}

/// The signatures of an insight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signatures {
    held: BTreeMap<Signature, Held>,
    forwards: BTreeMap<Signature, InsightId>,
}

impl Signatures {
    /// Adds pain points of a signature that the insight owns.
    pub fn add(&mut self, signature: Signature, count: usize) {
        self.forwards.remove(&signature);
        let is_new = !self.held.contains_key(&signature);
        if is_new && self.held.len() >= MAX_SIGNATURES {
            return;
        }
        let held = self.held.entry(signature).or_default();
        held.count = held.count.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        held.is_owner = true;
    }

    /// Removes a pain point that is no longer listed. The insight keeps owning the signature.
    pub fn remove(&mut self, signature: Signature) {
        if let Some(held) = self.held.get_mut(&signature) {
            held.count = held.count.saturating_sub(1);
        }
    }

    /// `true` if there are no signatures, so that a split needs no details of pain points.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the insight to which a split moved a signature.
    pub fn forward(&self, signature: Signature) -> Option<InsightId> {
        self.forwards.get(&signature).copied()
    }

    /// Moves the signatures of pain points that a split moved, one signature for each. A signature
    /// moves if none of its pain points is left. Returns the signatures of the new insight, whose
    /// ID is `split`.
    #[must_use]
    pub fn split_off(
        &mut self,
        moved: impl IntoIterator<Item = Signature>,
        split: InsightId,
    ) -> Self {
        let mut counts = BTreeMap::<Signature, u32>::new();
        for signature in moved {
            *counts.entry(signature).or_default() += 1;
        }
        let mut taken = Self::default();
        for (signature, count) in counts {
            let Some(held) = self.held.get_mut(&signature) else { continue };
            let is_all = held.count <= count;
            let is_owner = is_all && held.is_owner;
            held.count = held.count.saturating_sub(count);
            taken.held.insert(signature, Held { count, is_owner });
            if is_all {
                self.held.remove(&signature);
            }
            if is_owner && self.forwards.len() < MAX_SIGNATURES {
                self.forwards.insert(signature, split);
            }
        }
        taken
    }

    /// Adds the signatures of an insight that is merged into this one.
    pub fn absorb(&mut self, other: &mut Self) {
        for (signature, held) in std::mem::take(&mut other.held) {
            if held.is_owner {
                self.forwards.remove(&signature);
            }
            if self.held.len() >= MAX_SIGNATURES && !self.held.contains_key(&signature) {
                continue;
            }
            let own = self.held.entry(signature).or_default();
            own.count = own.count.saturating_add(held.count);
            own.is_owner |= held.is_owner;
        }
    }

    /// Forwards the signatures that another insight owns, after a merge was undone.
    pub fn forward_owned(&mut self, other: &Self, id: InsightId) {
        let owned = other.held.iter().filter(|(_, held)| held.is_owner);
        for (signature, _) in owned {
            let is_owner = self.held.get(signature).is_some_and(|held| held.is_owner);
            if !is_owner && self.forwards.len() < MAX_SIGNATURES {
                self.forwards.insert(*signature, id);
            }
        }
    }
}

/// Pain points that an insight counts and no longer lists: the oldest ones beyond its maximum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlisted {
    /// Numbers of pain points by the hour since the epoch.
    hours: BTreeMap<u32, u32>,
    /// Time of the first pain point.
    first: Option<Timestamp>,
}

impl Unlisted {
    /// Counts a pain point. `since` is a time before which no number is needed.
    pub fn add(&mut self, at: Timestamp, since: Timestamp) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        let hour = u32::try_from(at.as_millis().div_euclid(HOUR_MILLIS)).unwrap_or_default();
        let count = self.hours.entry(hour).or_default();
        *count = count.saturating_add(1);
        let since = since.as_millis().div_euclid(HOUR_MILLIS);
        self.hours.retain(|hour, _| i64::from(*hour) >= since);
    }

    /// Returns the number of pain points in whole hours since a time.
    pub fn count_since(&self, since: Timestamp) -> u32 {
        let is_counted = |hour: &u32| i64::from(*hour) * HOUR_MILLIS >= since.as_millis();
        let counted = self.hours.iter().filter(|(hour, _)| is_counted(hour));
        counted.fold(0, |sum: u32, (_, count)| sum.saturating_add(*count))
    }

    /// Returns the time of the first pain point.
    pub fn first(&self) -> Option<Timestamp> {
        self.first
    }

    /// Adds the pain points of an insight that is merged.
    pub fn absorb(&mut self, other: &mut Self) {
        for (hour, count) in std::mem::take(&mut other.hours) {
            let own = self.hours.entry(hour).or_default();
            *own = own.saturating_add(count);
        }
        self.first = self.first.into_iter().chain(other.first.take()).min();
    }
}

impl Evidence {
    /// Returns the signature that selects the insight.
    pub fn signature(&self) -> Signature {
        let [selector, route] =
            [&self.selector, &self.route].map(|text| text.as_deref().unwrap_or_default());
        Signature::of([self.kind.as_str(), selector, route])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{pack, unpack};
    use uuid::Uuid;

    fn id(number: u128) -> InsightId {
        InsightId::new(Uuid::from_u128(number))
    }

    fn signature(number: u128) -> Signature {
        Signature(number)
    }

    #[test]
    fn complete_splits_forward_signatures() {
        let mut source = Signatures::default();
        source.add(signature(1), 2);
        source.add(signature(2), 2);
        let split = source.split_off([1, 1, 2, 3].map(signature), id(7));
        assert_eq!(source.forward(signature(1)), Some(id(7)));
        assert_eq!(source.forward(signature(2)), None, "one pain point stays");
        // The new insight owns only the first signature.
        let mut split = split;
        let next = split.split_off([1, 2].map(signature), id(8));
        assert_eq!(split.forward(signature(2)), None);
        assert_eq!(split.forward(signature(1)), None, "one of two pain points stays");
        drop(next);
        let rest = source.split_off([signature(2)], id(9));
        assert_eq!(source.forward(signature(2)), Some(id(9)));
        assert_eq!((source.is_empty(), rest.is_empty()), (true, false));
    }

    #[test]
    fn merges_return_forwarded_signatures() {
        let mut source = Signatures::default();
        source.add(signature(1), 2);
        let before = source.clone();
        let mut split = source.split_off([signature(1); 2], id(7));
        source.absorb(&mut split);
        assert_eq!(source, before);
        assert!(split.is_empty());
        // A merged guest does not return the ownership.
        let mut guest = source.split_off([signature(1)], id(8));
        let mut other = Signatures::default();
        other.absorb(&mut guest);
        assert_eq!(other.held[&signature(1)], Held { count: 1, is_owner: false });
    }

    #[test]
    fn signatures_are_unpacked_unchanged() {
        let mut signatures = Signatures::default();
        signatures.add(signature(1), 2);
        signatures.add(signature(2), 1);
        for number in [2, 1] {
            drop(signatures.split_off([signature(number)], id(9)));
        }
        assert_eq!(unpack(&pack(&signatures).unwrap()), Some(signatures));
    }

    #[test]
    fn insights_hold_a_limited_number_of_signatures() {
        let mut signatures = Signatures::default();
        for number in 0..1_010 {
            signatures.add(signature(number), 1);
        }
        assert_eq!(signatures.held.len(), MAX_SIGNATURES);
    }

    #[test]
    fn unlisted_pain_points_count_by_hours() {
        let at = |hours: i64| Timestamp::from_millis(hours * HOUR_MILLIS + 1);
        let mut unlisted = Unlisted::default();
        for hours in [5, 5, 6, 40] {
            unlisted.add(at(hours), at(0));
        }
        assert_eq!([0, 5, 6, 41].map(|hours| unlisted.count_since(at(hours - 1))), [4, 4, 2, 0]);
        assert_eq!(unpack(&pack(&unlisted).unwrap()), Some(unlisted.clone()));
        unlisted.add(at(41), at(40));
        assert_eq!((unlisted.hours.len(), unlisted.first()), (2, Some(at(5))));
        let mut receiver = Unlisted::default();
        receiver.absorb(&mut unlisted);
        assert_eq!((receiver.count_since(at(0)), receiver.first()), (2, Some(at(5))));
    }
}
