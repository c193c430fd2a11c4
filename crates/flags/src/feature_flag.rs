//! Feature flags (`docs/semantics/feature-flags.md`): the resource and its parts.
//!
//! The types can hold only validated values; [`super::draft`] parses requests.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Error as _, IntoDeserializer, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use shared::json::{FieldError, ViolationCode};
use shared::projects::project::ProjectId;
use shared::text::unknown_name;
use shared::timestamp::Timestamp;

use super::condition::Condition;

/// Maximum number of unarchived flags per project.
pub const MAX_LIVE_FLAGS: u32 = 2_000;
/// Maximum size of a flag in its JSON form, in bytes; a DynamoDB item can hold twice as much.
pub const MAX_FLAG_BYTES: usize = 200_000;
/// Maximum number of flags in a chain of prerequisites, including the dependent flag.
pub const MAX_PREREQUISITE_DEPTH: usize = 10;

/// `true` if `text` starts with a letter or digit, has only letters, digits, `.`, `_` and `-`, and
/// is at most `max` characters long. Such keys need no escaping in URLs and cannot traverse paths.
fn is_key(text: &str, max: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= max
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(inner)
}

macro_rules! key_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Parses the key.
            pub fn parse(text: &str) -> Result<Self, FieldError> {
                if is_key(text, $max) {
                    return Ok(Self(text.to_owned()));
                }
                Err(FieldError::new(ViolationCode::InvalidFormat, concat!(
                    $what, " starts with a letter or digit and has at most ", $max,
                    " letters, digits, `.`, `_` and `-`"
                )))
            }
        }

        shared::text_type!($name);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(|fault| D::Error::custom(fault.message))
            }
        }
    };
}

key_type!(
    /// The key that names a flag in code: unique in its project, case-sensitive, immutable.
    FlagKey, "a flag key", 128
);
key_type!(
    /// The key of a variant, unique in its flag.
    VariantKey, "a variant key", 128
);
key_type!(
    /// The key that names a segment in flags: unique in its project, case-sensitive, immutable.
    SegmentKey, "a segment key", 128
);
key_type!(
    /// The ID of a rule, unique in its flag.
    RuleId, "a rule id", 64
);

impl RuleId {
    pub(super) fn generated(uuid: Uuid) -> Self {
        Self(uuid.to_string())
    }
}

/// The type of a flag's variants, immutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlagType {
    /// `true` or `false`.
    Boolean,
    /// Any text.
    String,
    /// A JSON number.
    Number,
    /// A JSON object or array.
    Json,
}

impl FlagType {
    /// Parses a type's name. The error message lists all names.
    pub fn parse(name: &str) -> Result<Self, FieldError> {
        Self::deserialize(name.into_deserializer()).map_err(|error| unknown_name("type", &error))
    }

    /// Returns the type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Number => "number",
            Self::Json => "json",
        }
    }
}

/// A possible value of a flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The variant's key.
    pub key: VariantKey,
    /// A display name.
    pub name: String,
    /// The value as text, valid for the flag's type.
    pub value: String,
}

/// A weight in a rollout, in thousandths: 0 to 1,000,000 with at most three decimals. A share is
/// the weight's fraction of the rollout's sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    const MAX: u32 = 1_000_000;

    /// Parses a weight from the text of a JSON number. Decimals are counted in the text, since a
    /// binary float would round `0.1` and `1e-3`.
    pub fn parse(written: &str) -> Result<Self, FieldError> {
        let fault = || {
            FieldError::new(
                ViolationCode::OutOfRange,
                "must be a number from 0 to 1000000 with at most 3 decimals",
            )
        };
        let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let negative = whole.starts_with('-');
        let digits = [whole.trim_start_matches('-'), fraction].concat();
        let exponent: i64 = exponent.parse().map_err(|_| fault())?;
        // The number is `digits` × 10^(exponent − decimals of the mantissa).
        let fraction_length = i64::try_from(fraction.len()).map_err(|_| fault())?;
        let scale = exponent.checked_sub(fraction_length).and_then(|s| s.checked_add(3));
        let scale = scale.and_then(|scale| u32::try_from(scale).ok()).ok_or_else(fault)?;
        if digits.bytes().all(|digit| digit == b'0') {
            return Ok(Self(0));
        }
        let thousandths = 10_u64
            .checked_pow(scale)
            .zip(digits.parse::<u64>().ok())
            .and_then(|(power, digits)| digits.checked_mul(power))
            .and_then(|thousandths| u32::try_from(thousandths).ok())
            .ok_or_else(fault)?;
        if (negative && thousandths > 0) || thousandths > Self::MAX * 1_000 {
            return Err(fault());
        }
        Ok(Self(thousandths))
    }

    /// Returns the weight in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1_000) {
            serializer.serialize_u32(self.0 / 1_000)
        } else {
            // An f64 preserves seven digits with three decimals.
            serializer.serialize_f64(f64::from(self.0) / 1_000.0)
        }
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WeightVisitor;
        impl Visitor<'_> for WeightVisitor {
            type Value = Weight;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a weight")
            }
            fn visit_u64<E: serde::de::Error>(self, whole: u64) -> Result<Weight, E> {
                Weight::parse(&whole.to_string()).map_err(|fault| E::custom(fault.message))
            }
            fn visit_f64<E: serde::de::Error>(self, fraction: f64) -> Result<Weight, E> {
                Weight::parse(&fraction.to_string()).map_err(|fault| E::custom(fault.message))
            }
        }
        deserializer.deserialize_any(WeightVisitor)
    }
}

