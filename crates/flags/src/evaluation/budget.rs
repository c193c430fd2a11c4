//! How much work an evaluation may be.
//!
//! A flag may have 250 patterns, a context a text of 60 kB, and each pattern looks at each of its bytes: minutes
//! of a function's time. So the conditions of a flag, and of a segment, may do so much work and no more, and so
//! may those of all flags that a request evaluates: a project may have 2,000. It is reckoned and not measured:
//! the same flags and context have the same result wherever it is asked for.

use std::cell::Cell;
use std::fmt;

/// About as many nanoseconds of a core, at worst: usually a tenth of that and less.
const OF_FLAG: u64 = 50_000_000;
/// A segment has at most a tenth of a flag's patterns, and a flag asks for thirty.
const OF_SEGMENT: u64 = 5_000_000;
/// All flags of a request together, with what they depend on: as much as three flags at worst, since most have
/// a thousandth of that.
const OF_REQUEST: u64 = 150_000_000;

/// Which of the limits of work an evaluation met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkLimit {
    /// That of one flag.
    Flag,
    /// That of one segment.
    Segment,
    /// That of all flags of a request.
    Request,
}

impl WorkLimit {
    fn nanoseconds(self) -> u64 {
        match self {
            Self::Flag => OF_FLAG,
            Self::Segment => OF_SEGMENT,
            Self::Request => OF_REQUEST,
        }
    }
}

impl fmt::Display for WorkLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.nanoseconds() / 1_000_000;
        let whose = match self {
            Self::Flag => "a flag",
            Self::Segment => "a segment",
            Self::Request => "all flags of a request",
        };
        write!(formatter, "{milliseconds} ms, the most for {whose}")
    }
}

/// The work that the conditions of all flags of a request may still do.
#[derive(Debug)]
pub(super) struct RequestBudget {
    left: Cell<u64>,
}

impl Default for RequestBudget {
    fn default() -> Self {
        Self { left: Cell::new(OF_REQUEST) }
    }
}

impl RequestBudget {
    pub(super) fn of_flag(&self) -> EvaluationBudget<'_> {
        self.effort(WorkLimit::Flag)
    }

    pub(super) fn of_segment(&self) -> EvaluationBudget<'_> {
        self.effort(WorkLimit::Segment)
    }

    fn effort(&self, limit: WorkLimit) -> EvaluationBudget<'_> {
        EvaluationBudget { left: Cell::new(Ok(limit.nanoseconds())), limit, of_request: self }
    }

    /// Whether so much work may be done. What may not be done is not counted: flags that are little work go on
    /// beside those that are too much.
    fn spend(&self, work: u64) -> bool {
        let left = self.left.get().checked_sub(work);
        self.left.set(left.unwrap_or(self.left.get()));
        left.is_some()
    }
}

/// The work that the conditions of one flag or segment may still do.
#[derive(Debug)]
pub(super) struct EvaluationBudget<'r> {
    left: Cell<Result<u64, WorkLimit>>,
    limit: WorkLimit,
    of_request: &'r RequestBudget,
}

impl EvaluationBudget<'_> {
    /// Whether so much work may be done. Where it may not, none may be done any more.
    pub(super) fn spend(&self, work: u64) -> bool {
        let spent = self.left.get().and_then(|left| {
            let left = left.checked_sub(work).ok_or(self.limit)?;
            if self.of_request.spend(work) { Ok(left) } else { Err(WorkLimit::Request) }
        });
        self.left.set(spent);
        spent.is_ok()
    }

    /// Lets no work be done any more, since this limit was met.
    pub(super) fn exhaust(&self, limit: WorkLimit) {
        self.left.set(Err(limit));
    }

    /// The limit that was met, if more was wanted than may be done: then what was found counts for nothing.
    pub(super) fn exhausted(&self) -> Option<WorkLimit> {
        self.left.get().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_segments_spend_what_the_request_has() {
        let request = RequestBudget::default();
        for _ in 0..2 {
            let flag = request.of_flag();
            assert!(flag.spend(OF_FLAG));
            assert!(!flag.spend(1) && !flag.spend(0));
            assert_eq!(flag.exhausted(), Some(WorkLimit::Flag));
        }
        let segment = request.of_segment();
        assert!(segment.spend(OF_SEGMENT) && !segment.spend(1));
        assert_eq!(segment.exhausted(), Some(WorkLimit::Segment));
        let left = OF_FLAG - OF_SEGMENT;
        let too_much = request.of_flag();
        assert!(!too_much.spend(left + 1) && !too_much.spend(1));
        assert_eq!(too_much.exhausted(), Some(WorkLimit::Request));
        // What is little work is done all the same.
        let little = request.of_flag();
        assert!(little.spend(left));
        assert_eq!(little.exhausted(), None);
        assert!(!request.of_segment().spend(1));
    }
}
