//! The facts about a replay, and the pain points that follow from them.
//!
//! Segments and errors of a replay arrive in any order and repeatedly. Facts are a set, and the
//! wanted pain points a pure function of it. A replay also records which pain points insights
//! already have. The difference is made up in steps, each one transaction with this record.

use std::collections::{BTreeMap, BTreeSet};
use std::{io, iter};

use serde::{Deserialize, Serialize};

use shared::timestamp::Timestamp;

use super::feedback::id_of;
use super::{Evidence, PainKind, ReplayId};
use crate::packed::{pack, unpack};
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

/// A click of a replay: its time by the clock of the browser, and the ID of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClickId {
    pub(super) at: i64,
    pub(super) node: i64,
}

/// A click, or the SDK's verdict on a click, with the data of its possible pain point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Click {
    pub(super) id: ClickId,
    /// The verdict and the number of clicks.
    pub(super) verdict: Option<(PainKind, u64)>,
    pub(super) occurred_at: Timestamp,
    pub(super) label: String,
    pub(super) selector: String,
    pub(super) route: Option<String>,
    pub(super) user: Option<String>,
    pub(super) browser: Option<String>,
    pub(super) release: Option<String>,
    /// The pain point that an insight has.
    pub(super) applied: Option<Applied>,
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
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Clicks and verdicts of a segment.
    pub clicks: Vec<Click>,
    /// Errors.
    pub errors: Vec<ClickError>,
}

/// A pain point that an insight has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Applied {
    kind: PainKind,
    signature: Signature,
    error: Option<String>,
    /// The insight; `None` if the pain point never gets into one: a client uploaded its ID, or the
    /// project has too many new insights.
    insight: Option<InsightId>,
}

/// The facts about a replay, and the pain points that insights have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    clicks: BTreeMap<ClickId, Click>,
    errors: BTreeSet<ClickError>,
    /// The version, incremented by each write; 0 if it is not stored.
    pub version: u64,
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
    pub fn add(&mut self, facts: &Facts) -> bool {
        let mut is_changed = false;
        for error in &facts.errors {
            is_changed |= self.errors.len() < MAX_ERRORS && self.errors.insert(error.clone());
        }
        for click in &facts.clicks {
            is_changed |= self.add_click(click);
        }
        is_changed
    }

    fn add_click(&mut self, click: &Click) -> bool {
        let known = self.clicks.get(&click.id);
        // The greater verdict wins, in any order.
        if known.is_some_and(|known| known.verdict >= click.verdict) {
            return false;
        }
        let has_verdict = |click: &&Click| click.verdict.is_some();
        let is_full = if has_verdict(&click) && known.is_none_or(|known| known.verdict.is_none()) {
            self.clicks.values().filter(has_verdict).count() >= MAX_VERDICTS
        } else {
            known.is_none() && self.clicks.len() >= MAX_CLICKS
        };
        if is_full {
            return false;
        }
        let mut click = click.clone();
        if let Some(known) = known {
            (click.occurred_at, click.applied) = (known.occurred_at, known.applied.clone());
        }
        self.clicks.insert(click.id, click);
        true
    }

    /// Returns the wanted pain points: the kind and the error of each.
    fn wanted(&self) -> BTreeMap<ClickId, (PainKind, Option<&str>)> {
        let of_verdict = |click: &Click| Some((click.id, (click.verdict?.0, None)));
        let mut wanted: BTreeMap<_, _> = self.clicks.values().filter_map(of_verdict).collect();
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
        let (mut outdated, mut missing, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for (id, click) in &self.clicks {
            match (&click.applied, wanted.get(id)) {
                (None, Some((kind, error))) => {
                    let evidence = click.evidence(*kind, *error);
                    let signature = evidence.signature();
                    missing.push((signature, (*id, click.pain_point(replay, evidence))));
                }
                (Some(Applied { kind, signature, error, insight: Some(insight) }), wanted) => {
                    match wanted.filter(|(wanted, _)| wanted == kind) {
                        None => outdated.push(((*insight, *signature), *id)),
                        Some((_, wanted)) if error.as_deref() != *wanted => {
                            links.push((*id, wanted.map(str::to_owned)));
                        }
                        Some(_) => {}
                    }
                }
                (Some(Applied { insight: None, .. }) | None, _) => {}
            }
        }
        if let Some(((insight, signature), ids)) = first_group(outdated) {
            return Some(Step::Withdraw(insight, signature, ids));
        }
        if let Some((signature, points)) = first_group(missing) {
            return Some(Step::Add(signature, points));
        }
        links.truncate(MAX_POINTS_PER_STEP);
        (!links.is_empty()).then_some(Step::Link(links))
    }

    /// Returns the ID of a click's pain point. All kinds have the same, so that a click is at most
    /// one pain point.
    pub fn pain_point_id(replay: &ReplayId, id: ClickId) -> PainPointId {
        let (at, node) = (id.at.to_string(), id.node.to_string());
        PainPointId::new(id_of(&["click", replay.as_str(), &at, &node]))
    }

    /// Records that insights have these pain points; without an insight that they never will.
    pub fn note_added(&mut self, points: &[(ClickId, PainPoint)], insight: Option<InsightId>) {
        for (id, point) in points {
            let (Some(click), Some(evidence)) = (self.clicks.get_mut(id), &point.evidence) else {
                continue;
            };
            click.applied = Some(Applied {
                kind: evidence.kind,
                signature: evidence.signature(),
                error: evidence.error_id.clone(),
                insight,
            });
        }
    }

    /// Records that no insight has these pain points.
    pub fn note_withdrawn(&mut self, ids: &[ClickId]) {
        for id in ids {
            if let Some(click) = self.clicks.get_mut(id) {
                click.applied = None;
            }
        }
    }

    /// Records the errors of pain points.
    pub fn note_linked(&mut self, links: &[(ClickId, Option<String>)]) {
        for (id, error) in links {
            let applied = self.clicks.get_mut(id).and_then(|click| click.applied.as_mut());
            if let Some(applied) = applied {
                applied.error.clone_from(error);
            }
        }
    }

    /// Packs the replay for its item.
    ///
    /// # Errors
    /// If it has no JSON form.
    pub fn pack(&self) -> io::Result<Vec<u8>> {
        pack(&(self.clicks.values().collect::<Vec<_>>(), &self.errors))
    }

    /// Unpacks the output of [`Self::pack`].
    pub fn unpack(packed: &[u8], version: u64) -> Option<Self> {
        let (clicks, errors): (Vec<Click>, _) = unpack(packed)?;
        let clicks = clicks.into_iter().map(|click| (click.id, click)).collect();
        Some(Self { clicks, errors, version })
    }
}

