//! Runs: sorted events of a project's day, in a few bytes each.
//!
//! A run has a `base` column with fingerprints, hours and counts, a `minutes` column, and one column
//! for each attribute and tag. Each column can be stored and read alone: a query reads the base and
//! the columns that its filters need.
//!
//! All columns list events by fingerprint, hour, attributes, tags and minute. So similar events are
//! adjacent, which zstd (RFC 8878) compresses well.
//!
//! Every column starts with a format version. Numbers are LEB128. Parts are compressed if that
//! makes them smaller.

mod base;
mod column;
mod encoding;
mod minutes;
mod totals;
mod users;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::day::{Day, MINUTES_PER_DAY, minute_of, start_of_minute};
use super::row::EventRow;
use crate::attribute::{Attribute, hash_of_user, user_of_hash};
use crate::category::{Attributes, Category};
use crate::grouping::Fingerprint;
use crate::tag::TagKey;

pub use base::{Base, ErrorHour};
pub use column::Column;
pub use encoding::{Damaged, Decoder};
pub use minutes::Minutes;
pub use totals::{Total, Totals};

pub(super) use encoding::{Unread, put_bytes, put_number, put_wide_number};

use encoding::Encoder;

/// Maximum events of a run. A run that claims more is damaged.
pub const MAX_EVENTS: usize = 4_000_000;

/// Maximum bytes of an attribute's distinct values and their lengths.
const MAX_VALUES_BYTES: usize = 64 << 20;

/// The order in which attributes sort events. Attributes that depend on the error come first: they
/// rarely differ between its events.
const SORT_ORDER: [Attribute; Attribute::ALL.len()] = [
    Attribute::Platform,
    Attribute::Level,
    Attribute::Type,
    Attribute::Handled,
    Attribute::Transaction,
    Attribute::Culprit,
    Attribute::Url,
    Attribute::Environment,
    Attribute::Release,
    Attribute::Os,
    Attribute::Browser,
    Attribute::Device,
    Attribute::Bot,
    Attribute::Country,
    Attribute::User,
];

/// The name of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ColumnName {
    /// Fingerprints, hours and counts, which every query needs.
    Base,
    /// The minute of each event within its hour.
    Minutes,
    /// An attribute or a tag of each event.
    Category(Category),
}

impl ColumnName {
    /// Returns the names of all columns that every run can have. A run also has tags.
    pub fn all() -> impl Iterator<Item = Self> {
        let attributes = Attribute::ALL.into_iter().map(|it| Self::Category(it.into()));
        [Self::Base, Self::Minutes].into_iter().chain(attributes)
    }

    /// Returns the stored name.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Base => Cow::Borrowed("base"),
            Self::Minutes => Cow::Borrowed("minutes"),
            Self::Category(category) => category.name(),
        }
    }

    /// Returns the column with this stored name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "base" => Some(Self::Base),
            "minutes" => Some(Self::Minutes),
            name => Category::parse(name).map(Self::Category),
        }
    }

    /// `true` for the column of a tag.
    pub fn is_tag(self) -> bool {
        matches!(self, Self::Category(Category::Tag(_)))
    }
}

/// Encoded columns of one run: all of them, or those that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns(BTreeMap<ColumnName, Vec<u8>>);

impl Columns {
    /// Returns the columns and their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (ColumnName, &[u8])> {
        self.0.iter().map(|(name, bytes)| (*name, bytes.as_slice()))
    }

    /// Returns the bytes of a column. A missing column is damaged.
    pub fn get(&self, name: ColumnName) -> Result<&[u8], Damaged> {
        self.0.get(&name).map(Vec::as_slice).ok_or(Damaged("a column is missing"))
    }

    /// Returns the tags that have a column.
    pub fn tags(&self) -> impl Iterator<Item = TagKey> {
        self.0.keys().filter_map(|name| match name {
            ColumnName::Category(Category::Tag(key)) => Some(*key),
            _ => None,
        })
    }

    /// Returns the bytes of the distinct values of all attributes and tags before compression. Decoding them
    /// takes this much memory.
    pub fn values_bytes(&self) -> Result<u64, Damaged> {
        let attributes = self.iter().filter(
            |(name, _)| matches!(name, ColumnName::Category(category) if category.has_texts()),
        );
        attributes.map(|(_, column)| Ok(column::values_length(column)? as u64)).sum()
    }

    /// Returns an attribute or tag of the events in the run with this base. A run without the column
    /// of a tag has no event with the tag.
    pub fn values(
        &self,
        category: Category,
        decoder: &mut Decoder,
        base: &Base,
    ) -> Result<Column, Damaged> {
        let name = ColumnName::Category(category);
        match self.get(name) {
            Err(_) if name.is_tag() => Ok(Column::unset(base)),
            _ if category == Attribute::User.into() => {
                let users = self.users(decoder, base)?.into_iter();
                Ok(Column::of_events(users.map(|user| user.map(user_of_hash).map(Box::from))))
            }
            bytes => Column::decode(decoder, bytes?, base),
        }
    }

    /// Returns the hashes of the users of the events in the run with this base, without their texts.
    pub fn users(&self, decoder: &mut Decoder, base: &Base) -> Result<Vec<Option<u64>>, Damaged> {
        let name = ColumnName::Category(Attribute::User.into());
        users::decode(decoder, self.get(name)?, base)
    }
}

