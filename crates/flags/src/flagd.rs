//! Export of a project's flags and segments to flagd (<https://flagd.dev/reference/flag-definitions>).
//!
//! What flagd serves from the export is what an evaluation here serves, bucketing included, but for what its cores
//! hash otherwise. A flag
//! that its targeting language cannot express is left out and listed: better no flag than another
//! one of the same key. What differs for all flags alike is in [`GENERAL_DIFFERENCES`].

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

/// The largest sum of weights that flagd takes.
const MAX_TOTAL_WEIGHT: u64 = 2_147_483_647;

/// How flagd differs from an evaluation here whatever the flag.
pub const GENERAL_DIFFERENCES: [&str; 8] = [
    "flagd does not look into arrays: a condition holds for none of their elements. Its not_equals \
     and not_in hold for every array and object.",
    "flagd finds an attribute whose name has a dot only by its path, in which numbers index arrays.",
    "Where a number is compared with a text or an object that is none, flagd fails and serves the \
     caller's default; it rounds integers beyond 2^53.",
    "flagd takes a version with a leading v.",
    "flagd's clock has whole seconds.",
    "Shares of flagd's core for JavaScript have other individuals where a targeting key has characters \
     beyond ASCII: it hashes UTF-16 code units, and not UTF-8. They are as large.",
    "Shares of flagd's core for Python have other individuals whatever their targeting keys: it hashes \
     CBOR, and not text. They are as large.",
    "Where a rollout needs a targeting key that is missing, flagd serves the caller's default \
     without an error; its reasons and metadata are its own.",
];

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// For programs: without white space.
    Compact,
    /// For people, over many lines.
    Indented,
}

/// The flags of a project for flagd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagdExport {
    /// A flag definition document of flagd.
    pub document: String,
    /// What in it is not as it is here, in the order of the flags.
    pub differences: Vec<ExportGap>,
}

/// What of one flag could not be exported as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportGap {
    /// The flag.
    pub flag_key: FlagKey,
    /// Where in the flag: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// Whether the flag is not in the export for this reason.
    pub left_out: bool,
    /// What flagd cannot express, for a person.
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
    /// Null is the caller's own default.
    default_variant: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targeting: Option<Value>,
    metadata: Value,
}

/// What flagd cannot express, and where.
struct UnsupportedFeature {
    pointer: String,
    reason: String,
}

type Expressed<T> = Result<T, Vec<UnsupportedFeature>>;

/// Exports the flags of a project, with the segments that they ask for.
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
                    let disabled = obstacle(
                        &place,
                        "of a disabled flag flagd serves the caller's \
                        default, with the reason DISABLED; here it serves its off variant",
                    );
                    differences.push(difference(false, disabled));
                }
                exported.insert(flag.key.as_str(), flagd_flag);
            }
            Err(obstacles) => {
                differences
                    .extend(obstacles.into_iter().map(|obstacle| difference(true, obstacle)));
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
    // Nothing in the document can fail to be written.
    FlagdExport { document: written.unwrap_or_default(), differences }
}

fn flagd_flag<'f>(flag: &'f FeatureFlag, evaluators: &Evaluators<'_>) -> Expressed<FlagdFlag<'f>> {
    let mut obstacles = Vec::new();
    if flag.archived_at.is_some() {
        let place = JsonPath::Root.member("archivedAt");
        return Err(vec![obstacle(&place, "an archived flag does not exist for evaluations")]);
    }
    let variants = note(variants(flag), &mut obstacles);
    let targeting = if flag.enabled {
        if !flag.prerequisites.is_empty() {
            let place = JsonPath::Root.member("prerequisites");
            obstacles.push(obstacle(&place, "flagd has no prerequisites"));
        }
        note(targeting(flag, evaluators), &mut obstacles)
    } else {
        // What it would serve if flagd served anything of it.
        let default_variant = flag.off_variant.as_ref().map(VariantKey::as_str);
        Some(Targeting { default_variant, rules: None })
    };
    match (variants, targeting) {
        (Some(variants), Some(targeting)) if obstacles.is_empty() => Ok(FlagdFlag {
            state: if flag.enabled { "ENABLED" } else { "DISABLED" },
            variants,
            default_variant: targeting.default_variant,
            targeting: targeting.rules,
            metadata: json!({"version": flag.version.to_string()}),
        }),
        _ => Err(obstacles),
    }
}

