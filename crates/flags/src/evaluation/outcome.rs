//! The order of evaluation, with its results and reasons.
//!
//! The first step that applies decides: disabled, prerequisites, targets, rules, fallthrough.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use shared::projects::project::ProjectId;

use super::budget::WorkLimit;
use super::compiled::{CompiledFlag, CompiledServe, DamagedFlag};
use super::context::Context;
use super::segments::Memberships;
use super::variant::TypedVariant;
use crate::{FlagKey, MAX_PREREQUISITE_DEPTH, RuleId, SegmentKey, VariantKey};

/// The result of evaluating a flag for a context.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'f> {
    variant: Option<&'f TypedVariant>,
    reason: Reason,
    metadata: Metadata<'f>,
}

/// The reason for a result. Only `OpenFeature`'s own reasons, since providers reject others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The flag has no targeting and no rollout.
    Static,
    /// No target and no rule matched, or there is no variant to serve.
    Default,
    /// A target or a rule matched.
    TargetingMatch,
    /// The fallthrough's rollout chose the variant.
    Split,
    /// The flag is disabled, or a prerequisite is unmet.
    Disabled,
}

/// Additional information about an evaluation, with the names of `OpenFeature`'s Appendix D if it
/// defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'f> {
    /// The flag's version, as text.
    #[serde(serialize_with = "as_text")]
    pub version: u64,
    /// The flag's project.
    pub flag_set_id: ProjectId,
    /// The unmet direct prerequisite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerequisite: Option<&'f FlagKey>,
    /// `true` if a target matched, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targeted: Option<bool>,
    /// The rule that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<&'f RuleId>,
    /// `true` if a rollout with at least two positive weights chose the variant. Absent if no rule
    /// matched and no rollout was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucketed: Option<bool>,
}

/// The reason why a flag could not be evaluated. Displays as the details for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationError<'f> {
    /// The project has no such flag, or it is archived.
    FlagNotFound,
    /// A rollout of this flag needs a targeting key.
    TargetingKeyMissing(&'f FlagKey),
    /// This flag is unreadable.
    Damaged(&'f FlagKey, &'f DamagedFlag),
    /// This flag uses this unreadable segment.
    SegmentDamaged(&'f FlagKey, &'f SegmentKey),
    /// This flag depends on itself through its prerequisites.
    PrerequisiteCycle(&'f FlagKey),
    /// This flag's chain of prerequisites is too long.
    PrerequisitesTooDeep(&'f FlagKey),
    /// Evaluating this flag's conditions for this context exceeds this work limit.
    TooMuchWork(&'f FlagKey, WorkLimit),
}

/// The `OpenFeature` error codes of evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The flag does not exist.
    FlagNotFound,
    /// A rollout needs a targeting key, and the context has none.
    TargetingKeyMissing,
    /// The context is not valid.
    InvalidContext,
    /// The request or a stored flag cannot be read.
    ParseError,
    /// Any other error.
    General,
}

impl<'f> Evaluation<'f> {
    /// Returns the variant's key; `None` for the caller's default.
    pub fn variant(&self) -> Option<&'f VariantKey> {
        self.variant.map(TypedVariant::key)
    }

    /// Returns the variant's typed value as JSON; `None` for the caller's default.
    pub fn value(&self) -> Option<&'f RawValue> {
        self.variant.map(TypedVariant::value)
    }

    /// Returns the reason for the result.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> &Metadata<'f> {
        &self.metadata
    }
}

impl EvaluationError<'_> {
    /// Returns the error's code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::FlagNotFound => ErrorCode::FlagNotFound,
            Self::TargetingKeyMissing(_) => ErrorCode::TargetingKeyMissing,
            Self::TooMuchWork(..) => ErrorCode::InvalidContext,
            Self::Damaged(..)
            | Self::SegmentDamaged(..)
            | Self::PrerequisiteCycle(_)
            | Self::PrerequisitesTooDeep(_) => ErrorCode::ParseError,
        }
    }
}

