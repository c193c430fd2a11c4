//! The facts about a replay, and the pain points that follow from them.
//!
//! Segments and errors of a replay arrive in any order and repeatedly. Facts are a set, and the
//! wanted pain points a pure function of it. A replay also records which pain points insights
//! already have. The difference is made up in steps, each one transaction with this record.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use shared::timestamp::Timestamp;

use super::feedback::id_of;
use super::segment::SegmentClick;
use super::{Evidence, Malformed, PainKind, ReplayId, Segment};
use crate::signature::Signature;
use crate::{InsightId, PainPoint, PainPointId};

/// Longest time between a click and an error that follows from it, in milliseconds.
const ERROR_WITHIN_MILLIS: i64 = 1_000;
/// Time of the clicks that a verdict counts, in milliseconds.
const VERDICT_MILLIS: i64 = 7_000;
/// Most clicks of a replay that are kept. Verdicts on other clicks are kept too.
const MAX_CLICKS: usize = 2_000;
/// Most clicks with a verdict.
const MAX_VERDICTS: usize = 500;
/// Most errors of a replay that are kept.
const MAX_ERRORS: usize = 500;
/// Most pain points per step, so that a transaction can hold them.
const MAX_POINTS_PER_STEP: usize = 40;
/// Most bytes of packed facts, compressed. An item can have 400 kB.
const MAX_PACKED_BYTES: usize = 300_000;
/// Most bytes of unpacked facts.
const MAX_UNPACKED_BYTES: usize = 8 * 1024 * 1024;
const COMPRESSION_LEVEL: i32 = 3;

/// A click of a replay: its time by the clock of the browser, and the ID of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClickId {
    at: i64,
    node: i64,
}

/// A click with the data of its possible pain point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Click {
    verdict: Option<(PainKind, u64)>,
    occurred_at: i64,
    label: String,
    selector: String,
    /// Index of the circumstances in the replay.
    context: usize,
}

/// Data that clicks share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Context {
    route: Option<String>,
    user: Option<String>,
    browser: Option<String>,
    release: Option<String>,
}

/// An error of a replay.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClickError {
    /// Time of the error in milliseconds, by the clock of the browser.
    pub at: i64,
    /// The ID of the error.
    pub error_id: String,
}

/// New facts about a replay.
#[allow(missing_debug_implementations)] // Functions have none.
pub enum Facts<'f> {
    /// A segment, the browser, and the function that corrects its clock.
    Segment(&'f Segment, Option<&'f str>, &'f (dyn Fn(Timestamp) -> Timestamp + Sync)),
    /// An error.
    Error(ClickError),
}

/// A pain point that an insight has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    kind: PainKind,
    signature: Signature,
    error: Option<String>,
    /// The insight; `None` if the pain point never gets into one: a client uploaded its ID, or the
    /// project has too many new insights.
    insight: Option<String>,
}

/// The facts about a replay, and the pain points that insights have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    contexts: Vec<Context>,
    clicks: BTreeMap<ClickId, Click>,
    errors: BTreeSet<ClickError>,
    applied: BTreeMap<ClickId, Applied>,
    /// The version, incremented by each write; 0 if it is not stored.
    pub version: u64,
}

/// The stored form of a replay. JSON has no maps with such keys.
#[derive(Serialize, Deserialize)]
struct Packed {
    contexts: Vec<Context>,
    clicks: Vec<(ClickId, Click)>,
    errors: BTreeSet<ClickError>,
    applied: Vec<(ClickId, Applied)>,
}

/// A change of insights that brings them closer to the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Remove these pain points of a signature from the insight: later facts changed their kind.
    Withdraw(InsightId, Signature, Vec<ClickId>),
    /// Add these pain points of one signature to its insight.
    Add(Signature, Vec<(ClickId, PainPoint)>),
    /// Set or remove the errors of these pain points.
    Link(Vec<(ClickId, Option<String>)>),
}

impl Replay {
    /// Adds facts. Returns `true` if some are new.
    pub fn add(&mut self, facts: &Facts<'_>) -> bool {
        match facts {
            Facts::Error(error) => {
                self.errors.len() < MAX_ERRORS && self.errors.insert(error.clone())
            }
            Facts::Segment(segment, browser, clock) => {
                let mut is_changed = false;
                for click in &segment.clicks {
                    let context = Context {
                        route: click.route.clone(),
                        user: segment.context.user.clone(),
                        browser: browser.map(str::to_owned),
                        release: segment.context.release.clone(),
                    };
                    is_changed |= self.add_click(click, context, clock);
                }
                is_changed
            }
        }
    }

