//! Compiled flags.

use std::collections::HashMap;
use std::fmt;

use shared::projects::project::ProjectId;

use super::attribute::{AttributePaths, Found};
use super::bucketing::{Bucketing, Shares};
use super::budget::EvaluationBudget;
use super::compiler::Compiler;
use super::condition::{self, CompiledCondition, TEXT_BYTES};
use super::context::Context;
use super::outcome::EvaluationError;
use super::segments::Memberships;
use super::variant::TypedVariant;
use crate::{
    FeatureFlag, FlagKey, Prerequisite, Rule, RuleId, SegmentKey, Serve, Target, TargetKind,
    VariantKey,
};

/// A flag with only the parsed data that its evaluation needs.
#[derive(Debug)]
pub struct CompiledFlag {
    pub(super) key: FlagKey,
    pub(super) project_id: ProjectId,
    pub(super) version: u64,
    pub(super) enabled: bool,
    pub(super) prerequisites: Box<[Prerequisite]>,
    pub(super) fallthrough: CompiledServe,
    /// The segments that the rules use.
    pub(super) segments: Box<[SegmentKey]>,
    variants: Box<[TypedVariant]>,
    off_variant: Option<usize>,
    rules: Box<[CompiledRule]>,
    attributes: AttributePaths,
    /// Variant indices by targeting key.
    targets: HashMap<Box<str>, usize>,
    bucketing: Bucketing,
}

/// Sizes in memory, in bytes: a flag without its lists, a rule, and one variant, target or rollout
/// entry.
const FLAG_BYTES: usize = 1_000;
const RULE_BYTES: usize = 256;
const ENTRY_BYTES: usize = 96;

/// The reason why a stored flag cannot be evaluated. No write creates such a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DamagedFlag(String);

impl DamagedFlag {
    /// Returns the damage of a flag that cannot be evaluated for this reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// A rule with compiled conditions.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) id: RuleId,
    pub(super) serve: CompiledServe,
    conditions: Box<[CompiledCondition]>,
}

impl CompiledRule {
    fn new(
        rule: &Rule,
        indices: &VariantIndices<'_>,
        attributes: &mut AttributePaths,
        compiler: &mut Compiler,
    ) -> Result<Self, DamagedFlag> {
        let id = rule.id.clone();
        let conditions: Result<_, _> = rule
            .conditions
            .iter()
            .map(|condition| CompiledCondition::new(condition, attributes, compiler))
            .collect();
        let conditions = conditions
            .map_err(|reason| DamagedFlag::new(format_args!("in its rule {id}, {reason}")))?;
        Ok(Self { id, conditions, serve: indices.serve(&rule.serve)? })
    }

    fn holds(
        &self,
        attributes: &Found<'_, '_>,
        memberships: &Memberships<'_, '_>,
        budget: &EvaluationBudget<'_>,
    ) -> bool {
        self.conditions.iter().all(|condition| condition.holds(attributes, memberships, budget))
    }
}

/// A serve with indices of variants.
#[derive(Debug)]
pub(super) enum CompiledServe {
    /// One variant for all contexts; `None` for the caller's default.
    Fixed(Option<usize>),
    /// A variant chosen by the targeting key. Several weights are positive.
    Split(Shares),
}

impl CompiledFlag {
    /// Compiles a flag. Fails only for flags that no write creates.
    pub fn new(flag: &FeatureFlag, compiler: &mut Compiler) -> Result<Self, DamagedFlag> {
        let indices = VariantIndices::of(flag);
        let mut attributes = AttributePaths::default();
        let rule = |rule| CompiledRule::new(rule, &indices, &mut attributes, compiler);
        let target = |target: &Target| match target.kind {
            TargetKind::Identifier => {
                Ok((target.value.as_str().into(), indices.get(&target.variant)?))
            }
        };
        Ok(Self {
            key: flag.key.clone(),
            project_id: flag.project_id,
            version: flag.version,
            enabled: flag.enabled,
            prerequisites: flag.prerequisites.as_slice().into(),
            rules: flag.rules.iter().map(rule).collect::<Result<_, _>>()?,
            attributes,
            segments: flag.segments().into_iter().collect(),
            fallthrough: indices.serve(&flag.fallthrough)?,
            variants: TypedVariant::all_of(flag.flag_type, &flag.variants)?,
            off_variant: flag.off_variant.as_ref().map(|key| indices.get(key)).transpose()?,
            targets: flag.targets.iter().map(target).collect::<Result<_, _>>()?,
            bucketing: Bucketing::new(flag.key.as_str()),
        })
    }