impl fmt::Display for EvaluationError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlagNotFound => formatter.write_str("the project has no flag with this key"),
            Self::TargetingKeyMissing(flag) => write!(
                formatter,
                "the context has no targetingKey, which a rollout of the flag {flag} requires"
            ),
            Self::Damaged(flag, damage) => {
                write!(formatter, "the stored flag {flag} is corrupted: {damage}")
            }
            Self::SegmentDamaged(flag, segment) => {
                write!(formatter, "the flag {flag} uses the segment {segment}, which is corrupted")
            }
            Self::PrerequisiteCycle(flag) => {
                write!(formatter, "the flag {flag} depends on itself through its prerequisites")
            }
            Self::PrerequisitesTooDeep(flag) => write!(
                formatter,
                "the flag {flag} has a prerequisite chain of more than {MAX_PREREQUISITE_DEPTH} \
                 flags"
            ),
            Self::TooMuchWork(flag, limit) => write!(
                formatter,
                "the context is too large for the conditions of the flag {flag}: evaluation may \
                 take more than {limit}"
            ),
        }
    }
}

impl CompiledFlag {
    /// Evaluates a disabled flag, or a flag with an unmet direct prerequisite.
    pub(super) fn evaluate_off<'f>(&'f self, unmet: Option<&'f FlagKey>) -> Evaluation<'f> {
        let metadata = Metadata { prerequisite: unmet, ..self.metadata() };
        Evaluation { variant: self.off_variant(), reason: Reason::Disabled, metadata }
    }

    /// Evaluates an enabled flag whose prerequisites are met.
    pub(super) fn evaluate_on(
        &self,
        memberships: &Memberships<'_, '_>,
    ) -> Result<Evaluation<'_>, EvaluationError<'_>> {
        let context = memberships.context();
        if let Some(variant) = self.targeted_variant(context) {
            let metadata = Metadata { targeted: Some(true), ..self.metadata() };
            let reason = Reason::TargetingMatch;
            return Ok(Evaluation { variant: Some(variant), reason, metadata });
        }
        if let Some(damaged) = self.segments.iter().find(|key| !memberships.is_readable(key)) {
            return Err(EvaluationError::SegmentDamaged(&self.key, damaged));
        }
        if let Some(rule) = self.matching_rule(memberships)? {
            let metadata = Metadata { rule_id: Some(&rule.id), ..self.metadata() };
            let (variant, bucketed) = self.serve(&rule.serve, context)?;
            let metadata = Metadata { bucketed: Some(bucketed), ..metadata };
            let reason = reason_for(variant, Reason::TargetingMatch);
            return Ok(Evaluation { variant, reason, metadata });
        }
        let (variant, bucketed) = self.serve(&self.fallthrough, context)?;
        let metadata = Metadata { bucketed: bucketed.then_some(true), ..self.metadata() };
        let fixed = if self.has_targeting() { Reason::Default } else { Reason::Static };
        let reason = reason_for(variant, if bucketed { Reason::Split } else { fixed });
        Ok(Evaluation { variant, reason, metadata })
    }

    /// Returns the served variant, and whether the targeting key chose it.
    fn serve<'f>(
        &'f self,
        serve: &CompiledServe,
        context: &Context<'_>,
    ) -> Result<(Option<&'f TypedVariant>, bool), EvaluationError<'f>> {
        match serve {
            CompiledServe::Fixed(index) => Ok((self.fixed_variant(*index), false)),
            CompiledServe::Split(shares) => {
                let missing = EvaluationError::TargetingKeyMissing(&self.key);
                let targeting_key = context.targeting_key().ok_or(missing)?;
                Ok((self.variant_in(shares, targeting_key), true))
            }
        }
    }

    fn metadata(&self) -> Metadata<'_> {
        Metadata {
            version: self.version,
            flag_set_id: self.project_id,
            prerequisite: None,
            targeted: None,
            rule_id: None,
            bucketed: None,
        }
    }
}

/// Returns `reason`, or the default reason if there is no variant to serve.
fn reason_for(variant: Option<&TypedVariant>, reason: Reason) -> Reason {
    if variant.is_some() { reason } else { Reason::Default }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn as_text<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[cfg(test)]
mod tests;
