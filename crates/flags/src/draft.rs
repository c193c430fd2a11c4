//! Parses the body of create-feature-flag into a flag without the fields that the server sets.
//!
//! All checks that need only the body run here, and report all violations. The transaction that
//! stores the flag checks other flags and segments.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use uuid::Uuid;

use shared::json::{
    Field, FieldError, Fields, Json, JsonPath, ViolationCode, Violations, array, boolean,
    note_duplicates, number, text,
};
use shared::projects::project::ProjectId;
use shared::text::{parse_label, parse_text, unknown_name};
use shared::timestamp::Timestamp;

use super::condition::{
    Condition, MAX_SEGMENTS_OF_FLAG, Operator, count_patterns, is_number, items, operator_of,
    read_condition,
};
use super::{
    FeatureFlag, FlagKey, FlagType, MAX_FLAG_BYTES, Prerequisite, RolloutEntry, Rule, RuleId,
    Serve, Target, TargetKind, Variant, VariantKey, Weight,
};

const MAX_NAME_CHARACTERS: usize = 200;
const MAX_DESCRIPTION_CHARACTERS: usize = 2_000;
const MAX_VARIANTS: usize = 100;
const MAX_VARIANT_VALUE_BYTES: usize = 20_000;
const MAX_VARIANT_JSON_DEPTH: usize = 20;
const MAX_RULES: usize = 100;
const MAX_CONDITIONS: usize = 30;
/// Maximum number of regular expressions per flag. Compiling one takes up to 0.3 ms, on the write
/// and for evaluations.
const MAX_PATTERNS: usize = 250;
/// Maximum number of entries per rollout. There can be more entries than variants, since a variant
/// can have several shares.
const MAX_ROLLOUT_ENTRIES: usize = 1_000;
const MAX_TARGETS: usize = 1_000;
const MAX_TARGET_VALUE_BYTES: usize = 1_000;
const MAX_PREREQUISITES: usize = 20;
/// Key, name and value of the default variants of a boolean flag.
const DEFAULT_BOOLEAN_VARIANTS: [(&str, &str, &str); 2] =
    [("on", "On", "true"), ("off", "Off", "false")];
/// The largest integer that every client's number type holds exactly: 2^53 − 1.
const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// A feature flag as a client describes it, with defaults for omitted fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagDraft {
    key: FlagKey,
    name: String,
    description: String,
    flag_type: FlagType,
    enabled: bool,
    variants: Vec<Variant>,
    off_variant: Option<VariantKey>,
    fallthrough: Serve,
    rules: Vec<RuleDraft>,
    targets: Vec<Target>,
    prerequisites: Vec<Prerequisite>,
}

/// A rule, perhaps without an ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleDraft {
    pub(super) id: Option<RuleId>,
    name: String,
    conditions: Vec<Condition>,
    serve: Serve,
}

impl FlagDraft {
    /// Parses the body of create-feature-flag.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let draft = read_draft(body, &mut violations);
        violations.into_result(draft)
    }

    /// Returns the new flag, created at `now`. Rejects a flag that is too large.
    pub fn into_flag(
        self,
        project_id: ProjectId,
        now: Timestamp,
        mut new_id: impl FnMut() -> Uuid,
    ) -> Result<FeatureFlag, Violations> {
        let flag = FeatureFlag {
            id: new_id(),
            project_id,
            key: self.key,
            name: self.name,
            description: self.description,
            flag_type: self.flag_type,
            enabled: self.enabled,
            archived_at: None,
            version: 1,
            variants: self.variants,
            off_variant: self.off_variant,
            fallthrough: self.fallthrough,
            rules: self.rules.into_iter().map(|rule| rule.into_rule(&mut new_id)).collect(),
            targets: self.targets,
            prerequisites: self.prerequisites,
            created_at: now,
            updated_at: now,
            is_successor: false,
        };
        let mut violations = Violations::default();
        note_size(flag_bytes(&flag), &mut violations);
        violations.into_result(Some(flag))
    }
}

impl RuleDraft {
    pub(super) fn into_rule(self, new_id: impl FnOnce() -> Uuid) -> Rule {
        Rule {
            id: self.id.unwrap_or_else(|| RuleId::generated(new_id())),
            name: self.name,
            conditions: self.conditions,
            serve: self.serve,
        }
    }
}

