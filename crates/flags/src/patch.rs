//! Applies a JSON Merge Patch (RFC 7396) to a flag.
//!
//! The body is checked before the flag is read. Checks that depend on the flag, such as the type of
//! values, run when the patch is applied.

use std::collections::HashSet;

use uuid::Uuid;

use shared::json::{Field, Fields, Json, JsonPath, ViolationCode, Violations, boolean, text};
use shared::timestamp::Timestamp;

use super::draft::{
    RuleDraft, VariantKeys, default_fallthrough, flag_bytes, note_size, parse_description,
    parse_name, read_prerequisites, read_rules, read_serve, read_targets, read_variant_key,
    read_variants,
};
use super::rule_ids::with_known_ids;
use super::{FeatureFlag, MAX_FLAG_BYTES, Prerequisite, Serve, Target, Variant, VariantKey};

/// A patch with a valid form.
#[derive(Debug, Clone, Copy)]
pub struct FlagPatch<'j, 'a> {
    body: &'j Json<'a>,
}

/// The changes of a patch. `None` keeps the current value.
struct Changes {
    name: Option<String>,
    description: Option<String>,
    enabled: Option<bool>,
    archived: Option<bool>,
    variants: Option<Vec<Variant>>,
    off_variant: OffVariant,
    fallthrough: Fallthrough,
    rules: Option<Vec<RuleDraft>>,
    targets: Option<Vec<Target>>,
    prerequisites: Option<Vec<Prerequisite>>,
}

/// The change of the off variant.
enum OffVariant {
    Unchanged,
    /// `None` for the caller's default.
    To(Option<VariantKey>),
}

/// The change of the fallthrough.
enum Fallthrough {
    Unchanged,
    /// Resets the fallthrough to the default for the variants.
    Reset,
    To(Serve),
}

impl<'j, 'a> FlagPatch<'j, 'a> {
    /// Validates the body without knowing the flag.
    pub fn check(body: &'j Json<'a>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let changes = read_changes(body, None, &mut violations);
        violations.into_result(changes.map(|_| Self { body }))
    }

    /// Returns the flag with the patch applied at `now`. If anything differs, the version is
    /// incremented. Rejects a patch that does not fit the flag, for example if it removes a variant
    /// in use.
    pub fn apply(
        &self,
        flag: &FeatureFlag,
        now: Timestamp,
        mut new_id: impl FnMut() -> Uuid,
    ) -> Result<FeatureFlag, Violations> {
        let mut violations = Violations::default();
        let changes = read_changes(self.body, Some(flag), &mut violations);
        let changes = violations.into_result(changes)?;
        let mut violations = Violations::default();
        note_lost_variants(flag, &changes, &mut violations);
        let patched = changes.applied_to(flag, now, &mut new_id);
        note_growth(flag, &patched, &mut violations);
        violations.into_result(Some(patched.with_version_after(flag, now)))
    }
}

impl Changes {
    fn applied_to(
        self,
        flag: &FeatureFlag,
        now: Timestamp,
        new_id: &mut impl FnMut() -> Uuid,
    ) -> FeatureFlag {
        let variants = self.variants.unwrap_or_else(|| flag.variants.clone());
        let fallthrough = match self.fallthrough {
            Fallthrough::Unchanged => flag.fallthrough.clone(),
            Fallthrough::Reset => default_fallthrough(flag.flag_type, &variants),
            Fallthrough::To(serve) => serve,
        };
        let off_variant = match self.off_variant {
            OffVariant::Unchanged => flag.off_variant.clone(),
            OffVariant::To(off_variant) => off_variant,
        };
        let rules = self.rules.map(|rules| {
            let mut new_ids = HashSet::new();
            let mut with_id = |draft: RuleDraft| {
                let is_new = draft.id.is_none();
                let rule = draft.into_rule(&mut *new_id);
                if is_new {
                    new_ids.insert(rule.id.clone());
                }
                rule
            };
            let rules = rules.into_iter().map(&mut with_id).collect();
            with_known_ids(rules, &new_ids, &flag.rules)
        });
        let archived_at = match self.archived {
            None => flag.archived_at,
            Some(false) => None,
            Some(true) => flag.archived_at.or(Some(now)),
        };
        FeatureFlag {
            name: self.name.unwrap_or_else(|| flag.name.clone()),
            description: self.description.unwrap_or_else(|| flag.description.clone()),
            enabled: self.enabled.unwrap_or(flag.enabled),
            archived_at,
            variants,
            off_variant,
            fallthrough,
            rules: rules.unwrap_or_else(|| flag.rules.clone()),
            targets: self.targets.unwrap_or_else(|| flag.targets.clone()),
            prerequisites: self.prerequisites.unwrap_or_else(|| flag.prerequisites.clone()),
            ..flag.clone()
        }
    }
}

