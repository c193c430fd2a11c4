//! Plans an import before anything is written. The store checks each write again, because of
//! concurrent writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use flags::{
    Dependencies, FeatureFlag, FlagKey, InvalidPrerequisite, MAX_LIVE_FLAGS, Prerequisite,
    with_known_ids,
};
use shared::timestamp::Timestamp;

use super::comparison::{FieldChange, compare};
use super::conflict::{Conflict, Conflicts};
use super::document::DescribedFlag;
use super::segments::SegmentPlan;

/// Planned actions for the flags of a project, by key.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) flags: BTreeMap<FlagKey, PlannedAction>,
}

/// Planned action for one flag.
#[derive(Debug)]
pub(super) enum PlannedAction {
    Created(FeatureFlag),
    Changed(Box<Change>),
    Unchanged(FeatureFlag),
    /// In the project but not in the document.
    LeftAlone(FeatureFlag),
}

/// The stored flag and its new version.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) stored: FeatureFlag,
    pub(super) flag: FeatureFlag,
    pub(super) fields: Vec<FieldChange>,
}

impl PlannedAction {
    /// Returns the flag after the import.
    pub(super) fn outcome(&self) -> &FeatureFlag {
        match self {
            Self::Created(flag) | Self::Unchanged(flag) | Self::LeftAlone(flag) => flag,
            Self::Changed(change) => &change.flag,
        }
    }

    /// `true` if the flag has to be written.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Changed(_))
    }
}

/// Compares a document with the project's flags. Segments are applied first.
pub(super) fn plan(
    stored: Vec<FeatureFlag>,
    described: Vec<DescribedFlag>,
    segments: &SegmentPlan,
    archive_missing: bool,
    now: Timestamp,
) -> Result<Plan, Conflicts> {
    let mut stored: BTreeMap<FlagKey, FeatureFlag> =
        stored.into_iter().map(|flag| (flag.key.clone(), flag)).collect();
    let mut conflicts = Vec::new();
    let mut flags = BTreeMap::new();
    for described in described {
        let key = described.flag.key.clone();
        let planned = match stored.remove(&key) {
            None => PlannedAction::Created(created(described, now)),
            Some(stored) => changed(&stored, described, now).unwrap_or_else(|reason| {
                conflicts.push(Conflict { name: key.to_string(), reason });
                PlannedAction::Unchanged(stored)
            }),
        };
        flags.insert(key, planned);
    }
    for (key, missing) in stored {
        let is_archived = archive_missing && missing.archived_at.is_none();
        let planned =
            if is_archived { archived(missing, now) } else { PlannedAction::LeftAlone(missing) };
        flags.insert(key, planned);
    }
    let plan = Plan { flags };
    conflicts.extend(segments.conflict());
    conflicts.extend(plan.conflicts(segments));
    if conflicts.is_empty() { Ok(plan) } else { Err(Conflicts(conflicts)) }
}

fn created(described: DescribedFlag, now: Timestamp) -> FeatureFlag {
    let archived_at = described.archived.then_some(now);
    FeatureFlag { archived_at, ..described.flag }
}

/// Returns the action for an existing flag, or the reason why the document's version is impossible.
fn changed(
    stored: &FeatureFlag,
    described: DescribedFlag,
    now: Timestamp,
) -> Result<PlannedAction, String> {
    let DescribedFlag { flag, archived, new_rule_ids } = described;
    if flag.flag_type != stored.flag_type {
        let (is, wanted) = (stored.flag_type.as_str(), flag.flag_type.as_str());
        return Err(format!(
            "has type {is}, which cannot become {wanted}; use another key in the document, or \
             archive and delete the project's flag first"
        ));
    }
    let flag = FeatureFlag {
        id: stored.id,
        archived_at: archived.then(|| stored.archived_at.unwrap_or(now)),
        version: stored.version,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
        is_successor: stored.is_successor,
        rules: with_known_ids(flag.rules, &new_rule_ids, &stored.rules),
        ..flag
    };
    if flag == *stored {
        return Ok(PlannedAction::Unchanged(flag));
    }
    if archived && stored.archived_at.is_some() {
        let reason = "is archived in the project and in the document, but they differ; archived \
                      flags cannot be changed: import it with `\"archived\": false` first";
        return Err(reason.to_owned());
    }
    Ok(change(stored.clone(), flag, now))
}

