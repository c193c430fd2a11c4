//! Counting users, exactly.

use crate::attribute::UserHash;

/// How many are kept before it is looked for users that are there twice.
const FEW: usize = 32;

/// Distinct users. They take 16 bytes each at most, for a while, which a set of hashes would not.
#[derive(Debug, Clone, Default)]
pub(super) struct DistinctUsers {
    users: Vec<UserHash>,
    /// How many of them were distinct when they were last sorted.
    distinct: usize,
}

impl DistinctUsers {
    pub(super) fn add(&mut self, user: UserHash) {
        // Runs have the events of a user side by side.
        if self.users.last() == Some(&user) {
            return;
        }
        if self.users.len() >= self.distinct.saturating_mul(2).max(FEW) {
            self.sort();
        }
        self.users.push(user);
    }

    /// How many are kept, some perhaps twice.
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

impl IntoIterator for DistinctUsers {
    type Item = UserHash;
    type IntoIter = std::vec::IntoIter<UserHash>;

    fn into_iter(self) -> Self::IntoIter {
        self.users.into_iter()
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
            let (first, second) = users.split_at(users.len() / 2);
            let distinct = |users: &[u64]| {
                let mut distinct = DistinctUsers::default();
                for user in users {
                    distinct.add(UserHash::from_bytes(user.to_be_bytes()).unwrap());
                }
                distinct
            };
            let mut all = distinct(first);
            for user in distinct(second) {
                all.add(user);
            }
            prop_assert_eq!(all.count(), expected.len() as u64);
            prop_assert!(all.users.capacity() <= 4 * expected.len().max(FEW));
        }
    }
}