    /// Returns the approximate maximum size of a compiled flag in memory, in bytes. Excludes
    /// patterns, which [`ProjectPatterns`](super::patterns::ProjectPatterns) counts, and counts
    /// shared tests for each flag.
    pub(crate) fn bytes_of(flag: &FeatureFlag) -> usize {
        let bytes_of_serve = |serve: &Serve| match serve {
            Serve::Rollout(entries) => entries.len() * ENTRY_BYTES,
            Serve::CodeDefault | Serve::Variant(_) => 0,
        };
        let bytes_of_rule = |rule: &Rule| {
            RULE_BYTES + bytes_of_serve(&rule.serve) + condition::bytes_of(&rule.conditions)
        };
        let bytes_of_text = |text: &str| ENTRY_BYTES + TEXT_BYTES + text.len();
        FLAG_BYTES
            + bytes_of_serve(&flag.fallthrough)
            + flag.rules.iter().map(bytes_of_rule).sum::<usize>()
            + flag.variants.iter().map(|it| bytes_of_text(&it.value)).sum::<usize>()
            + flag.targets.iter().map(|it| bytes_of_text(&it.value)).sum::<usize>()
            + flag.prerequisites.len() * (ENTRY_BYTES + 2 * TEXT_BYTES)
    }

    /// `true` if the flag has rules, targets or prerequisites.
    pub(super) fn has_targeting(&self) -> bool {
        !(self.rules.is_empty() && self.targets.is_empty() && self.prerequisites.is_empty())
    }

    /// Returns the first rule whose conditions all hold.
    pub(super) fn matching_rule(
        &self,
        memberships: &Memberships<'_, '_>,
    ) -> Result<Option<&CompiledRule>, EvaluationError<'_>> {
        let attributes = Found::new(&self.attributes, memberships.context().attributes());
        let budget = memberships.budget().of_flag();
        let holds = |rule: &&CompiledRule| {
            budget.exhausted().is_some() || rule.holds(&attributes, memberships, &budget)
        };
        let found = self.rules.iter().find(holds);
        match budget.exhausted() {
            Some(limit) => Err(EvaluationError::TooMuchWork(&self.key, limit)),
            None => Ok(found),
        }
    }

    pub(super) fn off_variant(&self) -> Option<&TypedVariant> {
        self.variants.get(self.off_variant?)
    }

    pub(super) fn targeted_variant(&self, context: &Context<'_>) -> Option<&TypedVariant> {
        let variant = self.targets.get(context.targeting_key()?)?;
        self.variants.get(*variant)
    }

    pub(super) fn fixed_variant(&self, index: Option<usize>) -> Option<&TypedVariant> {
        self.variants.get(index?)
    }

    pub(super) fn variant_in(&self, shares: &Shares, targeting_key: &str) -> Option<&TypedVariant> {
        self.variants.get(shares.at(self.bucketing.place(targeting_key))?)
    }
}

/// Indices of a flag's variants by key.
struct VariantIndices<'f>(HashMap<&'f VariantKey, usize>);

impl<'f> VariantIndices<'f> {
    fn of(flag: &'f FeatureFlag) -> Self {
        Self(flag.variants.iter().enumerate().map(|(index, v)| (&v.key, index)).collect())
    }

    fn get(&self, key: &VariantKey) -> Result<usize, DamagedFlag> {
        let index = self.0.get(key).copied();
        index
            .ok_or_else(|| DamagedFlag::new(format_args!("it refers to the missing variant {key}")))
    }

    fn serve(&self, serve: &Serve) -> Result<CompiledServe, DamagedFlag> {
        let entries = match serve {
            Serve::CodeDefault => return Ok(CompiledServe::Fixed(None)),
            Serve::Variant(key) => return Ok(CompiledServe::Fixed(Some(self.get(key)?))),
            Serve::Rollout(entries) => entries,
        };
        let mut shares = Vec::with_capacity(entries.len());
        for entry in entries {
            shares.push((entry.weight.thousandths(), self.get(&entry.variant)?));
        }
        shares.retain(|(weight, _)| *weight > 0);
        match shares.as_slice() {
            [] => Err(DamagedFlag::new("a rollout has no positive weight")),
            [(_, only)] => Ok(CompiledServe::Fixed(Some(*only))),
            _ => Ok(CompiledServe::Split(Shares::new(shares))),
        }
    }
}
