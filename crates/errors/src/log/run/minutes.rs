//! The minutes column: the minute of each event within its hour.

use super::base::Base;
use super::encoding::{Damaged, Decoder, Encoder, Unread, new_column};

/// The decoded minute of each event within its hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minutes(Vec<u8>);

impl Minutes {
    /// Decodes the minutes column of the run with this base.
    pub fn decode(decoder: &mut Decoder, bytes: &[u8], base: &Base) -> Result<Self, Damaged> {
        let mut unread = Unread::column(bytes)?;
        let minutes = unread.part_of(base.events(), decoder)?;
        unread.end()?;
        if minutes.iter().any(|minute| *minute >= 60) {
            return Err(Damaged("an hour has 60 minutes"));
        }
        Ok(Self(minutes))
    }

    /// Returns the minute of each event, 0 to 59, in the order of the base's error hours.
    pub fn of_events(&self) -> &[u8] {
        &self.0
    }
}

/// Encodes one part with a byte for each event.
pub(super) fn encode(minutes: &[u8], encoder: &mut Encoder) -> Vec<u8> {
    let mut column = new_column();
    encoder.put_part(minutes, &mut column);
    column
}
