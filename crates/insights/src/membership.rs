//! The pain points of an insight, packed in chunks.
//!
//! DynamoDB changes at most 100 items in one transaction. An insight can have 18,000 members, and a
//! split can move any 500 of them. So members are packed in chunks of 400, one item each.
//!
//! Chunks are rarely written. The insight's reference to a chunk marks the members that have left.
//! So a split of scattered members writes little more than the insight itself. Only a chunk that is
//! less than half full is packed again. All chunks of an insight except one are always at least
//! half full, so there are at most 91. One transaction can write them all.

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use shared::timestamp::Timestamp;

use crate::{PainPoint, PainPointId};

/// Maximum number of members per chunk, which then has 22,800 bytes.
pub const CHUNK_MEMBERS: usize = 400;
/// Size of a packed member in bytes: ID, time, session, whether there is a user, user.
const MEMBER_BYTES: usize = 16 + 8 + 16 + 1 + 16;
/// Size of a chunk's marks for removed members in bytes, one bit each.
const REMOVED_BYTES: usize = CHUNK_MEMBERS / 8;
/// Size of a packed chunk reference in bytes: ID, revision, removed members.
const REFERENCE_BYTES: usize = 16 + 4 + REMOVED_BYTES;

/// A session or user: the first 128 bits of the SHA-256 of the client's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject([u8; 16]);

impl Subject {
    /// Returns the subject with this name.
    pub fn of(name: &str) -> Self {
        let mut subject = [0; 16];
        subject.copy_from_slice(&Sha256::digest(name)[..16]);
        Self(subject)
    }
}

/// The data of a pain point that statistics need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The pain point's ID.
    pub id: PainPointId,
    /// The session.
    pub session: Subject,
    /// The user, if the session has one.
    pub user: Option<Subject>,
    /// Time of the occurrence.
    pub occurred_at: Timestamp,
}

impl Member {
    /// Returns the sort key: the time, then the ID.
    pub fn order(&self) -> (Timestamp, PainPointId) {
        (self.occurred_at, self.id)
    }

    fn pack(&self, packed: &mut Vec<u8>) {
        packed.extend_from_slice(self.id.as_bytes());
        packed.extend_from_slice(&self.occurred_at.as_millis().to_be_bytes());
        packed.extend_from_slice(&self.session.0);
        packed.push(u8::from(self.user.is_some()));
        packed.extend_from_slice(&self.user.map_or([0; 16], |user| user.0));
    }

    fn unpack(packed: &[u8; MEMBER_BYTES]) -> Option<Self> {
        let (id, rest) = packed.split_first_chunk::<16>()?;
        let (millis, rest) = rest.split_first_chunk::<8>()?;
        let (session, rest) = rest.split_first_chunk::<16>()?;
        let (known, rest) = rest.split_first_chunk::<1>()?;
        let (user, _) = rest.split_first_chunk::<16>()?;
        Some(Self {
            id: PainPointId::new(Uuid::from_bytes(*id)),
            session: Subject(*session),
            user: (*known == [1]).then_some(Subject(*user)),
            occurred_at: Timestamp::from_millis(i64::from_be_bytes(*millis)),
        })
    }
}

impl From<&PainPoint> for Member {
    fn from(pain_point: &PainPoint) -> Self {
        Self {
            id: pain_point.id,
            session: Subject::of(&pain_point.session_id),
            user: pain_point.user_id.as_deref().map(Subject::of),
            occurred_at: pain_point.occurred_at,
        }
    }
}

/// Packed members or references with an invalid format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("packed members are damaged")]
pub struct Damaged;

/// A reference to a revision of a chunk, with marks for removed members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkReference {
    /// The chunk's ID.
    pub id: Uuid,
    /// The revision, incremented by each write of the chunk.
    pub revision: u32,
    removed_bits: [u8; REMOVED_BYTES],
}

impl ChunkReference {
    /// Returns a reference to a chunk without removed members.
    pub fn new(id: Uuid, revision: u32) -> Self {
        Self { id, revision, removed_bits: [0; REMOVED_BYTES] }
    }

    /// Packs references for an insight's own item.
    pub fn pack_all(references: impl Iterator<Item = Self>) -> Vec<u8> {
        let mut packed = Vec::new();
        for reference in references {
            packed.extend_from_slice(reference.id.as_bytes());
            packed.extend_from_slice(&reference.revision.to_be_bytes());
            packed.extend_from_slice(&reference.removed_bits);
        }
        packed
    }

