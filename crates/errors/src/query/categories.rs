//! The response of list-error-categories (`docs/semantics/error-tracking.md`, "Error queries"),
//! which clients pass to interpret-error-filters.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use shared::timestamp::Timestamp;

use super::counted_run::{Accumulator, CountedRun};
use super::day_plan::Counted;
use super::event_query::EventQuery;
use super::time_bucket::QueryRange;
use crate::attribute::Attribute;
use crate::category::Category;
use crate::log::day::MINUTES_PER_DAY;
use crate::log::run::{Damaged, Decoder};
use crate::tag::TagKey;

/// Minutes that values are listed after they were last seen: 30 days.
const LISTED_MINUTES: i64 = 30 * MINUTES_PER_DAY;
/// Maximum values of a category.
const MAX_VALUES: usize = 200;
/// Maximum values of all categories, which interpret-error-filters accepts.
const MAX_VALUES_TOGETHER: usize = 2_000;
/// Maximum bytes of all values as JSON: clients send it to interpret-error-filters unchanged, whose
/// limit also covers the rest of the request. Senders of events can invent long values.
const MAX_BYTES_TOGETHER: usize = 200 * 1_024;
/// Returns the query of the events whose values are listed at `now`.
pub fn listed_events(now: Timestamp) -> EventQuery {
    EventQuery::all(QueryRange::until(now, LISTED_MINUTES))
}

/// A category in the format of interpret-error-filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedCategory {
    /// The ID that filters use.
    pub id: Cow<'static, str>,
    /// The name for users.
    pub label: String,
    /// The values, the most frequent first. Empty if values are not listed.
    pub values: Vec<String>,
    /// `true` if the values are numbers.
    pub is_numeric: bool,
    /// `true` if the values are `true` and `false`.
    pub is_boolean: bool,
    /// `true` if an event can have several values.
    pub is_array: bool,
}

/// Maximum values of a category that are counted. A further value discards the rarer half: senders
/// of events can invent values, and only frequent values are listed.
const MAX_COUNTED: usize = 20_000;

/// The number of events of each value of a category.
#[derive(Debug, Default)]
struct Frequencies(HashMap<Box<str>, u64>);

impl Frequencies {
    fn add(&mut self, value: &str, count: u64) {
        if let Some(counted) = self.0.get_mut(value) {
            *counted += count;
            return;
        }
        if self.0.len() >= MAX_COUNTED {
            let counts = std::mem::take(&mut self.0);
            self.0 = most_frequent(counts).take(MAX_COUNTED / 2).collect();
        }
        self.0.insert(value.into(), count);
    }
}

fn most_frequent(counts: HashMap<Box<str>, u64>) -> impl Iterator<Item = (Box<str>, u64)> {
    let mut values: Vec<(Box<str>, u64)> = counts.into_iter().collect();
    values.sort_unstable_by(|(one, one_count), (other, other_count)| {
        (Reverse(one_count), one).cmp(&(Reverse(other_count), other))
    });
    values.into_iter()
}

/// The number of events of each value of the listed categories.
#[derive(Debug)]
pub struct ValueCounts {
    listed: Vec<Category>,
    /// In the order of `listed`.
    counts: Vec<Frequencies>,
}

impl ValueCounts {
    /// Returns empty counts of the listed attributes and these tags. The values of URLs are not
    /// listed: they are too many.
    pub fn new(tags: &[TagKey]) -> Self {
        let attributes = Attribute::texts().filter(|it| *it != Attribute::Url);
        let attributes = attributes.map(Category::Attribute);
        let tags = tags.iter().copied().map(Category::Tag);
        let listed: Vec<Category> = attributes.chain(tags).collect();
        let counts = listed.iter().map(|_| Frequencies::default()).collect();
        Self { listed, counts }
    }

    /// Returns the response.
    pub fn into_categories(self) -> Vec<ListedCategory> {
        let listed = self.counts.into_iter().map(|Frequencies(counts)| {
            let values = most_frequent(counts).take(MAX_VALUES);
            values.map(|(value, _)| String::from(value)).collect::<Vec<_>>()
        });
        let mut values: Vec<Vec<String>> = listed.collect();
        let bytes: Vec<Vec<usize>> =
            values.iter().map(|values| values.iter().map(|it| json_bytes(it)).collect()).collect();
        let most = most_of_each(&bytes);
        for values in &mut values {
            values.truncate(most);
        }
        let mut values: HashMap<Category, Vec<String>> =
            self.listed.iter().copied().zip(values).collect();
        let tags = self.listed.iter().copied().filter(|it| matches!(it, Category::Tag(_)));
        let all = Attribute::texts().map(Category::Attribute).chain(tags);
        let category = |category: Category| ListedCategory {
            id: category.name(),
            label: match category {
                Category::Attribute(attribute) => attribute.label(),
                Category::Tag(key) => key.to_string(),
            },
            values: values.remove(&category).unwrap_or_default(),
            is_numeric: false,
            is_boolean: matches!(
                category,
                Category::Attribute(Attribute::Handled | Attribute::Bot)
            ),
            is_array: false,
        };
        all.map(category).collect()
    }
}

/// Returns the number of values to which each list is cut, so that all lists fit together. The
/// longest lists are cut first. `lists` has the bytes of the values of each list.
fn most_of_each(lists: &[Vec<usize>]) -> usize {
    let fit = |most: &usize| {
        let kept = lists.iter().map(|list| list.get(..*most).unwrap_or(list));
        let (mut values, mut bytes) = (0, 0);
        for list in kept {
            values += list.len();
            bytes += list.iter().sum::<usize>();
        }
        values <= MAX_VALUES_TOGETHER && bytes <= MAX_BYTES_TOGETHER
    };
    (0..=MAX_VALUES).rev().find(fit).unwrap_or_default()
}

/// Returns the maximum bytes of a text and a comma in JSON, for a client that escapes every
/// possible character.
fn json_bytes(text: &str) -> usize {
    const QUOTES_AND_COMMA: usize = 3;
    let of_character = |c: char| match c {
        '"' | '\\' => 2,
        ' '..='~' => 1,
        // `\uXXXX`, twice for characters beyond the basic plane.
        c => 6 * c.len_utf16(),
    };
    QUOTES_AND_COMMA + text.chars().map(of_character).sum::<usize>()
}

impl Accumulator for ValueCounts {
    fn counted(&self) -> Counted {
        Counted { categories: self.listed.clone(), ..Counted::default() }
    }

    fn add(&mut self, run: &CountedRun<'_>, decoder: &mut Decoder) -> Result<(), Damaged> {
        let mut positions = Vec::with_capacity(run.base.events());
        run.for_each(|_, _, event| positions.push(event));
        for (category, counts) in self.listed.iter().zip(&mut self.counts) {
            let column = run.columns.values(*category, decoder, &run.base)?;
            let mut of_run = vec![0; column.values().count()];
            let indexes = positions.iter().filter_map(|event| column.indexes().get(*event));
            for index in indexes {
                if let Some(count) = of_run.get_mut(*index as usize) {
                    *count += 1;
                }
            }
            for (value, count) in column.values().zip(of_run) {
                if let Some(value) = value.filter(|_| count > 0) {
                    counts.add(value, count);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