impl FromIterator<(ColumnName, Vec<u8>)> for Columns {
    fn from_iter<I: IntoIterator<Item = (ColumnName, Vec<u8>)>>(columns: I) -> Self {
        Self(columns.into_iter().collect())
    }
}

/// The reason why events cannot be packed into one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// There are too many events.
    #[error("a run holds at most {MAX_EVENTS} events")]
    TooManyEvents,
    /// The distinct values of an attribute are too long.
    #[error("the values of an attribute have at most {MAX_VALUES_BYTES} bytes together")]
    ValuesTooLong,
    /// An event belongs to another day.
    #[error("a run holds events of one day")]
    OtherDay,
}

/// Packs events of one day. The bytes do not depend on the order of `rows`.
pub fn pack(day: Day, rows: &[EventRow]) -> Result<Columns, PackError> {
    pack_with(Encoder::new(), day, rows)
}

/// Packs events that stay in memory.
pub fn pack_uncompressed(day: Day, rows: &[EventRow]) -> Result<Columns, PackError> {
    pack_with(Encoder::uncompressed(), day, rows)
}

fn pack_with(encoder: Encoder, day: Day, rows: &[EventRow]) -> Result<Columns, PackError> {
    if rows.len() > MAX_EVENTS {
        return Err(PackError::TooManyEvents);
    }
    let fingerprints: BTreeSet<Fingerprint> = rows.iter().map(|row| row.fingerprint).collect();
    let fingerprints: Vec<Fingerprint> = fingerprints.into_iter().collect();
    let tags: BTreeSet<TagKey> =
        rows.iter().flat_map(|row| row.attributes.tags()).map(|(key, _)| key).collect();
    let categories = sort_order(tags);
    let values: Vec<DistinctValues<'_>> = categories
        .into_iter()
        .map(|of| DistinctValues { of, values: column::distinct_values(rows, of) })
        .collect();
    let events: Option<Vec<PackedEvent>> =
        rows.iter().map(|row| PackedEvent::new(day, row, &fingerprints, &values)).collect();
    encode(encoder, &fingerprints, &values, events.ok_or(PackError::OtherDay)?)
}

/// Returns the categories that sort events, in order: all attributes, then these tags.
fn sort_order(tags: BTreeSet<TagKey>) -> Vec<Category> {
    let attributes = SORT_ORDER.into_iter().map(Category::Attribute);
    attributes.chain(tags.into_iter().map(Category::Tag)).collect()
}

/// The distinct values of a category in ascending order, `None` first.
struct DistinctValues<'v> {
    of: Category,
    values: Vec<Option<&'v str>>,
}

