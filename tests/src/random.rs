//! Random numbers that the same seed gives again.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator (`SplitMix64`).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator of these numbers, and no others.
    pub fn of_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that differs from run to run, unless the variable `SEED` gives one.
    pub fn seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let nanos = u64::from(now.subsec_nanos());
        env::var("SEED").map_or(now.as_secs() ^ nanos << 32, |seed| seed.parse().expect("a number"))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// A position in a list of that length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        let index = self.below(u64::try_from(length).expect("it is short"));
        usize::try_from(index).expect("it is below the length")
    }

    /// One of several.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// True as often as `chances` in `of`.
    pub fn happens(&mut self, chances: u64, of: u64) -> bool {
        self.below(of) < chances
    }

    /// A time shorter than the bound.
    pub fn time_below(&mut self, bound: Duration) -> Duration {
        let micros = u64::try_from(bound.as_micros()).expect("it is short");
        Duration::from_micros(self.below(micros.max(1)))
    }
}
