//! The order of evaluation, its results and their reasons.
//!
//! Disabled, prerequisites, targets, rules, fallthrough: the first of them decides.

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

/// What a flag is for a context.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'f> {
    variant: Option<&'f TypedVariant>,
    reason: Reason,
    metadata: Metadata<'f>,
}

/// Why a variant is served: `OpenFeature`'s own reasons, since providers refuse others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// The flag has nothing that could decide otherwise.
    Static,
    /// No target and no rule matched, or there is no variant to serve.
    Default,
    /// A target or a rule matched.
    TargetingMatch,
    /// The fallthrough's rollout chose.
    Split,
    /// The flag is disabled, or a prerequisite is unmet.
    Disabled,
}

/// What else is known of an evaluation, under the names of `OpenFeature`'s Appendix D where it has
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'f> {
    /// The flag's version, as text.
    #[serde(serialize_with = "as_text")]
    pub version: u64,
    /// The flag's project.
    pub flag_set_id: ProjectId,
    /// The direct prerequisite that is unmet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerequisite: Option<&'f FlagKey>,
    /// Whether a target matched; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targeted: Option<bool>,
    /// The rule that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<&'f RuleId>,
    /// Whether a rollout with at least two positive weights chose; absent where no rule matched
    /// and no rollout was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucketed: Option<bool>,
}

/// Why a flag could not be evaluated. Displays as the details for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationError<'f> {
    /// The project has no such flag, or it is archived.
    FlagNotFound,
    /// A rollout of this flag needs a targeting key.
    TargetingKeyMissing(&'f FlagKey),
    /// This flag is damaged.
    Damaged(&'f FlagKey, &'f DamagedFlag),
    /// This flag asks for this segment, which is damaged.
    SegmentDamaged(&'f FlagKey, &'f SegmentKey),
    /// This flag is reached by its own prerequisites.
    PrerequisiteCycle(&'f FlagKey),
    /// This flag has too long a chain of prerequisites.
    PrerequisitesTooDeep(&'f FlagKey),
    /// To compare this context with the conditions of this flag would be more work than this limit allows.
    TooMuchWork(&'f FlagKey, WorkLimit),
}

/// The codes of `OpenFeature` errors that evaluation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The flag does not exist.
    FlagNotFound,
    /// The context names no individual, and a rollout needs one.
    TargetingKeyMissing,
    /// The context is not valid.
    InvalidContext,
    /// The request or a stored flag cannot be read.
    ParseError,
    /// Any other.
    General,
}

impl<'f> Evaluation<'f> {
    /// The key of the variant; none where the caller's own default is meant.
    pub fn variant(&self) -> Option<&'f VariantKey> {
        self.variant.map(TypedVariant::key)
    }

    /// The variant's value as JSON, typed; none where the caller's own default is meant.
    pub fn value(&self) -> Option<&'f RawValue> {
        self.variant.map(TypedVariant::value)
    }

    /// Why it is this variant.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What else is known.
    pub fn metadata(&self) -> &Metadata<'f> {
        &self.metadata
    }
}

impl EvaluationError<'_> {
    /// The error's code.
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
            Self::FlagNotFound => formatter.write_str("the project has no flag of this key"),
            Self::TargetingKeyMissing(flag) => write!(
                formatter,
                "a rollout of the flag {flag} needs the context's targetingKey, which is missing \
                 or empty"
            ),
            Self::Damaged(flag, damage) => {
                write!(formatter, "the stored flag {flag} is damaged: {damage}")
            }
            Self::SegmentDamaged(flag, segment) => {
                write!(
                    formatter,
                    "the flag {flag} asks for the segment {segment}, which is damaged"
                )
            }
            Self::PrerequisiteCycle(flag) => {
                write!(formatter, "the flag {flag} depends on itself through its prerequisites")
            }
            Self::PrerequisitesTooDeep(flag) => write!(
                formatter,
                "the flag {flag} has a chain of prerequisites of more than \
                 {MAX_PREREQUISITE_DEPTH} flags"
            ),
            Self::TooMuchWork(flag, limit) => write!(
                formatter,
                "the context's texts and lists are too long for the conditions of the flag {flag}: \
                 comparing them may take more than {limit}"
            ),
        }
    }
}

impl CompiledFlag {
    /// Evaluates a flag that is not enabled, or whose direct prerequisite is unmet.
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
        if let Some(damaged) = self.segments.iter().find(|key| !memberships.knows(key)) {
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

    /// The variant that is served, and whether it was chosen by the targeting key.
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

/// Without a variant to serve it is the default, whatever chose that.
fn reason_for(variant: Option<&TypedVariant>, reason: Reason) -> Reason {
    if variant.is_some() { reason } else { Reason::Default }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn as_text<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[cfg(test)]
mod tests;
