//! Exports a project's flags and segments to flagd
//! (<https://flagd.dev/reference/flag-definitions>).
//!
//! flagd serves the same variants from the export as an evaluation here, including buckets, unless
//! its core hashes differently. A flag that flagd's targeting language cannot express is omitted
//! and listed. A different flag with its key would be worse. [`GENERAL_DIFFERENCES`] lists the
//! differences that affect all flags.

mod evaluators;
mod json_logic;

use std::collections::BTreeMap;
use std::fmt;

use evaluators::Evaluators;
use json_logic::all;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use shared::json::JsonPath;
use shared::projects::project::ProjectId;

use super::evaluation::variant::TypedVariant;
use crate::{
    FeatureFlag, FlagKey, FlagType, RolloutEntry, Rule, Segment, Serve, Target, VariantKey,
};

/// The largest sum of weights that flagd accepts.
const MAX_TOTAL_WEIGHT: u64 = 2_147_483_647;

/// Differences between flagd and evaluations here that affect all flags.
pub const GENERAL_DIFFERENCES: [&str; 8] = [
    "flagd does not check the elements of arrays: no condition holds for them. Its not_equals \
     and not_in hold for every array and object.",
    "flagd finds an attribute with a dot in its name only by path. Numbers in a path index arrays.",
    "If a number is compared with a non-numeric text or object, flagd fails and serves the \
     caller's default. It rounds integers beyond 2^53.",
    "flagd accepts versions with a leading v.",
    "flagd's clock has whole seconds.",
    "flagd's core for JavaScript hashes UTF-16 code units, not UTF-8. If targeting keys have \
     non-ASCII characters, shares have the same size but different individuals.",
    "flagd's core for Python hashes CBOR, not text. Shares have the same size but different \
     individuals.",
    "If a rollout needs a targeting key that is missing, flagd serves the caller's default \
     without an error. Its reasons and metadata differ.",
];

/// The layout of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// For programs, without white space.
    Compact,
    /// For people, indented.
    Indented,
}

/// A project's flags for flagd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagdExport {
    /// A flag definition document of flagd.
    pub document: String,
    /// The differences from evaluations here, in the order of the flags.
    pub differences: Vec<ExportGap>,
}

/// A part of a flag that could not be exported unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportGap {
    /// The flag.
    pub flag_key: FlagKey,
    /// The place in the flag: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// `true` if the flag was omitted for this reason.
    pub left_out: bool,
    /// The unsupported feature, in words.
    pub reason: String,
}

#[derive(Serialize)]
struct Document<'f> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    flags: BTreeMap<&'f str, FlagdFlag<'f>>,
    #[serde(rename = "$evaluators", skip_serializing_if = "BTreeMap::is_empty")]
    evaluators: BTreeMap<&'f str, &'f Value>,
    metadata: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlagdFlag<'f> {
    state: &'static str,
    variants: BTreeMap<&'f str, Box<RawValue>>,
    /// Null is the caller's default.
    default_variant: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targeting: Option<Value>,
    metadata: Value,
}

/// A part of a flag that flagd cannot express.
struct UnsupportedFeature {
    pointer: String,
    reason: String,
}

type Expressed<T> = Result<T, Vec<UnsupportedFeature>>;

/// Exports the flags of a project with the segments that they use.
pub fn export(
    project_id: ProjectId,
    flags: &[FeatureFlag],
    segments: &[Segment],
    layout: Layout,
) -> FlagdExport {
    let evaluators = Evaluators::of(segments);
    let mut differences = Vec::new();
    let mut exported = BTreeMap::new();
    let mut referenced = BTreeMap::new();
    for flag in flags {
        let difference = |left_out, UnsupportedFeature { pointer, reason }| ExportGap {
            flag_key: flag.key.clone(),
            pointer,
            left_out,
            reason,
        };
        match flagd_flag(flag, &evaluators) {
            Ok(flagd_flag) => {
                if flag.enabled {
                    referenced.extend(evaluators.referenced_by(flag));
                } else {
                    let place = JsonPath::Root.member("enabled");
                    let disabled = unsupported_feature(
                        &place,
                        "flagd serves the caller's default for a disabled flag, with the \
                         reason DISABLED; here the off variant is served",
                    );
                    differences.push(difference(false, disabled));
                }
                exported.insert(flag.key.as_str(), flagd_flag);
            }
            Err(unsupported) => {
                differences.extend(
                    unsupported
                        .into_iter()
                        .map(|unsupported_feature| difference(true, unsupported_feature)),
                );
            }
        }
    }
    let document = Document {
        schema: "https://flagd.dev/schema/v0/flags.json",
        flags: exported,
        evaluators: referenced,
        metadata: json!({"flagSetId": project_id}),
    };
    let written = match layout {
        Layout::Compact => serde_json::to_string(&document),
        Layout::Indented => serde_json::to_string_pretty(&document),
    };
    // The document can always be serialized.
    FlagdExport { document: written.unwrap_or_default(), differences }
}