/// A variant and its weight in a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutEntry {
    /// The variant.
    pub variant: VariantKey,
    /// The variant's weight.
    pub weight: Weight,
}

/// The variant or rollout that a flag, rule or fallthrough serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// One variant for all contexts.
    Variant(VariantKey),
    /// A variant chosen by the targeting key. Never empty; the sum of the weights is positive.
    Rollout(Vec<RolloutEntry>),
    /// No value: the caller uses its default.
    CodeDefault,
}

impl Serve {
    /// Returns the keys of all variants that can be served.
    pub fn variants(&self) -> impl Iterator<Item = &VariantKey> {
        let (variant, rollout) = match self {
            Self::Variant(key) => (Some(key), [].as_slice()),
            Self::Rollout(entries) => (None, entries.as_slice()),
            Self::CodeDefault => (None, [].as_slice()),
        };
        variant.into_iter().chain(rollout.iter().map(|entry| &entry.variant))
    }
}

impl Serialize for Serve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (variant, rollout) = match self {
            Self::Variant(key) => (Some(key), [].as_slice()),
            Self::Rollout(entries) => (None, entries.as_slice()),
            Self::CodeDefault => (None, [].as_slice()),
        };
        let mut serve = serializer.serialize_struct("Serve", 2)?;
        serve.serialize_field("variant", &variant)?;
        serve.serialize_field("rollout", rollout)?;
        serve.end()
    }
}

impl<'de> Deserialize<'de> for Serve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "Serve", deny_unknown_fields)]
        struct SerializedServe {
            // Without this attribute, serde would read a missing field as null.
            #[serde(deserialize_with = "Option::deserialize")]
            variant: Option<VariantKey>,
            rollout: Vec<RolloutEntry>,
        }
        let SerializedServe { variant, rollout } = SerializedServe::deserialize(deserializer)?;
        match variant {
            Some(_) if !rollout.is_empty() => {
                Err(D::Error::custom("a serve has a variant and a rollout"))
            }
            Some(variant) => Ok(Self::Variant(variant)),
            None if rollout.is_empty() => Ok(Self::CodeDefault),
            None if rollout.iter().all(|entry| entry.weight.thousandths() == 0) => {
                Err(D::Error::custom("a rollout has no positive weight"))
            }
            None => Ok(Self::Rollout(rollout)),
        }
    }
}

/// A rule that serves a variant if all its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule's ID.
    pub id: RuleId,
    /// A display name, possibly empty.
    pub name: String,
    /// The conditions. An empty list holds for all contexts.
    pub conditions: Vec<Condition>,
    /// The variant or rollout that the rule serves.
    pub serve: Serve,
}

/// The attribute that a target compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The evaluation's targeting key.
    Identifier,
}

/// A target: the variant for one individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The attribute to compare.
    pub kind: TargetKind,
    /// The individual's value.
    pub value: String,
    /// The variant to serve.
    pub variant: VariantKey,
}

/// A flag that must evaluate to a certain variant before the dependent flag is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prerequisite {
    /// The required flag, in the same project.
    pub flag_key: FlagKey,
    /// The required variant.
    pub variant: VariantKey,
}

/// A feature flag, with the fields of `openapi.yaml` in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureFlag {
    /// The flag's ID.
    pub id: Uuid,
    /// The project that owns the flag.
    pub project_id: ProjectId,
    /// The flag's key.
    pub key: FlagKey,
    /// A display name.
    pub name: String,
    /// The flag's purpose.
    pub description: String,
    /// The type of the variants.
    #[serde(rename = "type")]
    pub flag_type: FlagType,
    /// `false` if only the off variant is served.
    pub enabled: bool,
    /// Time of the archiving, if archived.
    pub archived_at: Option<Timestamp>,
    /// Number of the current version, starting at 1.
    pub version: u64,
    /// The possible values.
    pub variants: Vec<Variant>,
    /// The variant served while the flag is disabled; `None` for the caller's default.
    pub off_variant: Option<VariantKey>,
    /// The serve if no target and no rule matches.
    pub fallthrough: Serve,
    /// The rules in order; the first match decides.
    pub rules: Vec<Rule>,
    /// Individuals, checked before the rules.
    pub targets: Vec<Target>,
    /// Flags that must be met first.
    pub prerequisites: Vec<Prerequisite>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// `true` if a deleted flag had this key before.
    #[serde(skip)]
    pub is_successor: bool,
}

