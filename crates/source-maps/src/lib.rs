//! Source maps (`docs/semantics/source-maps.md`): receives the bundles of Sentry's tools, prepares
//! their maps, and resolves the frames of minified code.
//!
//! At upload, a map is [parsed](map), and written as compressed [pieces] of about 32 kB: tables of
//! positions with the lines of their sources. To resolve a frame, one index and one table are read.

pub mod assembly;
pub mod bundle;
pub mod event;
pub mod http;
mod key;
pub mod map;
mod path;
pub mod pieces;
mod scopes;
pub mod store;

pub use key::MapKey;
pub use path::{clean_path, is_in_app, url_path};

use std::fmt;

/// Maximum bytes of a map before compression: 64 MiB.
pub const MAX_MAP_BYTES: u64 = 64 << 20;
/// Maximum maps of a bundle.
pub const MAX_MAPS: u64 = 200;
/// Maximum bytes of all maps of a bundle before compression: 512 MiB, so that their pieces fit into
/// memory.
pub const MAX_MAPS_BYTES: u64 = 512 << 20;
/// Maximum bytes of a project's prepared maps: 20 GiB.
pub const MAX_PROJECT_BYTES: u64 = 20 << 30;
/// Maximum mappings of a map. Each takes 28 bytes of memory while the map is parsed.
pub const MAX_MAPPINGS: usize = 4_000_000;
/// Bytes of a chunk, except for the last: 256 KiB, which fit into an item.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Maximum chunks of a request, which then has at most 4.3 MB. Lambda accepts 6 MB in Base64.
pub const CHUNKS_PER_REQUEST: usize = 16;
/// Maximum chunks of a bundle, which then has 128 MiB.
pub const MAX_CHUNKS: usize = 512;

/// The reason why a bundle is rejected. The display form names the file, the problem and the
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    /// The content is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A part exceeds its limit.
    #[error("{0}")]
    TooLarge(String),
    /// The project has no capacity left.
    #[error("{0}")]
    QuotaReached(String),
}

/// The remedies of faults.
const UPDATE_TOOL: &str = "update the upload tool";
const UPLOAD_AGAIN: &str = "upload it again";
const BUILD_AGAIN: &str = "build it again";
const UPLOAD_FEWER: &str = "upload fewer files at a time";
const SPLIT: &str = "split the script";

/// Returns the fault of an invalid content.
fn invalid(problem: impl fmt::Display, remedy: &str) -> BundleFault {
    BundleFault::Invalid(format!("{problem}; {remedy}"))
}

/// Fails if a count is over its limit. `subject` ends with the verb.
fn check_limit(
    subject: impl fmt::Display,
    count: u64,
    unit: &str,
    limit: u64,
    remedy: &str,
) -> Result<(), BundleFault> {
    if count <= limit {
        return Ok(());
    }
    let detail = format!("{subject} {count} {unit}, but the limit is {limit}; {remedy}");
    Err(BundleFault::TooLarge(detail))
}

impl BundleFault {
    /// Returns the fault with the name of its file.
    fn of_file(mut self, name: &str) -> Self {
        let (Self::Invalid(detail) | Self::TooLarge(detail) | Self::QuotaReached(detail)) =
            &mut self;
        *detail = format!("{name}: {detail}");
        self
    }
}
