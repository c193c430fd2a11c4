//! Compacts runs of one day into one without decoding rows: 500 MB of rows are about 70 MB of
//! indexes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    Base, Column, ColumnName, Columns, Damaged, Decoder, Encoder, Fingerprint, MAX_EVENTS, Minutes,
    PackError, PackedEvent, TagKey, TextCategory, TextValues, Users, encode, position, sort_order,
};
use crate::tag::MAX_TAG_KEYS;

/// Maximum tags of a compacted run, each of which takes memory for each event. A DSN holder can replace
/// the keys of a project many times a day.
const MAX_TAGS: usize = 2 * MAX_TAG_KEYS;

/// The reason why runs cannot be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompactionError {
    /// The columns of a run are inconsistent.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The runs are together too large for one run.
    #[error(transparent)]
    TooLarge(#[from] PackError),
}

/// A run with all columns decoded.
#[derive(Debug)]
pub struct DecodedRun {
    base: Base,
    minutes: Minutes,
    columns: BTreeMap<TextCategory, Column>,
    tags: BTreeSet<TagKey>,
    users: Users,
}

impl DecodedRun {
    /// Decodes all columns of a run.
    pub fn decode(decoder: &mut Decoder, columns: &Columns) -> Result<Self, Damaged> {
        let base = Base::decode(decoder, columns.get(ColumnName::Base)?)?;
        let minutes = Minutes::decode(decoder, columns.get(ColumnName::Minutes)?, &base)?;
        let tags: BTreeSet<TagKey> = columns.tags().collect();
        let mut texts = BTreeMap::new();
        for text in sort_order(tags.clone()) {
            texts.insert(text, columns.texts(text, decoder, &base)?);
        }
        let users = columns.users(decoder, &base)?;
        Ok(Self { base, minutes, columns: texts, tags, users })
    }
}

/// Returns one run of all events of these runs of one day.
///
/// Drops events for which `is_hidden` is `true`, given the number of their run and their
/// fingerprint. The result has the same bytes as if the events had been packed together, without tags
/// beyond [`MAX_TAGS`].
pub fn merge(
    runs: &[DecodedRun],
    is_hidden: impl Fn(usize, Fingerprint) -> bool,
) -> Result<Columns, CompactionError> {
    if runs.iter().map(|run| run.base.events()).sum::<usize>() > MAX_EVENTS {
        return Err(PackError::TooManyEvents.into());
    }
    let kept = |(number, run)| kept_fingerprints(number, run, &is_hidden);
    let kept: Vec<Vec<Option<Fingerprint>>> = runs.iter().enumerate().map(kept).collect();
    let fingerprints: BTreeSet<Fingerprint> = kept.iter().flatten().copied().flatten().collect();
    let fingerprints: Vec<Fingerprint> = fingerprints.into_iter().collect();

    let tags = kept_tags(runs, &kept);
    let texts = sort_order(tags);
    let mut events = Vec::new();
    let mut values: Vec<TextValues<'_>> = Vec::with_capacity(texts.len());
    let mut merged = Vec::with_capacity(runs.len());
    for (run, kept) in runs.iter().zip(&kept) {
        let first = events.len();
        add_events(run, kept, &fingerprints, texts.len(), &mut events)?;
        merged.push(first..events.len());
    }
    for (place, text) in texts.into_iter().enumerate() {
        let columns = || {
            let of_runs = runs.iter().zip(&kept).zip(&merged);
            of_runs.map(|((run, kept), range)| (run.columns.get(&text), run, kept, range))
        };
        // Drop values that only hidden events have: the bytes must depend only on counted events.
        let used: BTreeSet<Option<&str>> = columns()
            .flat_map(|(column, run, kept, range)| {
                let missing = (column.is_none() && !range.is_empty()).then_some(None);
                let values = column.into_iter().flat_map(move |column| {
                    let of_events = column.values_of_events().zip(kept_events(run, kept));
                    of_events.filter(|(_, kept)| *kept).map(|(value, _)| value)
                });
                values.chain(missing)
            })
            .collect();
        let values_of_text: Vec<Option<&str>> = used.into_iter().collect();
        for (column, run, kept, range) in columns() {
            // A run without the column has no values, whose index is 0.
            let Some(column) = column else { continue };
            let (values, kept) = (&values_of_text, kept_events(run, kept));
            let places: Vec<Option<u32>> =
                column.values().map(|value| self::position(values, &value)).collect();
            let indexes = column.indexes().iter().zip(kept).filter(|(_, kept)| *kept);
            let events = events.get_mut(range.clone()).unwrap_or_default();
            for (event, (index, _)) in events.iter_mut().zip(indexes) {
                let index = places.get(*index as usize).copied().flatten();
                let index = index.ok_or(Damaged("an event has an unknown value"))?;
                if let Some(value) = event.values.get_mut(place) {
                    *value = index;
                }
            }
        }
        values.push(TextValues { text, values: values_of_text });
    }
    Ok(encode(Encoder::new(), &fingerprints, &values, events)?)
}