    fn add_click(
        &mut self,
        click: &SegmentClick,
        context: Context,
        clock: &(dyn Fn(Timestamp) -> Timestamp + Sync),
    ) -> bool {
        let id = ClickId { at: click.at, node: click.node };
        // The greater verdict wins, in any order.
        let known = self.clicks.get(&id).map(|known| known.verdict);
        if known.is_some_and(|known| known >= click.verdict) {
            return false;
        }
        let is_new_verdict = click.verdict.is_some() && !matches!(known, Some(Some(_)));
        let verdicts = || self.clicks.values().filter(|click| click.verdict.is_some()).count();
        let is_full = if is_new_verdict {
            verdicts() >= MAX_VERDICTS
        } else {
            known.is_none() && self.clicks.len() >= MAX_CLICKS
        };
        if is_full {
            return false;
        }
        let index = self.contexts.iter().position(|known| *known == context);
        let index = index.unwrap_or_else(|| {
            self.contexts.push(context);
            self.contexts.len() - 1
        });
        let known = self.clicks.get(&id).map(|known| known.occurred_at);
        let click = Click {
            verdict: click.verdict,
            occurred_at: known
                .unwrap_or_else(|| clock(Timestamp::from_millis(click.at)).as_millis()),
            label: click.label.clone(),
            selector: click.selector.clone(),
            context: index,
        };
        self.clicks.insert(id, click);
        true
    }

    /// Returns the wanted pain points: the kind and the error of each.
    fn wanted(&self) -> BTreeMap<ClickId, (PainKind, Option<&str>)> {
        let verdict_of = |(id, click): (&ClickId, &Click)| Some((*id, click.verdict?.0));
        let mut wanted: BTreeMap<_, _> = self
            .clicks
            .iter()
            .filter_map(verdict_of)
            .map(|(id, kind)| (id, (kind, None)))
            .collect();
        for error in &self.errors {
            let first =
                ClickId { at: error.at.saturating_sub(ERROR_WITHIN_MILLIS), node: i64::MIN };
            let last = ClickId { at: error.at, node: i64::MAX };
            let Some((id, _)) = self.clicks.range(first..=last).next_back() else { continue };
            let judged = self.judged_by(*id);
            let (_, known) = wanted.entry(judged).or_insert((PainKind::ErrorClick, None));
            known.get_or_insert(error.error_id.as_str());
        }
        wanted
    }

    /// Returns the click whose verdict counts this click, or else this click.
    fn judged_by(&self, id: ClickId) -> ClickId {
        let first = ClickId { at: id.at.saturating_sub(VERDICT_MILLIS), node: i64::MIN };
        let is_own = self.clicks.get(&id).is_some_and(|click| click.verdict.is_some());
        let mut earlier = self.clicks.range(first..id);
        let judged =
            earlier.rfind(|(other, click)| other.node == id.node && click.verdict.is_some());
        judged.filter(|_| !is_own).map_or(id, |(other, _)| *other)
    }

    /// Returns the next step, or `None` if the insights agree with the facts.
    pub fn next_step(&self, replay: &ReplayId) -> Option<Step> {
        let wanted = self.wanted();
        self.next_withdrawal(&wanted)
            .or_else(|| self.next_addition(replay, &wanted))
            .or_else(|| self.next_links(&wanted))
    }

    fn next_withdrawal(
        &self,
        wanted: &BTreeMap<ClickId, (PainKind, Option<&str>)>,
    ) -> Option<Step> {
        let is_outdated = |id: &ClickId, applied: &Applied| {
            applied.insight.is_some()
                && wanted.get(id).is_none_or(|(kind, _)| *kind != applied.kind)
        };
        let mut outdated = self.applied.iter().filter(|(id, applied)| is_outdated(id, applied));
        let (first, applied) = outdated.next()?;
        let insight = applied.insight.as_deref().and_then(InsightId::parse)?;
        let same = outdated.filter(|(_, other)| {
            (&other.insight, other.signature) == (&applied.insight, applied.signature)
        });
        let ids = std::iter::once(*first).chain(same.map(|(id, _)| *id));
        Some(Step::Withdraw(insight, applied.signature, ids.take(MAX_POINTS_PER_STEP).collect()))
    }

