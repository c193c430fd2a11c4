//! Error tracking: ingestion, packing, and queries of a large data set compared with `PostgreSQL`.

mod capacity;
mod data_set;
mod delivery;
mod ingestion;
mod large;
mod loading;
mod packing;
mod postgres;
mod question;
mod random;
mod source_maps;
mod timeseries;

use crate::Result;
use crate::counter::Call;
use crate::job::JobWork;
use crate::measure::Bench;
use crate::program::Program;
use crate::statistics::Sorted;

pub(crate) use capacity::{Capacity, Cost};
pub(crate) use data_set::{DAYS, PROJECTS};
pub(crate) use delivery::delivery;
pub(crate) use ingestion::Ingestion;
pub(crate) use large::Large;
pub(crate) use source_maps::ResolvedFrames;
pub(crate) use timeseries::{QueryFigures, Timeseries};

/// The figures of error tracking.
pub(crate) struct Errors {
    pub(crate) ingestion: Ingestion,
    pub(crate) resolved_frames: ResolvedFrames,
    /// The packing of whole days of rows.
    pub(crate) packing: JobWork,
    pub(crate) timeseries: Timeseries,
    /// The write units of events.
    pub(crate) capacity: Capacity,
    /// Queries of a large project; `None` without `--all`.
    pub(crate) large: Option<Large>,
}

/// A question that was sent repeatedly.
pub(crate) struct MeasuredQuestion {
    pub(crate) program: Program,
    pub(crate) name: &'static str,
    /// The latency, in milliseconds.
    pub(crate) latency: Sorted,
    /// The peak memory of its process, in bytes.
    pub(crate) memory: u64,
}

/// The DynamoDB calls and capacity of a request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) calls: usize,
    /// The read capacity units that the embedded engine reports.
    pub(crate) read_units: f64,
    /// The write capacity units that the embedded engine reports.
    pub(crate) write_units: f64,
}

impl Traffic {
    fn of(calls: &[Call]) -> Self {
        let units = |read| calls.iter().filter(move |call| call.is_read() == read);
        Self {
            calls: calls.len(),
            read_units: units(true).map(|call| call.units).sum(),
            write_units: units(false).map(|call| call.units).sum(),
        }
    }

    /// Returns the maximum of each figure.
    fn max(self, other: Self) -> Self {
        Self {
            calls: self.calls.max(other.calls),
            read_units: self.read_units.max(other.read_units),
            write_units: self.write_units.max(other.write_units),
        }
    }
}

impl Bench<'_> {
    /// Measures error tracking. With `all`, also compares it with `PostgreSQL`, and measures a
    /// project and a load that take minutes to store.
    pub(crate) async fn errors(&self, all: bool) -> Result<Errors> {
        Ok(Errors {
            ingestion: self.ingestion().await?,
            resolved_frames: self.resolved_frames().await?,
            packing: self.packing().await?,
            timeseries: self.timeseries(all).await?,
            capacity: Box::pin(self.capacity(all)).await?,
            large: if all { Some(self.large().await?) } else { None },
        })
    }
}
