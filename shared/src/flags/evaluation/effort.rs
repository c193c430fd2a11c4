//! How much work an evaluation may be.
//!
//! A flag may have 250 patterns, a context a text of 60 kB, and each pattern looks at each of its bytes: minutes
//! of a function's time. So the conditions of a flag, and of a segment, may do so much work and no more. It is
//! reckoned and not measured: the same flag and context have the same result wherever it is asked for.

use std::cell::Cell;

/// About as many nanoseconds of a core, at worst: usually a tenth of that and less.
const OF_FLAG: u64 = 50_000_000;
/// A segment has at most a tenth of a flag's patterns, and a flag asks for thirty.
const OF_SEGMENT: u64 = 5_000_000;

/// The work that the conditions of one flag or segment may still do.
#[derive(Debug)]
pub(super) struct Effort {
    left: Cell<Option<u64>>,
}

impl Effort {
    pub(super) fn of_flag() -> Self {
        Self { left: Cell::new(Some(OF_FLAG)) }
    }

    pub(super) fn of_segment() -> Self {
        Self { left: Cell::new(Some(OF_SEGMENT)) }
    }

    /// Whether so much work may be done. Where it may not, none may be done any more.
    pub(super) fn spend(&self, work: u64) -> bool {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(work)));
        self.left.get().is_some()
    }

    /// Lets no work be done any more.
    pub(super) fn exhaust(&self) {
        self.left.set(None);
    }

    /// Whether more was wanted than may be done: then what was found counts for nothing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get().is_none()
    }
}