/// Returns the size of a flag's JSON form in bytes. A body of at most 256 KiB can grow only to a
/// small multiple.
pub(super) fn flag_bytes(flag: &FeatureFlag) -> usize {
    serde_json::to_vec(flag).map_or(usize::MAX, |json| json.len())
}

/// Notes a violation if a flag is too large.
pub(super) fn note_size(bytes: usize, violations: &mut Violations) {
    if bytes > MAX_FLAG_BYTES {
        let message = format_args!(
            "the flag has {bytes} bytes as JSON; at most {MAX_FLAG_BYTES} are allowed"
        );
        violations.note(&JsonPath::Root, ViolationCode::TooLong, message);
    }
}

fn read_draft(body: &Json<'_>, violations: &mut Violations) -> Option<FlagDraft> {
    Fields::read(body, &JsonPath::Root, violations, |fields, violations| {
        let key = fields.required("key", violations, text(FlagKey::parse));
        let name = fields.required("name", violations, text(parse_name));
        let flag_type = fields.required("type", violations, text(FlagType::parse));
        let description = fields.optional("description", violations, text(parse_description));
        let enabled = fields.optional("enabled", violations, boolean);
        let variants = read_variants(fields, flag_type, violations);
        let keys = VariantKeys::of(fields.get("variants"), flag_type);
        let keys = keys.as_ref();

        let off_variant = fields.optional("offVariant", violations, |json, path, violations| {
            read_variant_key(json, path, keys, violations)
        });
        let fallthrough = fields.optional("fallthrough", violations, |json, path, violations| {
            read_serve(json, path, keys, violations)
        });
        let rules = fields.optional("rules", violations, |json, path, violations| {
            read_rules(json, path, keys, violations)
        });
        let targets = fields.optional("targets", violations, |json, path, violations| {
            read_targets(json, path, keys, violations)
        });
        let prerequisites =
            fields.optional("prerequisites", violations, |json, path, violations| {
                read_prerequisites(json, path, key.as_ref(), violations)
            });

        let (variants, flag_type) = (variants?, flag_type?);
        Some(FlagDraft {
            key: key?,
            name: name?,
            description: description.or_default()?,
            enabled: enabled.or_default()?,
            off_variant: match off_variant {
                Field::Absent => default_off_variant(flag_type, &variants),
                Field::Null => None,
                Field::Invalid => return None,
                Field::Valid(key) => Some(key),
            },
            fallthrough: fallthrough
                .or_default_with(|| default_fallthrough(flag_type, &variants))?,
            rules: rules.or_default()?,
            targets: targets.or_default()?,
            prerequisites: prerequisites.or_default()?,
            flag_type,
            variants,
        })
    })
}

pub(super) fn parse_name(text: &str) -> Result<String, FieldError> {
    parse_label(text, 1, MAX_NAME_CHARACTERS)
}

fn parse_optional_name(text: &str) -> Result<String, FieldError> {
    parse_label(text, 0, MAX_NAME_CHARACTERS)
}

pub(super) fn parse_description(text: &str) -> Result<String, FieldError> {
    parse_text(text, MAX_DESCRIPTION_CHARACTERS)
}

fn parse_target_kind(name: &str) -> Result<TargetKind, FieldError> {
    TargetKind::deserialize(name.into_deserializer()).map_err(|error| unknown_name("kind", &error))
}

// ------------------------------------------------------------------------------------- variants

/// The variant keys that a flag's serves and targets can name.
pub(super) struct VariantKeys<'v>(HashSet<&'v str>);

impl<'v> VariantKeys<'v> {
    /// Returns the keys in the body, or those of the default variants. Includes variants with other
    /// violations. `None` if a key is invalid, since each use of it would repeat the violation.
    pub(super) fn of(variants: Option<&'v Json<'_>>, flag_type: Option<FlagType>) -> Option<Self> {
        match variants {
            None | Some(Json::Null) if flag_type? == FlagType::Boolean => {
                Some(Self(DEFAULT_BOOLEAN_VARIANTS.map(|(key, ..)| key).into()))
            }
            None | Some(Json::Null) => Some(Self(HashSet::new())),
            Some(Json::Array(items)) if items.len() <= MAX_VARIANTS => {
                let valid = |key: &&str| VariantKey::parse(key).is_ok();
                let keys = items.iter().map(|item| item.member_text("key").filter(valid));
                keys.collect::<Option<_>>().map(Self)
            }
            Some(_) => None,
        }
    }

