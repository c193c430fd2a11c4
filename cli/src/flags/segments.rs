//! Plans and applies segment changes of an import. They precede changes of the flags that use them.

use std::collections::BTreeMap;

use flags::segment::MAX_SEGMENTS;
use flags::store::{FlagStore, SegmentCreation, SegmentReplacement};
use flags::{Segment, SegmentKey};
use shared::audit::{AuditAction, AuditEntry};
use shared::dynamodb::{ConflictRetry, Store, StoreError};
use shared::idempotency::StoredResponse;
use shared::timestamp::Timestamp;

use super::audit::entry_in;
use super::comparison::compare_segments;
use super::conflict::{Conflict, full};
use super::planned::{Actions, Change, Imported, Planned};
use crate::output::note;

/// Planned actions for the segments of a project, by key.
pub(super) type SegmentPlan = Actions<SegmentKey, Segment>;

impl Imported for Segment {
    fn name(&self) -> String {
        format!("segment {}", self.key)
    }

    fn brief(&self) -> String {
        format!("conditions: {}", self.conditions.len())
    }
}

impl SegmentPlan {
    /// Compares the stored segments with those of a document.
    pub(super) fn new(stored: Vec<Segment>, described: Vec<Segment>, now: Timestamp) -> Self {
        let mut stored: BTreeMap<SegmentKey, Segment> =
            stored.into_iter().map(|segment| (segment.key.clone(), segment)).collect();
        let mut actions = BTreeMap::new();
        for segment in described {
            let key = segment.key.clone();
            let action = match stored.remove(&key) {
                None => Planned::Created(segment),
                Some(stored) => planned(stored, segment, now),
            };
            actions.insert(key, action);
        }
        actions.extend(stored.into_iter().map(|(key, it)| (key, Planned::LeftAlone(it))));
        Self(actions)
    }

    /// `true` if the project has this segment after the import.
    pub(super) fn has(&self, key: &SegmentKey) -> bool {
        self.0.contains_key(key)
    }

    /// Returns a conflict if the project would exceed the segment limit.
    pub(super) fn conflict(&self) -> Option<Conflict> {
        let limit = usize::try_from(MAX_SEGMENTS).unwrap_or(usize::MAX);
        let mut created = self.0.values().filter(|it| matches!(it, Planned::Created(_)));
        let planned = created.next().filter(|_| self.0.len() > limit)?;
        let reason = format!(
            "the project would have {} segments; at most {limit} are allowed, delete some first",
            self.0.len()
        );
        Some(Conflict { name: planned.outcome().name(), reason })
    }

    /// Applies all possible changes. Returns their number, and the other changes with reasons.
    pub(super) async fn apply(self, store: &Store) -> Result<(usize, Vec<Conflict>), StoreError> {
        let (mut done, mut conflicts) = (0, Vec::new());
        for planned in self.0.into_values().filter(Planned::is_change) {
            let name = planned.outcome().name();
            match apply_change(&planned, store).await? {
                None => {
                    done += 1;
                    note(&name);
                }
                Some(reason) => conflicts.push(Conflict { name, reason }),
            }
        }
        Ok((done, conflicts))
    }
}

/// Returns the action for an existing segment.
fn planned(stored: Segment, described: Segment, now: Timestamp) -> Planned<Segment> {
    let fields = compare_segments(&stored, &described);
    if fields.is_empty() {
        return Planned::Unchanged(stored);
    }
    let new = Segment {
        name: described.name,
        conditions: described.conditions,
        version: stored.version.saturating_add(1),
        updated_at: now,
        ..stored.clone()
    };
    Planned::Changed(Box::new(Change { stored, new, fields }))
}

/// Returns the audit entry of a change of a segment.
async fn entry_of(
    segment: &Segment,
    action: AuditAction,
    store: &Store,
) -> Result<AuditEntry, StoreError> {
    entry_in(segment.project_id, action, segment.audit_target(), store).await
}

