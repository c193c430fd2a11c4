//! Queries with expected answers, one JSON object per line: `id`, `tags`, `request` (a request
//! body) and `expected`, the accepted lists of filters. The order of filters does not matter.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use ::interpret_error_filters::question::Question;
use interpreter::interpret;
use shared::json::{Json, MAX_BODY_DEPTH};

/// A query and its accepted answers.
#[derive(Deserialize)]
pub(crate) struct Case<'a> {
    /// The name in the file.
    pub(crate) id: String,
    /// The difficulty, and its causes.
    pub(crate) tags: Vec<String>,
    #[serde(borrow)]
    request: &'a RawValue,
    /// The accepted lists of filters.
    pub(crate) expected: Vec<Vec<Value>>,
}

impl Case<'_> {
    /// Parses the cases of a file.
    pub(crate) fn of_file(text: &str) -> Result<Vec<Case<'_>>, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let case = |(index, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))
        };
        lines.map(case).collect()
    }

    /// Returns the filters that the operation returns.
    pub(crate) fn filters(&self) -> Result<Vec<Value>, String> {
        let body = Json::parse(self.request.get(), MAX_BODY_DEPTH);
        let body = body.map_err(|error| format!("{}: {error}", self.id))?;
        let question = Question::read(&body);
        let question = question.map_err(|faults| format!("{}: {:?}", self.id, faults.listed()))?;
        let response = question.response(interpret(&question.request()).filters);
        let filters = response.filters.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        filters.map_err(|error| format!("{}: {error}", self.id))
    }

    /// Returns the rules that matched, with their words.
    #[allow(dead_code)] // The tests check only the filters.
    pub(crate) fn trace(&self) -> Option<String> {
        let body = Json::parse(self.request.get(), MAX_BODY_DEPTH).ok()?;
        let trace = interpret(&Question::read(&body).ok()?.request()).trace;
        let fired = trace.iter().map(|(rule, words)| format!("{rule} {words:?}"));
        Some(fired.collect::<Vec<_>>().join("; "))
    }

    /// `true` if these filters are an accepted answer.
    pub(crate) fn accepts(&self, filters: &[Value]) -> bool {
        let is_accepted = |expected: &Vec<Value>| {
            expected.len() == filters.len() && expected.iter().all(|it| filters.contains(it))
        };
        self.expected.iter().any(is_accepted)
    }

    /// Returns a field of the request.
    pub(crate) fn request_field(&self, name: &str) -> Value {
        let request: Value = serde_json::from_str(self.request.get()).unwrap_or_default();
        request[name].clone()
    }
}