    /// Returns the keys of a flag's variants.
    pub(super) fn of_flag(flag: &'v FeatureFlag) -> Self {
        Self(flag.variants.iter().map(|variant| variant.key.as_str()).collect())
    }
}

/// Parses a variant key and checks that the flag has it. If `known` is `None`, checks only its
/// form.
pub(super) fn read_variant_key(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    known: Option<&VariantKeys<'_>>,
    violations: &mut Violations,
) -> Option<VariantKey> {
    text(|key| match known {
        Some(VariantKeys(keys)) if !keys.contains(key) => Err(FieldError::new(
            ViolationCode::UnknownVariant,
            "the flag has no variant with this key",
        )),
        _ => VariantKey::parse(key),
    })(json, path, violations)
}

pub(super) fn read_variants(
    fields: &Fields<'_, '_, '_>,
    flag_type: Option<FlagType>,
    violations: &mut Violations,
) -> Option<Vec<Variant>> {
    let given = fields.optional("variants", violations, |json, path, violations| {
        let read = array(MAX_VARIANTS, |json, path, violations| {
            read_variant(json, path, flag_type, violations)
        });
        let variants = read(json, path, violations);
        let key_of = |variant: &Json<'_>| variant.member_text("key").map(str::to_owned);
        note_duplicates(json, path, MAX_VARIANTS, Some("key"), key_of, violations);
        variants
    });
    given.or_default_with(|| default_variants(flag_type))
}

fn read_variant(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    flag_type: Option<FlagType>,
    violations: &mut Violations,
) -> Option<Variant> {
    Fields::read(json, path, violations, |fields, violations| {
        let key = fields.required("key", violations, text(VariantKey::parse));
        let name = fields.optional("name", violations, text(parse_optional_name));
        let value =
            fields.required("value", violations, text(|value| parse_value_of(flag_type, value)));
        let key = key?;
        let name = name.or_default()?;
        Some(Variant {
            name: if name.is_empty() { key.to_string() } else { name },
            value: value?,
            key,
        })
    })
}

/// Parses a variant's value, which is text for all flag types.
fn parse_value_of(flag_type: Option<FlagType>, value: &str) -> Result<String, FieldError> {
    if value.len() > MAX_VARIANT_VALUE_BYTES {
        let message = format_args!("must have at most {MAX_VARIANT_VALUE_BYTES} bytes");
        return Err(FieldError::new(ViolationCode::TooLong, message));
    }
    let expected = match flag_type {
        Some(FlagType::Boolean) if !matches!(value, "true" | "false") => {
            let message = "must be \"true\" or \"false\" in a boolean flag";
            return Err(FieldError::new(ViolationCode::InvalidValue, message));
        }
        Some(FlagType::Number) if !is_number(value) => {
            "must be a finite JSON number in a number flag, such as \"12\" or \"-0.5\"".to_owned()
        }
        Some(FlagType::Number) if !is_exact(value) => {
            let message =
                format_args!("must be within ±{MAX_SAFE_INTEGER}; clients round larger integers");
            return Err(FieldError::new(ViolationCode::OutOfRange, message));
        }
        Some(FlagType::Json) => match Json::parse(value, MAX_VARIANT_JSON_DEPTH) {
            Err(error) => format!("must be JSON in a json flag: {error}"),
            Ok(json) if json.has_duplicate_names() => {
                "an object in the value has a field twice; remove one".to_owned()
            }
            Ok(Json::Object(_) | Json::Array(_)) => return Ok(value.to_owned()),
            Ok(_) => "must be a JSON object or array in a json flag".to_owned(),
        },
        _ => return Ok(value.to_owned()),
    };
    Err(FieldError::new(ViolationCode::InvalidFormat, expected))
}

/// `true` if a JSON number has a fraction or exponent, or is an integer within ±(2^53−1).
fn is_exact(written: &str) -> bool {
    written.contains(['.', 'e', 'E'])
        || written.trim_start_matches('-').parse().is_ok_and(|n: u64| n <= MAX_SAFE_INTEGER)
}

fn default_variants(flag_type: Option<FlagType>) -> Vec<Variant> {
    if flag_type != Some(FlagType::Boolean) {
        return Vec::new();
    }
    DEFAULT_BOOLEAN_VARIANTS
        .into_iter()
        .filter_map(|(key, name, value)| {
            let key = VariantKey::parse(key).ok()?;
            Some(Variant { key, name: name.to_owned(), value: value.to_owned() })
        })
        .collect()
}

