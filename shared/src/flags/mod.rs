//! Evaluation of feature flags without any I/O (`contract.md` §2): what a context is served, and why.
//!
//! A flag is compiled once ([`compiled`]) and evaluated often. [`project_flags`] is the way in,
//! [`ofrep`] the way out to `OpenFeature`'s providers, [`flagd`] the way out to flagd.

mod attribute;
mod bucketing;
mod compiled;
mod condition;
mod context;
mod evaluation;
pub mod flagd;
pub mod ofrep;
mod prerequisites;
mod project_flags;
#[cfg(test)]
mod test_flags;
mod variant;

pub use compiled::{CompiledFlag, DamagedFlag};
pub use context::{Context, InvalidContext};
pub use evaluation::{ErrorCode, Evaluation, EvaluationError, Metadata, Reason};
pub use project_flags::{Flags, LoadedFlag};
pub use variant::TypedVariant;
