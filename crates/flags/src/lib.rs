//! Feature flags: model, request parsing, evaluation and storage.

mod announcement;
mod cache;
pub mod condition;
pub mod definition;
mod dependencies;
pub mod draft;
pub mod evaluation;
mod feature_flag;
pub mod flagd;
mod flagd_configuration;
pub mod history;
pub mod http;
pub mod ofrep;
pub mod patch;
mod project_limit;
mod revision_cache;
mod rule_ids;
pub mod segment;
pub mod store;
pub mod update;

pub use cache::FlagCache;
pub use dependencies::{Dependencies, InvalidPrerequisite};
pub use feature_flag::*;
pub use flagd_configuration::{ConfigurationCache, FlagdConfiguration};
pub use project_limit::{MAX_PROJECT_BYTES, ProjectLimit};
pub use revision_cache::Freshness;
pub use rule_ids::with_known_ids;
pub use segment::Segment;