    fn next_addition(
        &self,
        replay: &ReplayId,
        wanted: &BTreeMap<ClickId, (PainKind, Option<&str>)>,
    ) -> Option<Step> {
        let missing = wanted.iter().filter(|(id, _)| !self.applied.contains_key(id));
        let mut missing = missing.filter_map(|(id, (kind, error))| {
            let point = self.pain_point(replay, *id, *kind, *error)?;
            let signature = point.evidence.as_ref()?.signature();
            Some((signature, (*id, point)))
        });
        let (signature, first) = missing.next()?;
        let same = missing.filter(|(other, _)| *other == signature).map(|(_, point)| point);
        let points = std::iter::once(first).chain(same).take(MAX_POINTS_PER_STEP);
        Some(Step::Add(signature, points.collect()))
    }

    fn next_links(&self, wanted: &BTreeMap<ClickId, (PainKind, Option<&str>)>) -> Option<Step> {
        let links = self.applied.iter().filter_map(|(id, applied)| {
            applied.insight.as_ref()?;
            let (_, error) = wanted.get(id)?;
            let is_new = applied.error.as_deref() != *error;
            is_new.then(|| (*id, error.map(str::to_owned)))
        });
        let links = links.take(MAX_POINTS_PER_STEP);
        Some(links.collect::<Vec<_>>()).filter(|links| !links.is_empty()).map(Step::Link)
    }

    /// Returns the ID of a click's pain point. All kinds have the same, so that a click is at most
    /// one pain point.
    pub fn pain_point_id(replay: &ReplayId, id: ClickId) -> PainPointId {
        let (at, node) = (id.at.to_string(), id.node.to_string());
        PainPointId::new(id_of(&["click", replay.as_str(), &at, &node]))
    }

    fn pain_point(
        &self,
        replay: &ReplayId,
        id: ClickId,
        kind: PainKind,
        error: Option<&str>,
    ) -> Option<PainPoint> {
        let click = self.clicks.get(&id)?;
        let context = self.contexts.get(click.context)?;
        let (selector, clicks) = (&click.selector, click.verdict.map_or(1, |(_, clicks)| clicks));
        let excerpt = match kind {
            PainKind::RageClick => format!("{clicks} clicks within 7 s on {selector}"),
            PainKind::DeadClick => format!("No reaction within 7 s after a click on {selector}"),
            _ => format!("Error within 1 s after a click on {selector}"),
        };
        let evidence = Evidence {
            kind,
            route: context.route.clone(),
            selector: Some(click.selector.clone()),
            element: Some(click.label.clone()),
            browser: context.browser.clone(),
            release: context.release.clone(),
            error_id: error.map(str::to_owned),
        };
        Some(PainPoint {
            id: Self::pain_point_id(replay, id),
            session_id: replay.as_str().to_owned(),
            user_id: context.user.clone(),
            occurred_at: Timestamp::from_millis(click.occurred_at),
            title: evidence.title(),
            excerpt,
            evidence: Some(evidence),
        })
    }

    /// Records that insights have these pain points; without an insight that they never will.
    pub fn note_added(&mut self, points: &[(ClickId, PainPoint)], insight: Option<InsightId>) {
        for (id, point) in points {
            let Some(evidence) = &point.evidence else { continue };
            let applied = Applied {
                kind: evidence.kind,
                signature: evidence.signature(),
                error: evidence.error_id.clone(),
                insight: insight.map(|insight| insight.to_string()),
            };
            self.applied.insert(*id, applied);
        }
    }

    /// Records that no insight has these pain points.
    pub fn note_withdrawn(&mut self, ids: &[ClickId]) {
        for id in ids {
            self.applied.remove(id);
        }
    }

    /// Records the errors of pain points.
    pub fn note_linked(&mut self, links: &[(ClickId, Option<String>)]) {
        for (id, error) in links {
            if let Some(applied) = self.applied.get_mut(id) {
                applied.error.clone_from(error);
            }
        }
    }

