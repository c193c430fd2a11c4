//! Flags and contexts for tests.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use shared::json::{Json, MAX_BODY_DEPTH};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::compiler::Compiler;
use super::context::Context;
use super::project_flags::{Flags, LoadedFlag};
use crate::draft::FlagDraft;
use crate::segment::SegmentDraft;
use crate::{FeatureFlag, Segment};

/// The time of all evaluations.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(1_795_234_560_007)
}

pub(crate) fn project() -> ProjectId {
    ProjectId::new(Uuid::from_u128(0xa))
}

/// Returns an enabled boolean flag with these additional fields, created as by a client.
pub(crate) fn flag(key: &str, members: &Value) -> FeatureFlag {
    let mut body = json!({"key": key, "name": key, "type": "boolean", "enabled": true});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let text = body.to_string();
    let draft = FlagDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    let mut ids = (1..).map(Uuid::from_u128);
    draft.into_flag(project(), now(), || ids.next().unwrap()).unwrap()
}

/// Returns a segment with these conditions.
pub(crate) fn segment(key: &str, conditions: &Value) -> Segment {
    let text = json!({"key": key, "name": key, "conditions": conditions}).to_string();
    let draft = SegmentDraft::read(&Json::parse(&text, MAX_BODY_DEPTH).unwrap()).unwrap();
    draft.into_segment(project(), now(), Uuid::from_u128(1)).unwrap()
}

/// Compiles a flag for evaluation.
pub(crate) fn loaded(flag: &FeatureFlag) -> LoadedFlag {
    LoadedFlag::new(flag, &mut Compiler::default())
}

pub(crate) fn flags(flags: impl IntoIterator<Item = FeatureFlag>) -> Flags {
    Flags::new(project(), flags.into_iter().map(|flag| Arc::new(loaded(&flag))))
}

/// Returns the resident memory of the process in bytes. Each test runs in its own process.
pub(crate) fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

pub(crate) fn context(text: &str) -> Context<'_> {
    Context::read(Json::parse(text, MAX_BODY_DEPTH).unwrap()).unwrap()
}
