//! Queries with gold answers, one JSON object a line: `id`, `tags`, `request` (the body of a
//! request) and `expected`, the lists of filters that are all right. Their order plays no part.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use ::interpret_error_filters::question::Question;
use interpreter::interpret;
use shared::json::{Json, MAX_BODY_DEPTH};

/// A query and the answers that are right.
#[derive(Deserialize)]
pub(crate) struct Case<'a> {
    /// Its name in the file.
    pub(crate) id: String,
    /// How hard it is, and what makes it so.
    pub(crate) tags: Vec<String>,
    #[serde(borrow)]
    request: &'a RawValue,
    /// The answers.
    pub(crate) expected: Vec<Vec<Value>>,
}

impl Case<'_> {
    /// The cases of a file.
    pub(crate) fn of_file(text: &str) -> Result<Vec<Case<'_>>, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let case = |(index, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))
        };
        lines.map(case).collect()
    }

    /// What the operation answers.
    pub(crate) fn answer(&self) -> Result<Vec<Value>, String> {
        let body = Json::parse(self.request.get(), MAX_BODY_DEPTH);
        let body = body.map_err(|error| format!("{}: {error}", self.id))?;
        let question = Question::read(&body);
        let question = question.map_err(|faults| format!("{}: {:?}", self.id, faults.listed()))?;
        let answer = question.answer(interpret(&question.request()).filters);
        let filters = answer.filters.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        filters.map_err(|error| format!("{}: {error}", self.id))
    }

    /// The rules that fired, and on which words.
    #[allow(dead_code)] // The tests tell only whether an answer is right.
    pub(crate) fn trace(&self) -> Option<String> {
        let body = Json::parse(self.request.get(), MAX_BODY_DEPTH).ok()?;
        let trace = interpret(&Question::read(&body).ok()?.request()).trace;
        let fired = trace.iter().map(|(rule, words)| format!("{rule} {words:?}"));
        Some(fired.collect::<Vec<_>>().join("; "))
    }

    /// Whether an answer is right.
    pub(crate) fn accepts(&self, answer: &[Value]) -> bool {
        let is_answer = |expected: &Vec<Value>| {
            expected.len() == answer.len() && expected.iter().all(|filter| answer.contains(filter))
        };
        self.expected.iter().any(is_answer)
    }

    /// A member of the request.
    pub(crate) fn asked(&self, member: &str) -> Value {
        let request: Value = serde_json::from_str(self.request.get()).unwrap_or_default();
        request[member].clone()
    }
}
