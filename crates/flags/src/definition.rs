//! The part of a flag that nothing but its evaluation looks into, as one JSON text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{FeatureFlag, Rule, Serve, Target, Variant, VariantKey};

/// What a flag serves to whom. Its JSON text is how a flag is stored: half the bytes, and a fraction
/// of the time to read, of the same as nested attributes of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition<'f> {
    /// The flag's possible values.
    pub variants: Cow<'f, [Variant]>,
    /// What is served while the flag is not enabled.
    // With a function of its own, a member that is missing is not taken for null.
    #[serde(deserialize_with = "Option::deserialize")]
    pub off_variant: Option<Cow<'f, VariantKey>>,
    /// What is served when no target and no rule matches.
    pub fallthrough: Cow<'f, Serve>,
    /// The flag's rules.
    pub rules: Cow<'f, [Rule]>,
    /// The flag's individual targets.
    pub targets: Cow<'f, [Target]>,
}

/// A stored definition that this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("a flag's definition cannot be read: {0}")]
pub struct UnreadableDefinition(#[source] serde_json::Error);

impl<'f> Definition<'f> {
    /// The definition of a flag.
    pub fn of(flag: &'f FeatureFlag) -> Self {
        Self {
            variants: Cow::Borrowed(&flag.variants),
            off_variant: flag.off_variant.as_ref().map(Cow::Borrowed),
            fallthrough: Cow::Borrowed(&flag.fallthrough),
            rules: Cow::Borrowed(&flag.rules),
            targets: Cow::Borrowed(&flag.targets),
        }
    }

    /// Reads the JSON text of a definition. Keys, operators and weights are checked, since their
    /// types can hold nothing else; the values of conditions, and whether the variants that are
    /// named exist, when the flag is compiled for its evaluation.
    pub fn parse(stored: &str) -> Result<Self, UnreadableDefinition> {
        serde_json::from_str(stored).map_err(UnreadableDefinition)
    }
}

#[cfg(test)]
mod tests;
