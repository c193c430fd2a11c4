//! Feature flags (`docs/semantics/feature-flags.md`): the resource and its parts.
//!
//! The types can only hold what passed validation; [`super::draft`] reads a request into them.

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

/// The most flags of a project that are not archived.
pub const MAX_LIVE_FLAGS: u32 = 2_000;
/// The most bytes of a flag in its JSON form; a DynamoDB item holds twice as much.
pub const MAX_FLAG_BYTES: usize = 200_000;
/// The most flags in a chain of prerequisites, the dependent flag included.
pub const MAX_PREREQUISITE_DEPTH: usize = 10;

/// Whether `text` starts with a letter or digit and goes on with letters, digits, `.`, `_`, `-`,
/// at most `max` in all. Such names need no escaping in a URL and cannot climb a path.
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
            /// Reads the key.
            pub fn parse(text: &str) -> Result<Self, FieldError> {
                if is_key(text, $max) {
                    return Ok(Self(text.to_owned()));
                }
                Err(FieldError::new(ViolationCode::InvalidFormat, concat!(
                    $what, " starts with a letter or digit and has at most ", $max,
                    " letters, digits, `.`, `_` and `-`"
                )))
            }

            /// The key's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(|fault| D::Error::custom(fault.message))
            }
        }
    };
}

key_type!(
    /// The key by which code names a flag: unique in its project, case-sensitive, never changed.
    FlagKey, "a flag key", 128
);
key_type!(
    /// The key of a variant, unique in its flag.
    VariantKey, "a variant key", 128
);
key_type!(
    /// The key by which flags name a segment: unique in its project, case-sensitive, never changed.
    SegmentKey, "a segment key", 128
);
key_type!(
    /// The identifier of a rule, unique in its flag.
    RuleId, "a rule id", 64
);

impl RuleId {
    pub(super) fn generated(uuid: Uuid) -> Self {
        Self(uuid.to_string())
    }
}

/// What a flag's variants hold. It never changes after creation.
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
    /// Reads a type's name. The message of a refusal lists all names.
    pub fn parse(name: &str) -> Result<Self, FieldError> {
        Self::deserialize(name.into_deserializer()).map_err(|error| unknown_name("type", &error))
    }

    /// The type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Number => "number",
            Self::Json => "json",
        }
    }
}

/// One of the values that a flag can have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its key.
    pub key: VariantKey,
    /// Its name for people.
    pub name: String,
    /// Its value as text, valid for the flag's type.
    pub value: String,
}

/// A share of a rollout, in thousandths: 0 to 1,000,000 with at most three decimals. Shares are
/// relative to the sum of their rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    const MAX: u32 = 1_000_000;

    /// Reads a weight from a JSON number as written. Decimals are counted in that text, so that
    /// neither `0.1` nor `1e-3` depends on what a binary float makes of it.
    pub fn parse(written: &str) -> Result<Self, FieldError> {
        let fault = || {
            FieldError::new(
                ViolationCode::OutOfRange,
                "a weight is a number from 0 to 1000000 with at most 3 decimals",
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

    /// The weight in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(1_000) {
            serializer.serialize_u32(self.0 / 1_000)
        } else {
            // Three decimals of at most seven digits survive the shortest form of an f64.
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

/// A variant's share of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutEntry {
    /// The variant that is served.
    pub variant: VariantKey,
    /// Its share.
    pub weight: Weight,
}

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// Always this variant.
    Variant(VariantKey),
    /// A variant by the evaluation's targeting key; never empty, the weights' sum is positive.
    Rollout(Vec<RolloutEntry>),
    /// No value: the caller's own default.
    CodeDefault,
}

impl Serve {
    /// The keys of all variants that may be served.
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
        struct BothMembers {
            // With a function of its own, a member that is missing is not taken for null.
            #[serde(deserialize_with = "Option::deserialize")]
            variant: Option<VariantKey>,
            rollout: Vec<RolloutEntry>,
        }
        let BothMembers { variant, rollout } = BothMembers::deserialize(deserializer)?;
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

/// Serves something to everyone for whom all conditions hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its identifier.
    pub id: RuleId,
    /// Its name for people, perhaps empty.
    pub name: String,
    /// What must hold. None at all hold for everyone.
    pub conditions: Vec<Condition>,
    /// What is served.
    pub serve: Serve,
}

/// What a target's value is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// The evaluation's targeting key.
    Identifier,
}

/// Serves a variant to one individual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What the value is compared with.
    pub kind: TargetKind,
    /// The individual.
    pub value: String,
    /// The variant that is served.
    pub variant: VariantKey,
}

/// Another flag that must evaluate to a variant before this one is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prerequisite {
    /// The other flag, of the same project.
    pub flag_key: FlagKey,
    /// The variant that it must yield.
    pub variant: VariantKey,
}

/// A feature flag, with the members of `openapi.yaml` in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeatureFlag {
    /// Its identifier.
    pub id: Uuid,
    /// The project that owns it.
    pub project_id: ProjectId,
    /// Its key.
    pub key: FlagKey,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What its variants hold.
    #[serde(rename = "type")]
    pub flag_type: FlagType,
    /// Whether anything but the off variant is served.
    pub enabled: bool,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// Counts its changes, from 1.
    pub version: u64,
    /// Its possible values.
    pub variants: Vec<Variant>,
    /// What is served while it is not enabled; `None` for the caller's own default.
    pub off_variant: Option<VariantKey>,
    /// What is served when no target and no rule matches.
    pub fallthrough: Serve,
    /// Tried in order; the first that holds serves.
    pub rules: Vec<Rule>,
    /// Individuals, tried before the rules.
    pub targets: Vec<Target>,
    /// Other flags that come first.
    pub prerequisites: Vec<Prerequisite>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether its key was another flag's, which was deleted.
    #[serde(skip)]
    pub is_successor: bool,
}

impl FeatureFlag {
    /// The flag, changed from what is stored at `now`: of the next version if it is another, else of the
    /// same.
    pub(super) fn numbered_after(mut self, stored: &Self, now: Timestamp) -> Self {
        if self != *stored {
            self.version = stored.version.saturating_add(1);
            self.updated_at = now;
        }
        self
    }

    /// The segments that its rules ask for.
    pub fn segments(&self) -> BTreeSet<SegmentKey> {
        let conditions = self.rules.iter().flat_map(|rule| &rule.conditions);
        let named =
            conditions.filter(|it| it.operator.is_about_segments()).flat_map(|it| &it.values);
        // What is no key was never written, and fails the flag when it is compiled.
        named.filter_map(|key| SegmentKey::parse(key).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_need_no_escaping_and_cannot_climb() {
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
    fn weights_count_decimals_as_written() {
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
    fn weights_outside_their_bounds_are_refused() {
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
    fn a_serve_always_shows_both_members() {
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
            fn every_weight_survives_its_own_json(thousandths in 0..=1_000_000_000_u32) {
                let shown = serde_json::to_string(&Weight(thousandths)).unwrap();
                prop_assert_eq!(Weight::parse(&shown).unwrap(), Weight(thousandths));
            }

            #[test]
            fn no_number_breaks_the_parser(written in r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,22})?") {
                let _ = Weight::parse(&written);
            }
        }
    }
}