fn variants(flag: &FeatureFlag) -> Expressed<BTreeMap<&str, Box<RawValue>>> {
    let place = JsonPath::Root.member("variants");
    if flag.variants.is_empty() {
        return Err(vec![obstacle(&place, "a flag of flagd has at least one variant")]);
    }
    let is_array = |value: &str| value.trim_start().starts_with('[');
    let typed = TypedVariant::all_of(flag.flag_type, &flag.variants)
        .map_err(|damage| vec![obstacle(&place, damage)])?;
    let arrays: Vec<UnsupportedFeature> = flag
        .variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| flag.flag_type == FlagType::Json && is_array(&variant.value))
        .map(|(index, _)| {
            let item = place.item(index);
            obstacle(&item.member("value"), "the JSON of a flagd variant is an object, no array")
        })
        .collect();
    if !arrays.is_empty() {
        return Err(arrays);
    }
    if let Some(index) = typed.iter().position(|typed| holds_reference(typed.value())) {
        let item = place.item(index);
        let reason = "flagd takes a member `$ref` for a reference";
        return Err(vec![obstacle(&item.member("value"), reason)]);
    }
    let keys = flag.variants.iter().map(|variant| variant.key.as_str());
    Ok(keys.zip(typed.iter().map(|typed| typed.value().to_owned())).collect())
}

/// Whether flagd would find something like a reference in a value, and put an evaluator there.
fn holds_reference(value: &RawValue) -> bool {
    // As it is written anew, whatever escapes it has.
    let value: Option<Value> = serde_json::from_str(value.get()).ok();
    value.is_some_and(|value| value.to_string().contains("\"$ref\":"))
}

/// What decides on the variant of a flag: flagd serves the default variant where the rules give null.
struct Targeting<'f> {
    default_variant: Option<&'f str>,
    rules: Option<Value>,
}

fn targeting<'f>(flag: &'f FeatureFlag, evaluators: &Evaluators<'_>) -> Expressed<Targeting<'f>> {
    let mut obstacles = Vec::new();
    let mut branches = target_branches(&flag.targets);
    let rules = JsonPath::Root.member("rules");
    for (index, rule) in flag.rules.iter().enumerate() {
        if let Some(branch) =
            note(rule_branch(rule, evaluators, &rules.item(index)), &mut obstacles)
        {
            branches.extend(branch);
        }
    }
    let fallthrough_place = JsonPath::Root.member("fallthrough");
    let fallthrough = note(serve(&flag.fallthrough, &fallthrough_place), &mut obstacles);
    let Some(fallthrough) = fallthrough.filter(|_| obstacles.is_empty()) else {
        return Err(obstacles);
    };
    // Null, which stands for the caller's default and comes of a rollout without a targeting key,
    // must not become the fallthrough.
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

/// For each variant with targets: who they are, and the variant.
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
    let mut obstacles = Vec::new();
    let conditions_place = place.member("conditions");
    let mut conditions = Vec::with_capacity(rule.conditions.len());
    for (index, condition_of_rule) in rule.conditions.iter().enumerate() {
        match evaluators.condition(condition_of_rule) {
            Ok(expressed) => conditions.push(expressed),
            Err(reason) => obstacles.push(obstacle(&conditions_place.item(index), reason)),
        }
    }
    let serve = note(serve(&rule.serve, &place.member("serve")), &mut obstacles);
    match serve {
        Some(serve) if obstacles.is_empty() => Ok([all(conditions), serve]),
        _ => Err(obstacles),
    }
}

/// The variant that a serve gives to everyone.
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

/// A rollout by flag key and targeting key, flagd's default. Dividing all weights by the same number
/// moves nobody, and brings nearly all sums within flagd's bounds.
fn fractional(entries: &[RolloutEntry], place: &JsonPath<'_>) -> Expressed<Value> {
    let weights = || entries.iter().map(|entry| u64::from(entry.weight.thousandths()));
    let divisor = weights().fold(0, greatest_common_divisor).max(1);
    if weights().sum::<u64>() / divisor > MAX_TOTAL_WEIGHT {
        let reason = "the weights, as integers, have a sum beyond flagd's bound of 2147483647";
        return Err(vec![obstacle(place, reason)]);
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

fn obstacle(place: &JsonPath<'_>, reason: impl fmt::Display) -> UnsupportedFeature {
    UnsupportedFeature { pointer: place.to_string(), reason: reason.to_string() }
}

/// What could be expressed; what could not is noted.
fn note<T>(expressed: Expressed<T>, obstacles: &mut Vec<UnsupportedFeature>) -> Option<T> {
    expressed.map_err(|more| obstacles.extend(more)).ok()
}

#[cfg(test)]
mod tests;
