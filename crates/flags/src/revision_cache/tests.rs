use uuid::Uuid;

use super::*;

const BOUNDS: CacheLimits =
    CacheLimits { entries: NonZeroUsize::new(5).unwrap(), bytes: 1_000, bytes_of_project: 300 };

type Cache = RevisionCache<u32, ()>;

fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

/// Remembers something of so many bytes, as after a reading.
fn remember(cache: &Cache, of: u128, what: u32, bytes: usize) {
    let as_of = Timestamp::from_millis(0);
    let reading = CachedRead {
        value: Arc::new(()),
        bytes,
        state: FlagSetRevision(Some(1)),
        is_settled: true,
        is_absent: false,
        as_of,
    };
    *lock(&cache.slot(project(of), &what).last) = Some(reading);
    cache.forget_beyond_bounds(project(of), &what);
}

/// What is remembered, sorted.
fn remembered(cache: &Cache) -> Vec<(u128, u32)> {
    let slots = lock(&cache.slots);
    let number =
        |project: &ProjectId| (1..10).find(|number| self::project(*number) == *project).unwrap();
    let mut all: Vec<_> = slots.iter().map(|((of, what), _)| (number(of), *what)).collect();
    all.sort_unstable();
    all
}

#[test]
fn what_is_remembered_is_bounded_in_number() {
    let cache = Cache::new(BOUNDS);
    (1..=7).for_each(|of| remember(&cache, of, 0, 1));
    assert_eq!(remembered(&cache), [(3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]);
}

#[test]
fn what_is_remembered_is_bounded_in_bytes_of_a_project_and_of_all() {
    let cache = Cache::new(BOUNDS);
    remember(&cache, 1, 0, 100);
    for what in 0..3 {
        remember(&cache, 2, what, 150);
    }
    assert_eq!(remembered(&cache), [(1, 0), (2, 1), (2, 2)], "no project takes from another");
    remember(&cache, 3, 0, 800);
    assert_eq!(remembered(&cache), [(2, 2), (3, 0)]);
    remember(&cache, 4, 0, 2_000);
    assert_eq!(remembered(&cache), [(4, 0)], "the latest stays, whatever its size");
}

#[test]
fn whoever_asks_for_what_is_gets_it_as_of_the_last_second() {
    let states = States::default();
    let at = Timestamp::from_millis;
    let asked = |now| states.asked(project(1), Freshness::Current, at(now));
    assert!(asked(0).must_be_read, "nothing is known");
    states.note(project(1), FlagSetRevision(Some(1)), at(0));
    for (now, must_be_read, wanted) in
        [(100, true, 100), (1_099, false, 100), (1_100, true, 1_100), (1_000, true, 1_000)]
    {
        let asked = asked(now);
        assert_eq!((asked.must_be_read, asked.wanted), (must_be_read, at(wanted)), "at {now}");
    }
    let cached = states.asked(project(1), Freshness::Cached, at(10_000));
    assert_eq!((cached.must_be_read, cached.wanted), (false, at(5_001)));
}

#[test]
fn a_state_is_known_since_it_was_first_seen() {
    let states = States::default();
    let at = Timestamp::from_millis;
    for (state, now, since) in [(1, 10, 10), (1, 20, 10), (2, 30, 30), (2, 40, 30)] {
        let known = states.note(project(1), FlagSetRevision(Some(state)), at(now));
        assert_eq!((known.since, known.at), (at(since), at(now)));
    }
    for now in [50, 60] {
        let unreadable = states.note(project(1), FlagSetRevision(None), at(now));
        assert_eq!(unreadable.since, at(now), "no two of them are the same");
    }
}

#[test]
fn that_something_is_not_there_is_asked_each_time_and_serves_nobody_else() {
    let at = Timestamp::from_millis;
    let reading = |is_absent| CachedRead {
        value: Arc::new(()),
        bytes: 0,
        state: FlagSetRevision(Some(1)),
        is_settled: true,
        is_absent,
        as_of: at(10_000),
    };
    let is_met = |is_absent, now| {
        let reading = reading(is_absent);
        let asked = States::default().asked(project(1), Freshness::Cached, at(now));
        asked.beside(Some(&reading)).is_met_by(&reading)
    };
    for (now, of_absent, of_other) in
        [(10_000, false, true), (14_999, false, true), (15_000, false, false)]
    {
        assert_eq!((is_met(true, now), is_met(false, now)), (of_absent, of_other), "at {now}");
    }
    assert!(reading(false).serves_at(at(10_000)) && !reading(true).serves_at(at(10_000)));
}

#[test]
fn a_reading_of_which_something_came_is_not_begun_anew() {
    let at = Timestamp::from_millis;
    let begun = |count| PendingRead::<()> {
        began: at(1_000),
        count_before: 5,
        count,
        silent_since: at(1_000),
        reading: Box::pin(std::future::pending()),
    };
    let asked = |now, must_be_read| FreshnessRequirement {
        project: project(1),
        wanted: at(now),
        must_be_read,
        now: at(now),
    };
    assert!(!begun(5).is_of_no_use(asked(2_000, false)));
    assert!(begun(5).is_of_no_use(asked(2_000, true)), "nothing came: nothing is lost");
    assert!(!begun(6).is_of_no_use(asked(2_000, true)));
    assert!(begun(6).is_of_no_use(asked(999, false)), "the clock was set back");
    assert!(begun(6).is_of_no_use(asked(31_000, false)), "nothing came for half a minute");
    let mut going_on = begun(6);
    going_on.look(7, at(30_000));
    going_on.look(7, at(40_000));
    assert!(!going_on.is_of_no_use(asked(59_999, false)));
    assert!(going_on.is_of_no_use(asked(60_000, false)));
}

#[tokio::test]
async fn a_reading_is_waited_for_while_something_comes_of_it() {
    let progress = Progress::default();
    let patience = Duration::from_millis(200);
    let coming = |times: usize| {
        let progress = progress.clone();
        async move {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_millis(40)).await;
                progress.note();
            }
            Ok(Arc::new(()))
        }
    };
    let waited = wait_while_it_comes(coming(15), &progress, patience).await;
    assert!(matches!(waited, WaitOutcome::Read(Ok(_))), "it took longer than the patience");
    let began = Instant::now();
    let waited =
        wait_while_it_comes(std::future::pending::<Result<Arc<()>, _>>(), &progress, patience)
            .await;
    assert!(matches!(waited, WaitOutcome::InSilence) && began.elapsed() < Duration::from_secs(1));
    let waited = wait_while_it_comes(coming(1_000), &progress, patience).await;
    assert!(matches!(waited, WaitOutcome::TooLong));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_pause_is_one_of_a_project() {
    let states = States::default();
    let now = Timestamp::from_millis(0);
    states.pause(project(1)).begin(now);
    assert!(
        states.pause(project(1)).is_cooling_down(now)
            && !states.pause(project(2)).is_cooling_down(now)
    );
}
