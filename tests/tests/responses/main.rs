//! Records every operation's responses, byte for byte, to a few hundred requests in a fixed order:
//! successes, all rejections, and headers. Comparison with the recordings in this folder shows
//! whether a code change affects responses.
//!
//! A file in `recorded/` has one exchange per line. Values that differ between runs have names:
//! `<id 3>` is the third issued identifier. Others are `<cursor 1>`, `<etag 1>`, and names of
//! projects and keys. Times are unchanged, because the tests set the clock.
//!
//! After intended changes, record again, and check `git diff`:
//!
//! ```text
//! RECORD_RESPONSES=1 cargo test -p tests --test responses
//! ```
//!
//! Add new requests at the end of a scenario. Earlier ones would shift the times of later requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod errors;
mod flags;
mod insights;
mod markers;
mod notifications;
mod recording;
