//! Filters on the error that an event belongs to (`docs/semantics/error-tracking.md`, "Filters").

use std::collections::BTreeSet;

use crate::ErrorId;

/// A condition on an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorTest {
    Is(ErrorId),
    IsNot(ErrorId),
}

/// Filters on error IDs. By default, all errors pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorFilters {
    /// Only these errors pass. `None` for any.
    only: Option<BTreeSet<ErrorId>>,
    /// These errors do not pass.
    without: BTreeSet<ErrorId>,
}

impl ErrorFilters {
    /// Combines conditions: several `is` are alternatives, all others must hold.
    pub(super) fn new(tests: impl IntoIterator<Item = ErrorTest>) -> Self {
        let mut filters = Self::default();
        for test in tests {
            match test {
                ErrorTest::Is(id) => filters.only.get_or_insert_default().insert(id),
                ErrorTest::IsNot(id) => filters.without.insert(id),
            };
        }
        filters
    }

    /// `true` if every error passes.
    pub fn is_empty(&self) -> bool {
        self.only.is_none() && self.without.is_empty()
    }

    /// `true` if an error passes.
    pub fn matches(&self, id: ErrorId) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&id)) && !self.without.contains(&id)
    }

    /// Returns the only errors that can pass, so no others need to be read. `None` if any error can
    /// pass.
    pub fn candidates(&self) -> Option<&BTreeSet<ErrorId>> {
        self.only.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ErrorId {
        ErrorId::parse(&format!("01a06648-2800-7c3a-9b1e-5d2f8a4c6e0{number}")).unwrap()
    }

    fn passing(tests: &[ErrorTest]) -> Vec<u8> {
        let filters = ErrorFilters::new(tests.iter().copied());
        assert_eq!(filters.is_empty(), tests.is_empty());
        (0..4).filter(|number| filters.matches(id(*number))).collect()
    }

    #[test]
    fn is_are_alternatives_and_all_is_not_hold() {
        use ErrorTest::{Is, IsNot};
        assert_eq!(passing(&[]), [0, 1, 2, 3]);
        assert_eq!(passing(&[Is(id(1)), Is(id(3))]), [1, 3]);
        assert_eq!(passing(&[IsNot(id(1)), IsNot(id(3))]), [0, 2]);
        assert_eq!(passing(&[Is(id(1)), Is(id(2)), IsNot(id(2))]), [1]);
        assert_eq!(passing(&[Is(id(1)), IsNot(id(1))]), [] as [u8; 0]);
    }

    #[test]
    fn only_named_errors_can_pass() {
        let named = ErrorFilters::new([ErrorTest::Is(id(1)), ErrorTest::IsNot(id(2))]);
        assert_eq!(named.candidates(), Some(&[id(1)].into()));
        assert_eq!(ErrorFilters::new([ErrorTest::IsNot(id(2))]).candidates(), None);
    }
}
