//! Applies the changes of an import like the API would.

use flags::history::ChangeKind;
use flags::store::{FlagCreation, FlagReplacement, FlagStore};
use flags::{FeatureFlag, FlagKey};
use shared::dynamodb::{ConflictRetry, Store, StoreError};
use shared::idempotency::StoredResponse;
use shared::json::Violations;

use super::audit::entry_in;
use super::comparison::compare;
use super::conflict::{Conflict, Conflicts, full};
use super::plan::PlannedFlag;
use super::planned::Planned;
use crate::output::note;

/// Outcome of one change.
enum Outcome {
    Done,
    /// Not yet possible: another change might have to come first.
    Blocked(String),
    /// Not possible, because a concurrent write changed the flag.
    Overtaken(String),
}

/// Applies all possible changes. Returns their number, and the other changes with reasons.
///
/// Retries blocked changes as long as any change succeeds. If the command is interrupted, applied
/// changes stay, and the next import continues from there.
pub(super) async fn apply(
    changes: Vec<PlannedFlag>,
    store: &Store,
) -> Result<(usize, Conflicts), StoreError> {
    let total = changes.len();
    let mut done = 0;
    let mut conflicts = Vec::new();
    let mut waiting = changes;
    loop {
        let mut blocked = Vec::new();
        let round = waiting.len();
        for change in waiting {
            let key = change.outcome().key.clone();
            let outcome = match apply_change(&change, store).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    note(&format!(
                        "{done} of {total} changes were applied; run the command again for the \
                         rest."
                    ));
                    return Err(error);
                }
            };
            match outcome {
                Outcome::Done => {
                    done += 1;
                    note(&format!("{done} of {total}: {key}"));
                }
                Outcome::Blocked(reason) => blocked.push((change, reason)),
                Outcome::Overtaken(reason) => {
                    conflicts.push(Conflict { name: key.to_string(), reason });
                }
            }
        }
        if blocked.is_empty() || blocked.len() == round {
            let reason = |(change, reason): (PlannedFlag, String)| Conflict {
                name: change.outcome().key.to_string(),
                reason,
            };
            conflicts.extend(blocked.into_iter().map(reason));
            return Ok((done, Conflicts(conflicts)));
        }
        waiting = blocked.into_iter().map(|(change, _)| change).collect();
    }
}

async fn apply_change(change: &PlannedFlag, store: &Store) -> Result<Outcome, StoreError> {
    match change {
        Planned::Created(flag) => create(flag, store).await,
        Planned::Changed(change) => replace(&change.stored, &change.new, store).await,
        Planned::Unchanged(_) | Planned::LeftAlone(_) => Ok(Outcome::Done),
    }
}

/// Creates a flag. An archived flag is first created disabled and without prerequisites, because
/// those might no longer exist. It is then archived with its prerequisites.
async fn create(flag: &FeatureFlag, store: &Store) -> Result<Outcome, StoreError> {
    let mut first = flag.clone();
    if flag.archived_at.is_some() {
        first.archived_at = None;
        first.enabled = false;
        first.prerequisites = Vec::new();
    }
    let respond = |_: &FeatureFlag| Ok::<_, StoreError>(StoredResponse::default());
    let action = ChangeKind::Created.audit_action();
    let entry = entry_in(flag.project_id, action, flag.audit_target(), store).await?;
    let created = FlagStore::new(store).create_flag(first, &entry, None, respond).await?;
    let first = match created {
        FlagCreation::Created(flag) => flag,
        FlagCreation::Replay(_) => return Ok(Outcome::Done),
        FlagCreation::LimitReached(limit) => return Ok(Outcome::Blocked(full(limit))),
        FlagCreation::InvalidReferences(violations) => {
            return Ok(Outcome::Blocked(rejected(&violations)));
        }
        FlagCreation::KeyTaken => {
            let found = FlagStore::new(store).find_flag(flag.project_id, &flag.key).await?;
            return Ok(overtaken(found.as_ref(), flag));
        }
    };
    if flag.archived_at.is_none() {
        return Ok(Outcome::Done);
    }
    let version = first.version.saturating_add(1);
    let archived = FeatureFlag { version, is_successor: first.is_successor, ..flag.clone() };
    replace(&first, &archived, store).await
}

async fn replace(
    stored: &FeatureFlag,
    flag: &FeatureFlag,
    store: &Store,
) -> Result<Outcome, StoreError> {
    let kind = ChangeKind::of(stored, flag);
    let target = flag.audit_target();
    let entry = entry_in(flag.project_id, kind.audit_action(), target, store).await?;
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        match FlagStore::new(store).replace_flag(stored, flag, kind, &entry).await? {
            FlagReplacement::Done => return Ok(Outcome::Done),
            FlagReplacement::LimitReached(limit) => return Ok(Outcome::Blocked(full(limit))),
            FlagReplacement::InvalidReferences(violations) => {
                return Ok(Outcome::Blocked(rejected(&violations)));
            }
            FlagReplacement::InUse(dependents) => return Ok(Outcome::Blocked(in_use(&dependents))),
            FlagReplacement::Outdated => {}
        }
        // The conflict concerns the flag, or only its prerequisites or segments.
        let found = FlagStore::new(store).find_flag(flag.project_id, &flag.key).await?;
        if found.as_ref() != Some(stored) {
            return Ok(overtaken(found.as_ref(), flag));
        }
    }
    let reason = "its prerequisites or segments kept changing; run the command again";
    Ok(Outcome::Overtaken(reason.to_owned()))
}

/// Returns the outcome after a concurrent write, which can be another run of the same import.
fn overtaken(found: Option<&FeatureFlag>, wanted: &FeatureFlag) -> Outcome {
    let is_wanted = |found: &FeatureFlag| {
        found.flag_type == wanted.flag_type && compare(found, wanted).is_empty()
    };
    if found.is_some_and(is_wanted) {
        return Outcome::Done;
    }
    let reason = "was changed by another request in the meantime; run the command again to compare";
    Outcome::Overtaken(reason.to_owned())
}

fn rejected(violations: &Violations) -> String {
    let listed = violations.listed().iter();
    let listed: Vec<String> = listed.map(|it| format!("{} {}", it.pointer, it.message)).collect();
    format!("{}; fix the flag, and run the command again", listed.join("; "))
}

fn in_use(dependents: &[FlagKey]) -> String {
    let dependents: Vec<&str> = dependents.iter().map(FlagKey::as_str).collect();
    format!(
        "the change would break prerequisites of {}; remove those in a separate import, and run \
         the command again",
        dependents.join(", ")
    )
}
