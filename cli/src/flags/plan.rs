//! Plans an import before anything is written. The store checks each write again, because of
//! concurrent writes.

use std::collections::{BTreeMap, HashMap, HashSet};

use flags::{
    Dependencies, FeatureFlag, FlagKey, InvalidPrerequisite, MAX_LIVE_FLAGS, Prerequisite,
    with_known_ids,
};
use shared::timestamp::Timestamp;

use super::comparison::compare;
use super::conflict::{Conflict, Conflicts};
use super::document::DescribedFlag;
use super::planned::{Actions, Change, Imported, Planned};
use super::segments::SegmentPlan;

/// Planned actions for the flags of a project, by key.
pub(super) type Plan = Actions<FlagKey, FeatureFlag>;

/// Planned action for one flag.
pub(super) type PlannedFlag = Planned<FeatureFlag>;

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
            None => Planned::Created(created(described, now)),
            Some(stored) => changed(&stored, described, now).unwrap_or_else(|reason| {
                conflicts.push(Conflict { name: key.to_string(), reason });
                Planned::Unchanged(stored)
            }),
        };
        flags.insert(key, planned);
    }
    for (key, missing) in stored {
        let is_archived = archive_missing && missing.archived_at.is_none();
        let planned =
            if is_archived { archived(missing, now) } else { Planned::LeftAlone(missing) };
        flags.insert(key, planned);
    }
    let plan = Actions(flags);
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
) -> Result<PlannedFlag, String> {
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
        return Ok(Planned::Unchanged(flag));
    }
    if archived && stored.archived_at.is_some() {
        let reason = "is archived in the project and in the document, but they differ; archived \
                      flags cannot be changed: import it with `\"archived\": false` first";
        return Err(reason.to_owned());
    }
    Ok(change(stored.clone(), flag, now))
}

fn archived(stored: FeatureFlag, now: Timestamp) -> PlannedFlag {
    let flag = FeatureFlag { archived_at: Some(now), ..stored.clone() };
    change(stored, flag, now)
}

fn change(stored: FeatureFlag, flag: FeatureFlag, now: Timestamp) -> PlannedFlag {
    let version = stored.version.saturating_add(1);
    let flag = FeatureFlag { version, updated_at: now, ..flag };
    let fields = compare(&stored, &flag);
    Planned::Changed(Box::new(Change { stored, new: flag, fields }))
}

impl Plan {
    /// Returns conflicts of prerequisites, missing segments and the flag limit.
    fn conflicts(&self, segments: &SegmentPlan) -> Vec<Conflict> {
        let live: HashMap<&FlagKey, &FeatureFlag> = self
            .0
            .iter()
            .map(|(key, planned)| (key, planned.outcome()))
            .filter(|(_, flag)| flag.archived_at.is_none())
            .collect();
        let prerequisites =
            |(key, flag): (&&FlagKey, &&FeatureFlag)| ((*key).clone(), flag.prerequisites.clone());
        let dependencies = Dependencies::new(live.iter().map(prerequisites));
        let mut conflicts = Vec::new();
        for (key, planned) in self.0.iter().filter(|(_, planned)| planned.is_change()) {
            let used = planned.outcome().segments();
            for missing in used.iter().filter(|segment| !segments.has(segment)) {
                let reason = format!(
                    "uses the segment {missing}, which would not exist; add the segment, or change \
                     the rule"
                );
                conflicts.push(Conflict { name: key.to_string(), reason });
            }
        }
        for (key, planned) in &self.0 {
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
        let created = self.0.iter().find(|(_, planned)| matches!(planned, Planned::Created(_)));
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

    /// Returns the changes in an order that lets most of them succeed. Live flags come first,
    /// prerequisites before dependents. Archived flags follow, dependents before prerequisites.
    pub(super) fn changes(self) -> Vec<PlannedFlag> {
        let order = self.order();
        let (mut archived, mut live): (Vec<_>, Vec<_>) = self
            .0
            .into_values()
            .filter(Planned::is_change)
            .partition(|planned| planned.outcome().archived_at.is_some());
        let position =
            |planned: &PlannedFlag| order.get(&planned.outcome().key).copied().unwrap_or_default();
        live.sort_by_key(position);
        archived.sort_by_key(|planned| std::cmp::Reverse(position(planned)));
        live.into_iter().chain(archived).collect()
    }

    /// Returns each flag's position in an order with prerequisites before dependents.
    fn order(&self) -> HashMap<FlagKey, usize> {
        let mut positions = HashMap::with_capacity(self.0.len());
        // Each flag with the number of its visited prerequisites. Only chains of archived flags can
        // be long or circular, and their order does not matter.
        let mut stack: Vec<(&FlagKey, usize)> = Vec::new();
        let mut visited: HashSet<&FlagKey> = HashSet::new();
        for start in self.0.keys() {
            if visited.insert(start) {
                stack.push((start, 0));
            }
            while let Some((key, next_index)) = stack.last_mut() {
                let key = *key;
                let planned = self.0.get(key);
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

impl Imported for FeatureFlag {
    fn name(&self) -> String {
        self.key.to_string()
    }

    fn brief(&self) -> String {
        let state = match (self.archived_at, self.enabled) {
            (Some(_), _) => "archived",
            (None, true) => "enabled",
            (None, false) => "disabled",
        };
        let parts = [
            ("variants", self.variants.len()),
            ("rules", self.rules.len()),
            ("targets", self.targets.len()),
            ("prerequisites", self.prerequisites.len()),
        ];
        let mut words = vec![self.flag_type.as_str().to_owned(), state.to_owned()];
        let parts = parts.into_iter().filter(|(_, count)| *count > 0);
        words.extend(parts.map(|(name, count)| format!("{name}: {count}")));
        words.join(", ")
    }
}

#[cfg(test)]
mod tests;
