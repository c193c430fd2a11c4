//! Hours with more than a segment holds: they cost nobody else a count.

use std::time::Duration;

use serde_json::json;
use shared::error_tracking::log::day::{Day, Hours};
use shared::error_tracking::store::PackingLimits;
use tests::app::PROJECT;
use tests::error_tracking::SentEvent;

use super::{DAY, HOUR, Tracker};

/// A tracker with an event in each hour of a day two days ago, and that day.
async fn with_a_day() -> (Tracker, Day) {
    let tracker = Tracker::start().await;
    let day = Day::of(tracker.ago(2 * DAY));
    let at = |hour: u32| day.start().plus(HOUR * hour);
    let events: Vec<SentEvent> =
        (0..24).map(|hour| SentEvent::new(hour.into(), at(hour), "TypeError", "x")).collect();
    tracker.deliver_all(&events).await;
    (tracker, day)
}

/// Delivers so many more events of an hour.
async fn deliver_of_hour(tracker: &Tracker, day: Day, hour: u8, ids: std::ops::Range<u64>) {
    let at = day.start().plus(HOUR * u32::from(hour));
    let events: Vec<SentEvent> = ids
        .map(|id| SentEvent::new(id, at.plus(Duration::from_secs(id)), "TypeError", "x"))
        .collect();
    tracker.deliver_all(&events).await;
}

fn up_to(rows: usize) -> PackingLimits {
    PackingLimits { rows, ..PackingLimits::SCHEDULED }
}

fn hour(hour: u8) -> Hours {
    Hours::between(hour, hour + 1)
}

#[tokio::test]
async fn an_hour_with_more_than_a_segment_holds_stays_in_rows_and_the_others_are_packed() {
    let (tracker, day) = with_a_day().await;
    deliver_of_hour(&tracker, day, 5, 100..120).await;
    let state = tracker.pack_within(&up_to(10), day).await;
    assert_eq!((state.set_aside, state.packed()), (hour(5), Hours::ALL.without(hour(5))));
    assert!(state.is_complete() && !tracker.queue().await.contains(&day));
    assert_eq!(tracker.total(&json!({})).await, 44);
    // Later events of that hour are rows as well, and of others they are packed.
    deliver_of_hour(&tracker, day, 5, 120..123).await;
    deliver_of_hour(&tracker, day, 6, 123..125).await;
    let state = tracker.pack_within(&up_to(10), day).await;
    assert_eq!((state.set_aside, state.dirty()), (hour(5), Hours::NONE));
    assert_eq!(tracker.total(&json!({})).await, 49);
}

#[tokio::test]
async fn bytes_are_bounded_as_events_are() {
    let (tracker, day) = with_a_day().await;
    let state = tracker.pack_within(&up_to(usize::MAX), day).await;
    let [whole] = state.segments.as_slice() else { panic!("{:?}", state.segments) };

    let (tracker, day) = with_a_day().await;
    let bytes = usize::try_from(whole.bytes).unwrap() - 1;
    let state = tracker.pack_within(&PackingLimits { bytes, ..up_to(usize::MAX) }, day).await;
    assert!(state.segments.len() > 1 && state.is_complete());
    assert_eq!(state.set_aside, Hours::NONE);
    assert_eq!(tracker.total(&json!({})).await, 24);
    let (tracker, day) = with_a_day().await;
    let state = tracker.pack_within(&PackingLimits { bytes: 1, ..up_to(usize::MAX) }, day).await;
    assert_eq!((state.set_aside, state.segments.len()), (Hours::ALL, 0));
    assert_eq!(tracker.total(&json!({})).await, 24);
}

#[tokio::test]
async fn late_events_that_a_segment_has_no_room_for_take_their_hour_out_of_it() {
    let (tracker, day) = with_a_day().await;
    let state = tracker.pack_within(&up_to(30), day).await;
    assert_eq!(state.segments.len(), 1);
    deliver_of_hour(&tracker, day, 5, 100..110).await;
    let state = tracker.pack_within(&up_to(30), day).await;
    let hours: Vec<Hours> = state.segments.iter().map(|segment| segment.hours).collect();
    assert_eq!(hours, [Hours::ALL.without(hour(5)), hour(5)]);
    assert_eq!((state.set_aside, state.dirty()), (Hours::NONE, Hours::NONE));
    assert_eq!(tracker.total(&json!({})).await, 34);
    // In the end the hour alone is too large.
    deliver_of_hour(&tracker, day, 5, 110..135).await;
    let state = tracker.pack_within(&up_to(30), day).await;
    assert_eq!((state.set_aside, state.packed()), (hour(5), Hours::ALL.without(hour(5))));
    assert_eq!(tracker.total(&json!({})).await, 59);
}

#[tokio::test]
async fn who_does_not_set_aside_leaves_what_is_too_large_to_others() {
    let (tracker, day) = with_a_day().await;
    let limits = PackingLimits { sets_aside: false, ..up_to(10) };
    deliver_of_hour(&tracker, day, 5, 100..120).await;
    let state = tracker.pack_within(&limits, day).await;
    assert_eq!((state.set_aside, state.packed().contains(5)), (Hours::NONE, false));
    assert!(tracker.queue().await.contains(&day));
    assert_eq!(tracker.total(&json!({})).await, 44);
}

#[tokio::test]
async fn an_hour_whose_rows_have_expired_keeps_what_is_packed_of_it() {
    let (tracker, day) = with_a_day().await;
    tracker.pack(day).await;
    tracker.test.pass(20 * DAY);
    deliver_of_hour(&tracker, day, 5, 100..101).await;
    // No packer runs until the rows of the hour are gone, but for the late one.
    tracker.test.pass(80 * DAY);
    let state = tracker.pack(day).await;
    assert_eq!((state.dirty(), state.packed()), (Hours::NONE, Hours::ALL));
    let range = json!({"projectIds": [PROJECT], "from": day.start().as_millis()});
    let counted: u64 = tracker.filled(&range).await.iter().map(|(_, events, _)| events).sum();
    assert_eq!(counted, 24);
}
