//! Replays the corpus of each target, and seeded mutations of it (`SEED=…`) for a few seconds per
//! target (`MUTATION_SECONDS=…`, `TARGET=…`). `make fuzz` searches longer, guided by coverage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::panic;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuzz_targets::{TARGETS, Target};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Duration of each target in seconds.
const SECONDS: u64 = 1;
/// Maximum size of a corpus file in bytes, and maximum number of files per corpus.
const MAX_BYTES: usize = 10_000;
const MAX_FILES: usize = 100;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("the variable is a number"))
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the target has a corpus")
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns an input with a few changes: bytes changed, removed, repeated, or copied from another
/// input.
fn mutated(random: &mut ChaCha8Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus.choose(random).cloned().unwrap_or_default();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=bytes.len());
        let end = at + random.random_range(0..=(bytes.len() - at).min(32));
        match random.random_range(0..6) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            1 => {
                let interesting = [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n', b'{', b'['];
                bytes.insert(at, *interesting.choose(random).unwrap());
            }
            2 => drop(bytes.drain(at..end)),
            3 => {
                let repeated = bytes[at..end].repeat(random.random_range(1..4));
                bytes.splice(at..at, repeated);
            }
            4 => bytes.truncate(at),
            _ => {
                let other = corpus.choose(random).unwrap();
                let from = random.random_range(0..=other.len());
                let to = from + random.random_range(0..=other.len() - from);
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    bytes
}

fn attempt(target: &Target, bytes: &[u8], seed: u64) {
    if panic::catch_unwind(|| (target.run)(bytes)).is_err() {
        let bytes = bytes.escape_ascii();
        panic!("SEED={seed}: {} fails for b\"{bytes}\"", target.name);
    }
}

#[test]
fn targets_pass_for_corpus_and_mutations() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = variable("SEED").unwrap_or(now);
    let seconds = Duration::from_secs(variable("MUTATION_SECONDS").unwrap_or(SECONDS));
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")).unwrap();
    assert_eq!(folders.count(), TARGETS.len(), "targets and corpora differ");
    let only = std::env::var("TARGET").ok();
    for target in TARGETS.iter().filter(|it| only.as_ref().is_none_or(|only| only == it.name)) {
        let corpus = corpus(target);
        assert!((1..=MAX_FILES).contains(&corpus.len()), "{}: {}", target.name, corpus.len());
        for bytes in &corpus {
            assert!(bytes.len() <= MAX_BYTES, "{}: a file of {}", target.name, bytes.len());
            attempt(target, bytes, seed);
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (started, mut tried) = (Instant::now(), 0_u32);
        while started.elapsed() < seconds {
            attempt(target, &mutated(&mut random, &corpus), seed);
            tried += 1;
        }
        println!("{}: {} corpus files, {tried} mutations, seed {seed}", target.name, corpus.len());
    }
}
