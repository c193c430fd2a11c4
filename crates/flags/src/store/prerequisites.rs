//! What the prerequisites of a flag lead to, and what leads to the flag.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{KeysAndAttributes, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::batch::MAX_KEYS;
use shared::dynamodb::item::{Item, ItemReader, s};
use shared::dynamodb::request::IntoAction;
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::projects::project::ProjectId;

use super::FlagStore;
use super::items::{BY_DEPENDENT, PROJECT_ITEM, TABLE, key, read_key, read_prerequisites};
use crate::{
    Dependencies, FeatureFlag, FlagKey, InvalidPrerequisite, MAX_PREREQUISITE_DEPTH, Prerequisite,
};

/// How a transaction makes sure that no chain of prerequisites gets too long, or closes.
#[derive(Clone, Copy)]
pub(super) enum ChainGuard {
    /// Every prerequisite has none itself. True of most flags, and needs no read.
    Leaves,
    /// The chains were read in this state of the project's prerequisites, and are sound.
    ReadAt(i64),
}

/// Where the body of a request is to blame for a prerequisite that does not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ViolationSource {
    /// It names the prerequisites.
    Prerequisites,
    /// It brings a flag back that has them.
    Archived,
}

/// What matters of a flag that others depend on.
#[derive(Debug)]
pub(super) struct DependencyInfo {
    archived: bool,
    variant_keys: Vec<String>,
    prerequisites: Vec<Prerequisite>,
}

impl FlagStore<'_> {
    /// The action that checks that a prerequisite exists, is not archived and has the variant.
    pub(super) fn require(
        self,
        project: ProjectId,
        prerequisite: &Prerequisite,
        guard: ChainGuard,
    ) -> Result<TransactWriteItem, StoreError> {
        let condition = match guard {
            ChainGuard::Leaves => {
                "contains(variantKeys, :variant) AND attribute_not_exists(archivedAt) \
                 AND attribute_not_exists(prerequisites)"
            }
            ChainGuard::ReadAt(_) => {
                "contains(variantKeys, :variant) AND attribute_not_exists(archivedAt)"
            }
        };
        self.db
            .check(TABLE, key(project, prerequisite.flag_key.as_str()))
            .condition_expression(condition)
            .expression_attribute_values(":variant", s(&prerequisite.variant))
            .into_action()
    }

    /// The number of the state in which a project's prerequisites are. Whoever rests a write on what
    /// they are reads this first, so that a change between the two reads shows at the write.
    pub(super) async fn prerequisites_state(self, project: ProjectId) -> Result<i64, StoreError> {
        let found = self.db.get(TABLE, key(project, PROJECT_ITEM)).await?;
        let item = found.unwrap_or_default();
        let state =
            ItemReader { table: TABLE, item: &item }.optional_integer("prerequisitesState")?;
        Ok(state.unwrap_or_default())
    }

    /// Which flags of a project depend on which. Strongly consistent: the write depends on it.
    pub(super) async fn read_dependencies(
        self,
        project: ProjectId,
    ) -> Result<Dependencies, StoreError> {
        let mut pages = self
            .db
            .query(TABLE)
            .index_name(BY_DEPENDENT)
            .consistent_read(true)
            .key_condition_expression("projectId = :project")
            .expression_attribute_values(":project", s(project))
            .into_paginator()
            .items()
            .send();
        let mut flags = Vec::new();
        while let Some(item) = pages.next().await {
            let item = item?;
            flags.push((read_key(&item)?, read_prerequisites(&item)?));
        }
        Ok(Dependencies::new(flags))
    }

    /// Reads flags and all that they depend on, down to the depth at which a chain is too long in
    /// any case. Strongly consistent: the write depends on it.
    pub(super) async fn read_links(
        self,
        project: ProjectId,
        prerequisites: &[Prerequisite],
    ) -> Result<HashMap<FlagKey, DependencyInfo>, StoreError> {
        let mut wanted: HashSet<FlagKey> =
            prerequisites.iter().map(|it| it.flag_key.clone()).collect();
        let mut links: HashMap<FlagKey, DependencyInfo> = HashMap::new();
        for _ in 0..MAX_PREREQUISITE_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let level: Vec<FlagKey> = wanted.drain().collect();
            for (key, found) in self.read_links_of(project, &level).await? {
                wanted.extend(found.prerequisites.iter().map(|it| it.flag_key.clone()));
                links.insert(key, found);
            }
            wanted.retain(|key| !links.contains_key(key));
        }
        Ok(links)
    }

    /// What matters of each of these flags.
    pub(super) async fn read_links_of(
        self,
        project: ProjectId,
        flags: &[FlagKey],
    ) -> Result<HashMap<FlagKey, DependencyInfo>, StoreError> {
        let mut links = HashMap::with_capacity(flags.len());
        for batch in flags.chunks(MAX_KEYS) {
            let keys = batch.iter().map(|flag| key(project, flag.as_str())).collect();
            let request = KeysAndAttributes::builder()
                .set_keys(Some(keys))
                .consistent_read(true)
                .projection_expression("#key, archivedAt, variantKeys, prerequisites")
                .expression_attribute_names("#key", "key")
                .build()?;
            let found = self.db.batch_get(HashMap::from([(self.db.table(TABLE), request)])).await?;
            for item in found.values().flatten() {
                links.insert(read_key(item)?, read_links(item)?);
            }
        }
        Ok(links)
    }
}