fn flagd_flag<'f>(flag: &'f FeatureFlag, evaluators: &Evaluators<'_>) -> Expressed<FlagdFlag<'f>> {
    let mut unsupported = Vec::new();
    if flag.archived_at.is_some() {
        let place = JsonPath::Root.member("archivedAt");
        return Err(vec![unsupported_feature(
            &place,
            "an archived flag does not exist for evaluations",
        )]);
    }
    let variants = note(variants(flag), &mut unsupported);
    let targeting = if flag.enabled {
        if !flag.prerequisites.is_empty() {
            let place = JsonPath::Root.member("prerequisites");
            unsupported.push(unsupported_feature(&place, "flagd has no prerequisites"));
        }
        note(targeting(flag, evaluators), &mut unsupported)
    } else {
        // flagd serves no variant of a disabled flag.
        let default_variant = flag.off_variant.as_ref().map(VariantKey::as_str);
        Some(Targeting { default_variant, rules: None })
    };
    match (variants, targeting) {
        (Some(variants), Some(targeting)) if unsupported.is_empty() => Ok(FlagdFlag {
            state: if flag.enabled { "ENABLED" } else { "DISABLED" },
            variants,
            default_variant: targeting.default_variant,
            targeting: targeting.rules,
            metadata: json!({"version": flag.version.to_string()}),
        }),
        _ => Err(unsupported),
    }
}

fn variants(flag: &FeatureFlag) -> Expressed<BTreeMap<&str, Box<RawValue>>> {
    let place = JsonPath::Root.member("variants");
    if flag.variants.is_empty() {
        return Err(vec![unsupported_feature(&place, "flagd requires at least one variant")]);
    }
    let is_array = |value: &str| value.trim_start().starts_with('[');
    let typed = TypedVariant::all_of(flag.flag_type, &flag.variants)
        .map_err(|damage| vec![unsupported_feature(&place, damage)])?;
    let arrays: Vec<UnsupportedFeature> = flag
        .variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| flag.flag_type == FlagType::Json && is_array(&variant.value))
        .map(|(index, _)| {
            let item = place.item(index);
            unsupported_feature(
                &item.member("value"),
                "a JSON variant of flagd must be an object, not an array",
            )
        })
        .collect();
    if !arrays.is_empty() {
        return Err(arrays);
    }
    if let Some(index) = typed.iter().position(|typed| holds_reference(typed.value())) {
        let item = place.item(index);
        let reason = "flagd interprets the field `$ref` as a reference";
        return Err(vec![unsupported_feature(&item.member("value"), reason)]);
    }
    let keys = flag.variants.iter().map(|variant| variant.key.as_str());
    Ok(keys.zip(typed.iter().map(|typed| typed.value().to_owned())).collect())
}

/// `true` if flagd would find a reference in a value and replace it.
fn holds_reference(value: &RawValue) -> bool {
    // Serialized again, so that escapes do not matter.
    let value: Option<Value> = serde_json::from_str(value.get()).ok();
    value.is_some_and(|value| value.to_string().contains("\"$ref\":"))
}

/// The targeting of a flag. If the rules return null, flagd serves the default variant.
struct Targeting<'f> {
    default_variant: Option<&'f str>,
    rules: Option<Value>,
}

fn targeting<'f>(flag: &'f FeatureFlag, evaluators: &Evaluators<'_>) -> Expressed<Targeting<'f>> {
    let mut unsupported = Vec::new();
    let mut branches = target_branches(&flag.targets);
    let rules = JsonPath::Root.member("rules");
    for (index, rule) in flag.rules.iter().enumerate() {
        if let Some(branch) =
            note(rule_branch(rule, evaluators, &rules.item(index)), &mut unsupported)
        {
            branches.extend(branch);
        }
    }
    let fallthrough_place = JsonPath::Root.member("fallthrough");
    let fallthrough = note(serve(&flag.fallthrough, &fallthrough_place), &mut unsupported);
    let Some(fallthrough) = fallthrough.filter(|_| unsupported.is_empty()) else {
        return Err(unsupported);
    };
    // Null means the caller's default, or a rollout without a targeting key. It must not select the
    // fallthrough.
    let may_be_null = |rule: &Rule| only_variant(&rule.serve).is_none();
    let default_variant = match only_variant(&flag.fallthrough) {
        Some(key) if !flag.rules.iter().any(may_be_null) => Some(key.as_str()),
        _ => None,
    };
    if default_variant.is_none() && !fallthrough.is_null() {
        branches.push(fallthrough);
    }
    let rules = match branches.len() {
        0 => None,
        1 => branches.pop(),
        _ => Some(json!({"if": branches})),
    };
    Ok(Targeting { default_variant, rules })
}