impl FeatureFlag {
    /// Returns the flag with the next version and `now` as its update time if it differs from
    /// `stored`, else unchanged.
    pub(super) fn with_version_after(mut self, stored: &Self, now: Timestamp) -> Self {
        if self != *stored {
            self.version = stored.version.saturating_add(1);
            self.updated_at = now;
        }
        self
    }

    /// Returns the segments that the rules use.
    pub fn segments(&self) -> BTreeSet<SegmentKey> {
        let conditions = self.rules.iter().flat_map(|rule| &rule.conditions);
        let named =
            conditions.filter(|it| it.operator.is_about_segments()).flat_map(|it| &it.values);
        // Writes reject invalid keys. If one is stored, compiling the flag fails.
        named.filter_map(|key| SegmentKey::parse(key).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_need_no_escaping_and_cannot_traverse_paths() {
        for text in ["a", "7", "new-checkout", "A.b_c-d", &"k".repeat(128)] {
            assert!(FlagKey::parse(text).is_ok(), "{text:?}");
        }
        for text in [
            "",
            ".",
            "..",
            "-a",
            "_a",
            ".a",
            "a/b",
            "a:b",
            "a?b",
            "a|b",
            "a b",
            "a%2Fb",
            "é",
            "a\n",
            &"k".repeat(129),
        ] {
            assert!(FlagKey::parse(text).is_err(), "{text:?}");
        }
        assert!(RuleId::parse(&"r".repeat(64)).is_ok());
        assert!(RuleId::parse(&"r".repeat(65)).is_err());
    }

    #[test]
    fn weights_count_written_decimals() {
        for (written, thousandths, shown) in [
            ("0", 0, "0"),
            ("-0", 0, "0"),
            ("0.000", 0, "0"),
            ("0e-3", 0, "0"),
            ("0e99", 0, "0"),
            ("50", 50_000, "50"),
            ("33.3", 33_300, "33.3"),
            ("33.333", 33_333, "33.333"),
            ("0.001", 1, "0.001"),
            ("1e-3", 1, "0.001"),
            ("1.5e2", 150_000, "150"),
            ("1E+6", 1_000_000_000, "1000000"),
            ("1000000.000", 1_000_000_000, "1000000"),
            ("999999.999", 999_999_999, "999999.999"),
        ] {
            let weight = Weight::parse(written).unwrap();
            assert_eq!(weight.thousandths(), thousandths, "{written}");
            assert_eq!(serde_json::to_string(&weight).unwrap(), shown);
        }
    }

    #[test]
    fn weights_out_of_range_are_rejected() {
        for written in [
            "-1",
            "-0.001",
            "1000000.001",
            "1000001",
            "0.0001",
            "33.3333",
            "1.0000",
            "0.0000",
            "1e-4",
            "0.30000000000000004",
            "1e7",
            "1e400",
            "1e-400",
            "99999999999999999999999",
            "1e9223372036854775807",
            "1e-9223372036854775808",
            "1e99999999999999999999",
        ] {
            assert!(Weight::parse(written).is_err(), "{written}");
        }
    }

    #[test]
    fn serves_always_serialize_both_fields() {
        let on = VariantKey::parse("on").unwrap();
        let entry = RolloutEntry { variant: on.clone(), weight: Weight::parse("12.5").unwrap() };
        for (serve, shown) in [
            (Serve::Variant(on), r#"{"variant":"on","rollout":[]}"#),
            (
                Serve::Rollout(vec![entry]),
                r#"{"variant":null,"rollout":[{"variant":"on","weight":12.5}]}"#,
            ),
            (Serve::CodeDefault, r#"{"variant":null,"rollout":[]}"#),
        ] {
            assert_eq!(serde_json::to_string(&serve).unwrap(), shown);
        }
    }

    mod properties {
        use super::super::Weight;
        use proptest::prelude::*;

        proptest! {
            #[test]
            fn weights_survive_serialization(thousandths in 0..=1_000_000_000_u32) {
                let shown = serde_json::to_string(&Weight(thousandths)).unwrap();
                prop_assert_eq!(Weight::parse(&shown).unwrap(), Weight(thousandths));
            }

            #[test]
            fn weight_parser_never_panics(written in r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,22})?") {
                let _ = Weight::parse(&written);
            }
        }
    }
}
