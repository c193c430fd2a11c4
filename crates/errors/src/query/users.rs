//! Exact counts of users.

/// Number of users that are kept before duplicates are removed.
const MIN_KEPT: usize = 32;

/// Distinct users. Each takes at most 16 bytes until duplicates are removed, less than in a hash
/// set.
#[derive(Debug, Clone, Default)]
pub(super) struct DistinctUsers {
    users: Vec<u64>,
    /// The number of distinct users when duplicates were last removed.
    distinct: usize,
}

impl DistinctUsers {
    pub(super) fn add(&mut self, user: u64) {
        // In runs, the events of a user are adjacent.
        if self.users.last() == Some(&user) {
            return;
        }
        if self.users.len() >= self.distinct.saturating_mul(2).max(MIN_KEPT) {
            self.sort();
        }
        self.users.push(user);
    }

    /// Returns the number of kept users, including duplicates.
    pub(super) fn kept(&self) -> usize {
        self.users.len()
    }

    pub(super) fn count(&mut self) -> u64 {
        self.sort();
        u64::try_from(self.distinct).unwrap_or(u64::MAX)
    }

    fn sort(&mut self) {
        self.users.sort_unstable();
        self.users.dedup();
        self.distinct = self.users.len();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_user_counts_once(users in proptest::collection::vec(1_u64..200, 0..600)) {
            let expected: BTreeSet<u64> = users.iter().copied().collect();
            let mut all = DistinctUsers::default();
            for user in &users {
                all.add(*user);
            }
            prop_assert_eq!(all.count(), expected.len() as u64);
            prop_assert!(all.users.capacity() <= 4 * expected.len().max(MIN_KEPT));
        }
    }
}