fn archived(stored: FeatureFlag, now: Timestamp) -> PlannedAction {
    let flag = FeatureFlag { archived_at: Some(now), ..stored.clone() };
    change(stored, flag, now)
}

fn change(stored: FeatureFlag, flag: FeatureFlag, now: Timestamp) -> PlannedAction {
    let version = stored.version.saturating_add(1);
    let flag = FeatureFlag { version, updated_at: now, ..flag };
    let fields = compare(&stored, &flag);
    PlannedAction::Changed(Box::new(Change { stored, flag, fields }))
}

impl Plan {
    /// Returns conflicts of prerequisites, missing segments and the flag limit.
    fn conflicts(&self, segments: &SegmentPlan) -> Vec<Conflict> {
        let live: HashMap<&FlagKey, &FeatureFlag> = self
            .flags
            .iter()
            .map(|(key, planned)| (key, planned.outcome()))
            .filter(|(_, flag)| flag.archived_at.is_none())
            .collect();
        let prerequisites =
            |(key, flag): (&&FlagKey, &&FeatureFlag)| ((*key).clone(), flag.prerequisites.clone());
        let dependencies = Dependencies::new(live.iter().map(prerequisites));
        let mut conflicts = Vec::new();
        for (key, planned) in self.flags.iter().filter(|(_, planned)| planned.is_change()) {
            let used = planned.outcome().segments();
            for missing in used.iter().filter(|segment| !segments.has(segment)) {
                let reason = format!(
                    "uses the segment {missing}, which would not exist; add the segment, or change \
                     the rule"
                );
                conflicts.push(Conflict { name: key.to_string(), reason });
            }
        }
        for (key, planned) in &self.flags {
            let Some(flag) = live.get(key) else { continue };
            for prerequisite in &flag.prerequisites {
                // Only a changed flag can invalidate a valid chain.
                let changed_dependencies = planned.is_change().then_some(&dependencies);
                if let Some(reason) =
                    prerequisite_conflict(key, prerequisite, &live, changed_dependencies)
                {
                    conflicts.push(Conflict { name: key.to_string(), reason });
                }
            }
        }
        let limit = usize::try_from(MAX_LIVE_FLAGS).unwrap_or(usize::MAX);
        let created =
            self.flags.iter().find(|(_, planned)| matches!(planned, PlannedAction::Created(_)));
        if let (true, Some((key, _))) = (live.len() > limit, created) {
            let reason = format!(
                "the project would have {} flags that are not archived; the limit is {limit}, so \
                 archive some first",
                live.len()
            );
            conflicts.push(Conflict { name: key.to_string(), reason });
        }
        conflicts
    }

    /// Returns the number of flags for which `is_counted` is `true`.
    pub(super) fn count(&self, is_counted: impl Fn(&PlannedAction) -> bool) -> usize {
        self.flags.values().filter(|planned| is_counted(planned)).count()
    }

    /// Returns the changes in an order that lets most of them succeed. Live flags come first,
    /// prerequisites before dependents. Archived flags follow, dependents before prerequisites.
    pub(super) fn changes(self) -> Vec<PlannedAction> {
        let order = self.order();
        let (mut archived, mut live): (Vec<_>, Vec<_>) = self
            .flags
            .into_values()
            .filter(PlannedAction::is_change)
            .partition(|planned| planned.outcome().archived_at.is_some());
        let position = |planned: &PlannedAction| {
            order.get(&planned.outcome().key).copied().unwrap_or_default()
        };
        live.sort_by_key(position);
        archived.sort_by_key(|planned| std::cmp::Reverse(position(planned)));
        live.into_iter().chain(archived).collect()
    }

