//! What an import does, decided before anything is written.
//!
//! The store checks each write again: in between, others may have written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use flags::{
    Dependencies, FeatureFlag, FlagKey, InvalidPrerequisite, MAX_LIVE_FLAGS, Prerequisite,
    with_known_ids,
};
use shared::timestamp::Timestamp;

use super::comparison::{FieldChange, compare};
use super::document::DescribedFlag;
use super::segments::SegmentPlan;

/// What becomes of the flags of a project, by key.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) flags: BTreeMap<FlagKey, PlannedAction>,
}

/// What becomes of one flag.
#[derive(Debug)]
pub(super) enum PlannedAction {
    Created(FeatureFlag),
    Changed(Box<Change>),
    Unchanged(FeatureFlag),
    /// The project has it and the document has not.
    LeftAlone(FeatureFlag),
}

/// A flag as it is and as it will be.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) stored: FeatureFlag,
    pub(super) flag: FeatureFlag,
    pub(super) fields: Vec<FieldChange>,
}

/// What keeps flags from becoming what a document says, with what to do about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts(pub(super) Vec<Conflict>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The flag by its key, or the segment.
    pub(super) name: String,
    pub(super) reason: String,
}

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for Conflict { name, reason } in &self.0 {
            write!(formatter, "{separator}  {name}: {reason}")?;
            separator = "\n";
        }
        Ok(())
    }
}

impl PlannedAction {
    /// The flag as it is after the import.
    pub(super) fn outcome(&self) -> &FeatureFlag {
        match self {
            Self::Created(flag) | Self::Unchanged(flag) | Self::LeftAlone(flag) => flag,
            Self::Changed(change) => &change.flag,
        }
    }

    /// Whether anything has to be written for it.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Changed(_))
    }
}