/// Returns the tags that kept events have, at most the [`MAX_TAGS`] most frequent ones.
fn kept_tags(runs: &[DecodedRun], kept: &[Vec<Option<Fingerprint>>]) -> BTreeSet<TagKey> {
    let mut counts: BTreeMap<TagKey, usize> = BTreeMap::new();
    for (run, kept) in runs.iter().zip(kept) {
        for key in &run.tags {
            let column = run.columns.get(&TextCategory::Tag(*key));
            let values = column.into_iter().flat_map(Column::values_of_events);
            let of_events = values.zip(kept_events(run, kept));
            let tagged = of_events.filter(|(value, is_kept)| *is_kept && value.is_some());
            *counts.entry(*key).or_default() += tagged.count();
        }
    }
    let used = counts.into_iter().filter(|(_, count)| *count > 0);
    let mut ranked: Vec<(Reverse<usize>, TagKey)> =
        used.map(|(key, count)| (Reverse(count), key)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MAX_TAGS).map(|(_, key)| key).collect()
}

/// Returns the fingerprints of a run, `None` for hidden ones.
fn kept_fingerprints(
    number: usize,
    run: &DecodedRun,
    is_hidden: impl Fn(usize, Fingerprint) -> bool,
) -> Vec<Option<Fingerprint>> {
    let fingerprints = run.base.fingerprints().iter();
    fingerprints.map(|it| (!is_hidden(number, *it)).then_some(*it)).collect()
}

/// Returns for each event of a run whether it is kept.
fn kept_events(run: &DecodedRun, kept: &[Option<Fingerprint>]) -> impl Iterator<Item = bool> {
    run.base.error_hours().iter().flat_map(|error_hour| {
        let is_kept = kept.get(error_hour.fingerprint as usize).is_some_and(Option::is_some);
        std::iter::repeat_n(is_kept, error_hour.count())
    })
}

/// Adds the kept events of a run without their values.
fn add_events(
    run: &DecodedRun,
    kept: &[Option<Fingerprint>],
    fingerprints: &[Fingerprint],
    texts: usize,
    events: &mut Vec<PackedEvent>,
) -> Result<(), Damaged> {
    let mut events_of_run = run.minutes.of_events().iter().zip(run.users.of_events());
    for error_hour in run.base.error_hours() {
        let of_hour = events_of_run.by_ref().take(error_hour.count());
        let Some(fingerprint) = kept.get(error_hour.fingerprint as usize).copied().flatten() else {
            of_hour.for_each(drop);
            continue;
        };
        let fingerprint = position(fingerprints, &fingerprint);
        let fingerprint = fingerprint.ok_or(Damaged("an event has an unknown error"))?;
        let hour = error_hour.hour;
        let event = |(&minute, &user)| {
            let values = vec![0; texts].into_boxed_slice();
            PackedEvent { fingerprint, hour, values, user, minute }
        };
        events.extend(of_hour.map(event));
    }
    Ok(())
}