/// Returns the individuals and the variant, for each variant with targets.
fn target_branches(targets: &[Target]) -> Vec<Value> {
    let mut individuals: BTreeMap<&VariantKey, Vec<&str>> = BTreeMap::new();
    for target in targets {
        individuals.entry(&target.variant).or_default().push(&target.value);
    }
    let branch =
        |(variant, values)| [json!({"in": [{"var": "targetingKey"}, values]}), json!(variant)];
    individuals.into_iter().flat_map(branch).collect()
}

fn rule_branch(
    rule: &Rule,
    evaluators: &Evaluators<'_>,
    place: &JsonPath<'_>,
) -> Expressed<[Value; 2]> {
    let mut unsupported = Vec::new();
    let conditions_place = place.member("conditions");
    let mut conditions = Vec::with_capacity(rule.conditions.len());
    for (index, condition_of_rule) in rule.conditions.iter().enumerate() {
        match evaluators.condition(condition_of_rule) {
            Ok(expressed) => conditions.push(expressed),
            Err(reason) => {
                unsupported.push(unsupported_feature(&conditions_place.item(index), reason));
            }
        }
    }
    let serve = note(serve(&rule.serve, &place.member("serve")), &mut unsupported);
    match serve {
        Some(serve) if unsupported.is_empty() => Ok([all(conditions), serve]),
        _ => Err(unsupported),
    }
}

/// Returns the variant that a serve gives to all individuals, if there is one.
fn only_variant(serve: &Serve) -> Option<&VariantKey> {
    match serve {
        Serve::CodeDefault => None,
        Serve::Variant(key) => Some(key),
        Serve::Rollout(entries) => {
            let mut shares = entries.iter().filter(|entry| entry.weight.thousandths() > 0);
            shares.next().filter(|_| shares.next().is_none()).map(|only| &only.variant)
        }
    }
}

fn serve(serve: &Serve, place: &JsonPath<'_>) -> Expressed<Value> {
    match serve {
        Serve::CodeDefault => Ok(Value::Null),
        Serve::Variant(key) => Ok(json!(key)),
        Serve::Rollout(entries) => fractional(entries, &place.member("rollout")),
    }
}

/// Returns a rollout by flag key and targeting key, flagd's default. Dividing all weights by a
/// common divisor keeps all shares, and brings nearly all sums within flagd's limit.
fn fractional(entries: &[RolloutEntry], place: &JsonPath<'_>) -> Expressed<Value> {
    let weights = || entries.iter().map(|entry| u64::from(entry.weight.thousandths()));
    let divisor = weights().fold(0, greatest_common_divisor).max(1);
    if weights().sum::<u64>() / divisor > MAX_TOTAL_WEIGHT {
        let reason = "the sum of the weights as integers exceeds flagd's limit of 2147483647";
        return Err(vec![unsupported_feature(place, reason)]);
    }
    let positive = entries.iter().zip(weights()).filter(|(_, weight)| *weight > 0);
    let shares: Vec<(&VariantKey, u64)> =
        positive.map(|(entry, weight)| (&entry.variant, weight / divisor)).collect();
    match shares.as_slice() {
        [(only, _)] => Ok(json!(only)),
        shares => Ok(json!({"fractional": shares})),
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

fn unsupported_feature(place: &JsonPath<'_>, reason: impl fmt::Display) -> UnsupportedFeature {
    UnsupportedFeature { pointer: place.to_string(), reason: reason.to_string() }
}

/// Returns the expressed part, or notes what flagd cannot express.
fn note<T>(expressed: Expressed<T>, unsupported: &mut Vec<UnsupportedFeature>) -> Option<T> {
    expressed.map_err(|more| unsupported.extend(more)).ok()
}

#[cfg(test)]
mod tests;