/// Encodes the columns of events. `fingerprints` and `values` are in ascending order.
fn encode(
    mut encoder: Encoder,
    fingerprints: &[Fingerprint],
    values: &[DistinctValues<'_>],
    mut events: Vec<PackedEvent>,
) -> Result<Columns, PackError> {
    if values.iter().any(|it| column::encoded_length(&it.values) > MAX_VALUES_BYTES) {
        return Err(PackError::ValuesTooLong);
    }
    events.sort_unstable();
    let minutes: Vec<u8> = events.iter().map(|event| event.minute).collect();
    let mut columns = BTreeMap::from([
        (ColumnName::Base, base::encode(fingerprints, &error_hours_of(&events), &mut encoder)),
        (ColumnName::Minutes, minutes::encode(&minutes, &mut encoder)),
    ]);
    for (position, DistinctValues { of, values }) in values.iter().enumerate() {
        let indexes = events.iter().filter_map(|event| event.values.get(position).copied());
        let column = if *of == Attribute::User.into() {
            let hashes: Vec<Option<u64>> =
                values.iter().map(|user| hash_of_user((*user)?)).collect();
            let user = |index: u32| hashes.get(index as usize).copied().flatten();
            users::encode(&indexes.map(user).collect::<Vec<_>>(), &mut encoder)
        } else {
            column::encode(values, &indexes.collect::<Vec<_>>(), &mut encoder)
        };
        columns.insert(ColumnName::Category(*of), column);
    }
    Ok(Columns(columns))
}

/// Returns the events of a run of `day`, in no particular order. Times are rounded down to the
/// minute.
pub fn unpack(day: Day, columns: &Columns) -> Result<Vec<EventRow>, Damaged> {
    let mut decoder = Decoder::new();
    let base = Base::decode(&mut decoder, columns.get(ColumnName::Base)?)?;
    let minutes = Minutes::decode(&mut decoder, columns.get(ColumnName::Minutes)?, &base)?;
    let mut rows = Vec::with_capacity(base.events());
    let minute_of_event =
        |hour: u8, minute: u8| day.first_minute() + i64::from(hour) * 60 + i64::from(minute);
    let hours = base.error_hours().iter().flat_map(|error_hour| {
        std::iter::repeat_n((error_hour, base.fingerprint(error_hour)), error_hour.count())
    });
    for ((error_hour, fingerprint), minute) in hours.zip(minutes.of_events()) {
        rows.push(EventRow {
            occurred_at: start_of_minute(minute_of_event(error_hour.hour, *minute)),
            fingerprint,
            attributes: Attributes::default(),
        });
    }
    for attribute in Attribute::ALL {
        let column = columns.values(attribute.into(), &mut decoder, &base)?;
        for (row, value) in rows.iter_mut().zip(column.values_of_events()) {
            row.attributes.set(attribute, value.map(str::to_owned));
        }
    }
    for key in columns.tags() {
        let column = columns.values(Category::Tag(key), &mut decoder, &base)?;
        for (row, value) in rows.iter_mut().zip(column.values_of_events()) {
            row.attributes.set_tag(key, value.unwrap_or_default().to_owned());
        }
    }
    Ok(rows)
}

/// An event to encode. Fields are in sort order, fingerprint and values as indexes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PackedEvent {
    fingerprint: u32,
    hour: u8,
    /// An index into the category's distinct values, in the order of [`sort_order`].
    values: Box<[u32]>,
    minute: u8,
}

impl PackedEvent {
    /// Returns `None` if the event is of another day.
    fn new(
        day: Day,
        row: &EventRow,
        fingerprints: &[Fingerprint],
        values: &[DistinctValues<'_>],
    ) -> Option<Self> {
        let minute = minute_of(row.occurred_at).checked_sub(day.first_minute())?;
        let minute = u16::try_from(minute).ok().filter(|m| i64::from(*m) < MINUTES_PER_DAY)?;
        let index = |it: &DistinctValues<'_>| position(&it.values, &row.attributes.text(it.of));
        Some(Self {
            fingerprint: position(fingerprints, &row.fingerprint)?,
            hour: u8::try_from(minute / 60).ok()?,
            values: values.iter().map(index).collect::<Option<_>>()?,
            minute: u8::try_from(minute % 60).ok()?,
        })
    }
}

fn position<T: Ord>(sorted: &[T], value: &T) -> Option<u32> {
    sorted.binary_search(value).ok().and_then(|index| u32::try_from(index).ok())
}

fn error_hours_of(events: &[PackedEvent]) -> Vec<ErrorHour> {
    let error_hours = events.chunk_by(|a, b| (a.fingerprint, a.hour) == (b.fingerprint, b.hour));
    let error_hour_of = |events: &[PackedEvent]| {
        let PackedEvent { fingerprint, hour, .. } = *events.first()?;
        Some(ErrorHour::new(fingerprint, hour, u32::try_from(events.len()).ok()?))
    };
    error_hours.filter_map(error_hour_of).collect()
}

#[cfg(test)]
mod tests;
