//! Table `feature-flags`, key `projectId` / `key`: each flag whole, in one item.
//!
//! The item under the key `#` (no flag's, since those start with a letter or digit) belongs to the
//! project: it counts the live flags, and numbers the state of the prerequisites between them, so
//! that whoever has read a chain of them can make sure at the write that it still is as read.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use serde::Serialize;

use crate::json::{Place, ViolationCode, Violations};
use crate::models::feature_flag::{
    FeatureFlag, FlagKey, MAX_LIVE_FLAGS, MAX_PREREQUISITE_DEPTH, Prerequisite, Rule, Serve,
    Target, Variant,
};
use crate::models::project::ProjectId;

use super::batch::MAX_KEYS;
use super::idempotency::{Idempotent, Repetition};
use super::item::{Item, Reader, item, n, s, ss};
use super::transaction::{Cancellation, Commit, Reason};
use super::{Store, StoreError};

const TABLE: &str = "feature-flags";
/// The sort key of the item that belongs to the project.
const PROJECT_ITEM: &str = "#";

/// What became of a new flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagCreation {
    /// It is stored.
    Created,
    /// The project has a flag of this key, perhaps an archived one.
    KeyTaken,
    /// The project has as many live flags as it may have.
    LimitReached,
    /// Prerequisites that do not fit the project's other flags, by their place in the body.
    PrerequisitesRefused(Violations),
    /// The idempotency key was used before.
    Repetition(Repetition),
}

/// The part of a flag that nothing but its evaluation looks into, stored as one JSON text: half the
/// bytes, and a fraction of the time to read, of the same as nested DynamoDB attributes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'f> {
    variants: &'f [Variant],
    off_variant: Option<&'f str>,
    fallthrough: &'f Serve,
    rules: &'f [Rule],
    targets: &'f [Target],
}

/// How the transaction makes sure that no chain of prerequisites gets too long.
#[derive(Clone, Copy)]
enum ChainGuard {
    /// Every prerequisite has none itself. True of most flags, and needs no read.
    Leaves,
    /// The chains were read in this state of the project's prerequisites, and are short enough.
    ReadAt(i64),
}

/// The index of the action that puts the flag.
const FLAG: usize = 0;
/// The index of the action that counts it.
const PROJECT: usize = 1;
/// The index of the first action that checks a prerequisite.
const PREREQUISITES_FROM: usize = 2;
/// How often chains of prerequisites are read that change between reading and writing.
const MAX_READINGS: u32 = 4;

impl Store {
    /// Stores a new flag, and with it the answer to its request where that has an idempotency key.
    ///
    /// One transaction checks that the key is free, that the project may have one more flag, and
    /// that every prerequisite exists with its variant. It is the only round trip, unless a
    /// prerequisite is refused or has prerequisites itself: then the chains are read.
    pub async fn create_flag(
        &self,
        flag: &FeatureFlag,
        idempotent: Option<Idempotent<'_>>,
    ) -> Result<FlagCreation, StoreError> {
        let mut guard = ChainGuard::Leaves;
        for _ in 0..MAX_READINGS {
            let actions = self.creation(flag, guard)?;
            let cancelled = match self.commit(actions, idempotent, flag.created_at).await? {
                Commit::Done => return Ok(FlagCreation::Created),
                Commit::Repetition(repetition) => {
                    return Ok(FlagCreation::Repetition(repetition));
                }
                Commit::Refused(cancelled) => cancelled,
            };
            let failed =
                |index: &usize| cancelled.reasons.get(*index).is_some_and(Reason::condition_failed);
            let prerequisites = PREREQUISITES_FROM..PREREQUISITES_FROM + flag.prerequisites.len();
            let is_full = failed(&PROJECT) && limit_reached(&cancelled)?;
            if prerequisites.clone().any(|index| failed(&index)) || (failed(&PROJECT) && !is_full) {
                let (state, violations) = self.check_prerequisites(flag).await?;
                if !violations.is_empty() {
                    return Ok(FlagCreation::PrerequisitesRefused(violations));
                }
                guard = ChainGuard::ReadAt(state);
            } else if failed(&FLAG) {
                return Ok(FlagCreation::KeyTaken);
            } else if is_full {
                return Ok(FlagCreation::LimitReached);
            } else {
                return Err(cancelled.into_error());
            }
        }
        Err(StoreError::Contended("prerequisites kept changing".to_owned()))
    }

