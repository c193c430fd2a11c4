//! Counted events: rows of the log, and the runs that rows are packed into.

pub mod day;
pub mod manifest;
pub mod pack_schedule;
pub mod row;
pub mod run;
pub mod tombstone;
