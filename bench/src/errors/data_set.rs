//! Events of ten projects over thirty days. Equal end times give equal events.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use rand::distr::weighted;

use errors::ErrorStatus;
use errors::attribute::Attribute;
use errors::grouping::Fingerprint;
use errors::log::day::{Day, minute_of, start_of_minute};
use errors::log::row::EventRow;
use shared::timestamp::Timestamp;

use crate::generator::ProjectGenerator;

pub(crate) const PROJECTS: u8 = 10;
pub(crate) const DAYS: u32 = 30;
const EVENTS_OF_A_DAY: usize = 5_000;

/// The events of all projects in a time range.
#[derive(Clone, Copy)]
pub(super) struct DataSet {
    /// The start, a whole minute.
    pub(super) from: Timestamp,
    /// The end, a whole minute, exclusive.
    pub(super) to: Timestamp,
}

/// The events of a day.
pub(super) struct ProjectDay {
    pub(super) day: Day,
    pub(super) rows: Vec<EventRow>,
}

impl DataSet {
    /// Returns the data set that ends with the minute of `now`.
    pub(super) fn before(now: Timestamp) -> Self {
        let to = start_of_minute(minute_of(now));
        Self { from: to.minus(Duration::from_hours(24) * DAYS), to }
    }

    /// Generates the events of a project, day by day. Each call generates them again, which takes
    /// less memory than keeping them.
    pub(super) fn project(
        self,
        project: u8,
    ) -> Result<impl Iterator<Item = ProjectDay>, weighted::Error> {
        let mut generator = ProjectGenerator::new(u64::from(project))?;
        let days = std::iter::successors(Some(Day::of(self.from)), |day| Some(day.next()));
        Ok(days.take_while(move |day| day.start() < self.to).map(move |day| {
            let mut rows = generator.day(day, EVENTS_OF_A_DAY);
            rows.retain(|row| self.from <= row.occurred_at && row.occurred_at < self.to);
            ProjectDay { day, rows }
        }))
    }

    /// Returns the values of each attribute that occur on the middle day.
    pub(super) fn values(self) -> Result<HashMap<Attribute, Vec<String>>, weighted::Error> {
        let rows = self.middle_day()?;
        Ok(Attribute::ALL.map(|attribute| (attribute, values_of(&rows, attribute))).into())
    }

    fn middle_day(self) -> Result<Vec<EventRow>, weighted::Error> {
        let middle = usize::try_from(DAYS / 2).unwrap_or_default();
        Ok(self.project(0)?.nth(middle).map(|day| day.rows).unwrap_or_default())
    }

    /// Returns the filters of the filtered question: the middle day's most common browser and
    /// release.
    pub(super) fn filters(self) -> Result<[(Attribute, String); 2], weighted::Error> {
        let rows = self.middle_day()?;
        let common = |attribute| (attribute, most_common(&rows, attribute));
        Ok([Attribute::Browser, Attribute::Release].map(common))
    }
}

fn values_of(rows: &[EventRow], attribute: Attribute) -> Vec<String> {
    let values: BTreeSet<&str> =
        rows.iter().filter_map(|row| row.attributes.get(attribute)).collect();
    values.into_iter().map(str::to_owned).collect()
}

fn most_common(rows: &[EventRow], attribute: Attribute) -> String {
    let mut values: Vec<&str> =
        rows.iter().filter_map(|row| row.attributes.get(attribute)).collect();
    values.sort_unstable();
    let longest = values.chunk_by(|a, b| a == b).max_by_key(|equal| equal.len());
    longest.and_then(|equal| equal.first()).map(|value| (*value).to_owned()).unwrap_or_default()
}

/// Returns the status of an error: a tenth of the errors is ignored, a quarter resolved.
pub(super) fn status_of(fingerprint: Fingerprint) -> ErrorStatus {
    match fingerprint.0[0] {
        0..26 => ErrorStatus::Ignored,
        26..90 => ErrorStatus::Resolved,
        _ => ErrorStatus::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_events_are_reproducible_and_in_range() {
        let data_set = DataSet::before(Timestamp::from_millis(1_795_000_012_345));
        let events = || data_set.project(3).unwrap().flat_map(|day| day.rows).collect::<Vec<_>>();
        let (once, again) = (events(), events());
        assert!(once == again);
        // The cut-off parts of the first and the last day add up to one day.
        assert!((149_000..=151_000).contains(&once.len()), "{}", once.len());
        assert!(once.iter().all(|row| row.occurred_at >= data_set.from));
        assert!(once.iter().all(|row| row.occurred_at < data_set.to));
    }
}
