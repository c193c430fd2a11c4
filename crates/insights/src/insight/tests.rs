//! Random insight histories, compared with plain sets of pain points and with a simulated table of
//! chunks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use uuid::Uuid;

use super::*;
use crate::membership::{CHUNK_MEMBERS, Chunk, ChunkReference};

const NOW: i64 = 1_795_234_560_000;
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Session, user and age of a pain point.
type Moment = (u8, Option<u8>, i64);

#[derive(Debug, Clone)]
enum Step {
    Create(Vec<Moment>),
    Add(Index, Vec<Moment>),
    /// Splits off every `nth` pain point.
    Split(Index, usize),
    Merge(Index, Index),
    /// Undoes a merge, if possible.
    Undo(Index),
}

fn moments(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Moment>> {
    // Few distinct times, so that some pain points share one.
    let age = (0..140_i64).prop_map(|half_days| half_days * DAY / 2);
    vec((0..9_u8, prop::option::of(0..5_u8), age), count)
}

fn some_moments() -> impl Strategy<Value = Vec<Moment>> {
    prop_oneof![3 => moments(1..8), 2 => moments(150..450)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => some_moments().prop_map(Step::Create),
        3 => (any::<Index>(), some_moments()).prop_map(|(to, drawn)| Step::Add(to, drawn)),
        4 => (any::<Index>(), 1..90_usize).prop_map(|(from, nth)| Step::Split(from, nth)),
        3 => (any::<Index>(), any::<Index>()).prop_map(|(from, into)| Step::Merge(from, into)),
        3 => any::<Index>().prop_map(Step::Undo),
    ]
}

/// The expected state of an insight.
#[derive(Debug, Clone, Default)]
struct Model {
    members: BTreeMap<PainPointId, PainPoint>,
    version: u64,
    merged_into: Option<usize>,
    /// The pain points before the merge, and the receiver's ones after it.
    before_merge: Option<[BTreeMap<PainPointId, PainPoint>; 2]>,
    /// The receiver's version after the merge.
    receiver_version: u64,
}

impl Model {
    fn latest(&self) -> Option<&PainPoint> {
        self.members.values().max_by_key(|point| (point.occurred_at, point.id))
    }
}

/// A project's insights, their expected state, and the stored chunks.
#[derive(Default)]
struct World {
    insights: Vec<Insight>,
    models: Vec<Model>,
    chunks: BTreeMap<Uuid, (u32, Vec<u8>)>,
    ids: u128,
}

impl World {
    fn new_id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    fn pain_points(&mut self, drawn: &[Moment]) -> Vec<PainPoint> {
        let mut pain_points = Vec::with_capacity(drawn.len());
        for (session, user, age) in drawn {
            let id = self.new_id();
            pain_points.push(PainPoint {
                id: PainPointId::new(id),
                session_id: session.to_string(),
                user_id: user.map(|user| user.to_string()),
                occurred_at: Timestamp::from_millis(NOW - age),
                title: "Rage click".to_owned(),
                excerpt: id.to_string(),
                evidence: None,
            });
        }
        pain_points
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Create(drawn) => self.create(drawn),
            Step::Add(to, drawn) => {
                let pain_points = self.pain_points(drawn);
                self.add(to.index(self.insights.len()), &pain_points);
            }
            Step::Split(from, nth) => self.split(from.index(self.insights.len()), *nth),
            Step::Undo(of) => self.undo(of.index(self.insights.len())),
            Step::Merge(from, into) => {
                self.merge(from.index(self.insights.len()), into.index(self.insights.len()));
            }
        }
    }

    fn create(&mut self, drawn: &[Moment]) {
        let pain_points = self.pain_points(drawn);
        let id = InsightId::new(self.new_id());
        let project = ProjectId::new(Uuid::nil());
        self.insights.push(Insight::new(id, project, "t".to_owned(), String::new()));
        self.models.push(Model::default());
        self.add(self.insights.len() - 1, &pain_points);
    }

    fn add(&mut self, at: usize, pain_points: &[PainPoint]) {
        let mut ids = self.ids;
        let new = self.insights[at].missing(pain_points);
        let added = self.insights[at].add(&new, || {
            ids += 1;
            Uuid::from_u128(ids)
        });
        self.ids = ids;
        let model = &mut self.models[at];
        if model.merged_into.is_some() {
            assert_eq!(added, Err(Rejection::Merged));
            return;
        }
        assert_eq!(added, Ok(()));
        model.version += 1;
        model.members.extend(pain_points.iter().map(|point| (point.id, point.clone())));
        self.save(&[at]);
    }

    fn split(&mut self, at: usize, nth: usize) {
        let all = self.models[at].members.keys().copied();
        let ids: Vec<PainPointId> = all.step_by(nth).take(500).collect();
        let split_id = InsightId::new(self.new_id());
        let mut chunk_ids = self.ids;
        let mut source = self.insights[at].clone();
        let split = source.split_off(&ids, split_id, || {
            chunk_ids += 1;
            Uuid::from_u128(chunk_ids)
        });
        self.ids = chunk_ids;
        let model = &mut self.models[at];
        let mut split_off = match split {
            Ok(split_off) => split_off,
            Err(rejection) => {
                let expected = if model.merged_into.is_some() {
                    Rejection::Merged
                } else {
                    assert_eq!(ids.len(), model.members.len());
                    Rejection::WouldEmpty
                };
                assert_eq!((rejection, &source), (expected, &self.insights[at]));
                return;
            }
        };
        let details = model.members.iter().map(|(id, point)| (*id, point.clone())).collect();
        source.refresh_latest(&details);
        split_off.refresh_latest(&details);
        model.version += 1;
        let moved = ids.iter().map(|id| (*id, model.members.remove(id).unwrap())).collect();
        self.models.push(Model { members: moved, version: 1, ..Model::default() });
        self.insights[at] = source;
        self.insights.push(split_off);
        self.save(&[at, self.insights.len() - 1]);
    }

    fn merge(&mut self, from: usize, into: usize) {
        if from == into {
            return;
        }
        let (mut source, mut receiver) = (self.insights[from].clone(), self.insights[into].clone());
        let merged = receiver.merge(&mut source);
        if self.models[from].merged_into.is_some() || self.models[into].merged_into.is_some() {
            assert_eq!(merged, Err(Rejection::Merged));
            assert_eq!((&source, &receiver), (&self.insights[from], &self.insights[into]));
            return;
        }
        assert_eq!(merged, Ok(()));
        (self.insights[from], self.insights[into]) = (source, receiver);
        let moved = std::mem::take(&mut self.models[from].members);
        self.models[into].members.extend(moved.clone());
        self.models[from].before_merge = Some([moved, self.models[into].members.clone()]);
        self.models[from].merged_into = Some(into);
        for at in [from, into] {
            self.models[at].version += 1;
        }
        self.models[from].receiver_version = self.models[into].version;
        self.save(&[from, into]);
    }

    fn undo(&mut self, from: usize) {
        let Some(into) = self.models[from].merged_into else { return };
        let (mut source, mut receiver) = (self.insights[from].clone(), self.insights[into].clone());
        let mut ids = self.ids;
        let undone = source.undo_merge(&mut receiver, InsightStatus::Resolved, || {
            ids += 1;
            Uuid::from_u128(ids)
        });
        self.ids = ids;
        let [moved, after] = self.models[from].before_merge.clone().unwrap();
        if undone.is_err() {
            assert_eq!((&source, &receiver), (&self.insights[from], &self.insights[into]));
            // Otherwise another change came later, such as a split and its merge.
            assert_ne!(self.models[into].version, self.models[from].receiver_version);
            return;
        }
        assert_eq!(self.models[into].members, after);
        let removed = source.members.removed().chain(receiver.members.removed()).count();
        assert_eq!(removed, 0, "update-insight must not delete chunks");
        (self.insights[from], self.insights[into]) = (source, receiver);
        self.models[into].members.retain(|id, _| !moved.contains_key(id));
        self.models[from].members = moved;
        self.models[from].merged_into = None;
        for at in [from, into] {
            self.models[at].version += 1;
        }
        assert_eq!(self.insights[from].status, InsightStatus::Resolved);
        self.save(&[from, into]);
    }

    /// Changes the chunks as the store would, and reads the insights back.
    fn save(&mut self, changed: &[usize]) {
        for at in changed {
            let members = &self.insights[*at].members;
            for chunk in members.changed() {
                let ChunkReference { id, revision, .. } = chunk.reference;
                let before = self.chunks.insert(id, (revision, chunk.pack()));
                assert_eq!(revision, before.map_or(0, |(revision, _)| revision) + 1);
            }
            for id in members.removed() {
                assert!(self.chunks.remove(&id).is_some(), "a removed chunk was stored");
            }
        }
        for at in changed {
            let insight = &mut self.insights[*at];
            let packed = ChunkReference::pack_all(insight.members.references());
            let chunks = ChunkReference::unpack_all(&packed).unwrap().into_iter().map(|wanted| {
                let (revision, packed) = &self.chunks[&wanted.id];
                assert_eq!(*revision, wanted.revision);
                Chunk::unpack(wanted, packed).unwrap()
            });
            let read = Membership::read(chunks.collect());
            let ids = |members: &Membership| -> Vec<_> { members.iter().copied().collect() };
            assert_eq!(ids(&read), ids(&insight.members));
            insight.members = read;
            insight.stored_version = insight.version;
        }
    }

    fn check(&self) {
        let now = Timestamp::from_millis(NOW);
        let mut owners = BTreeMap::new();
        let mut chunks = BTreeSet::new();
        for (at, (insight, model)) in self.insights.iter().zip(&self.models).enumerate() {
            for member in insight.members.iter() {
                assert_eq!(owners.insert(member.id, at), None, "{} is in two insights", member.id);
                assert_eq!(*member, Member::from(&model.members[&member.id]));
            }
            assert_eq!(insight.members.len(), model.members.len());
            assert_eq!(insight.version, model.version);
            let into = model.merged_into.map(|into| self.insights[into].id);
            assert_eq!(insight.status.merged_into(), into);
            assert_eq!(insight.latest, model.latest().map(Latest::from));
            assert_eq!(insight.unknown_latest(), None);
            check_packing(&insight.members);
            check_statistics(&insight.at(now), &model.members);
            chunks.extend(insight.members.references().map(|reference| reference.id));
        }
        // No chunk is orphaned or in two insights.
        assert_eq!(chunks.len(), self.insights.iter().map(chunk_count).sum::<usize>());
        assert!(chunks.iter().eq(self.chunks.keys()));
    }

    fn occurrences(&self) -> u32 {
        let now = Timestamp::from_millis(NOW);
        self.insights.iter().map(|insight| insight.at(now).occurrences).sum()
    }
}

