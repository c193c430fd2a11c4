//! Events of ten projects over thirty days. Equal end times give equal events.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::distr::weighted;

use errors::attribute::Attribute;
use errors::grouping::Fingerprint;
use errors::log::day::{Day, minute_of, start_of_minute};
use errors::log::row::EventRow;
use shared::timestamp::Timestamp;

use super::generator::ProjectGenerator;
use crate::Result;

pub(super) const PROJECTS: u8 = 10;
pub(super) const DAYS: u32 = 30;
/// The number of errors of a project.
const ERRORS: u16 = 200;
const EVENTS_OF_A_DAY: usize = 5_000;

/// The events of all projects in a time range.
#[derive(Clone, Copy)]
pub(super) struct DataSet {
    /// The start, a whole minute.
    pub(super) from: Timestamp,
    /// The end, a whole minute, exclusive.
    pub(super) to: Timestamp,
}

/// Events of a day.
pub(super) struct ProjectDay {
    pub(super) day: Day,
    pub(super) rows: Vec<EventRow>,
}

impl ProjectDay {
    pub(super) fn fingerprints(&self) -> BTreeSet<Fingerprint> {
        self.rows.iter().map(|row| row.fingerprint).collect()
    }
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
        let mut generator = ProjectGenerator::new(u64::from(project), ERRORS)?;
        let days = std::iter::successors(Some(Day::of(self.from)), |day| Some(day.next()));
        Ok(days.take_while(move |day| day.start() < self.to).map(move |day| {
            let mut rows = generator.day(day, EVENTS_OF_A_DAY);
            rows.retain(|row| self.from <= row.occurred_at && row.occurred_at < self.to);
            ProjectDay { day, rows }
        }))
    }

    /// Returns the middle day's most common values of attributes.
    pub(super) fn common_values<const N: usize>(
        self,
        attributes: [Attribute; N],
    ) -> Result<[String; N]> {
        let middle = self.project(0)?.nth(usize::try_from(DAYS / 2)?).ok_or("there is no day")?;
        Ok(attributes.map(|attribute| most_common(&middle.rows, attribute)))
    }
}

fn most_common(rows: &[EventRow], attribute: Attribute) -> String {
    let mut values: Vec<&str> =
        rows.iter().filter_map(|row| row.attributes.get(attribute)).collect();
    values.sort_unstable();
    let longest = values.chunk_by(|a, b| a == b).max_by_key(|equal| equal.len());
    longest.and_then(|equal| equal.first()).map(|value| (*value).to_owned()).unwrap_or_default()
}

/// `true` if the error of a fingerprint is resolved, as about a third of the errors.
pub(super) fn is_resolved(fingerprint: Fingerprint) -> bool {
    fingerprint.0[0] < 90
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
