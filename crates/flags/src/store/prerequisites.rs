//! Reads and checks the prerequisites of flags.

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

/// The protection of a transaction against cycles and overlong chains of prerequisites.
#[derive(Clone, Copy)]
pub(super) enum ChainGuard {
    /// No prerequisite has prerequisites itself. True for most flags, and needs no read.
    Leaves,
    /// The chains are valid at this revision of the project's prerequisites.
    ReadAt(i64),
}

/// The field of the request body that causes violations of prerequisites.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ViolationSource {
    /// The body sets the prerequisites.
    Prerequisites,
    /// The body unarchives a flag that has prerequisites.
    Archived,
}

/// The properties of a flag that matter to dependent flags.
#[derive(Debug)]
pub(super) struct DependencyInfo {
    archived: bool,
    variant_keys: Vec<String>,
    prerequisites: Vec<Prerequisite>,
}

impl FlagStore<'_> {
    /// Returns the action that checks that a prerequisite exists, is not archived and has the
    /// variant. With [`ChainGuard::Leaves`], the prerequisite must not have prerequisites.
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

    /// Returns the revision of a project's prerequisites. A write that depends on prerequisites
    /// reads it first, so that the transaction detects later changes.
    pub(super) async fn prerequisites_revision(
        self,
        project: ProjectId,
    ) -> Result<i64, StoreError> {
        let found = self.db.get(TABLE, key(project, PROJECT_ITEM)).await?;
        let item = found.unwrap_or_default();
        let revision =
            ItemReader { table: TABLE, item: &item }.optional_integer("prerequisitesState")?;
        Ok(revision.unwrap_or_default())
    }

    /// Reads the dependencies between a project's flags. Strongly consistent, since writes depend
    /// on them.
    pub(super) async fn read_dependencies(
        self,
        project: ProjectId,
    ) -> Result<Dependencies, StoreError> {
        let query = self
            .db
            .query(TABLE)
            .index_name(BY_DEPENDENT)
            .consistent_read(true)
            .key_condition_expression("projectId = :project")
            .expression_attribute_values(":project", s(project));
        let items = self.db.all(query).await?;
        let read = |item: &Item| Ok::<_, StoreError>((read_key(item)?, read_prerequisites(item)?));
        Ok(Dependencies::new(items.iter().map(read).collect::<Result<Vec<_>, _>>()?))
    }

    /// Reads flags and all their prerequisites, down to the depth at which a chain is too long
    /// anyway. Strongly consistent, since writes depend on them.
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

    /// Reads the dependency information of these flags.
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

/// Returns the dependencies between flags that were read with all their prerequisites.
pub(super) fn dependencies_among(links: &HashMap<FlagKey, DependencyInfo>) -> Dependencies {
    let flags = links.iter().map(|(key, found)| (key.clone(), found.prerequisites.clone()));
    Dependencies::new(flags)
}

/// Returns the violations of a flag's prerequisites, given the required flags and the dependencies
/// between flags.
pub(super) fn prerequisite_violations(
    flag: &FeatureFlag,
    links: &HashMap<FlagKey, DependencyInfo>,
    dependencies: &Dependencies,
    source: ViolationSource,
) -> Violations {
    let mut violations = Violations::default();
    let list = JsonPath::Root.member("prerequisites");
    for (index, Prerequisite { flag_key, variant }) in flag.prerequisites.iter().enumerate() {
        let item = list.item(index);
        let mut note = |member: Option<&str>, code, message: &str| match (source, member) {
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
            let message = "the project has no flag with this key";
            note(Some("flagKey"), ViolationCode::UnknownFlag, message);
            continue;
        };
        if found.archived {
            let message = "the flag is archived; unarchive it first";
            note(Some("flagKey"), ViolationCode::FlagArchived, message);
        }
        if !found.variant_keys.iter().any(|key| key == variant.as_str()) {
            let message = "the flag has no variant with this key";
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
