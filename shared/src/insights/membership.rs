//! Which pain points an insight has, packed in chunks.
//!
//! DynamoDB changes at most 100 items in one transaction, and an insight may have 18,000 members, of
//! which a split may move any 500. So members are packed: 200 to a chunk, each chunk an item. All
//! chunks of an insight but one are full, whatever happened to it, so there are never more than 90;
//! a transaction can rewrite them all.

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::models::insight::{PainPoint, PainPointId};
use crate::models::timestamp::Timestamp;

/// The most members of a chunk, which then has 11,400 bytes.
pub const CHUNK_MEMBERS: usize = 200;
/// The bytes of a packed member: id, time, session, whether there is a user, user.
const MEMBER_BYTES: usize = 16 + 8 + 16 + 1 + 16;
/// The bytes of a packed reference to a chunk: id, revision.
const REFERENCE_BYTES: usize = 16 + 4;

/// A session or a user: the first 128 bits of the SHA-256 of what the client calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject([u8; 16]);

impl Subject {
    /// The subject of that name.
    pub fn of(name: &str) -> Self {
        let mut subject = [0; 16];
        subject.copy_from_slice(&Sha256::digest(name)[..16]);
        Self(subject)
    }
}

/// A pain point, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The pain point.
    pub id: PainPointId,
    /// Its session.
    pub session: Subject,
    /// Its user, where the session knew one.
    pub user: Option<Subject>,
    /// When it happened.
    pub occurred_at: Timestamp,
}

impl Member {
    /// What puts members in order: of two that occurred at the same time, the greater id is later.
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

/// Packed members, or references, that are not of the form in which this code packs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("packed members are damaged")]
pub struct Damaged;

/// Which chunk, in which state: a chunk's revision grows with each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkReference {
    /// The chunk.
    pub id: Uuid,
    /// Its revision.
    pub revision: u32,
}

impl ChunkReference {
    /// Packs references, as they stand in an insight's own item.
    pub fn pack_all(references: impl Iterator<Item = Self>) -> Vec<u8> {
        let mut packed = Vec::new();
        for reference in references {
            packed.extend_from_slice(reference.id.as_bytes());
            packed.extend_from_slice(&reference.revision.to_be_bytes());
        }
        packed
    }

    /// Reads what [`Self::pack_all`] packed.
    pub fn unpack_all(packed: &[u8]) -> Result<Vec<Self>, Damaged> {
        let (references, rest) = packed.as_chunks::<REFERENCE_BYTES>();
        if !rest.is_empty() {
            return Err(Damaged);
        }
        let unpack = |reference: &[u8; REFERENCE_BYTES]| {
            let (id, revision) = reference.split_first_chunk::<16>()?;
            let revision = u32::from_be_bytes(*revision.first_chunk::<4>()?);
            Some(Self { id: Uuid::from_bytes(*id), revision })
        };
        references.iter().map(|reference| unpack(reference).ok_or(Damaged)).collect()
    }
}

/// Up to 200 members of one insight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its identity and state.
    pub reference: ChunkReference,
    members: Vec<Member>,
}

impl Chunk {
    /// Packs the members, as they stand in the chunk's item.
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.members.len() * MEMBER_BYTES);
        self.members.iter().for_each(|member| member.pack(&mut packed));
        packed
    }

    /// Reads what [`Self::pack`] packed.
    pub fn unpack(reference: ChunkReference, packed: &[u8]) -> Result<Self, Damaged> {
        let (members, rest) = packed.as_chunks::<MEMBER_BYTES>();
        if !rest.is_empty() || members.len() > CHUNK_MEMBERS {
            return Err(Damaged);
        }
        let members = members.iter().map(|member| Member::unpack(member).ok_or(Damaged));
        Ok(Self { reference, members: members.collect::<Result<_, _>>()? })
    }

    fn is_full(&self) -> bool {
        self.members.len() >= CHUNK_MEMBERS
    }
}

/// The members of an insight, and what has changed about their chunks since they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    chunks: Vec<Chunk>,
    changed: HashSet<Uuid>,
    removed: Vec<Uuid>,
}

impl Membership {
    /// The members in `chunks`, as they were read.
    pub fn read(chunks: Vec<Chunk>) -> Self {
        Self { chunks, ..Self::default() }
    }