fn default_off_variant(flag_type: FlagType, variants: &[Variant]) -> Option<VariantKey> {
    default_variant(flag_type, variants, "false")
}

pub(super) fn default_fallthrough(flag_type: FlagType, variants: &[Variant]) -> Serve {
    default_variant(flag_type, variants, "true").map_or(Serve::CodeDefault, Serve::Variant)
}

/// Returns the first variant. For a boolean flag, prefers the first with the `preferred` value.
fn default_variant(
    flag_type: FlagType,
    variants: &[Variant],
    preferred: &str,
) -> Option<VariantKey> {
    let is_preferred = |v: &&Variant| flag_type == FlagType::Boolean && v.value == preferred;
    variants.iter().find(is_preferred).or(variants.first()).map(|variant| variant.key.clone())
}

// --------------------------------------------------------------------------- serves and rollouts

pub(super) fn read_serve(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    keys: Option<&VariantKeys<'_>>,
    violations: &mut Violations,
) -> Option<Serve> {
    Fields::read(json, path, violations, |fields, violations| {
        let empty = |json: &Json<'_>| matches!(json, Json::Array(items) if items.is_empty());
        if fields.get("variant") == Some(&Json::Null) && fields.get("rollout").is_some_and(empty) {
            return Some(Serve::CodeDefault);
        }
        let blank = |json: &Json<'_>| matches!(json, Json::String(text) if text.is_empty());
        let set_variant = fields.get("variant").filter(|json| **json != Json::Null && !blank(json));
        let set_rollout = fields.get("rollout").filter(|json| **json != Json::Null && !empty(json));
        let message = match (set_variant, set_rollout) {
            (Some(variant), None) => {
                return read_variant_key(variant, &path.member("variant"), keys, violations)
                    .map(Serve::Variant);
            }
            (None, Some(rollout)) => {
                return read_rollout(rollout, &path.member("rollout"), keys, violations)
                    .map(Serve::Rollout);
            }
            (Some(variant), Some(rollout)) => {
                read_variant_key(variant, &path.member("variant"), keys, violations);
                read_rollout(rollout, &path.member("rollout"), keys, violations);
                "send either `variant` or `rollout`, not both"
            }
            (None, None) => {
                "send `variant` or `rollout`; {\"variant\": null, \"rollout\": []} serves the \
                 caller's default"
            }
        };
        violations.note(path, ViolationCode::InvalidValue, message);
        None
    })
}

fn read_rollout(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    keys: Option<&VariantKeys<'_>>,
    violations: &mut Violations,
) -> Option<Vec<RolloutEntry>> {
    let entries = array(MAX_ROLLOUT_ENTRIES, |json, path: &JsonPath<'_>, violations| {
        Fields::read(json, path, violations, |fields, violations| {
            let variant = fields.required("variant", violations, |json, path, violations| {
                read_variant_key(json, path, keys, violations)
            });
            Some((variant, fields.required("weight", violations, number(Weight::parse))))
        })
    })(json, path, violations)?;
    let is_zero = |weight: &Option<Weight>| weight.is_some_and(|w| w.thousandths() == 0);
    if entries.iter().all(|(_, weight)| is_zero(weight)) {
        let message = "at least one weight must be greater than 0";
        violations.note(path, ViolationCode::OutOfRange, message);
        return None;
    }
    let entry = |(variant, weight)| Some(RolloutEntry { variant: variant?, weight: weight? });
    entries.into_iter().map(entry).collect()
}

// ------------------------------------------------------------------------------------------ rules

