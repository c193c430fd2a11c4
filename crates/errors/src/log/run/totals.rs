//! The totals of a run, which answer queries without filters.

use super::MAX_EVENTS;
use super::base::ErrorHour;
use super::encoding::{Damaged, Unread, new_column, put_number};
use crate::log::day::Hours;

/// A number of events and of their errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// The number of events.
    pub events: u32,
    /// The number of distinct fingerprints. It is the number of errors if no error has several.
    pub fingerprints: u32,
}

/// The totals of a run by hour and as a whole. The whole has its own number of fingerprints, since
/// hours can share fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    hours: [Total; 24],
    whole: Total,
}

impl Totals {
    pub(super) fn new(error_hours: &[ErrorHour]) -> Self {
        let mut hours = [Total::default(); 24];
        for error_hour in error_hours {
            if let Some(hour) = hours.get_mut(usize::from(error_hour.hour)) {
                hour.events += error_hour.count;
                hour.fingerprints += 1;
            }
        }
        // Error hours are sorted by fingerprint, and each fingerprint has at least one.
        let fingerprints = error_hours.last().map_or(0, |error_hour| error_hour.fingerprint + 1);
        Self { hours, whole: whole_of(&hours, fingerprints) }
    }

    /// Returns the total of an hour of the day.
    pub fn hour(&self, hour: u8) -> Total {
        self.hours.get(usize::from(hour)).copied().unwrap_or_default()
    }

    /// Returns the hours that have events.
    pub fn hours(&self) -> Hours {
        (0..24).filter(|hour| self.hour(*hour).events > 0).collect()
    }

    /// Returns the total of all hours.
    pub fn whole(&self) -> Total {
        self.whole
    }

    /// Encodes the totals in about 3 to 100 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = new_column();
        let with_events = self.hours();
        put_number(with_events.bits() as usize, &mut bytes);
        for hour in with_events.iter().map(|hour| self.hour(hour)) {
            put_number(hour.events as usize, &mut bytes);
            put_number(hour.fingerprints as usize, &mut bytes);
        }
        put_number(self.whole.fingerprints as usize, &mut bytes);
        bytes
    }

    /// Decodes the output of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut unread = Unread::column(bytes)?;
        let with_events = Hours::from_bits(unread.number()?);
        let with_events = with_events.ok_or(Damaged("a day has 24 hours"))?;
        let mut count = || match unread.number()? {
            count if count as usize <= MAX_EVENTS => Ok(count),
            _ => Err(Damaged("a total is too large")),
        };
        let mut hours = [Total::default(); 24];
        let (mut most, mut all) = (0, 0);
        for (hour, total) in (0..).zip(&mut hours) {
            if with_events.contains(hour) {
                let Total { events, fingerprints } = total;
                (*events, *fingerprints) = (count()?, count()?);
                if *fingerprints == 0 || fingerprints > events {
                    return Err(Damaged("an hour has more errors than events, or none"));
                }
                most = most.max(*fingerprints);
                all += *fingerprints;
            }
        }
        let fingerprints = count()?;
        if !(most..=all).contains(&fingerprints) {
            return Err(Damaged("the errors of a day contradict those of its hours"));
        }
        unread.end()?;
        Ok(Self { hours, whole: whole_of(&hours, fingerprints) })
    }
}

fn whole_of(hours: &[Total; 24], fingerprints: u32) -> Total {
    Total { events: hours.iter().map(|hour| hour.events).sum(), fingerprints }
}