    /// Unpacks the output of [`Self::pack_all`].
    pub fn unpack_all(packed: &[u8]) -> Result<Vec<Self>, Damaged> {
        let (references, rest) = packed.as_chunks::<REFERENCE_BYTES>();
        if !rest.is_empty() {
            return Err(Damaged);
        }
        let unpack = |reference: &[u8; REFERENCE_BYTES]| {
            let (id, rest) = reference.split_first_chunk::<16>()?;
            let (revision, rest) = rest.split_first_chunk::<4>()?;
            Some(Self {
                id: Uuid::from_bytes(*id),
                revision: u32::from_be_bytes(*revision),
                removed_bits: *rest.first_chunk()?,
            })
        };
        references.iter().map(|reference| unpack(reference).ok_or(Damaged)).collect()
    }

    fn is_removed(&self, position: usize) -> bool {
        self.removed_bits.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }

    fn mark_removed(&mut self, position: usize) {
        if let Some(byte) = self.removed_bits.get_mut(position / 8) {
            *byte |= 1 << (position % 8);
        }
    }
}

/// A chunk with up to 400 members of one insight, some of them possibly removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The chunk's reference.
    pub reference: ChunkReference,
    stored: Vec<Member>,
}

impl Chunk {
    /// Packs the members for the chunk's item, including removed ones.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.stored.len() * MEMBER_BYTES);
        self.stored.iter().for_each(|member| member.pack(&mut packed));
        packed
    }

    /// Unpacks the output of [`Self::pack`].
    pub fn unpack(reference: ChunkReference, packed: &[u8]) -> Result<Self, Damaged> {
        let (members, rest) = packed.as_chunks::<MEMBER_BYTES>();
        if !rest.is_empty() || members.len() > CHUNK_MEMBERS {
            return Err(Damaged);
        }
        let members = members.iter().map(|member| Member::unpack(member).ok_or(Damaged));
        Ok(Self { reference, stored: members.collect::<Result<_, _>>()? })
    }

    /// Returns the members that are not removed.
    fn members(&self) -> impl Iterator<Item = &Member> {
        let stored = self.stored.iter().enumerate();
        let present = stored.filter(|(position, _)| !self.reference.is_removed(*position));
        present.map(|(_, member)| member)
    }

    fn len(&self) -> usize {
        self.members().count()
    }

    fn is_half_full(&self) -> bool {
        self.len() * 2 >= CHUNK_MEMBERS
    }

    /// Marks members as removed, and returns them.
    fn remove(&mut self, ids: &HashSet<PainPointId>) -> Vec<Member> {
        let present = |position: &usize| !self.reference.is_removed(*position);
        let leaving = |position: &usize| {
            self.stored.get(*position).is_some_and(|member| ids.contains(&member.id))
        };
        let positions: Vec<usize> =
            (0..self.stored.len()).filter(present).filter(leaving).collect();
        for position in &positions {
            self.reference.mark_removed(*position);
        }
        positions.iter().filter_map(|position| self.stored.get(*position)).copied().collect()
    }
}

/// The members of an insight, and the changes to their chunks since they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    chunks: Vec<Chunk>,
    changed: HashSet<Uuid>,
    removed: Vec<Uuid>,
}

impl Membership {
    /// Returns the members in `chunks` as read.
    pub fn read(chunks: Vec<Chunk>) -> Self {
        Self { chunks, ..Self::default() }
    }

    /// Returns all members, unordered.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.chunks.iter().flat_map(Chunk::members)
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// `true` if there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the latest member.
    pub fn latest(&self) -> Option<&Member> {
        self.iter().max_by_key(|member| member.order())
    }

    /// Returns references to all chunks.
    pub fn references(&self) -> impl Iterator<Item = ChunkReference> {
        self.chunks.iter().map(|chunk| chunk.reference)
    }