impl Click {
    fn evidence(&self, kind: PainKind, error: Option<&str>) -> Evidence {
        Evidence {
            kind,
            route: self.route.clone(),
            selector: Some(self.selector.clone()),
            element: Some(self.label.clone()),
            browser: self.browser.clone(),
            release: self.release.clone(),
            error_id: error.map(str::to_owned),
        }
    }

    fn pain_point(&self, replay: &ReplayId, evidence: Evidence) -> PainPoint {
        let (selector, clicks) = (&self.selector, self.verdict.map_or(1, |(_, clicks)| clicks));
        let excerpt = match evidence.kind {
            PainKind::RageClick => format!("{clicks} clicks within 7 s on {selector}"),
            PainKind::DeadClick => format!("No reaction within 7 s after a click on {selector}"),
            _ => format!("Error within 1 s after a click on {selector}"),
        };
        PainPoint {
            id: Replay::pain_point_id(replay, self.id),
            session_id: replay.as_str().to_owned(),
            user_id: self.user.clone(),
            occurred_at: self.occurred_at,
            title: evidence.title(),
            excerpt,
            evidence: Some(evidence),
        }
    }
}

/// Returns the entries with the same key as the first, as many as a step can have.
fn first_group<K: PartialEq, T>(entries: Vec<(K, T)>) -> Option<(K, Vec<T>)> {
    let mut entries = entries.into_iter();
    let (key, first) = entries.next()?;
    let same = entries.filter(|(other, _)| *other == key).map(|(_, entry)| entry);
    let group = iter::once(first).chain(same).take(MAX_POINTS_PER_STEP).collect();
    Some((key, group))
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn replay_id() -> ReplayId {
        ReplayId::parse("ac012cadf588491bb76da90129e33c41").unwrap()
    }

    fn click(at: i64, node: i64, verdict: Option<PainKind>) -> Click {
        Click {
            id: ClickId { at, node },
            verdict: verdict.map(|kind| (kind, 5)),
            occurred_at: Timestamp::from_millis(at),
            label: format!("node {node}"),
            selector: format!("a#n{node}"),
            route: Some("/".to_owned()),
            user: None,
            browser: Some("Chrome".to_owned()),
            release: None,
            applied: None,
        }
    }

    fn add(replay: &mut Replay, clicks: &[Click], errors: &[i64]) {
        let error = |at: &i64| ClickError { at: *at, error_id: format!("e{at}") };
        let errors = errors.iter().map(error).collect();
        replay.add(&Facts { clicks: clicks.to_vec(), errors });
    }

    fn wanted(clicks: &[Click], errors: &[i64]) -> Vec<(i64, PainKind, Option<String>)> {
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

    fn any_click() -> impl Strategy<Value = Click> {
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
