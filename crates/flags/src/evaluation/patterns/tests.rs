use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::evaluation::compiled::CompiledFlag;
use crate::evaluation::compiler::Compiler;
use crate::evaluation::project_flags::{Flags, LoadedFlag};
use crate::evaluation::segments::{LoadedSegment, Segments};
use crate::evaluation::test_flags::{context, flag, now, project, resident, segment};

/// Returns patterns with this capacity for the project and in total.
fn patterns(per_project: usize, total: usize) -> Arc<ProjectPatterns> {
    Arc::new(ProjectPatterns::within(per_project, Arc::new(MemoryBudget::new(total))))
}

/// Returns a flag that is on if `a` matches one of the patterns.
fn matching(texts: &[String]) -> Value {
    let conditions = json!([{"attribute": "a", "operator": "matches", "values": texts}]);
    let rules = json!([{"id": "r", "conditions": conditions, "serve": {"variant": "on"}}]);
    json!({"rules": rules, "fallthrough": {"variant": "off"}})
}

/// Returns distinct patterns of about the maximum compiled size.
fn largest() -> impl Iterator<Item = String> {
    let of = |number: usize, times: usize| format!("x{number:04}(?:[a-y]z){{{times}}}");
    let fits = |times: &usize| CompiledPattern::new(&of(0, *times)).is_ok();
    let most = (1..1_000).rev().find(fits).unwrap();
    (0..).map(move |number| of(number, most))
}

#[test]
fn patterns_are_shared_until_the_last_user_drops() {
    let patterns = patterns(100_000, 100_000);
    let first = patterns.pattern("^a+$").unwrap();
    let bytes = patterns.bytes();
    assert!(bytes > FRAME_BYTES);
    let second = patterns.pattern("^a+$").unwrap();
    assert!(Arc::ptr_eq(first.cached.get().unwrap(), second.cached.get().unwrap()));
    assert_eq!(patterns.bytes(), bytes);
    let other = patterns.pattern("^b+$").unwrap();
    assert_eq!(patterns.bytes(), 2 * bytes);
    drop((first, other));
    assert_eq!(patterns.bytes(), bytes);
    assert!(second.is_in("aa") && !second.is_in("ab"));
    drop(second);
    assert_eq!((patterns.bytes(), lock(&patterns.cached).len()), (0, 0));
    assert_eq!(patterns.total_budget.used.load(Ordering::Relaxed), 0);
    assert!(patterns.pattern("(").is_err());
}

#[test]
fn uncached_patterns_match_and_are_cached_later() {
    let large = patterns(100_000, 100_000);
    let _kept = large.pattern("^a+$").unwrap();
    let for_one = large.bytes() * 3 / 2;
    for (per_project, total) in [(for_one, 100_000), (100_000, for_one)] {
        let patterns = patterns(per_project, total);
        let first = patterns.pattern("^a+$").unwrap();
        assert!(!patterns.take_uncached());
        let second = patterns.pattern("^b+$").unwrap();
        assert!(patterns.take_uncached() && !patterns.take_uncached());
        let bytes = patterns.bytes();
        for _ in 0..2 {
            assert!(second.is_in("bb") && !second.is_in("ab"));
            assert!(second.cached.get().is_none());
        }
        assert_eq!(patterns.bytes(), bytes, "a rejected pattern uses no capacity");
        assert!(!patterns.take_uncached(), "only new reads report it");
        drop(first);
        assert!(second.is_in("bb") && second.cached.get().is_some());
        assert!(second.is_in("bb") && !second.is_in("ab"));
        let third = patterns.pattern("^b+$").unwrap();
        assert!(third.cached.get().is_some(), "the pattern is cached");
    }
}

#[test]
fn uncached_patterns_compile_once_per_list() {
    let text = largest().next().unwrap();
    let uncached = patterns(0, 0);
    let pattern = uncached.pattern(&text).unwrap();
    let compiling = Instant::now();
    assert!(!pattern.is_in("a"));
    let compiling = compiling.elapsed();
    let started = Instant::now();
    assert!(!pattern.is_in_any(std::iter::repeat_n("a", 1_000)));
    // Compiling the pattern for each text would take a thousand times as long.
    assert!(started.elapsed() < compiling * 100, "{:?}, {compiling:?}", started.elapsed());
    assert!(!pattern.is_in_any(std::iter::empty()));
}

#[test]
fn projects_have_separate_budgets_within_the_total() {
    let cache = PatternCache::default();
    let one = cache.of(project());
    let other = cache.of(ProjectId::new(uuid::Uuid::from_u128(0xb)));
    let kept = one.pattern("^a+$").unwrap();
    assert!(Arc::ptr_eq(&one, &cache.of(project())));
    assert_eq!((other.bytes(), cache.total_budget.used.load(Ordering::Relaxed)), (0, one.bytes()));
    drop((one, other));
    assert!(cache.of(project()).bytes() > 0, "a condition uses the pattern");
    drop(kept);
    assert_eq!(cache.of(project()).bytes(), 0);
    assert_eq!(lock(&cache.projects).len(), 1, "projects without flags are evicted");
}

