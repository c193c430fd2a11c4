//! Events as they are counted: rows, and the segments that rows are packed into.

pub mod day;
pub mod day_state;
pub mod row;
pub mod segment;