    /// All members, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.chunks.iter().flat_map(|chunk| &chunk.members)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.members.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The latest member.
    pub fn latest(&self) -> Option<&Member> {
        self.iter().max_by_key(|member| member.order())
    }

    /// References to all chunks.
    pub fn references(&self) -> impl Iterator<Item = ChunkReference> {
        self.chunks.iter().map(|chunk| chunk.reference)
    }

    /// The chunks that must be written.
    pub fn changed(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(|chunk| self.changed.contains(&chunk.reference.id))
    }

    /// The chunks that must be deleted.
    pub fn removed(&self) -> impl Iterator<Item = Uuid> {
        self.removed.iter().copied()
    }

    /// Adds members that are not among these yet; `new_id` names new chunks.
    pub fn add(&mut self, members: impl IntoIterator<Item = Member>, new_id: impl FnMut() -> Uuid) {
        self.pack(members.into_iter().collect(), new_id);
    }

    /// Removes the members of these ids, and returns them.
    pub fn remove(&mut self, ids: &HashSet<PainPointId>) -> Vec<Member> {
        let mut removed = Vec::with_capacity(ids.len());
        let mut touched = Vec::new();
        for chunk in &mut self.chunks {
            let before = removed.len();
            removed.extend(chunk.members.extract_if(.., |member| ids.contains(&member.id)));
            if removed.len() > before {
                touched.push(chunk.reference.id);
            }
        }
        for id in touched {
            self.mark_changed(id);
        }
        self.repack();
        removed
    }

    /// Takes all members of another insight. Full chunks change hands as they are.
    pub fn absorb(&mut self, other: Self) {
        self.chunks.extend(other.chunks);
        self.changed.extend(other.changed);
        self.removed.extend(other.removed);
        self.repack();
    }

    /// Packs anew what there is, which never needs another chunk.
    fn repack(&mut self) {
        self.pack(Vec::new(), Uuid::nil);
    }

    /// Packs `members`, and what chunks that are not full hold, as densely as they go: afterwards at
    /// most one chunk is not full. Chunks that hold what they held are left alone.
    fn pack(&mut self, mut members: Vec<Member>, mut new_id: impl FnMut() -> Uuid) {
        let (full, mut open): (Vec<_>, Vec<_>) = self.chunks.drain(..).partition(Chunk::is_full);
        self.chunks = full;
        let settled = open.len() == 1 && members.is_empty() && !open[0].members.is_empty();
        if settled {
            self.chunks.append(&mut open);
            return;
        }
        let mut reusable = Vec::with_capacity(open.len());
        for chunk in open {
            members.extend(chunk.members);
            reusable.push(chunk.reference);
        }
        let mut reusable = reusable.into_iter();
        for packed in members.chunks(CHUNK_MEMBERS) {
            let reference =
                reusable.next().unwrap_or_else(|| ChunkReference { id: new_id(), revision: 0 });
            self.chunks.push(Chunk { reference, members: packed.to_vec() });
            self.mark_changed(reference.id);
        }
        for reference in reusable {
            self.changed.remove(&reference.id);
            // What was never stored needs no deletion.
            if reference.revision > 0 {
                self.removed.push(reference.id);
            }
        }
    }