fn read_links(item: &Item) -> Result<DependencyInfo, StoreError> {
    Ok(DependencyInfo {
        archived: item.contains_key("archivedAt"),
        variant_keys: ItemReader { table: TABLE, item }.text_set("variantKeys")?.to_vec(),
        prerequisites: read_prerequisites(item)?,
    })
}

/// The dependencies of flags that were read with all that they lead to.
pub(super) fn dependencies_among(links: &HashMap<FlagKey, DependencyInfo>) -> Dependencies {
    let flags = links.iter().map(|(key, found)| (key.clone(), found.prerequisites.clone()));
    Dependencies::new(flags)
}

/// What is wrong with a flag's prerequisites, given what they are and how flags depend on each other.
pub(super) fn refusals(
    flag: &FeatureFlag,
    links: &HashMap<FlagKey, DependencyInfo>,
    dependencies: &Dependencies,
    blamed: ViolationSource,
) -> Violations {
    let mut violations = Violations::default();
    let list = JsonPath::Root.member("prerequisites");
    for (index, Prerequisite { flag_key, variant }) in flag.prerequisites.iter().enumerate() {
        let item = list.item(index);
        let mut note = |member: Option<&str>, code, message: &str| match (blamed, member) {
            (ViolationSource::Archived, _) => {
                let message = format_args!("the prerequisite {flag_key}: {message}");
                violations.note(&JsonPath::Root.member("archived"), code, message);
            }
            (ViolationSource::Prerequisites, None) => violations.note(&item, code, message),
            (ViolationSource::Prerequisites, Some(member)) => {
                violations.note(&item.member(member), code, message);
            }
        };
        let Some(found) = links.get(flag_key) else {
            let message = "the project has no flag of this key";
            note(Some("flagKey"), ViolationCode::UnknownFlag, message);
            continue;
        };
        if found.archived {
            let message = "the flag is archived; nothing new can depend on it";
            note(Some("flagKey"), ViolationCode::FlagArchived, message);
        }
        if !found.variant_keys.iter().any(|key| key == variant.as_str()) {
            let message = "the flag has no variant of this key";
            note(Some("variant"), ViolationCode::UnknownVariant, message);
        }
        match dependencies.check(&flag.key, flag_key) {
            None => {}
            Some(InvalidPrerequisite::Cycle(path)) => {
                let message = format!("the flag would depend on itself: {}", arrows(&path));
                note(None, ViolationCode::Cycle, &message);
            }
            Some(InvalidPrerequisite::TooLong(chain)) => {
                let chain = arrows(&chain);
                let message =
                    format!("the chain {chain} has more than {MAX_PREREQUISITE_DEPTH} flags");
                note(None, ViolationCode::TooDeep, &message);
            }
        }
    }
    violations
}

fn arrows(keys: &[FlagKey]) -> String {
    keys.iter().map(FlagKey::as_str).collect::<Vec<_>>().join(" → ")
}
