//! Session recordings: for any bytes, derived pain points are within the limits of uploads, and do
//! not depend on the order of segments and errors.

use std::collections::BTreeMap;

use insights::recordings::{
    ClickError, Facts, Feedback, Replay, ReplayId, Segment, Step, each_event,
};
use insights::{InsightId, PainPoint, PainPointId};
use shared::timestamp::Timestamp;

/// Reads a replay event, up to the first newline, and a recording; also as feedback.
pub(crate) fn recordings(bytes: &[u8]) {
    for feedback in
        [Feedback::read(bytes, Some("x")), Feedback::read_report(bytes)].into_iter().flatten()
    {
        check(&feedback.into_pain_point(None, Timestamp::from_millis(0)));
    }
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (event, recording) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut length = 0;
    if each_event(recording, |event| length += event.len()).is_ok() {
        assert!(length < recording.len(), "events overlap");
    }
    let segment = Segment::read(event, recording);
    assert_eq!(segment, Segment::read(event, recording), "reading is not deterministic");
    let Ok(segment) = segment else { return };
    let id = &segment.replay;

    // An error after some click, which bytes of the event select.
    let probe = i64::try_from(event.len() % 2_000).unwrap_or_default();
    let mut once = (Replay::default(), BTreeMap::new());
    let clicks = segment.clone().into_facts(Some("Chrome"), |at| at);
    once.0.add(&clicks);
    let first = once.0.next_step(id);
    let at = match &first {
        Some(Step::Add(_, points)) => points[0].1.occurred_at.as_millis().saturating_add(probe),
        _ => probe,
    };
    let errors = vec![ClickError { at, error_id: "e".to_owned() }];
    let error = Facts { errors, ..Facts::default() };
    once.0.add(&error);
    settle(id, &mut once);
    let mut turned = (Replay::default(), BTreeMap::new());
    turned.0.add(&error);
    settle(id, &mut turned);
    turned.0.add(&clicks);
    settle(id, &mut turned);
    assert!(!turned.0.add(&error), "a repeated fact is new");
    assert_eq!(once.1, turned.1, "the order matters");
    once.1.values().for_each(check);
    assert_eq!(Replay::unpack(&turned.0.pack().unwrap(), 0), Some(turned.0));
}

/// Takes all steps in memory.
fn settle(id: &ReplayId, (replay, points): &mut (Replay, BTreeMap<PainPointId, PainPoint>)) {
    while let Some(step) = replay.next_step(id) {
        match step {
            Step::Withdraw(_, _, ids) => {
                for click in &ids {
                    assert!(points.remove(&Replay::pain_point_id(id, *click)).is_some());
                }
                replay.note_withdrawn(&ids);
            }
            Step::Add(signature, added) => {
                let insight = InsightId::parse("ffffffff-ffff-ffff-ffff-ffffffffffff").unwrap();
                replay.note_added(&added, Some(insight));
                for (_, point) in added {
                    let evidence = point.evidence.as_ref().unwrap();
                    assert_eq!(evidence.signature(), signature);
                    assert!(points.insert(point.id, point).is_none(), "a click counts twice");
                }
            }
            Step::Link(links) => {
                for (click, error) in &links {
                    let point = points.get_mut(&Replay::pain_point_id(id, *click)).unwrap();
                    point.evidence.as_mut().unwrap().error_id.clone_from(error);
                }
                replay.note_linked(&links);
            }
        }
    }
}

/// Checks the limits that uploads have.
fn check(point: &PainPoint) {
    assert!(point.evidence.is_some());
    let title = point.title.chars().count();
    assert!((1..=200).contains(&title), "{title} characters in a title");
    assert!(!point.title.contains(char::is_control), "{:?}", point.title);
    assert!(point.excerpt.chars().count() <= 2_000);
    for text in [Some(&point.session_id), point.user_id.as_ref()].into_iter().flatten() {
        assert!((1..=200).contains(&text.chars().count()));
        assert!(!text.contains('\0'));
    }
    assert!(!point.excerpt.contains('\0'));
}