#[test]
fn uncached_patterns_do_not_change_evaluations() {
    let texts: Vec<String> = (0..40).map(|number| format!("^{number}[a-z]{{2,20}}$")).collect();
    let evaluated = |patterns: &Arc<ProjectPatterns>| {
        let mut compiler = Compiler::new(Arc::clone(patterns));
        let conditions =
            json!([{"attribute": "a", "operator": "not_matches", "values": texts[..25]}]);
        let outside = LoadedSegment::new(segment("outside", &conditions), &compiler);
        let uses = json!([{"operator": "in_segment", "values": ["outside"]}]);
        let rules = json!([{"id": "r", "conditions": uses, "serve": {"variant": "on"}}]);
        let uses_segment = json!({"rules": rules, "fallthrough": {"variant": "off"}});
        let mut loaded = vec![Arc::new(LoadedFlag::new(&flag("s", &uses_segment), &mut compiler))];
        for (number, text) in texts.iter().enumerate() {
            let members = matching(std::slice::from_ref(text));
            let flag = flag(&format!("f{number:02}"), &members);
            loaded.push(Arc::new(LoadedFlag::new(&flag, &mut compiler)));
        }
        let segments = Segments::new([Arc::new(outside)]);
        let flags = Flags::new(project(), loaded).with_segments(segments);
        let mut variants = Vec::new();
        for value in ["7abc", "39zz", "39", "none"] {
            let of = json!({"a": value}).to_string();
            for (_, outcome) in flags.evaluate_all(&context(&of), now()) {
                variants.push(outcome.unwrap().variant().unwrap().to_string());
            }
        }
        variants
    };
    let (within, beyond) = (Arc::default(), patterns(20_000, 20_000));
    let expected = evaluated(&within);
    // Two flags through their patterns, and three through the segment.
    assert_eq!(expected.iter().filter(|it| *it == "on").count(), 5);
    assert!(!within.take_uncached());
    assert_eq!(evaluated(&beyond), expected);
    assert!(beyond.take_uncached());
}

#[test]
fn largest_patterns_of_2000_flags_stay_within_budget() {
    let patterns = Arc::default();
    let mut flags = Vec::with_capacity(2_000);
    let mut before = 0;
    let mut flag = flag("f", &matching(&["a".to_owned()]));
    for (number, text) in largest().take(2_000).enumerate() {
        flag.rules[0].conditions[0].values = vec![text];
        // A new compiler each time, so that flags share nothing.
        let mut compiler = Compiler::new(Arc::clone(&patterns));
        flags.push(CompiledFlag::new(&flag, &mut compiler).unwrap());
        if number == 0 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(patterns.take_uncached());
    let bytes = patterns.bytes();
    assert!(bytes > MAX_BYTES_PER_PROJECT * 9 / 10 && bytes <= MAX_BYTES_PER_PROJECT, "{bytes}");
    // Each flag takes about 1 kB without its pattern.
    let bound = MAX_BYTES_PER_PROJECT + flags.len() * 2_000;
    assert!(grown < bound, "{grown} bytes were used, and {bytes} counted");
}

#[test]
fn patterns_use_at_most_the_counted_memory() {
    // Short patterns have a large overhead, classes many ranges, and groups additional slots.
    let forms: [fn(usize) -> String; 5] = [
        |number| format!("^{number}$"),
        |number| format!("{number}[^a-z]+|[k-t]{{3}}"),
        |number| format!(r"{number}\p{{Greek}}{{1,3}}\d"),
        |number| format!("(?P<name{number}>{number})(b)|c*?"),
        |number| format!("{number}{}", "(a)".repeat(150)),
    ];
    for form in forms {
        let patterns: Arc<ProjectPatterns> = Arc::default();
        let texts: Vec<String> = (0..600).map(form).collect();
        drop(patterns.pattern(&texts[0]).unwrap());
        let before = resident();
        let mut kept = Vec::with_capacity(texts.len());
        for text in &texts {
            kept.push(patterns.pattern(text).unwrap());
        }
        for pattern in &kept {
            pattern.is_in("1aaaaaaaaaaaaaaaaaa");
        }
        let grown = resident().saturating_sub(before);
        let counted = patterns.bytes();
        // Whole pages are allocated, with free memory between them.
        assert!(grown < counted + counted / 10 + 500_000, "{}: {grown}, {counted}", texts[0]);
    }
}
