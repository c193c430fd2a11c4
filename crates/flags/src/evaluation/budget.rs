//! Work limits for evaluations.
//!
//! A flag can have 250 patterns, a context a text of 60 kB, and each pattern reads each of its
//! bytes: minutes of computing time. Therefore the conditions of each flag and of each segment have
//! a work limit. All flags in a request also share one, since a project can have 2,000 flags. Work
//! is estimated, not measured, so that equal flags and contexts always have equal results.

use std::cell::Cell;
use std::fmt;

/// Limit per flag in nanoseconds of one core, at worst. Most evaluations use at most a tenth of
/// their estimate.
const FLAG_LIMIT: u64 = 50_000_000;
/// Limit per segment. A segment has at most a tenth of a flag's patterns, and a flag can use thirty
/// segments.
const SEGMENT_LIMIT: u64 = 5_000_000;
/// Limit for all flags of a request and their dependencies: as much as for three flags, since most
/// flags need a thousandth of theirs.
const REQUEST_LIMIT: u64 = 150_000_000;

/// The work limit that an evaluation exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkLimit {
    /// The limit for one flag.
    Flag,
    /// The limit for one segment.
    Segment,
    /// The limit for all flags of a request.
    Request,
}

impl WorkLimit {
    fn nanoseconds(self) -> u64 {
        match self {
            Self::Flag => FLAG_LIMIT,
            Self::Segment => SEGMENT_LIMIT,
            Self::Request => REQUEST_LIMIT,
        }
    }
}

impl fmt::Display for WorkLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.nanoseconds() / 1_000_000;
        let scope = match self {
            Self::Flag => "a flag",
            Self::Segment => "a segment",
            Self::Request => "all flags of a request",
        };
        write!(formatter, "{milliseconds} ms, the limit for {scope}")
    }
}

/// The remaining work for the conditions of all flags in a request.
#[derive(Debug)]
pub(super) struct RequestBudget {
    left: Cell<u64>,
}

impl Default for RequestBudget {
    fn default() -> Self {
        Self { left: Cell::new(REQUEST_LIMIT) }
    }
}

impl RequestBudget {
    pub(super) fn of_flag(&self) -> EvaluationBudget<'_> {
        self.budget(WorkLimit::Flag)
    }

    pub(super) fn of_segment(&self) -> EvaluationBudget<'_> {
        self.budget(WorkLimit::Segment)
    }

    fn budget(&self, limit: WorkLimit) -> EvaluationBudget<'_> {
        EvaluationBudget { left: Cell::new(Ok(limit.nanoseconds())), limit, request: self }
    }

    /// Returns `true` if this work is within the limit. Rejected work is not counted, so that cheap
    /// flags are still evaluated after expensive ones.
    fn spend(&self, work: u64) -> bool {
        let left = self.left.get().checked_sub(work);
        self.left.set(left.unwrap_or(self.left.get()));
        left.is_some()
    }
}

/// The remaining work for the conditions of one flag or segment.
#[derive(Debug)]
pub(super) struct EvaluationBudget<'r> {
    left: Cell<Result<u64, WorkLimit>>,
    limit: WorkLimit,
    request: &'r RequestBudget,
}

impl EvaluationBudget<'_> {
    /// Returns `true` if this work is within the limits. After one rejection, rejects all work.
    pub(super) fn spend(&self, work: u64) -> bool {
        let spent = self.left.get().and_then(|left| {
            let left = left.checked_sub(work).ok_or(self.limit)?;
            if self.request.spend(work) { Ok(left) } else { Err(WorkLimit::Request) }
        });
        self.left.set(spent);
        spent.is_ok()
    }

    /// Rejects all further work, since this limit was exceeded.
    pub(super) fn exhaust(&self, limit: WorkLimit) {
        self.left.set(Err(limit));
    }

    /// Returns the limit that was exceeded, if any. The conditions' results are then invalid.
    pub(super) fn exhausted(&self) -> Option<WorkLimit> {
        self.left.get().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_segments_share_the_request_budget() {
        let request = RequestBudget::default();
        for _ in 0..2 {
            let flag = request.of_flag();
            assert!(flag.spend(FLAG_LIMIT));
            assert!(!flag.spend(1) && !flag.spend(0));
            assert_eq!(flag.exhausted(), Some(WorkLimit::Flag));
        }
        let segment = request.of_segment();
        assert!(segment.spend(SEGMENT_LIMIT) && !segment.spend(1));
        assert_eq!(segment.exhausted(), Some(WorkLimit::Segment));
        let left = FLAG_LIMIT - SEGMENT_LIMIT;
        let too_much = request.of_flag();
        assert!(!too_much.spend(left + 1) && !too_much.spend(1));
        assert_eq!(too_much.exhausted(), Some(WorkLimit::Request));
        // Cheap flags are still evaluated.
        let little = request.of_flag();
        assert!(little.spend(left));
        assert_eq!(little.exhausted(), None);
        assert!(!request.of_segment().spend(1));
    }
}
