use uuid::Uuid;

use super::*;

const LIMITS: CacheLimits =
    CacheLimits { entries: NonZeroUsize::new(5).unwrap(), bytes: 1_000, bytes_per_project: 300 };

type Cache = RevisionCache<u32, ()>;

fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number))
}

/// Inserts an entry with this size, as a read would.
fn insert(cache: &Cache, owner: u128, key: u32, bytes: usize) {
    let as_of = Timestamp::from_millis(0);
    let reading = CachedRead {
        value: Arc::new(()),
        bytes,
        revision: FlagSetRevision(Some(1)),
        is_settled: true,
        is_absent: false,
        as_of,
    };
    *lock(&cache.entry(project(owner), &key).last) = Some(reading);
    cache.evict_over_limits(project(owner), &key);
}

/// Returns all cached keys, sorted.
fn cached(cache: &Cache) -> Vec<(u128, u32)> {
    let entries = lock(&cache.entries);
    let number =
        |project: &ProjectId| (1..10).find(|number| self::project(*number) == *project).unwrap();
    let mut all: Vec<_> = entries.iter().map(|((owner, key), _)| (number(owner), *key)).collect();
    all.sort_unstable();
    all
}

#[test]
fn entries_are_limited_in_number() {
    let cache = Cache::new(LIMITS);
    (1..=7).for_each(|owner| insert(&cache, owner, 0, 1));
    assert_eq!(cached(&cache), [(3, 0), (4, 0), (5, 0), (6, 0), (7, 0)]);
}

#[test]
fn entries_are_limited_in_bytes() {
    let cache = Cache::new(LIMITS);
    insert(&cache, 1, 0, 100);
    for key in 0..3 {
        insert(&cache, 2, key, 150);
    }
    assert_eq!(
        cached(&cache),
        [(1, 0), (2, 1), (2, 2)],
        "projects do not evict each other's entries"
    );
    insert(&cache, 3, 0, 800);
    assert_eq!(cached(&cache), [(2, 2), (3, 0)]);
    insert(&cache, 4, 0, 2_000);
    assert_eq!(cached(&cache), [(4, 0)], "the newest entry stays at any size");
}

#[test]
fn current_requests_share_reads_within_a_second() {
    let revisions = Revisions::default();
    let at = Timestamp::from_millis;
    let requirement = |now| revisions.requirement(project(1), Freshness::Current, at(now));
    assert!(requirement(0).must_be_read, "no revision is known");
    revisions.record(project(1), FlagSetRevision(Some(1)), at(0));
    for (now, must_be_read, not_before) in
        [(100, true, 100), (1_099, false, 100), (1_100, true, 1_100), (1_000, true, 1_000)]
    {
        let requirement = requirement(now);
        assert_eq!(
            (requirement.must_be_read, requirement.not_before),
            (must_be_read, at(not_before)),
            "at {now}"
        );
    }
    let cached = revisions.requirement(project(1), Freshness::Cached, at(10_000));
    assert_eq!((cached.must_be_read, cached.not_before), (false, at(5_001)));
}

#[test]
fn revisions_keep_the_time_of_first_sight() {
    let revisions = Revisions::default();
    let at = Timestamp::from_millis;
    for (revision, now, since) in [(1, 10, 10), (1, 20, 10), (2, 30, 30), (2, 40, 30)] {
        let known = revisions.record(project(1), FlagSetRevision(Some(revision)), at(now));
        assert_eq!((known.since, known.at), (at(since), at(now)));
    }
    for now in [50, 60] {
        let unreadable = revisions.record(project(1), FlagSetRevision(None), at(now));
        assert_eq!(unreadable.since, at(now), "unreadable revisions are never equal");
    }
}

#[test]
fn absent_items_are_rechecked_and_never_served_stale() {
    let at = Timestamp::from_millis;
    let reading = |is_absent| CachedRead {
        value: Arc::new(()),
        bytes: 0,
        revision: FlagSetRevision(Some(1)),
        is_settled: true,
        is_absent,
        as_of: at(10_000),
    };
    let is_met = |is_absent, now| {
        let reading = reading(is_absent);
        let requirement = Revisions::default().requirement(project(1), Freshness::Cached, at(now));
        requirement.checking_absence(Some(&reading)).is_met_by(&reading)
    };
    for (now, of_absent, of_other) in
        [(10_000, false, true), (14_999, false, true), (15_000, false, false)]
    {
        assert_eq!((is_met(true, now), is_met(false, now)), (of_absent, of_other), "at {now}");
    }
    assert!(reading(false).is_usable_at(at(10_000)) && !reading(true).is_usable_at(at(10_000)));
}

#[test]
fn reads_with_progress_are_not_restarted() {
    let at = Timestamp::from_millis;
    let begun = |count| PendingRead::<()> {
        began: at(1_000),
        initial_count: 5,
        count,
        unchanged_since: at(1_000),
        reading: Box::pin(std::future::pending()),
    };
    let requirement = |now, must_be_read| FreshnessRequirement {
        project: project(1),
        not_before: at(now),
        must_be_read,
        now: at(now),
    };
    assert!(!begun(5).must_restart(requirement(2_000, false)));
    assert!(
        begun(5).must_restart(requirement(2_000, true)),
        "a read without progress is restarted"
    );
    assert!(!begun(6).must_restart(requirement(2_000, true)));
    assert!(begun(6).must_restart(requirement(999, false)), "the clock was set back");
    assert!(begun(6).must_restart(requirement(31_000, false)), "no progress for 30 seconds");
    let mut continuing = begun(6);
    continuing.record_progress(7, at(30_000));
    continuing.record_progress(7, at(40_000));
    assert!(!continuing.must_restart(requirement(59_999, false)));
    assert!(continuing.must_restart(requirement(60_000, false)));
}

#[tokio::test]
async fn waits_last_while_reads_make_progress() {
    let progress = Progress::default();
    let stall_timeout = Duration::from_millis(200);
    let progressing = |times: usize| {
        let progress = progress.clone();
        async move {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_millis(40)).await;
                progress.note();
            }
            Ok(Arc::new(()))
        }
    };
    let waited = wait_while_progressing(progressing(15), &progress, stall_timeout).await;
    assert!(matches!(waited, WaitOutcome::Read(Ok(_))), "progress extends the wait");
    let began = Instant::now();
    let waited = wait_while_progressing(
        std::future::pending::<Result<Arc<()>, _>>(),
        &progress,
        stall_timeout,
    )
    .await;
    assert!(matches!(waited, WaitOutcome::Stalled) && began.elapsed() < Duration::from_secs(2));
    let waited = wait_while_progressing(progressing(1_000), &progress, stall_timeout).await;
    assert!(matches!(waited, WaitOutcome::TooLong));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[test]
fn cooldowns_apply_per_project() {
    let revisions = Revisions::default();
    let now = Timestamp::from_millis(0);
    revisions.cooldown(project(1)).begin(now);
    assert!(
        revisions.cooldown(project(1)).is_cooling_down(now)
            && !revisions.cooldown(project(2)).is_cooling_down(now)
    );
}