    /// Notes that a chunk must be written, under a new revision.
    fn mark_changed(&mut self, id: Uuid) {
        if self.changed.insert(id)
            && let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.reference.id == id)
        {
            chunk.reference.revision = chunk.reference.revision.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::insight::MAX_PAIN_POINTS;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The most actions of a transaction.
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

    /// Members as they are read: nothing about them has changed yet.
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

    fn writes(membership: &Membership) -> (usize, usize) {
        (membership.changed().count(), membership.removed().count())
    }

    #[test]
    fn subjects_are_told_apart_by_every_byte_of_their_names() {
        assert_eq!(Subject::of("a"), Subject::of("a"));
        for other in ["A", " a", "a ", "b", ""] {
            assert_ne!(Subject::of("a"), Subject::of(other), "{other:?}");
        }
    }

    #[test]
    fn adding_rewrites_the_chunk_that_has_room_and_no_full_one() {
        let mut membership = stored(0..450);
        let before: Vec<_> = membership.references().collect();
        membership.add(members(450..451), Uuid::nil);
        assert_eq!(writes(&membership), (1, 0));
        let after: Vec<_> = membership.references().collect();
        assert_eq!(after[..2], before[..2]);
        assert_eq!(after[2], ChunkReference { revision: before[2].revision + 1, ..before[2] });
        let mut full = stored(0..400);
        full.add(members(400..401), || Uuid::max());
        assert_eq!(writes(&full), (1, 0));
    }

    #[test]
    fn removing_rewrites_what_held_the_members_and_what_fills_the_gaps() {
        let mut membership = stored(0..600);
        let removed = membership.remove(&ids([3, 599].into_iter()));
        assert_eq!(removed, [members(3..4), members(599..600)].concat());
        assert_eq!(writes(&membership), (2, 0));
        // Two chunks with 199 and one member make one.
        let mut membership = stored(0..401);
        membership.remove(&ids(0..1));
        assert_eq!(writes(&membership), (1, 1));
        let mut membership = stored(0..401);
        membership.remove(&ids(400..401));
        assert_eq!(writes(&membership), (0, 1));
    }

    #[test]
    fn what_is_not_there_cannot_be_removed() {
        let mut membership = stored(0..300);
        let before = membership.clone();
        assert_eq!(membership.remove(&ids(300..305)), []);
        assert_eq!(membership, before);
    }

    #[test]
    fn full_chunks_change_hands_as_they_are() {
        let mut membership = stored(0..450);
        membership.absorb(stored(1_000..1_410));
        assert_eq!(membership.len(), 860);
        // Of 50 and 10 members that were in two chunks.
        assert_eq!(writes(&membership), (1, 1));
        let mut full = stored(0..400);
        full.absorb(stored(1_000..1_400));
        assert_eq!(writes(&full), (0, 0));
    }

    #[test]
    fn every_change_of_the_largest_insight_fits_into_a_transaction() {
        // Beside chunks: two heads, what is written together with them, an idempotency record.
        const OTHERS: usize = 4;
        for step in [1, 36, 200] {
            let mut source = stored(0..MAX_PAIN_POINTS);
            assert_eq!(source.references().count(), 90);
            let moved = source.remove(&ids((0..MAX_PAIN_POINTS).step_by(step).take(500)));
            let mut made = Membership::default();
            let mut chunk_id = u128::MAX;
            made.add(moved, || {
                chunk_id -= 1;
                Uuid::from_u128(chunk_id)
            });
            let (changed, removed) = writes(&source);
            let all = changed + removed + writes(&made).0 + OTHERS;
            assert!(all <= MAX_ACTIONS, "{all} actions, every {step}th");
        }
    }

    #[test]
    fn damaged_members_and_references_are_refused() {
        let reference = ChunkReference { id: Uuid::nil(), revision: 1 };
        for bytes in [1, 56, 58, 57 * 201] {
            assert_eq!(Chunk::unpack(reference, &vec![0; bytes]), Err(Damaged), "{bytes}");
        }
        assert!(Chunk::unpack(reference, &[0; 57 * 200]).is_ok());
        for bytes in [1, 19, 21] {
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
        fn unpacks_what_was_packed(
            members in vec(any_member(), 0..=CHUNK_MEMBERS),
            references in vec((any::<u128>(), any::<u32>()), 0..95),
        ) {
            let reference = ChunkReference { id: Uuid::max(), revision: 7 };
            let chunk = Chunk { reference, members };
            prop_assert_eq!(Chunk::unpack(reference, &chunk.pack()), Ok(chunk));
            let references: Vec<_> = references
                .into_iter()
                .map(|(id, revision)| ChunkReference { id: Uuid::from_u128(id), revision })
                .collect();
            let packed = ChunkReference::pack_all(references.iter().copied());
            prop_assert_eq!(ChunkReference::unpack_all(&packed), Ok(references));
        }

        #[test]
        fn whatever_bytes_are_unpacked_nothing_panics(
            bytes in vec(any::<u8>(), 0..500),
            whole in 0..5_usize,
        ) {
            let reference = ChunkReference { id: Uuid::nil(), revision: 0 };
            for packed in [&bytes[..], &vec![bytes.first().copied().unwrap_or(255); whole * 57]] {
                let unpacked = Chunk::unpack(reference, packed);
                prop_assert_eq!(unpacked.is_ok(), packed.len() % MEMBER_BYTES == 0);
                let references = ChunkReference::unpack_all(packed);
                prop_assert_eq!(references.is_ok(), packed.len() % REFERENCE_BYTES == 0);
            }
        }
    }
}
