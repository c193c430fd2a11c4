//! What every operation answers, byte for byte, to a few hundred requests in a fixed order: successes
//! of many shapes, every refusal, headers included. It is held against the recordings beside this
//! file, so that a change of the code that is to change no answer can be seen to change none.
//!
//! A file of `recorded/` has one exchange per line. What differs from run to run stands there by a
//! name: `<id 3>` for the third identifier that was given out, `<cursor 1>`, `<etag 1>`, and names for
//! projects and keys. Times are as they are, since the clock is the tests' own.
//!
//! Where an answer is changed on purpose, record again, and look at what `git diff` says:
//!
//! ```text
//! RECORD_ANSWERS=1 cargo test -p tests --test answers
//! ```
//!
//! A new request belongs at the end of its scenario: in between, it moves the times of all after it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod errors;
mod flags;
mod insights;
mod markers;
mod notifications;
mod recording;
