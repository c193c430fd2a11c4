//! Error tracking: ingestion, packing, and queries of a large data set beside `PostgreSQL`.

mod compaction;
mod data_set;
mod delivery;
mod ingestion;
mod loading;
mod postgres;
mod question;
mod timeseries;

use crate::Result;
use crate::counter::Call;
use crate::job::JobWork;
use crate::measure::Bench;

pub(crate) use data_set::{DAYS, PROJECTS};
pub(crate) use delivery::delivery;
pub(crate) use ingestion::Ingestion;
pub(crate) use timeseries::{Answers, Timeseries};

/// Error tracking.
pub(crate) struct Errors {
    pub(crate) ingestion: Ingestion,
    /// The packing of whole days of rows.
    pub(crate) compaction: JobWork,
    pub(crate) timeseries: Timeseries,
}

/// What a request asks of DynamoDB.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) calls: usize,
    /// The read capacity units, by the embedded engine's account.
    pub(crate) read_units: f64,
    /// The write capacity units, by the embedded engine's account.
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

    /// Of each figure the greater.
    fn most(self, other: Self) -> Self {
        Self {
            calls: self.calls.max(other.calls),
            read_units: self.read_units.max(other.read_units),
            write_units: self.write_units.max(other.write_units),
        }
    }
}

impl Bench<'_> {
    /// Measures error tracking, perhaps with `PostgreSQL` beside it.
    pub(crate) async fn errors(&self, beside_postgres: bool) -> Result<Errors> {
        Ok(Errors {
            ingestion: self.ingestion().await?,
            compaction: self.compaction().await?,
            timeseries: self.timeseries(beside_postgres).await?,
        })
    }
}