/// Applies one change. Returns the reason if it is impossible.
async fn apply_change(
    planned: &Planned<Segment>,
    store: &Store,
) -> Result<Option<String>, StoreError> {
    let overtaken = || {
        let reason =
            "was changed by another request in the meantime; run the command again to compare";
        Some(reason.to_owned())
    };
    match planned {
        Planned::Unchanged(_) | Planned::LeftAlone(_) => Ok(None),
        Planned::Created(segment) => match FlagStore::new(store)
            .create_segment(
                segment.clone(),
                &entry_of(segment, AuditAction::SegmentCreated, store).await?,
                None,
                |_| Ok::<_, StoreError>(StoredResponse::default()),
            )
            .await?
        {
            SegmentCreation::Created(_) | SegmentCreation::Replay(_) => Ok(None),
            SegmentCreation::LimitReached(limit) => Ok(Some(full(limit))),
            SegmentCreation::KeyTaken => {
                // Possibly created by another run of the same import.
                let found =
                    FlagStore::new(store).find_segment(segment.project_id, &segment.key).await?;
                let is_wanted = found.is_some_and(|it| compare_segments(&it, segment).is_empty());
                Ok(if is_wanted { None } else { overtaken() })
            }
        },
        Planned::Changed(change) => {
            let Change { stored, new: segment, .. } = change.as_ref();
            let entry = entry_of(segment, AuditAction::SegmentUpdated, store).await?;
            let mut retry = ConflictRetry::default();
            while retry.next_attempt().await {
                match FlagStore::new(store).replace_segment(stored, segment, &entry).await? {
                    SegmentReplacement::Done => return Ok(None),
                    SegmentReplacement::LimitReached(limit) => return Ok(Some(full(limit))),
                    SegmentReplacement::Outdated => {}
                }
                let found =
                    FlagStore::new(store).find_segment(segment.project_id, &segment.key).await?;
                if found.as_ref() != Some(stored) {
                    let is_wanted =
                        found.is_some_and(|it| compare_segments(&it, segment).is_empty());
                    return Ok(if is_wanted { None } else { overtaken() });
                }
            }
            Ok(overtaken())
        }
    }
}

#[cfg(test)]
mod tests {
    use flags::segment::SegmentDraft;
    use serde_json::json;
    use shared::json::Json;
    use shared::projects::project::ProjectId;
    use uuid::Uuid;

    use super::*;

    fn segment(key: &str, plans: &[&str]) -> Segment {
        let conditions = json!([{"attribute": "plan", "operator": "in", "values": plans}]);
        let text = json!({"key": key, "name": key, "conditions": conditions}).to_string();
        let draft = SegmentDraft::read(&Json::parse(&text, 10).unwrap()).unwrap();
        let now = Timestamp::from_millis(1);
        draft.into_segment(ProjectId::new(Uuid::nil()), now, Uuid::nil()).unwrap()
    }

    #[test]
    fn plan_creates_and_changes_but_never_deletes() {
        let stored = ["a", "b", "d"].map(|key| segment(key, &["pro"]));
        let described = [segment("a", &["pro"]), segment("b", &["free"]), segment("c", &["pro"])];
        let plan = SegmentPlan::new(stored.into(), described.into(), Timestamp::from_millis(9));
        let shown = plan.to_string();
        let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with(' ')).collect();
        let expected = [
            "= segment a: unchanged",
            "~ segment b: changed",
            "+ segment c: created, conditions: 1",
            "? segment d: not in the file, left alone",
        ];
        assert_eq!(lines, expected);
        assert_eq!((plan.count_changes(), plan.conflict()), (2, None));
        assert_eq!(plan.counts(), "1 created, 1 changed, 1 unchanged, 1 left alone");
        let segment = plan.0.values().nth(1).unwrap().outcome();
        assert_eq!((segment.version, segment.updated_at), (2, Timestamp::from_millis(9)));
    }

    #[test]
    fn segments_over_the_limit_are_a_conflict() {
        let stored: Vec<Segment> =
            (0..100).map(|number| segment(&format!("s{number}"), &["pro"])).collect();
        let plan = |described: Segment| {
            SegmentPlan::new(stored.clone(), vec![described], Timestamp::from_millis(9)).conflict()
        };
        assert_eq!(plan(segment("s7", &["free"])), None);
        let conflict = plan(segment("new", &["pro"])).unwrap();
        assert_eq!(conflict.name, "segment new");
        assert!(conflict.reason.contains("would have 101 segments"), "{}", conflict.reason);
    }
}
