use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::evaluation::compiled::CompiledFlag;
use crate::evaluation::compiler::Compiler;
use crate::evaluation::project_flags::{Flags, LoadedFlag};
use crate::evaluation::segments::{LoadedSegment, Segments};
use crate::evaluation::test_flags::{context, flag, now, project, resident, segment};

/// Room for so many bytes of a project, and of all.
fn patterns(of_project: usize, of_all: usize) -> Arc<ProjectPatterns> {
    Arc::new(ProjectPatterns::within(of_project, Arc::new(MemoryBudget::new(of_all))))
}

/// A flag that is on where one of the patterns is found in `a`.
fn matching(texts: &[String]) -> Value {
    let conditions = json!([{"attribute": "a", "operator": "matches", "values": texts}]);
    let rules = json!([{"id": "r", "conditions": conditions, "serve": {"variant": "on"}}]);
    json!({"rules": rules, "fallthrough": {"variant": "off"}})
}

/// Patterns of about the most bytes that one may have compiled, each another.
fn largest() -> impl Iterator<Item = String> {
    let of = |number: usize, times: usize| format!("x{number:04}(?:[a-y]z){{{times}}}");
    let fits = |times: &usize| CompiledPattern::new(&of(0, *times)).is_ok();
    let most = (1..1_000).rev().find(fits).unwrap();
    (0..).map(move |number| of(number, most))
}

#[test]
fn a_pattern_is_compiled_once_and_forgotten_with_the_last_who_has_it() {
    let patterns = patterns(100_000, 100_000);
    let first = patterns.pattern("^a+$").unwrap();
    let bytes = patterns.bytes();
    assert!(bytes > FRAME_BYTES);
    let second = patterns.pattern("^a+$").unwrap();
    assert!(Arc::ptr_eq(first.remembered.get().unwrap(), second.remembered.get().unwrap()));
    assert_eq!(patterns.bytes(), bytes);
    let other = patterns.pattern("^b+$").unwrap();
    assert_eq!(patterns.bytes(), 2 * bytes);
    drop((first, other));
    assert_eq!(patterns.bytes(), bytes);
    assert!(second.is_in("aa") && !second.is_in("ab"));
    drop(second);
    assert_eq!((patterns.bytes(), lock(&patterns.remembered).len()), (0, 0));
    assert_eq!(patterns.room.taken.load(Ordering::Relaxed), 0);
    assert!(patterns.pattern("(").is_err());
}

#[test]
fn what_has_no_room_finds_the_same_and_is_remembered_once_there_is_some() {
    let roomy = patterns(100_000, 100_000);
    let _kept = roomy.pattern("^a+$").unwrap();
    let of_one = roomy.bytes() * 3 / 2;
    for (of_project, of_all) in [(of_one, 100_000), (100_000, of_one)] {
        let patterns = patterns(of_project, of_all);
        let first = patterns.pattern("^a+$").unwrap();
        assert!(!patterns.take_lack_of_room());
        let second = patterns.pattern("^b+$").unwrap();
        assert!(patterns.take_lack_of_room() && !patterns.take_lack_of_room());
        let bytes = patterns.bytes();
        for _ in 0..2 {
            assert!(second.is_in("bb") && !second.is_in("ab"));
            assert!(second.remembered.get().is_none());
        }
        assert_eq!(patterns.bytes(), bytes, "what was refused takes nothing");
        assert!(!patterns.take_lack_of_room(), "it is told when flags are read");
        drop(first);
        assert!(second.is_in("bb") && second.remembered.get().is_some());
        assert!(second.is_in("bb") && !second.is_in("ab"));
        let third = patterns.pattern("^b+$").unwrap();
        assert!(third.remembered.get().is_some(), "it is there already");
    }
}

