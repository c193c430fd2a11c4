//! The record of parts that were cut from an event, stored in it as `trimmed`.

use shared::json::Json;

use super::member::{Members, cut, items, take};

const MEMBER: &str = "trimmed";
const MAX_PATHS: usize = 50;
const MAX_PATH_CHARS: usize = 100;

/// Paths of field names that were cut or left out, at most 50.
#[derive(Debug, Default)]
pub(super) struct TrimmedPaths(Vec<String>);

impl TrimmedPaths {
    /// Takes an earlier record out of the event, so that trimming twice equals trimming once.
    pub(super) fn take_from(event: &mut Members<'_>) -> Self {
        let mut trimmed_paths = Self::default();
        let earlier = take(event, MEMBER);
        for path in items(earlier.as_ref()) {
            if let Json::String(path) = path {
                trimmed_paths.note(path);
            }
        }
        trimmed_paths
    }

    /// Records a part.
    pub(super) fn note(&mut self, path: &str) {
        let path = cut(path.into(), MAX_PATH_CHARS);
        if self.0.len() < MAX_PATHS && !self.0.iter().any(|noted| *noted == path) {
            self.0.push(path.into_owned());
        }
    }

    /// Puts the record into the event, unless it is empty.
    pub(super) fn put_into(&self, event: &mut Members<'_>) {
        take(event, MEMBER);
        if !self.0.is_empty() {
            let paths = self.0.iter().map(|path| Json::String(path.clone().into())).collect();
            event.push((MEMBER.into(), Json::Array(paths)));
        }
    }
}
