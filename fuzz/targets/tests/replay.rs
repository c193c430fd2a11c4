//! The corpus of each target, and mutations of it: seeded (`SEED=…`), in as many seconds as a run of all tests
//! can spare (`MUTATION_SECONDS=…` for each target). `make fuzz` looks for more, guided by coverage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::panic;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuzz_targets::{TARGETS, Target};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// How long each target is tried.
const SECONDS: u64 = 10;
/// The largest file of a corpus, and the most files of one.
const MOST_BYTES: usize = 10_000;
const MOST_FILES: usize = 100;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("it is a number"))
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("it has a corpus").map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// An input with a few changes: bytes changed, left out, repeated, or taken from another.
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
        panic!("SEED={seed}: {} fails of b\"{bytes}\"", target.name);
    }
}

#[test]
fn every_target_holds_for_its_corpus_and_for_mutations_of_it() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = variable("SEED").unwrap_or(now);
    let seconds = Duration::from_secs(variable("MUTATION_SECONDS").unwrap_or(SECONDS));
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")).unwrap();
    assert_eq!(
        folders.count(),
        TARGETS.len(),
        "each target has a corpus, and each corpus a target"
    );
    for target in &TARGETS {
        let corpus = corpus(target);
        assert!((1..=MOST_FILES).contains(&corpus.len()), "{}: {}", target.name, corpus.len());
        for bytes in &corpus {
            assert!(bytes.len() <= MOST_BYTES, "{}: a file of {}", target.name, bytes.len());
            attempt(target, bytes, seed);
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (started, mut tried) = (Instant::now(), 0_u32);
        while started.elapsed() < seconds {
            attempt(target, &mutated(&mut random, &corpus), seed);
            tried += 1;
        }
        println!("{}: {} of the corpus, {tried} mutations, seed {seed}", target.name, corpus.len());
    }
}
