//! Segments as flagd's shared evaluators (`$evaluators`), which the targeting of flags references.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::condition::{Condition, Operator};
use crate::{FeatureFlag, Segment};

use super::json_logic::{self, all, any, not};

/// The segments of a project by key, in `JsonLogic` or with the reason why flagd cannot express
/// them.
pub(super) struct Evaluators<'s>(BTreeMap<&'s str, Result<Value, String>>);

impl<'s> Evaluators<'s> {
    pub(super) fn of(segments: &'s [Segment]) -> Self {
        let logic = |segment: &Segment| -> Result<Value, String> {
            let conditions = segment.conditions.iter().map(json_logic::condition);
            Ok(all(conditions.collect::<Result<_, _>>()?))
        };
        Self(segments.iter().map(|it| (it.key.as_str(), logic(it))).collect())
    }

    /// Returns a rule's condition in `JsonLogic`, or the reason why flagd cannot express it.
    pub(super) fn condition(&self, condition: &Condition) -> Result<Value, String> {
        if !condition.operator.is_about_segments() {
            return json_logic::condition(condition);
        }
        let membership = |key: &String| match self.0.get(key.as_str()) {
            None => Err(format!("there is no segment {key}")),
            Some(Err(reason)) => Err(format!("the segment {key}: {reason}")),
            Some(Ok(logic)) if can_be_referenced(logic) => Ok(json!({"$ref": key})),
            Some(Ok(logic)) => Ok(logic.clone()),
        };
        let memberships = condition.values.iter().map(membership).collect::<Result<_, _>>()?;
        let is_in = any(memberships);
        Ok(if condition.operator == Operator::InSegment { is_in } else { not(&is_in) })
    }

    /// Returns the evaluators that a flag's targeting references.
    pub(super) fn referenced_by(
        &self,
        flag: &FeatureFlag,
    ) -> impl Iterator<Item = (&'s str, &Value)> {
        let segments = flag.segments();
        let used =
            self.0.iter().filter(move |(key, _)| segments.iter().any(|it| it.as_str() == **key));
        let logic = used.filter_map(|(key, logic)| Some((*key, logic.as_ref().ok()?)));
        logic.filter(|(_, logic)| can_be_referenced(logic))
    }
}

/// `true` if references to an evaluator work in all cores. Cores replace references in the
/// document's text. JavaScript's core treats `$` in the evaluator as a pattern. Python's core fails
/// on escapes, which it writes for every non-ASCII character. Such a segment is copied into each
/// condition that uses it.
fn can_be_referenced(logic: &Value) -> bool {
    logic.to_string().bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\\$".contains(&byte))
}