/// Parses a patch for the given flag, or for any flag if there is none.
fn read_changes(
    body: &Json<'_>,
    flag: Option<&FeatureFlag>,
    violations: &mut Violations,
) -> Option<Changes> {
    Fields::read(body, &JsonPath::Root, violations, |fields, violations| {
        let flag_type = flag.map(|flag| flag.flag_type);
        let name = match fields.get("name") {
            None => Some(None),
            Some(_) => fields.required("name", violations, text(parse_name)).map(Some),
        };
        let description = fields.optional("description", violations, text(parse_description));
        let enabled = fields.optional("enabled", violations, boolean);
        let archived = fields.optional("archived", violations, boolean);
        let (variants, keys) = match fields.get("variants") {
            None => (Some(None), flag.map(VariantKeys::of_flag)),
            sent => {
                let variants = read_variants(fields, flag_type, violations);
                (variants.map(Some), VariantKeys::of(sent, flag_type))
            }
        };
        let keys = keys.as_ref();
        let off_variant = fields.optional("offVariant", violations, |json, path, violations| {
            read_variant_key(json, path, keys, violations)
        });
        let fallthrough = fields.optional("fallthrough", violations, |json, path, violations| {
            if leaves_serve(json, flag.map(|flag| &flag.fallthrough)) {
                return Some(Fallthrough::Unchanged);
            }
            read_serve(json, path, keys, violations).map(Fallthrough::To)
        });
        let rules = fields.optional("rules", violations, |json, path, violations| {
            read_rules(json, path, keys, violations)
        });
        let targets = fields.optional("targets", violations, |json, path, violations| {
            read_targets(json, path, keys, violations)
        });
        let own_key = flag.map(|flag| &flag.key);
        let prerequisites =
            fields.optional("prerequisites", violations, |json, path, violations| {
                read_prerequisites(json, path, own_key, violations)
            });
        Some(Changes {
            name: name?,
            description: description.or_reset_to(String::new())?,
            enabled: enabled.or_reset_to(false)?,
            archived: archived.or_reset_to(false)?,
            variants: variants?,
            off_variant: match off_variant {
                Field::Absent => OffVariant::Unchanged,
                Field::Null => OffVariant::To(None),
                Field::Invalid => return None,
                Field::Valid(key) => OffVariant::To(Some(key)),
            },
            fallthrough: match fallthrough {
                Field::Absent => Fallthrough::Unchanged,
                Field::Null => Fallthrough::Reset,
                Field::Invalid => return None,
                Field::Valid(fallthrough) => fallthrough,
            },
            rules: rules.or_reset_to(Vec::new())?,
            targets: targets.or_reset_to(Vec::new())?,
            prerequisites: prerequisites.or_reset_to(Vec::new())?,
        })
    })
}

/// `true` if a merge patch of a serve sets nothing and removes no current value. Both fields
/// together mean the caller's default and are not a patch.
fn leaves_serve(patch: &Json<'_>, serve: Option<&Serve>) -> bool {
    let Json::Object(members) = patch else { return false };
    match members.as_slice() {
        [] => true,
        [(name, Json::Null)] if name == "variant" => !matches!(serve, Some(Serve::Variant(_))),
        [(name, value)] if name == "rollout" => {
            let removes = match value {
                Json::Null => true,
                Json::Array(items) => items.is_empty(),
                _ => false,
            };
            removes && !matches!(serve, Some(Serve::Rollout(_)))
        }
        _ => false,
    }
}

/// Notes variants that the patch removes although unchanged fields use them.
fn note_lost_variants(flag: &FeatureFlag, changes: &Changes, violations: &mut Violations) {
    let Some(variants) = &changes.variants else { return };
    let path = JsonPath::Root.member("variants");
    let mut note = |key: &VariantKey, used_by: &str| {
        if variants.iter().all(|variant| variant.key != *key) {
            let message =
                format_args!("the flag's {used_by} uses the variant {key}, which is missing");
            violations.note(&path, ViolationCode::UnknownVariant, message);
        }
    };
    if let (OffVariant::Unchanged, Some(key)) = (&changes.off_variant, &flag.off_variant) {
        note(key, "offVariant");
    }
    if matches!(changes.fallthrough, Fallthrough::Unchanged) {
        flag.fallthrough.variants().for_each(|key| note(key, "fallthrough"));
    }
    if changes.rules.is_none() {
        for rule in &flag.rules {
            let used_by = format!("rule {}", rule.id);
            rule.serve.variants().for_each(|key| note(key, &used_by));
        }
    }
    if changes.targets.is_none() {
        for target in &flag.targets {
            note(&target.variant, &format!("target {}", target.value));
        }
    }
}

/// Notes a flag that the patch makes too large. A stored flag can always be enabled, disabled and
/// archived, although this adds a few bytes.
fn note_growth(flag: &FeatureFlag, patched: &FeatureFlag, violations: &mut Violations) {
    let FeatureFlag { enabled, archived_at, .. } = *flag;
    let (before, after) = (flag_bytes(flag), flag_bytes(patched));
    if after > MAX_FLAG_BYTES && after > before {
        let toggled = FeatureFlag { enabled, archived_at, ..patched.clone() };
        if flag_bytes(&toggled) > before {
            note_size(after, violations);
        }
    }
}

#[cfg(test)]
mod tests;