    /// Packs the replay for its item.
    ///
    /// # Errors
    /// [`Malformed`] if it is too large. The SDK sends far less within an hour.
    pub fn pack(&self) -> Result<Vec<u8>, Malformed> {
        let packed = Packed {
            contexts: self.contexts.clone(),
            clicks: self.clicks.iter().map(|(id, click)| (*id, click.clone())).collect(),
            errors: self.errors.clone(),
            applied: self.applied.iter().map(|(id, it)| (*id, it.clone())).collect(),
        };
        let text = serde_json::to_vec(&packed).map_err(|_| Malformed)?;
        let packed = zstd::bulk::compress(&text, COMPRESSION_LEVEL).map_err(|_| Malformed)?;
        let fits = text.len() <= MAX_UNPACKED_BYTES && packed.len() <= MAX_PACKED_BYTES;
        if fits { Ok(packed) } else { Err(Malformed) }
    }

    /// Unpacks the output of [`Self::pack`].
    pub fn unpack(packed: &[u8], version: u64) -> Option<Self> {
        let text = zstd::bulk::decompress(packed, MAX_UNPACKED_BYTES).ok()?;
        let packed: Packed = serde_json::from_slice(&text).ok()?;
        Some(Self {
            contexts: packed.contexts,
            clicks: packed.clicks.into_iter().collect(),
            errors: packed.errors,
            applied: packed.applied.into_iter().collect(),
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::recordings::SegmentContext;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn replay_id() -> ReplayId {
        ReplayId::parse("ac012cadf588491bb76da90129e33c41").unwrap()
    }

    fn click(at: i64, node: i64, verdict: Option<PainKind>) -> SegmentClick {
        SegmentClick {
            at,
            node,
            verdict: verdict.map(|kind| (kind, 5)),
            label: format!("node {node}"),
            selector: format!("a#n{node}"),
            route: Some("/".to_owned()),
        }
    }

    fn add(replay: &mut Replay, clicks: &[SegmentClick], errors: &[i64]) {
        let context = SegmentContext::default();
        let segment = Segment { replay: replay_id(), context, clicks: clicks.to_vec() };
        replay.add(&Facts::Segment(&segment, Some("Chrome"), &|at| at));
        for at in errors {
            replay.add(&Facts::Error(ClickError { at: *at, error_id: format!("e{at}") }));
        }
    }

    fn wanted(clicks: &[SegmentClick], errors: &[i64]) -> Vec<(i64, PainKind, Option<String>)> {
        let mut replay = Replay::default();
        add(&mut replay, clicks, errors);
        let wanted = replay.wanted();
        wanted.iter().map(|(id, (kind, e))| (id.at, *kind, e.map(str::to_owned))).collect()
    }

    /// Takes all steps in memory, and returns the pain points that insights then have.
    fn settle(replay: &mut Replay, points: &mut BTreeMap<PainPointId, PainPoint>) {
        while let Some(step) = replay.next_step(&replay_id()) {
            match step {
                Step::Withdraw(_, _, ids) => {
                    for id in &ids {
                        points.remove(&Replay::pain_point_id(&replay_id(), *id)).unwrap();
                    }
                    replay.note_withdrawn(&ids);
                }
                Step::Add(_, added) => {
                    replay.note_added(&added, Some(InsightId::new(Uuid::max())));
                    for (_, point) in added {
                        assert_eq!(points.insert(point.id, point), None);
                    }
                }
                Step::Link(links) => {
                    for (id, error) in &links {
                        let point = points.get_mut(&Replay::pain_point_id(&replay_id(), *id));
                        point.unwrap().evidence.as_mut().unwrap().error_id.clone_from(error);
                    }
                    replay.note_linked(&links);
                }
            }
        }
    }

    #[test]
    fn verdicts_are_pain_points_and_rage_wins() {
        use PainKind::{DeadClick, RageClick};
        let clicks = [
            click(1, 1, None),
            click(2, 1, Some(DeadClick)),
            click(3, 1, Some(DeadClick)),
            click(3, 1, Some(RageClick)),
            click(3, 1, None),
        ];
        assert_eq!(wanted(&clicks, &[]), [(2, DeadClick, None), (3, RageClick, None)]);
    }

    #[test]
    fn errors_within_a_second_after_a_click_count() {
        use PainKind::ErrorClick;
        let clicks = [click(10_000, 1, None)];
        for (error, is_counted) in [(9_999, false), (10_000, true), (11_000, true), (11_001, false)]
        {
            let found = wanted(&clicks, &[error]);
            let expected = (10_000, ErrorClick, Some(format!("e{error}")));
            assert_eq!(found, is_counted.then_some(expected).as_slice(), "{error}");
        }
        // The first error counts, for the last click before it.
        let clicks = [click(10_000, 1, None), click(10_500, 2, None)];
        let expected = (10_500, ErrorClick, Some("e10600".to_owned()));
        assert_eq!(wanted(&clicks, &[10_700, 10_600]), [expected]);
    }

    #[test]
    fn errors_are_evidence_of_clicks_with_a_verdict() {
        use PainKind::{DeadClick, ErrorClick};
        let dead = click(10_000, 1, Some(DeadClick));
        let expected = (10_000, DeadClick, Some("e10100".to_owned()));
        assert_eq!(wanted(slice::from_ref(&dead), &[10_100]), slice::from_ref(&expected));
        // The verdict also counts later clicks on the element.
        let clicks = [dead.clone(), click(10_050, 1, None)];
        assert_eq!(wanted(&clicks, &[10_100]), [expected]);
        let clicks = [dead, click(17_001, 1, None)];
        let found = wanted(&clicks, &[17_001]);
        assert_eq!(found[1], (17_001, ErrorClick, Some("e17001".to_owned())));
    }

    #[test]
    fn verdicts_after_an_error_change_the_kind() {
        let mut points = BTreeMap::new();
        let mut replay = Replay::default();
        add(&mut replay, &[click(1_000, 1, None)], &[1_010]);
        settle(&mut replay, &mut points);
        let titles = |points: &BTreeMap<_, PainPoint>| -> Vec<String> {
            points.values().map(|point| point.title.clone()).collect()
        };
        assert_eq!(titles(&points), ["Errors after clicks on “node 1” at /"]);
        add(&mut replay, &[click(1_000, 1, Some(PainKind::DeadClick))], &[]);
        settle(&mut replay, &mut points);
        assert_eq!(titles(&points), ["Dead clicks on “node 1” at /"]);
        let evidence = points.values().next().unwrap().evidence.clone().unwrap();
        assert_eq!(evidence.error_id.as_deref(), Some("e1010"));
    }

    #[test]
    fn replays_have_limits() {
        let mut replay = Replay::default();
        let clicks: Vec<_> = (0..2_100).map(|at| click(at, 1, None)).collect();
        add(&mut replay, &clicks, &(0..600).collect::<Vec<_>>());
        assert_eq!((replay.clicks.len(), replay.errors.len()), (MAX_CLICKS, MAX_ERRORS));
        let verdicts: Vec<_> =
            (5_000..5_600).map(|at| click(at, 2, Some(PainKind::DeadClick))).collect();
        add(&mut replay, &verdicts, &[]);
        assert_eq!(replay.clicks.len(), MAX_CLICKS + MAX_VERDICTS);
        let packed = replay.pack().unwrap();
        assert!(packed.len() < 60_000, "{}", packed.len());
        assert_eq!(Replay::unpack(&packed, 3), Some(Replay { version: 3, ..replay }));
        assert_eq!(Replay::unpack(b"x", 1), None);
    }

    fn any_click() -> impl Strategy<Value = SegmentClick> {
        let kinds = [None, None, Some(PainKind::DeadClick), Some(PainKind::RageClick)];
        (0..9_000_i64, 0..3_i64, prop::sample::select(kinds.to_vec()))
            .prop_map(|(at, node, verdict)| click(at / 300 * 300, node, verdict))
    }

    proptest! {
        #[test]
        fn pain_points_do_not_depend_on_the_order(
            segments in prop::collection::vec(prop::collection::vec(any_click(), 0..6), 0..6),
            errors in prop::collection::vec(0..9_000_i64, 0..6),
            order in any::<prop::sample::Index>(),
        ) {
            let mut once = (Replay::default(), BTreeMap::new());
            for segment in &segments {
                add(&mut once.0, segment, &[]);
            }
            add(&mut once.0, &[], &errors);
            settle(&mut once.0, &mut once.1);

            let mut shuffled = (Replay::default(), BTreeMap::new());
            let start = if segments.is_empty() { 0 } else { order.index(segments.len()) };
            for error in errors.iter().rev() {
                add(&mut shuffled.0, &[], &[*error]);
                settle(&mut shuffled.0, &mut shuffled.1);
            }
            for turn in 0..2 * segments.len() {
                add(&mut shuffled.0, &segments[(start + turn) % segments.len()], &[]);
                settle(&mut shuffled.0, &mut shuffled.1);
            }
            prop_assert_eq!(once.1, shuffled.1);
        }
    }
}