fn chunk_count(insight: &Insight) -> usize {
    insight.members.references().count()
}

fn check_packing(members: &Membership) {
    let count = members.references().count();
    let most = members.len() / (CHUNK_MEMBERS / 2) + 1;
    assert!(count <= most, "{count} chunks: all but one are at least half alive");
}

/// Counts from scratch, by names instead of hashes.
fn check_statistics(insight: &ReplayInsight<'_>, members: &BTreeMap<PainPointId, PainPoint>) {
    let age = |point: &&PainPoint| NOW - point.occurred_at.as_millis();
    let current = || members.values().filter(|point| age(point) <= 30 * DAY);
    let previous = members.values().filter(|p| (30 * DAY + 1..=60 * DAY).contains(&age(p)));
    let sessions: BTreeSet<_> = current().map(|point| &point.session_id).collect();
    let users: BTreeSet<_> = current().filter_map(|point| point.user_id.as_ref()).collect();
    let before: BTreeSet<_> = previous.map(|point| &point.session_id).collect();
    let shown = [
        insight.affected_sessions,
        insight.identified_users,
        insight.occurrences,
        insight.previous_affected_sessions,
    ];
    let counted = [sessions.len(), users.len(), current().count(), before.len()];
    assert_eq!(shown.map(|shown| usize::try_from(shown).unwrap()), counted);
    let times = || members.values().map(|point| point.occurred_at);
    assert_eq!((insight.first_seen, insight.last_seen), (times().min(), times().max()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_keep_pain_points_in_one_insight(
        first in some_moments(),
        steps in vec(step(), 1..14),
    ) {
        let mut world = World::default();
        world.create(&first);
        world.check();
        for step in &steps {
            let before = world.occurrences();
            world.apply(step);
            world.check();
            if matches!(step, Step::Split(..) | Step::Merge(..) | Step::Undo(_)) {
                prop_assert_eq!(world.occurrences(), before, "pain points only move");
            }
        }
    }

    #[test]
    fn undoing_a_merge_restores_both_insights(
        one in some_moments(),
        other in some_moments(),
        more in moments(1..400),
    ) {
        let mut world = World::default();
        world.create(&one);
        world.create(&other);
        let pain_points = world.pain_points(&more);
        world.add(0, &pain_points);
        let before = world.insights.clone();
        world.merge(0, 1);
        world.undo(0);
        world.check();
        let now = Timestamp::from_millis(NOW);
        for (insight, before) in world.insights.iter().zip(&before) {
            prop_assert_eq!(insight.version, before.version + 2);
            let restored = Insight { status: before.status, ..insight.clone() };
            prop_assert_eq!(restored.at(now), before.at(now));
            prop_assert_eq!(&restored.signatures, &before.signatures);
        }
        // Only once, and not after another change of the receiver.
        world.merge(0, 1);
        world.add(1, &world_pain_point());
        world.undo(0);
        prop_assert!(world.insights[0].status.merged_into().is_some());
    }

    #[test]
    fn merging_undoes_a_split(drawn in some_moments(), nth in 1..90_usize) {
        let mut world = World::default();
        world.create(&drawn);
        let before = (world.insights[0].clone(), world.models[0].members.clone());
        world.split(0, nth);
        prop_assume!(world.insights.len() == 2);
        let of_split = world.models[1].members.clone();
        world.check();
        world.merge(1, 0);
        world.check();
        let now = Timestamp::from_millis(NOW);
        prop_assert_eq!(&world.models[0].members, &before.1);
        prop_assert_eq!(world.insights[0].at(now), before.0.at(now));
        prop_assert!(of_split.keys().all(|id| before.1.contains_key(id)));
        prop_assert!(world.insights[1].members.is_empty());
    }
}

fn world_pain_point() -> Vec<PainPoint> {
    World { ids: u128::MAX / 2, ..World::default() }.pain_points(&[(0, None, 0)])
}

/// Returns an insight with these numbers of sessions in the current and previous period.
fn affecting(current: u32, before: u32) -> Insight {
    let pain_points: Vec<PainPoint> = (0..current + before)
        .map(|number| PainPoint {
            id: PainPointId::new(Uuid::from_u128(u128::from(number))),
            session_id: format!("s{number}"),
            user_id: None,
            occurred_at: Timestamp::from_millis(NOW - DAY * if number < current { 1 } else { 40 }),
            title: String::new(),
            excerpt: String::new(),
            evidence: None,
        })
        .collect();
    let project = shared::projects::project::ProjectId::new(Uuid::nil());
    let id = InsightId::new(Uuid::from_u128(1));
    let mut insight = Insight::new(id, project, "Checkout".to_owned(), String::new());
    insight.add(&pain_points.iter().collect::<Vec<_>>(), || Uuid::from_u128(2)).unwrap();
    insight
}

#[test]
fn open_insights_trend_with_twice_the_sessions() {
    let now = Timestamp::from_millis(NOW);
    let trends = |current, before| affecting(current, before).trending(now).is_some();
    for (current, before) in [(9, 1), (10, 5), (20, 10), (10, 0)] {
        assert!(!trends(current, before), "{current} after {before}");
    }
    for (current, before) in [(10, 4), (21, 10)] {
        assert!(trends(current, before), "{current} after {before}");
    }
    let event = affecting(10, 4).trending(now).unwrap();
    assert_eq!((event.detail.as_str(), event.weight), ("+150% in 30 days", 10));
    assert_eq!(event.instance, 20_778);
    for status in [InsightStatus::Resolved, InsightStatus::Ignored] {
        assert_eq!(Insight { status, ..affecting(10, 4) }.trending(now), None);
    }
}