    /// The actions that create a flag: [`FLAG`], [`PROJECT`], and from [`PREREQUISITES_FROM`] on one
    /// for each prerequisite.
    fn creation(
        &self,
        flag: &FeatureFlag,
        guard: ChainGuard,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let put = Put::builder()
            .table_name(self.table(TABLE))
            .set_item(Some(write_flag(flag)?))
            .condition_expression("attribute_not_exists(projectId)")
            .build()?;
        let mut actions = vec![
            TransactWriteItem::builder().put(put).build(),
            TransactWriteItem::builder().update(self.count_flag(flag, guard)?).build(),
        ];
        for prerequisite in &flag.prerequisites {
            let check = self.require(flag.project_id, prerequisite, guard)?;
            actions.push(TransactWriteItem::builder().condition_check(check).build());
        }
        Ok(actions)
    }

    /// Counts the new flag among its project's, if there is room.
    fn count_flag(&self, flag: &FeatureFlag, guard: ChainGuard) -> Result<Update, StoreError> {
        let mut condition = "(attribute_not_exists(liveFlags) OR liveFlags < :limit)".to_owned();
        let mut update: UpdateBuilder = Update::builder()
            .table_name(self.table(TABLE))
            .set_key(Some(key(flag.project_id, PROJECT_ITEM)))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":limit", n(MAX_LIVE_FLAGS))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if let ChainGuard::ReadAt(state) = guard {
            // A project without any such chain has no number yet; that reads as 0.
            condition.push_str(if state == 0 {
                " AND attribute_not_exists(prerequisitesState)"
            } else {
                update = update.expression_attribute_values(":state", n(state));
                " AND prerequisitesState = :state"
            });
        }
        update = update.condition_expression(condition).update_expression(
            if flag.prerequisites.is_empty() {
                "ADD liveFlags :one"
            } else {
                "ADD liveFlags :one, prerequisitesState :one"
            },
        );
        Ok(update.build()?)
    }

    /// Checks that a prerequisite exists, is not archived and has the variant.
    fn require(
        &self,
        project: ProjectId,
        prerequisite: &Prerequisite,
        guard: ChainGuard,
    ) -> Result<ConditionCheck, StoreError> {
        let condition = match guard {
            ChainGuard::Leaves => {
                "contains(variantKeys, :variant) AND attribute_not_exists(archivedAt) \
                 AND attribute_not_exists(prerequisites)"
            }
            ChainGuard::ReadAt(_) => {
                "contains(variantKeys, :variant) AND attribute_not_exists(archivedAt)"
            }
        };
        Ok(ConditionCheck::builder()
            .table_name(self.table(TABLE))
            .set_key(Some(key(project, prerequisite.flag_key.as_str())))
            .condition_expression(condition)
            .expression_attribute_values(":variant", s(&prerequisite.variant))
            .build()?)
    }

    /// Reads the chains that start at a flag's prerequisites. Answers what is wrong with them, and
    /// in which state of the project's prerequisites that is so.
    async fn check_prerequisites(
        &self,
        flag: &FeatureFlag,
    ) -> Result<(i64, Violations), StoreError> {
        // The state comes first: a change between the two reads then shows at the write.
        let answer = self
            .client
            .get_item()
            .table_name(self.table(TABLE))
            .set_key(Some(key(flag.project_id, PROJECT_ITEM)))
            .consistent_read(true)
            .send()
            .await?;
        let item = answer.item.unwrap_or_default();
        let state = Reader { table: TABLE, item: &item }.optional_integer("prerequisitesState")?;

        let wanted = flag.prerequisites.iter().map(|p| p.flag_key.clone()).collect();
        let links = self.read_links(flag.project_id, wanted).await?;
        Ok((state.unwrap_or_default(), refusals(&flag.prerequisites, &links)))
    }

    /// Reads flags and all that they depend on, down to the depth at which a chain is too long in
    /// any case. Strongly consistent: the write depends on it.
    async fn read_links(
        &self,
        project: ProjectId,
        mut wanted: HashSet<FlagKey>,
    ) -> Result<HashMap<FlagKey, Links>, StoreError> {
        let mut links: HashMap<FlagKey, Links> = HashMap::new();
        for _ in 0..MAX_PREREQUISITE_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let level: Vec<FlagKey> = wanted.drain().collect();
            for batch in level.chunks(MAX_KEYS) {
                for (key, found) in self.read_links_batch(project, batch).await? {
                    wanted.extend(found.prerequisites.iter().cloned());
                    links.insert(key, found);
                }
            }
            wanted.retain(|key| !links.contains_key(key));
        }
        Ok(links)
    }

    async fn read_links_batch(
        &self,
        project: ProjectId,
        keys: &[FlagKey],
    ) -> Result<Vec<(FlagKey, Links)>, StoreError> {
        let keys = keys.iter().map(|flag_key| key(project, flag_key.as_str())).collect();
        let request = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(true)
            .projection_expression("#key, archivedAt, variantKeys, prerequisites")
            .expression_attribute_names("#key", "key")
            .build()?;
        let found = self.batch_get(HashMap::from([(self.table(TABLE), request)])).await?;
        found.values().flatten().map(read_links_of).collect()
    }
}

