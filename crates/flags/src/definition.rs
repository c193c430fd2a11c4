//! The part of a flag that only evaluations read, as one JSON text.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{FeatureFlag, Rule, Serve, Target, Variant, VariantKey};

/// The rules by which a flag serves its variants. Flags store it as JSON text: half the size of
/// nested DynamoDB attributes, and much faster to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Definition<'f> {
    /// The flag's possible values.
    pub variants: Cow<'f, [Variant]>,
    /// The variant served while the flag is disabled.
    // Without this attribute, serde would read a missing field as null.
    #[serde(deserialize_with = "Option::deserialize")]
    pub off_variant: Option<Cow<'f, VariantKey>>,
    /// The serve if no target and no rule matches.
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
    /// Returns a flag's definition.
    pub fn of(flag: &'f FeatureFlag) -> Self {
        Self {
            variants: Cow::Borrowed(&flag.variants),
            off_variant: flag.off_variant.as_ref().map(Cow::Borrowed),
            fallthrough: Cow::Borrowed(&flag.fallthrough),
            rules: Cow::Borrowed(&flag.rules),
            targets: Cow::Borrowed(&flag.targets),
        }
    }

    /// Parses the JSON text of a definition. The types check keys, operators and weights. The
    /// values of conditions, and references to variants, are checked when the flag is compiled.
    pub fn parse(stored: &str) -> Result<Self, UnreadableDefinition> {
        serde_json::from_str(stored).map_err(UnreadableDefinition)
    }
}

#[cfg(test)]
mod tests;