#[test]
fn what_has_no_room_is_compiled_once_for_a_whole_list() {
    let text = largest().next().unwrap();
    let nowhere = patterns(0, 0);
    let pattern = nowhere.pattern(&text).unwrap();
    let compiling = Instant::now();
    assert!(!pattern.is_in("a"));
    let compiling = compiling.elapsed();
    let started = Instant::now();
    assert!(!pattern.is_in_any(std::iter::repeat_n("a", 1_000)));
    // Each of them for itself would take a thousand times as long as one.
    assert!(started.elapsed() < compiling * 100, "{:?}, {compiling:?}", started.elapsed());
    assert!(!pattern.is_in_any(std::iter::empty()));
}

#[test]
fn each_project_has_room_of_its_own_within_that_of_all() {
    let cache = PatternCache::default();
    let one = cache.of(project());
    let other = cache.of(ProjectId::new(uuid::Uuid::from_u128(0xb)));
    let kept = one.pattern("^a+$").unwrap();
    assert!(Arc::ptr_eq(&one, &cache.of(project())));
    assert_eq!((other.bytes(), cache.room.taken.load(Ordering::Relaxed)), (0, one.bytes()));
    drop((one, other));
    assert!(cache.of(project()).bytes() > 0, "a condition has it");
    drop(kept);
    assert_eq!(cache.of(project()).bytes(), 0);
    assert_eq!(lock(&cache.projects).len(), 1, "whose flags are forgotten is forgotten");
}

#[test]
fn flags_and_segments_beyond_the_room_are_evaluated_as_those_within() {
    let texts: Vec<String> = (0..40).map(|number| format!("^{number}[a-z]{{2,20}}$")).collect();
    let evaluated = |patterns: &Arc<ProjectPatterns>| {
        let mut compiler = Compiler::new(Arc::clone(patterns));
        let conditions =
            json!([{"attribute": "a", "operator": "not_matches", "values": texts[..25]}]);
        let outside = LoadedSegment::new(segment("outside", &conditions), &compiler);
        let uses = json!([{"operator": "in_segment", "values": ["outside"]}]);
        let rules = json!([{"id": "r", "conditions": uses, "serve": {"variant": "on"}}]);
        let asks = json!({"rules": rules, "fallthrough": {"variant": "off"}});
        let mut loaded = vec![Arc::new(LoadedFlag::new(&flag("s", &asks), &mut compiler))];
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
    // Two flags by their patterns, and three times that of the segment.
    assert_eq!(expected.iter().filter(|it| *it == "on").count(), 5);
    assert!(!within.take_lack_of_room());
    assert_eq!(evaluated(&beyond), expected);
    assert!(beyond.take_lack_of_room());
}

#[test]
fn the_largest_patterns_of_2000_flags_take_no_more_than_their_bound() {
    let patterns = Arc::default();
    let mut flags = Vec::with_capacity(2_000);
    let mut before = 0;
    let mut flag = flag("f", &matching(&["a".to_owned()]));
    for (number, text) in largest().take(2_000).enumerate() {
        flag.rules[0].conditions[0].values = vec![text];
        // Each as if it was read by itself.
        let mut compiler = Compiler::new(Arc::clone(&patterns));
        flags.push(CompiledFlag::new(&flag, &mut compiler).unwrap());
        if number == 0 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(patterns.take_lack_of_room());
    let bytes = patterns.bytes();
    assert!(bytes > MAX_BYTES_OF_PROJECT * 9 / 10 && bytes <= MAX_BYTES_OF_PROJECT, "{bytes}");
    // About 1 kB of each flag is not its pattern's.
    let bound = MAX_BYTES_OF_PROJECT + flags.len() * 2_000;
    assert!(grown < bound, "{grown} bytes were taken, and {bytes} counted");
}

#[test]
fn what_is_counted_is_no_less_than_what_is_taken() {
    // Small ones have a large frame, classes many ranges, groups slots of their own.
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
        // Pages, and what is free among them.
        assert!(grown < counted + counted / 10 + 500_000, "{}: {grown}, {counted}", texts[0]);
    }
}