    /// Returns the chunks to write.
    pub fn changed(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|chunk| self.changed.contains(&chunk.reference.id))
    }

    /// Returns the chunks to delete.
    pub fn removed(&self) -> impl Iterator<Item = Uuid> {
        self.removed.iter().copied()
    }

    /// Adds members that are not included yet. `new_id` names new chunks.
    pub fn add(&mut self, members: impl IntoIterator<Item = Member>, new_id: impl FnMut() -> Uuid) {
        self.pack(members.into_iter().collect(), new_id);
    }

    /// Removes the members with these IDs, and returns them.
    pub fn remove(&mut self, ids: &HashSet<PainPointId>) -> Vec<Member> {
        let removed = self.chunks.iter_mut().flat_map(|chunk| chunk.remove(ids)).collect();
        self.repack();
        removed
    }

    /// Adds all members of another insight. Moves chunks that are at least half full without
    /// changing them.
    pub fn absorb(&mut self, other: Self) {
        self.chunks.extend(other.chunks);
        self.changed.extend(other.changed);
        self.removed.extend(other.removed);
        self.repack();
    }

    /// Returns where members are: the chunks that have no others, and the rest.
    pub fn locate(&self, ids: &HashSet<PainPointId>) -> (Vec<Uuid>, Vec<PainPointId>) {
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for chunk in &self.chunks {
            let found: Vec<PainPointId> =
                chunk.members().map(|member| member.id).filter(|id| ids.contains(id)).collect();
            if found.len() == chunk.len() && !found.is_empty() {
                whole.push(chunk.reference.id);
            } else {
                rest.extend(found);
            }
        }
        (whole, rest)
    }

    /// Removes and returns the members of `chunks`, which move unchanged, and `others`.
    #[must_use]
    pub fn take(
        &mut self,
        chunks: &[Uuid],
        others: &[PainPointId],
        new_id: impl FnMut() -> Uuid,
    ) -> Self {
        let is_taken = |chunk: &Chunk| chunks.contains(&chunk.reference.id);
        let (taken, kept) = self.chunks.drain(..).partition(is_taken);
        self.chunks = kept;
        let others = self.remove(&others.iter().copied().collect());
        let mut members = Self::read(taken);
        members.add(others, new_id);
        members
    }

    /// Packs the members again, which never needs a new chunk.
    fn repack(&mut self) {
        self.pack(Vec::new(), Uuid::nil);
    }

    /// Packs `members` and the members of less than half full chunks as densely as possible.
    /// Afterwards at most one chunk is less than half full. Other chunks are unchanged, except that
    /// new members first fill the last chunk.
    fn pack(&mut self, mut members: Vec<Member>, mut new_id: impl FnMut() -> Uuid) {
        let (mut settled, mut loose): (Vec<_>, Vec<_>) =
            self.chunks.drain(..).partition(Chunk::is_half_full);
        if members.is_empty() && loose.len() == 1 && loose.iter().all(|chunk| chunk.len() > 0) {
            settled.append(&mut loose);
        } else if !members.is_empty() && loose.is_empty() {
            loose.extend(settled.pop_if(|last| last.len() < CHUNK_MEMBERS));
        }
        self.chunks = settled;
        let mut reusable = Vec::with_capacity(loose.len());
        let mut packed: Vec<Member> = Vec::new();
        for chunk in loose {
            packed.extend(chunk.members());
            reusable.push(chunk.reference);
        }
        packed.append(&mut members);
        let mut reusable = reusable.into_iter();
        for packed in packed.chunks(CHUNK_MEMBERS) {
            let reference = reusable.next();
            let (id, revision) =
                reference.map_or_else(|| (new_id(), 0), |reused| (reused.id, reused.revision));
            // Several changes of a chunk before a write increment its revision once.
            let revision = revision.wrapping_add(u32::from(self.changed.insert(id)));
            let reference = ChunkReference::new(id, revision);
            self.chunks.push(Chunk { reference, stored: packed.to_vec() });
        }
        for reference in reusable {
            // Chunks that were never stored need no deletion.
            let was_stored = !self.changed.remove(&reference.id) || reference.revision > 1;
            if was_stored {
                self.removed.push(reference.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_PAIN_POINTS;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Maximum number of actions per transaction.
    const MAX_ACTIONS: usize = 100;

    fn members(ids: std::ops::Range<usize>) -> Vec<Member> {
        let member = |id: usize| Member {
            id: PainPointId::new(Uuid::from_u128(id as u128)),
            session: Subject::of(&id.to_string()),
            user: None,
            occurred_at: Timestamp::from_millis(0),
        };
        ids.map(member).collect()
    }

    /// Returns members as read, without changes.
    fn stored(ids: std::ops::Range<usize>) -> Membership {
        let mut membership = Membership::default();
        let mut chunk_id = (ids.start as u128) << 64;
        membership.add(members(ids), || {
            chunk_id += 1 << 64;
            Uuid::from_u128(chunk_id)
        });
        Membership::read(membership.chunks)
    }

    fn ids(ids: impl Iterator<Item = usize>) -> HashSet<PainPointId> {
        ids.map(|id| PainPointId::new(Uuid::from_u128(id as u128))).collect()
    }

    fn ids_of(membership: &Membership) -> HashSet<PainPointId> {
        membership.iter().map(|member| member.id).collect()
    }

    fn writes(membership: &Membership) -> (usize, usize) {
        (membership.changed().count(), membership.removed().count())
    }

    #[test]
    fn subjects_differ_in_every_byte_of_their_names() {
        assert_eq!(Subject::of("a"), Subject::of("a"));
        for other in ["A", " a", "a ", "b", ""] {
            assert_ne!(Subject::of("a"), Subject::of(other), "{other:?}");
        }
    }

    #[test]
    fn additions_fill_only_the_last_chunk() {
        let mut membership = stored(0..900);
        let before: Vec<_> = membership.references().collect();
        membership.add(members(900..901), Uuid::nil);
        assert_eq!(writes(&membership), (1, 0));
        let after: Vec<_> = membership.references().collect();
        assert_eq!(after[..2], before[..2]);
        assert_eq!(after[2], ChunkReference::new(before[2].id, before[2].revision + 1));
        let mut full = stored(0..800);
        full.add(members(800..801), Uuid::max);
        assert_eq!(writes(&full), (1, 0));
        // A chunk that is more than half full is filled too.
        let mut membership = stored(0..700);
        membership.add(members(700..800), Uuid::nil);
        assert_eq!((writes(&membership), membership.references().count()), ((1, 0), 2));
    }

    #[test]
    fn removals_write_no_chunk_that_is_half_full() {
        let mut membership = stored(0..1_200);
        let removed = membership.remove(&ids([3, 1_199].into_iter()));
        assert_eq!(removed, [members(3..4), members(1_199..1_200)].concat());
        assert_eq!((writes(&membership), membership.len()), ((0, 0), 1_198));
        membership.remove(&ids(4..200));
        assert_eq!((writes(&membership), membership.len()), ((0, 0), 1_002));
        // The first chunk has 203 and then 199 members left. A single chunk can stay less than half
        // full.
        membership.remove(&ids(200..204));
        assert_eq!((writes(&membership), membership.len()), ((0, 0), 998));
        // The members of two chunks fit into one.
        membership.remove(&ids(400..601));
        assert_eq!((writes(&membership), membership.len()), ((1, 1), 797));
        let left = members(0..3).into_iter().chain(members(204..400)).chain(members(601..1_199));
        assert_eq!(ids_of(&membership), left.map(|member| member.id).collect());
    }

    #[test]
    fn empty_chunks_are_deleted() {
        let mut membership = stored(0..401);
        membership.remove(&ids(400..401));
        assert_eq!(writes(&membership), (0, 1));
        let mut membership = stored(0..10);
        membership.remove(&ids(0..10));
        assert_eq!((writes(&membership), membership.is_empty()), ((0, 1), true));
    }

    #[test]
    fn removed_members_stay_removed_when_read_back() {
        let mut membership = stored(0..500);
        membership.remove(&ids((0..500).step_by(7)));
        let packed = ChunkReference::pack_all(membership.references());
        let references = ChunkReference::unpack_all(&packed).unwrap();
        let chunks = references.into_iter().zip(&membership.chunks);
        let chunks = chunks.map(|(reference, chunk)| Chunk::unpack(reference, &chunk.pack()));
        let read = Membership::read(chunks.collect::<Result<_, _>>().unwrap());
        assert!(read.iter().eq(membership.iter()));
        assert_eq!(read.len(), 500 - 72);
    }

    #[test]
    fn unknown_members_cannot_be_removed() {
        let mut membership = stored(0..300);
        let before = membership.clone();
        assert_eq!(membership.remove(&ids(300..305)), []);
        assert_eq!(membership, before);
        membership.remove(&ids(0..1));
        assert_eq!(membership.remove(&ids(0..1)), [], "the member is already removed");
    }

    #[test]
    fn half_full_chunks_are_moved_unchanged() {
        let mut membership = stored(0..900);
        membership.absorb(stored(1_000..1_810));
        assert_eq!(membership.len(), 1_710);
        // Two chunks had 100 and 10 members.
        assert_eq!(writes(&membership), (1, 1));
        let mut full = stored(0..800);
        full.absorb(stored(1_000..1_600));
        assert_eq!(writes(&full), (0, 0));
    }

    #[test]
    fn largest_insight_changes_fit_into_one_transaction() {
        // In addition to chunks: two heads, the request record, an announcement, and an idempotency
        // record.
        const OTHERS: usize = 5;
        // The maximum number of chunks of an insight: all except one are exactly half full.
        let mut source = stored(0..2 * MAX_PAIN_POINTS);
        source.remove(&ids((0..2 * MAX_PAIN_POINTS).step_by(2)));
        source.remove(&ids([1].into_iter()));
        let chunks = source.chunks;
        assert_eq!(chunks.len(), 90);
        for step in [1, 36, 200] {
            let mut source = Membership::read(chunks.clone());
            let all: Vec<usize> = (0..2 * MAX_PAIN_POINTS).skip(3).step_by(2).collect();
            let moved = source.remove(&ids(all.into_iter().step_by(step).take(500)));
            let mut split = Membership::default();
            let mut chunk_id = u128::MAX;
            split.add(moved, || {
                chunk_id -= 1;
                Uuid::from_u128(chunk_id)
            });
            let (changed, removed) = writes(&source);
            let all = changed + removed + writes(&split).0 + OTHERS;
            assert!(all <= MAX_ACTIONS, "{all} actions, every {step}th");
        }
    }

    #[test]
    fn invalid_members_and_references_are_rejected() {
        let reference = ChunkReference::new(Uuid::nil(), 1);
        for bytes in [1, 56, 58, 57 * 401] {
            assert_eq!(Chunk::unpack(reference, &vec![0; bytes]), Err(Damaged), "{bytes}");
        }
        assert!(Chunk::unpack(reference, &vec![0; 57 * 400]).is_ok());
        for bytes in [1, 69, 71] {
            assert_eq!(ChunkReference::unpack_all(&vec![0; bytes]), Err(Damaged), "{bytes}");
        }
        assert_eq!(ChunkReference::unpack_all(&[]), Ok(Vec::new()));
    }

    fn any_member() -> impl Strategy<Value = Member> {
        let millis = Timestamp::MIN_MILLIS..=Timestamp::MAX_MILLIS;
        (any::<u128>(), any::<[u8; 16]>(), any::<Option<[u8; 16]>>(), millis).prop_map(
            |(id, session, user, millis)| Member {
                id: PainPointId::new(Uuid::from_u128(id)),
                session: Subject(session),
                user: user.map(Subject),
                occurred_at: Timestamp::from_millis(millis),
            },
        )
    }

    proptest! {
        #[test]
        fn packed_members_are_unpacked_unchanged(
            members in vec(any_member(), 0..=CHUNK_MEMBERS),
            references in vec((any::<u128>(), any::<u32>(), vec(0..CHUNK_MEMBERS, 0..9)), 0..95),
        ) {
            let reference = ChunkReference::new(Uuid::max(), 7);
            let chunk = Chunk { reference, stored: members };
            prop_assert_eq!(Chunk::unpack(reference, &chunk.pack()), Ok(chunk));
            let references: Vec<_> = references
                .into_iter()
                .map(|(id, revision, left)| {
                    let mut reference = ChunkReference::new(Uuid::from_u128(id), revision);
                    for position in left {
                        reference.mark_removed(position);
                    }
                    reference
                })
                .collect();
            let packed = ChunkReference::pack_all(references.iter().copied());
            prop_assert_eq!(ChunkReference::unpack_all(&packed), Ok(references));
        }

        #[test]
        fn unpacking_never_panics(
            bytes in vec(any::<u8>(), 0..500),
            whole in 0..5_usize,
        ) {
            let reference = ChunkReference::new(Uuid::nil(), 0);
            for packed in [&bytes[..], &vec![bytes.first().copied().unwrap_or(255); whole * 57]] {
                let unpacked = Chunk::unpack(reference, packed);
                prop_assert_eq!(unpacked.is_ok(), packed.len() % MEMBER_BYTES == 0);
                let references = ChunkReference::unpack_all(packed);
                prop_assert_eq!(references.is_ok(), packed.len() % REFERENCE_BYTES == 0);
            }
        }
    }
}
