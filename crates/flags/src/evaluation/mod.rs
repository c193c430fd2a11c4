//! Flag evaluation without I/O (`docs/semantics/feature-flags.md`): the served value and its
//! reason.
//!
//! A flag is compiled once ([`compiled`]) and evaluated often. [`project_flags`] is the entry
//! point. [`super::ofrep`] serves results to `OpenFeature` providers; [`super::flagd`] exports
//! flags to flagd.

pub(crate) mod attribute;
mod bucketing;
mod budget;
pub(crate) mod compiled;
pub(crate) mod compiler;
mod condition;
pub(crate) mod context;
pub(crate) mod outcome;
pub(crate) mod patterns;
mod prerequisites;
pub(crate) mod project_flags;
pub(crate) mod segments;
#[cfg(test)]
pub(crate) mod test_flags;
pub(crate) mod variant;

pub use budget::WorkLimit;
pub use compiled::{CompiledFlag, DamagedFlag};
pub use compiler::Compiler;
pub use context::{Context, InvalidContext};
pub use outcome::{ErrorCode, Evaluation, EvaluationError, Metadata, Reason};
pub use patterns::ProjectPatterns;
pub use project_flags::{Flags, LoadedFlag};
pub use segments::{LoadedSegment, Segments};
pub use variant::TypedVariant;
