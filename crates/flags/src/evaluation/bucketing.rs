//! The share of a rollout for an individual.
//!
//! Identical to flagd's `fractional`. The 32-bit `MurmurHash3` (Austin Appleby, public domain)
//! hashes the flag key followed by the targeting key. The hash is scaled to the sum of the weights.
//! All rollouts of a flag use the same hash. So an individual in the first 10% of one rule is also
//! in the first 20% of another.

/// Places individuals on a line from 0 to 2^32, the same for all rollouts of a flag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucketing {
    after_flag_key: Murmur3,
}

impl Bucketing {
    pub(super) fn new(flag_key: &str) -> Self {
        let mut after_flag_key = Murmur3::default();
        after_flag_key.update(flag_key.as_bytes());
        Self { after_flag_key }
    }

    pub(super) fn place(self, targeting_key: &str) -> u32 {
        let mut hash = self.after_flag_key;
        hash.update(targeting_key.as_bytes());
        hash.finish()
    }
}

/// The shares of a rollout, in their order.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// Each share's end in thousandths of a weight, and its variant's index.
    ends: Box<[(u64, usize)]>,
    total: u64,
}

impl Shares {
    /// Returns shares with the given weights, in thousandths, and variants.
    pub(super) fn new(weights: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let mut total = 0_u64;
        let ends = weights.into_iter().map(|(weight, variant)| {
            total = total.saturating_add(u64::from(weight));
            (total, variant)
        });
        Self { ends: ends.collect(), total }
    }

    /// Returns the variant at a place; `None` only if there are no shares.
    pub(super) fn at(&self, place: u32) -> Option<usize> {
        let bucket = (u128::from(place) * u128::from(self.total)) >> 32;
        let share = self.ends.partition_point(|(end, _)| u128::from(*end) <= bucket);
        self.ends.get(share).map(|(_, variant)| *variant)
    }
}

/// `MurmurHash3_x86_32` with seed 0, fed in pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Murmur3 {
    hash: u32,
    /// The bytes of the current block, first byte lowest.
    block: u32,
    length: u32,
}

impl Murmur3 {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let position = self.length % 4;
            self.block |= u32::from(*byte) << (8 * position);
            self.length = self.length.wrapping_add(1);
            if position == 3 {
                self.hash = (self.hash ^ scramble(self.block))
                    .rotate_left(13)
                    .wrapping_mul(5)
                    .wrapping_add(0xe654_6b64);
                self.block = 0;
            }
        }
    }

    fn finish(self) -> u32 {
        // A block of zeros, as after a whole number of blocks, scrambles to zero.
        let mut hash = self.hash ^ scramble(self.block) ^ self.length;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        hash ^ (hash >> 16)
    }
}

fn scramble(block: u32) -> u32 {
    block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests;