pub(super) fn read_rules(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    keys: Option<&VariantKeys<'_>>,
    violations: &mut Violations,
) -> Option<Vec<RuleDraft>> {
    let conditions = || items(Some(json)).iter().flat_map(|rule| items(rule.member("conditions")));
    let too_many_patterns = count_patterns(conditions()) > MAX_PATTERNS;
    if too_many_patterns {
        let message = format_args!("a flag can have at most {MAX_PATTERNS} regular expressions");
        violations.note(path, ViolationCode::TooManyItems, message);
    }
    if count_segments(conditions()) > MAX_SEGMENTS_OF_FLAG {
        let message = format_args!("a flag can use at most {MAX_SEGMENTS_OF_FLAG} segments");
        violations.note(path, ViolationCode::TooManyItems, message);
    }
    let read_condition = |json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations| {
        read_condition(json, path, too_many_patterns, violations)
    };
    let rules = array(MAX_RULES, |json, path: &JsonPath<'_>, violations| {
        Fields::read(json, path, violations, |fields, violations| {
            let id = fields.optional("id", violations, text(RuleId::parse));
            let name = fields.optional("name", violations, text(parse_optional_name));
            let conditions =
                fields.optional("conditions", violations, array(MAX_CONDITIONS, read_condition));
            let serve = fields.required("serve", violations, |json, path, violations| {
                read_serve(json, path, keys, violations)
            });
            Some(RuleDraft {
                id: match id {
                    Field::Absent | Field::Null => None,
                    Field::Invalid => return None,
                    Field::Valid(id) => Some(id),
                },
                name: name.or_default()?,
                conditions: conditions.or_default()?,
                serve: serve?,
            })
        })
    })(json, path, violations);
    let id_of = |rule: &Json<'_>| rule.member_text("id").map(str::to_owned);
    note_duplicates(json, path, MAX_RULES, Some("id"), id_of, violations);
    rules
}

/// Returns the number of segments that a flag's conditions name.
fn count_segments<'j, 'a: 'j>(conditions: impl Iterator<Item = &'j Json<'a>>) -> usize {
    let names_segments =
        |condition: &&Json<'_>| operator_of(condition).is_some_and(Operator::is_about_segments);
    let named = conditions.filter(names_segments).flat_map(|it| items(it.member("values")));
    let keys = named.filter_map(|key| match key {
        Json::String(key) => Some(key.as_ref()),
        _ => None,
    });
    keys.collect::<HashSet<&str>>().len()
}

// --------------------------------------------------------------------- targets and prerequisites

pub(super) fn read_targets(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    keys: Option<&VariantKeys<'_>>,
    violations: &mut Violations,
) -> Option<Vec<Target>> {
    let targets = array(MAX_TARGETS, |json, path: &JsonPath<'_>, violations| {
        Fields::read(json, path, violations, |fields, violations| {
            let kind = fields.required("kind", violations, text(parse_target_kind));
            let value = fields.required("value", violations, text(parse_target_value));
            let variant = fields.required("variant", violations, |json, path, violations| {
                read_variant_key(json, path, keys, violations)
            });
            Some(Target { kind: kind?, value: value?, variant: variant? })
        })
    })(json, path, violations);
    let identity = |target: &Json<'_>| {
        Some(format!("{}\n{}", target.member_text("kind")?, target.member_text("value")?))
    };
    note_duplicates(json, path, MAX_TARGETS, None, identity, violations);
    targets
}

fn parse_target_value(text: &str) -> Result<String, FieldError> {
    match text.len() {
        0 => Err(FieldError::new(ViolationCode::TooShort, "must not be empty")),
        1..=MAX_TARGET_VALUE_BYTES => Ok(text.to_owned()),
        length => Err(FieldError::new(
            ViolationCode::TooLong,
            format_args!("has {length} bytes; at most {MAX_TARGET_VALUE_BYTES} are allowed"),
        )),
    }
}

pub(super) fn read_prerequisites(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    own_key: Option<&FlagKey>,
    violations: &mut Violations,
) -> Option<Vec<Prerequisite>> {
    let prerequisites = array(MAX_PREREQUISITES, |json, path: &JsonPath<'_>, violations| {
        Fields::read(json, path, violations, |fields, violations| {
            let flag_key = fields.required(
                "flagKey",
                violations,
                text(|key| {
                    if own_key.is_some_and(|own| own.as_str() == key) {
                        let message = "a flag cannot be its own prerequisite";
                        return Err(FieldError::new(ViolationCode::Cycle, message));
                    }
                    FlagKey::parse(key)
                }),
            );
            let variant = fields.required("variant", violations, text(VariantKey::parse));
            Some(Prerequisite { flag_key: flag_key?, variant: variant? })
        })
    })(json, path, violations);
    let key_of = |prerequisite: &Json<'_>| prerequisite.member_text("flagKey").map(str::to_owned);
    note_duplicates(json, path, MAX_PREREQUISITES, Some("flagKey"), key_of, violations);
    prerequisites
}

#[cfg(test)]
mod tests;
