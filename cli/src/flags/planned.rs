//! Planned actions of an import, for flags and for segments.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::comparison::FieldChange;

/// A flag or a segment.
pub(super) trait Imported {
    /// Returns the name in the text output.
    fn name(&self) -> String;

    /// Summarizes it in a few words.
    fn brief(&self) -> String;
}

/// Planned action for one flag or segment.
#[derive(Debug)]
pub(super) enum Planned<T> {
    Created(T),
    Changed(Box<Change<T>>),
    Unchanged(T),
    /// In the project but not in the document.
    LeftAlone(T),
}

/// The stored version and the new one.
#[derive(Debug)]
pub(super) struct Change<T> {
    pub(super) stored: T,
    pub(super) new: T,
    pub(super) fields: Vec<FieldChange>,
}

impl<T> Planned<T> {
    /// Returns the flag or segment after the import.
    pub(super) fn outcome(&self) -> &T {
        match self {
            Self::Created(new) | Self::Unchanged(new) | Self::LeftAlone(new) => new,
            Self::Changed(change) => &change.new,
        }
    }

    /// `true` if the flag or segment has to be written.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Changed(_))
    }
}

/// Planned actions for the flags or segments of a project, by key.
#[derive(Debug)]
pub(super) struct Actions<K, T>(pub(super) BTreeMap<K, Planned<T>>);

/// An action in the JSON output.
#[derive(Serialize)]
pub(super) struct PlanEntry<'p, K> {
    key: &'p K,
    action: &'static str,
    changes: &'p [FieldChange],
}

impl<K, T> Actions<K, T> {
    /// Returns the number of flags or segments to write.
    pub(super) fn count_changes(&self) -> usize {
        self.count(Planned::is_change)
    }

    fn count(&self, is_counted: impl Fn(&Planned<T>) -> bool) -> usize {
        self.0.values().filter(|planned| is_counted(planned)).count()
    }

    /// Returns the counts of actions as text.
    pub(super) fn counts(&self) -> String {
        format!(
            "{} created, {} changed, {} unchanged, {} left alone",
            self.count(|planned| matches!(planned, Planned::Created(_))),
            self.count(|planned| matches!(planned, Planned::Changed(_))),
            self.count(|planned| matches!(planned, Planned::Unchanged(_))),
            self.count(|planned| matches!(planned, Planned::LeftAlone(_))),
        )
    }

    /// Returns the actions as JSON output.
    pub(super) fn shown(&self) -> Vec<PlanEntry<'_, K>> {
        self.0.iter().map(PlanEntry::of).collect()
    }
}

impl<'p, K> PlanEntry<'p, K> {
    fn of<T>((key, planned): (&'p K, &'p Planned<T>)) -> Self {
        let (action, changes) = match planned {
            Planned::Created(_) => ("create", &[][..]),
            Planned::Changed(change) => ("change", change.fields.as_slice()),
            Planned::Unchanged(_) => ("none", &[][..]),
            Planned::LeftAlone(_) => ("not_in_document", &[][..]),
        };
        Self { key, action, changes }
    }
}

/// The text output: each flag or segment on a line, followed by its changes.
impl<K, T: Imported> fmt::Display for Actions<K, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for planned in self.0.values() {
            let name = planned.outcome().name();
            match planned {
                Planned::Created(new) => {
                    writeln!(formatter, "+ {name}: created, {}", new.brief())?;
                }
                Planned::Unchanged(_) => writeln!(formatter, "= {name}: unchanged")?,
                Planned::LeftAlone(_) => {
                    writeln!(formatter, "? {name}: not in the file, left alone")?;
                }
                Planned::Changed(change) => {
                    writeln!(formatter, "~ {name}: changed")?;
                    for change in &change.fields {
                        let lines = change.to_string();
                        writeln!(formatter, "    {}", lines.replace('\n', "\n    "))?;
                    }
                }
            }
        }
        Ok(())
    }
}