    /// Returns each flag's position in an order with prerequisites before dependents.
    fn order(&self) -> HashMap<FlagKey, usize> {
        let mut positions = HashMap::with_capacity(self.flags.len());
        // Each flag with the number of its visited prerequisites. Only chains of archived flags can
        // be long or circular, and their order does not matter.
        let mut stack: Vec<(&FlagKey, usize)> = Vec::new();
        let mut visited: HashSet<&FlagKey> = HashSet::new();
        for start in self.flags.keys() {
            if visited.insert(start) {
                stack.push((start, 0));
            }
            while let Some((key, next_index)) = stack.last_mut() {
                let key = *key;
                let planned = self.flags.get(key);
                let next = planned.and_then(|it| it.outcome().prerequisites.get(*next_index));
                *next_index += 1;
                match next.map(|prerequisite| &prerequisite.flag_key) {
                    Some(next) if visited.insert(next) => stack.push((next, 0)),
                    Some(_) => {}
                    None => {
                        positions.insert(key.clone(), positions.len());
                        stack.pop();
                    }
                }
            }
        }
        positions
    }
}

/// Returns the reason why a prerequisite does not fit the other flags. Chains are checked only if
/// `dependencies` is given.
fn prerequisite_conflict(
    key: &FlagKey,
    prerequisite: &Prerequisite,
    live: &HashMap<&FlagKey, &FeatureFlag>,
    dependencies: Option<&Dependencies>,
) -> Option<String> {
    let Prerequisite { flag_key, variant } = prerequisite;
    let Some(found) = live.get(flag_key) else {
        return Some(format!(
            "depends on {flag_key}, which would be archived or missing; keep or add that flag, \
             or remove the prerequisite"
        ));
    };
    if found.variants.iter().all(|it| it.key != *variant) {
        return Some(format!(
            "depends on the variant {variant} of {flag_key}, which would not exist; keep that \
             variant, or change the prerequisite"
        ));
    }
    let arrows =
        |keys: &[FlagKey]| keys.iter().map(FlagKey::as_str).collect::<Vec<_>>().join(" → ");
    match dependencies?.check(key, flag_key)? {
        InvalidPrerequisite::Cycle(path) => {
            Some(format!("would depend on itself: {}; remove a prerequisite", arrows(&path)))
        }
        InvalidPrerequisite::TooLong(chain) => Some(format!(
            "would be in a prerequisite chain that is too long: {}; shorten it",
            arrows(&chain)
        )),
    }
}

/// A flag's planned action in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanEntry<'p> {
    key: &'p FlagKey,
    action: &'static str,
    changes: &'p [FieldChange],
}

impl<'p> PlanEntry<'p> {
    pub(super) fn of((key, planned): (&'p FlagKey, &'p PlannedAction)) -> Self {
        let (action, changes) = match planned {
            PlannedAction::Created(_) => ("create", &[][..]),
            PlannedAction::Changed(change) => ("change", change.fields.as_slice()),
            PlannedAction::Unchanged(_) => ("none", &[][..]),
            PlannedAction::LeftAlone(_) => ("not_in_document", &[][..]),
        };
        Self { key, action, changes }
    }
}

/// The text output: each flag on a line, followed by its changes.
impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, planned) in &self.flags {
            write!(formatter, "{separator}")?;
            separator = "\n";
            match planned {
                PlannedAction::Created(flag) => {
                    write!(formatter, "+ {key}: created, {}", brief(flag))?;
                }
                PlannedAction::Unchanged(_) => write!(formatter, "= {key}: unchanged")?,
                PlannedAction::LeftAlone(_) => {
                    write!(formatter, "? {key}: not in the file, left alone")?;
                }
                PlannedAction::Changed(change) => {
                    write!(formatter, "~ {key}: changed")?;
                    for change in &change.fields {
                        let lines = change.to_string();
                        write!(formatter, "\n    {}", lines.replace('\n', "\n    "))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Summarizes a flag in a few words.
fn brief(flag: &FeatureFlag) -> String {
    let state = match (flag.archived_at, flag.enabled) {
        (Some(_), _) => "archived",
        (None, true) => "enabled",
        (None, false) => "disabled",
    };
    let parts = [
        ("variants", flag.variants.len()),
        ("rules", flag.rules.len()),
        ("targets", flag.targets.len()),
        ("prerequisites", flag.prerequisites.len()),
    ];
    let mut words = vec![flag.flag_type.as_str().to_owned(), state.to_owned()];
    let parts = parts.into_iter().filter(|(_, count)| *count > 0);
    words.extend(parts.map(|(name, count)| format!("{name}: {count}")));
    words.join(", ")
}

#[cfg(test)]
mod tests;