/// What a document does to a project with these flags, and then with these segments.
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
        let fate = match stored.remove(&key) {
            None => PlannedAction::Created(created(described, now)),
            Some(stored) => changed(&stored, described, now).unwrap_or_else(|reason| {
                conflicts.push(Conflict { name: key.to_string(), reason });
                PlannedAction::Unchanged(stored)
            }),
        };
        flags.insert(key, fate);
    }
    for (key, missing) in stored {
        let is_archived = archive_missing && missing.archived_at.is_none();
        let fate =
            if is_archived { archived(missing, now) } else { PlannedAction::LeftAlone(missing) };
        flags.insert(key, fate);
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

/// What becomes of a flag that is there, or why it cannot become what is described.
fn changed(
    stored: &FeatureFlag,
    described: DescribedFlag,
    now: Timestamp,
) -> Result<PlannedAction, String> {
    let DescribedFlag { flag, archived, new_rule_ids } = described;
    if flag.flag_type != stored.flag_type {
        let (is, wanted) = (stored.flag_type.as_str(), flag.flag_type.as_str());
        return Err(format!(
            "is of type {is} and cannot become {wanted}; give the flag of the document another \
             key, or archive and delete that of the project first"
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
        let reason = "is archived, and differs from the document, in which it is archived too; \
                      archived flags cannot be changed: import it with `\"archived\": false` first";
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
    /// What keeps the flags from being as planned: how they depend on each other, the segments that they
    /// use, and their number.
    fn conflicts(&self, segments: &SegmentPlan) -> Vec<Conflict> {
        let live: HashMap<&FlagKey, &FeatureFlag> = self
            .flags
            .iter()
            .map(|(key, fate)| (key, fate.outcome()))
            .filter(|(_, flag)| flag.archived_at.is_none())
            .collect();
        let prerequisites =
            |(key, flag): (&&FlagKey, &&FeatureFlag)| ((*key).clone(), flag.prerequisites.clone());
        let dependencies = Dependencies::new(live.iter().map(prerequisites));
        let mut conflicts = Vec::new();
        for (key, fate) in self.flags.iter().filter(|(_, fate)| fate.is_change()) {
            let used = fate.outcome().segments();
            for missing in used.iter().filter(|segment| !segments.has(segment)) {
                let reason = format!(
                    "uses the segment {missing}, which would not be there; add it, or change the rule"
                );
                conflicts.push(Conflict { name: key.to_string(), reason });
            }
        }
        for (key, fate) in &self.flags {
            let Some(flag) = live.get(key) else { continue };
            for prerequisite in &flag.prerequisites {
                // A chain that was sound can only become unsound by a flag that changes.
                let unsound = fate.is_change().then_some(&dependencies);
                if let Some(reason) = misfit(key, prerequisite, &live, unsound) {
                    conflicts.push(Conflict { name: key.to_string(), reason });
                }
            }
        }
        let limit = usize::try_from(MAX_LIVE_FLAGS).unwrap_or(usize::MAX);
        let created = self.flags.iter().find(|(_, fate)| matches!(fate, PlannedAction::Created(_)));
        if let (true, Some((key, _))) = (live.len() > limit, created) {
            let reason = format!(
                "the project would have {} flags that are not archived; at most {limit} are \
                 allowed, archive some first",
                live.len()
            );
            conflicts.push(Conflict { name: key.to_string(), reason });
        }
        conflicts
    }

    /// How many flags become what `is_counted` tells.
    pub(super) fn count(&self, is_counted: impl Fn(&PlannedAction) -> bool) -> usize {
        self.flags.values().filter(|fate| is_counted(fate)).count()
    }

    /// What has to be written, in an order in which as much as possible can be: what others depend
    /// on before them, and last what is archived, what depends on others before them.
    pub(super) fn changes(self) -> Vec<PlannedAction> {
        let order = self.order();
        let (mut archived, mut live): (Vec<_>, Vec<_>) = self
            .flags
            .into_values()
            .filter(PlannedAction::is_change)
            .partition(|fate| fate.outcome().archived_at.is_some());
        let place =
            |fate: &PlannedAction| order.get(&fate.outcome().key).copied().unwrap_or_default();
        live.sort_by_key(place);
        archived.sort_by_key(|fate| std::cmp::Reverse(place(fate)));
        live.into_iter().chain(archived).collect()
    }

    /// The places of the flags in an order that has each after all that it depends on.
    fn order(&self) -> HashMap<FlagKey, usize> {
        let mut places = HashMap::with_capacity(self.flags.len());
        // Each flag with how many of its prerequisites were looked at. No chain is long, or closed,
        // but those of archived flags, which count for nothing.
        let mut way: Vec<(&FlagKey, usize)> = Vec::new();
        let mut begun: HashSet<&FlagKey> = HashSet::new();
        for start in self.flags.keys() {
            if begun.insert(start) {
                way.push((start, 0));
            }
            while let Some((key, looked_at)) = way.last_mut() {
                let key = *key;
                let fate = self.flags.get(key);
                let next = fate.and_then(|it| it.outcome().prerequisites.get(*looked_at));
                *looked_at += 1;
                match next.map(|prerequisite| &prerequisite.flag_key) {
                    Some(next) if begun.insert(next) => way.push((next, 0)),
                    Some(_) => {}
                    None => {
                        places.insert(key.clone(), places.len());
                        way.pop();
                    }
                }
            }
        }
        places
    }
}

/// Why a prerequisite of a flag does not fit the others, of which some chains may be unsound.
fn misfit(
    key: &FlagKey,
    prerequisite: &Prerequisite,
    live: &HashMap<&FlagKey, &FeatureFlag>,
    dependencies: Option<&Dependencies>,
) -> Option<String> {
    let Prerequisite { flag_key, variant } = prerequisite;
    let Some(found) = live.get(flag_key) else {
        return Some(format!(
            "depends on {flag_key}, which would be archived or not there; keep or add that flag, \
             or take away the prerequisite"
        ));
    };
    if found.variants.iter().all(|it| it.key != *variant) {
        return Some(format!(
            "depends on the variant {variant} of {flag_key}, which would not be there; keep that \
             variant, or change the prerequisite"
        ));
    }
    let arrows =
        |keys: &[FlagKey]| keys.iter().map(FlagKey::as_str).collect::<Vec<_>>().join(" → ");
    match dependencies?.check(key, flag_key)? {
        InvalidPrerequisite::Cycle(path) => {
            Some(format!("would depend on itself: {}; take away a prerequisite", arrows(&path)))
        }
        InvalidPrerequisite::TooLong(chain) => {
            Some(format!("would be in a chain too long: {}; shorten it", arrows(&chain)))
        }
    }
}

/// The plan as a program sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanEntry<'p> {
    key: &'p FlagKey,
    action: &'static str,
    changes: &'p [FieldChange],
}

impl<'p> PlanEntry<'p> {
    pub(super) fn of((key, fate): (&'p FlagKey, &'p PlannedAction)) -> Self {
        let (action, changes) = match fate {
            PlannedAction::Created(_) => ("create", &[][..]),
            PlannedAction::Changed(change) => ("change", change.fields.as_slice()),
            PlannedAction::Unchanged(_) => ("none", &[][..]),
            PlannedAction::LeftAlone(_) => ("not_in_document", &[][..]),
        };
        Self { key, action, changes }
    }
}

/// The plan as a person sees it: each flag on a line, and what changes of it below.
impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (key, fate) in &self.flags {
            write!(formatter, "{separator}")?;
            separator = "\n";
            match fate {
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

/// A flag in a few words.
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
