//! Conflicts that prevent changes of an import, with their remedies.

use std::fmt;

use flags::ProjectLimit;

/// Conflicts between a document and the project, with remedies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts(pub(super) Vec<Conflict>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The flag's key, or the segment.
    pub(super) name: String,
    pub(super) reason: String,
}

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for Conflict { name, reason } in &self.0 {
            write!(formatter, "{separator}  {name}: {reason}")?;
            separator = "\n";
        }
        Ok(())
    }
}

/// Describes a reached project limit and its remedy.
pub(super) fn full(limit: ProjectLimit) -> String {
    let remedy = match limit {
        ProjectLimit::LiveFlags => "archive some",
        ProjectLimit::Segments => "delete some",
        ProjectLimit::Bytes => "delete archived flags",
    };
    format!("the project {limit}; {remedy}, and run the command again")
}