/// Whether the project's item failed its condition because the project is full.
fn limit_reached(cancelled: &Cancellation) -> Result<bool, StoreError> {
    let item = cancelled.reasons.get(PROJECT).and_then(|reason| reason.item.as_ref());
    let Some(item) = item else { return Ok(false) };
    let count = Reader { table: TABLE, item }.optional_integer("liveFlags")?;
    Ok(count.unwrap_or_default() >= i64::from(MAX_LIVE_FLAGS))
}

fn key(project: ProjectId, sort_key: &str) -> Item {
    item([("projectId", s(project)), ("key", s(sort_key))])
}

fn write_flag(flag: &FeatureFlag) -> Result<Item, StoreError> {
    let definition = Definition {
        variants: &flag.variants,
        off_variant: flag
            .off_variant
            .as_ref()
            .map(super::super::models::feature_flag::VariantKey::as_str),
        fallthrough: &flag.fallthrough,
        rules: &flag.rules,
        targets: &flag.targets,
    };
    let definition = serde_json::to_string(&definition)
        .map_err(|error| StoreError::Refused(format!("a flag cannot be written: {error}")))?;
    let flag_type = serde_json::to_value(flag.flag_type).ok();
    let flag_type = flag_type.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    let mut item = key(flag.project_id, flag.key.as_str());
    let attributes = [
        ("id", s(flag.id)),
        ("name", s(&flag.name)),
        ("description", s(&flag.description)),
        ("type", s(flag_type)),
        ("enabled", AttributeValue::Bool(flag.enabled)),
        ("version", AttributeValue::N(flag.version.to_string())),
        ("definition", s(definition)),
        ("createdAt", s(flag.created_at)),
        ("updatedAt", s(flag.updated_at)),
    ];
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    let optional = [
        ("archivedAt", flag.archived_at.map(s)),
        // What other flags' transactions look at stands apart from the definition.
        ("variantKeys", ss(flag.variants.iter().map(|variant| &variant.key))),
        ("prerequisites", write_prerequisites(&flag.prerequisites)),
    ];
    for (name, value) in optional {
        item.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(item)
}

fn write_prerequisites(prerequisites: &[Prerequisite]) -> Option<AttributeValue> {
    let written = prerequisites.iter().map(|Prerequisite { flag_key, variant }| {
        AttributeValue::M(item([("flagKey", s(flag_key)), ("variant", s(variant))]))
    });
    (!prerequisites.is_empty()).then(|| AttributeValue::L(written.collect()))
}

/// What matters of a flag that others depend on.
#[derive(Debug)]
struct Links {
    archived: bool,
    variant_keys: Vec<String>,
    prerequisites: Vec<FlagKey>,
}

fn read_links_of(item: &Item) -> Result<(FlagKey, Links), StoreError> {
    let reader = Reader { table: TABLE, item };
    let prerequisites = match item.get("prerequisites") {
        None => Vec::new(),
        Some(AttributeValue::L(prerequisites)) => prerequisites
            .iter()
            .map(|prerequisite| {
                let AttributeValue::M(item) = prerequisite else { return None };
                FlagKey::parse(item.get("flagKey")?.as_s().ok()?).ok()
            })
            .collect::<Option<_>>()
            .ok_or_else(|| reader.damaged("prerequisites"))?,
        Some(_) => return Err(reader.damaged("prerequisites")),
    };
    let links = Links {
        archived: item.contains_key("archivedAt"),
        variant_keys: reader.text_set("variantKeys")?.to_vec(),
        prerequisites,
    };
    Ok((reader.parsed("key", |text| FlagKey::parse(text).ok())?, links))
}

/// What is wrong with a new flag's prerequisites, given all that they lead to. No chain can lead
/// back to the new flag: nothing depends on what does not exist yet.
fn refusals(prerequisites: &[Prerequisite], links: &HashMap<FlagKey, Links>) -> Violations {
    let mut violations = Violations::default();
    let list = Place::Root.member("prerequisites");
    for (index, Prerequisite { flag_key, variant }) in prerequisites.iter().enumerate() {
        let place = list.item(index);
        let Some(found) = links.get(flag_key) else {
            let message = "the project has no flag of this key";
            violations.note(&place.member("flagKey"), ViolationCode::UnknownFlag, message);
            continue;
        };
        if found.archived {
            let message = "the flag is archived; nothing new can depend on it";
            violations.note(&place.member("flagKey"), ViolationCode::FlagArchived, message);
        }
        if !found.variant_keys.iter().any(|key| key == variant.as_str()) {
            let message = "the flag has no variant of this key";
            violations.note(&place.member("variant"), ViolationCode::UnknownVariant, message);
        }
        let chain = longest_chain(flag_key, links);
        if chain.len() >= MAX_PREREQUISITE_DEPTH {
            let chain: Vec<&str> = chain.into_iter().map(FlagKey::as_str).collect();
            let message = format_args!(
                "with the new flag, the chain {} has more than {MAX_PREREQUISITE_DEPTH} flags",
                chain.join(" → ")
            );
            violations.note(&place, ViolationCode::TooDeep, message);
        }
    }
    violations
}

/// The longest chain of prerequisites from `start`, itself included; cut off where it is too long
/// in any case, so that a stored cycle, which no write lets arise, would end too.
fn longest_chain<'l>(start: &'l FlagKey, links: &'l HashMap<FlagKey, Links>) -> Vec<&'l FlagKey> {
    let mut chains: Vec<(Vec<&FlagKey>, &FlagKey)> = Vec::new();
    let mut longest = Vec::new();
    let mut best_depth_of: HashMap<&FlagKey, usize> = HashMap::new();
    chains.push((Vec::new(), start));
    while let Some((mut chain, flag)) = chains.pop() {
        chain.push(flag);
        // A flag that was reached by a chain at least as long need not be followed again.
        let best = best_depth_of.entry(flag).or_default();
        if *best >= chain.len() {
            continue;
        }
        *best = chain.len();
        if chain.len() > longest.len() {
            longest.clone_from(&chain);
        }
        if chain.len() < MAX_PREREQUISITE_DEPTH {
            let next = links.get(flag).map_or(&[][..], |found| &found.prerequisites);
            chains.extend(next.iter().map(|next| (chain.clone(), next)));
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag_key(text: &str) -> FlagKey {
        FlagKey::parse(text).unwrap()
    }

    fn links(flags: &[(&str, &[&str])]) -> HashMap<FlagKey, Links> {
        let links_of = |prerequisites: &[&str]| Links {
            archived: false,
            variant_keys: vec!["on".to_owned()],
            prerequisites: prerequisites.iter().map(|key| flag_key(key)).collect(),
        };
        flags.iter().map(|(key, prerequisites)| (flag_key(key), links_of(prerequisites))).collect()
    }

    fn chain(start: &str, flags: &[(&str, &[&str])]) -> String {
        let (start, links) = (flag_key(start), links(flags));
        let chain = longest_chain(&start, &links);
        chain.into_iter().map(FlagKey::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn finds_the_longest_of_several_chains() {
        let diamond: &[(&str, &[&str])] =
            &[("a", &["b", "c"]), ("b", &["d"]), ("c", &["e"]), ("e", &["d"]), ("d", &[])];
        assert_eq!(chain("a", diamond), "a c e d");
        let mirrored: &[(&str, &[&str])] =
            &[("a", &["c", "b"]), ("b", &["d"]), ("c", &["e"]), ("e", &["d"]), ("d", &["f"])];
        assert_eq!(chain("a", mirrored), "a c e d f");
    }

    #[test]
    fn ends_on_a_stored_cycle_and_on_a_dense_graph() {
        assert_eq!(chain("a", &[("a", &["b"]), ("b", &["a"])]).split(' ').count(), 10);
        let keys: Vec<String> = (0..40).map(|index| format!("f{index}")).collect();
        let all: Vec<&str> = keys.iter().map(String::as_str).collect();
        let dense: Vec<(&str, &[&str])> =
            (0..40).map(|i| (all[i], &all[(i + 1).min(40)..])).collect();
        assert_eq!(chain("f0", &dense).split(' ').count(), MAX_PREREQUISITE_DEPTH);
    }

    #[test]
    fn a_chain_of_ten_flags_is_the_longest_allowed() {
        let keys: Vec<String> = (1..=10).map(|index| format!("f{index}")).collect();
        let next: Vec<[&str; 1]> = keys.iter().map(|key| [key.as_str()]).collect();
        // f1 has no prerequisite, f2 depends on f1, and so on: fN starts a chain of N flags.
        let mut flags: Vec<(&str, &[&str])> = vec![("f1", &[])];
        flags.extend((1..10).map(|index| (keys[index].as_str(), &next[index - 1][..])));
        let links = links(&flags);
        let on = crate::models::feature_flag::VariantKey::parse("on").unwrap();
        let refused = |key: &str| {
            let prerequisite = Prerequisite { flag_key: flag_key(key), variant: on.clone() };
            let violations = refusals(&[prerequisite], &links);
            violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect::<Vec<_>>()
        };
        assert_eq!(refused("f9"), []);
        assert_eq!(refused("f10"), [("/prerequisites/0".to_owned(), ViolationCode::TooDeep)]);
    }
}
