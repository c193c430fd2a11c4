//! Table `projects`, key `idOrSlug`: three items per project.
//!
//! The item under the id is the project. The items under the slug, and under `ingest#` and the
//! numeric id, hold the data for a request with that name. Each costs one read. One further item
//! holds the stack's limits.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use crate::page::{Page, PageRequest};
use crate::projects::dsn::{IngestId, PublicKey};
use crate::projects::limits::{Limit, Limits};
use crate::projects::project::{
    IdOrSlug, Organization, Project, ProjectId, ProjectName, ProjectPatch, Slug,
};

use crate::dynamodb::idempotency::{Idempotent, Replay};
use crate::dynamodb::item::{Item, ItemReader, item, n, s};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::transaction::{Transaction, TransactionOutcome};
use crate::dynamodb::{Store, StoreError};

pub(super) const TABLE: &str = "projects";
pub(super) const KEY: &str = "idOrSlug";
/// The index by organization and slug. Only the items under ids have a slug, so only they are in
/// it.
const BY_ORGANIZATION: &str = "byOrganization";
/// Key of the item with the stack's limits. Slugs contain no `#`.
const STACK: &str = "stack#limits";
/// `true` if the project serves users, in the item under the id. Absent: `false`.
const PRODUCTION: &str = "production";

/// The identity of the project in a request's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectIdentity {
    /// The project.
    pub id: ProjectId,
    /// The organization that owns it.
    pub organization: Organization,
    /// The project's own limit of requests per minute and API key, if any; 0 means no limit.
    pub requests_per_minute: Option<u32>,
}

/// The outcome of creating a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectCreation {
    /// The project is stored.
    Created,
    /// The idempotency key was used before.
    Replay(Replay),
    /// Another project has the slug.
    SlugTaken,
    /// Another project has the ingest id. Retry with a new one.
    IngestIdTaken,
}

/// The project to which an SDK reports errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestAccess {
    /// The project.
    pub project: ProjectId,
    /// The key that the request must contain.
    pub public_key: PublicKey,
    /// The project's own limits, except that of requests.
    pub limits: Limits,
}

impl Store {
    /// Stores a new project under its id, its slug and its ingest id. All three are stored, or
    /// none.
    pub async fn create_project(&self, project: &Project) -> Result<ProjectCreation, StoreError> {
        self.create_project_with(project, Vec::new(), None).await
    }

    /// Like [`Self::create_project`], in a transaction with more actions and the response to an
    /// idempotent request.
    pub async fn create_project_with(
        &self,
        project: &Project,
        more: Vec<TransactWriteItem>,
        idempotent: Option<Idempotent<'_>>,
    ) -> Result<ProjectCreation, StoreError> {
        let mut by_id = item([
            (KEY, s(project.id)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
            ("slug", s(&project.slug)),
            ("name", s(project.name.as_str())),
            ("ingestId", s(project.ingest_id)),
            ("publicKey", s(project.public_key)),
            ("createdAt", s(project.created_at)),
        ]);
        if project.production {
            by_id.insert(PRODUCTION.to_owned(), AttributeValue::Bool(true));
        }
        let by_slug = item([
            (KEY, s(&project.slug)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
        ]);
        let mut by_ingest_id = ingest_key(project.ingest_id);
        by_ingest_id.insert("projectId".to_owned(), s(project.id));
        by_ingest_id.insert("publicKey".to_owned(), s(project.public_key));
        let mut transaction = Transaction::from(more);
        for (name, item) in [("id", by_id), ("slug", by_slug), ("ingest id", by_ingest_id)] {
            let put = self.put(TABLE, item);
            transaction.add(name, put.condition_expression("attribute_not_exists(idOrSlug)"))?;
        }
        match self.commit(transaction, idempotent, project.created_at).await? {
            TransactionOutcome::Done => Ok(ProjectCreation::Created),
            TransactionOutcome::Replay(replay) => Ok(ProjectCreation::Replay(replay)),
            TransactionOutcome::Rejected(cancelled) if cancelled.failed("ingest id") => {
                Ok(ProjectCreation::IngestIdTaken)
            }
            TransactionOutcome::Rejected(cancelled) if cancelled.failed("slug") => {
                Ok(ProjectCreation::SlugTaken)
            }
            TransactionOutcome::Rejected(cancelled) => Err(cancelled.into_error()),
        }
    }

    /// Replaces the DSN key of a project that was read as `project`, in a transaction with more
    /// actions. Returns `false` if the key has changed since.
    pub async fn replace_dsn_key(
        &self,
        project: &Project,
        new: PublicKey,
        more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let mut actions = more;
        for key in [item([(KEY, s(project.id))]), ingest_key(project.ingest_id)] {
            actions.push(
                self.update(TABLE, key)
                    .condition_expression("publicKey = :old")
                    .update_expression("SET publicKey = :new")
                    .expression_attribute_values(":old", s(project.public_key))
                    .expression_attribute_values(":new", s(new))
                    .into_action()?,
            );
        }
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// Changes the given fields of a project, in a transaction with more actions. Returns `false`
    /// if there is no such project.
    pub async fn update_project(
        &self,
        project: &Project,
        patch: &ProjectPatch,
        more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let name = patch.name.as_ref().map(|name| ("name", Some(s(name.as_str()))));
        let flag = |value: bool| value.then_some(AttributeValue::Bool(true));
        let production = patch.production.map(|it| (PRODUCTION, flag(it)));
        let (requests, others): (Vec<_>, Vec<_>) =
            limit_changes(&patch.limits).partition(|it| it.0 == Limit::RequestsPerMinute.as_str());
        let by_id = [&requests[..], &others].concat().into_iter().chain(name).chain(production);
        let mut actions = more;
        for (key, changes) in [
            (item([(KEY, s(project.id))]), by_id.collect()),
            (item([(KEY, s(&project.slug))]), requests),
            (ingest_key(project.ingest_id), others),
        ] {
            if !changes.is_empty() {
                let update = set_or_remove(self.update(TABLE, key), changes);
                let update = update
                    .condition_expression("projectId = :id")
                    .expression_attribute_values(":id", s(project.id));
                actions.push(update.into_action()?);
            }
        }
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// Changes limits of the stack. `None` is the template's parameter.
    pub async fn set_stack_limits(
        &self,
        limits: &BTreeMap<Limit, Option<u32>>,
    ) -> Result<(), StoreError> {
        let update =
            set_or_remove(self.update(TABLE, stack_key()), limit_changes(limits).collect());
        self.write_if(update).await.map(drop)
    }

    /// Returns the limits of the stack. Strongly consistent.
    pub async fn stack_limits(&self) -> Result<Limits, StoreError> {
        let found = self.get(TABLE, stack_key()).await?;
        found.as_ref().map_or(Ok(Limits::default()), read_limits)
    }

    /// Reads the limits of the stack. Unreadable ones count as unset: all requests need them.
    pub(super) fn read_stack_limits(&self, item: &Item) -> Result<Limits, StoreError> {
        Ok(self.unless_damaged(item, read_limits(item))?.unwrap_or_default())
    }

    /// Returns all projects of all organizations. Scans the table: for operator commands, not for
    /// requests.
    pub async fn list_projects(&self) -> Result<Vec<Project>, StoreError> {
        let mut pages = self
            .scan(TABLE)
            .filter_expression("attribute_exists(slug)")
            .into_paginator()
            .items()
            .send();
        let mut projects = Vec::new();
        while let Some(item) = pages.next().await {
            let item = item?;
            projects.extend(self.unless_damaged(&item, read_project(&item))?);
        }
        projects.sort_by_key(|project| (project.created_at, project.id));
        Ok(projects)
    }

    /// Returns a page of the ids of an organization's projects, sorted by slug. Eventually
    /// consistent, like the index.
    pub async fn list_organization(
        &self,
        organization: &Organization,
        page_request: &PageRequest,
    ) -> Result<Page<ProjectId>, StoreError> {
        let after = page_request.after.as_deref();
        let condition = match after {
            Some(_) => "organization = :organization AND slug > :after",
            None => "organization = :organization",
        };
        let query = self
            .query(TABLE)
            .index_name(BY_ORGANIZATION)
            .key_condition_expression(condition)
            .expression_attribute_values(":organization", s(organization))
            .limit(one_more_than(page_request.limit));
        let query = match after {
            Some(after) => query.expression_attribute_values(":after", s(after)),
            None => query,
        };
        let response = query.send().await?;
        let (items, more) =
            (response.items.unwrap_or_default(), response.last_evaluated_key.is_some());
        let end_of =
            |item: &Item| ItemReader { table: TABLE, item }.text("slug").map(str::to_owned);
        let read =
            |item: &Item| ItemReader { table: TABLE, item }.parsed("projectId", ProjectId::parse);
        self.page(items, more, page_request.limit, end_of, read)
    }

    /// Returns a page of all projects, grouped by organization. `after` is the end of the previous
    /// page. Eventually consistent, like the index: for jobs, not for requests.
    pub async fn page_of_all_projects(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ProjectIdentity>, StoreError> {
        let start = after.and_then(read_index_position);
        let response = self
            .scan(TABLE)
            .index_name(BY_ORGANIZATION)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await?;
        let items = self.undamaged(&response.items.unwrap_or_default(), read_identity)?;
        let end = response.last_evaluated_key.as_ref().map(write_index_position).transpose()?;
        Ok(Page { items, end })
    }

    /// Returns the existing projects with these ids, in no particular order. Strongly consistent.
    pub async fn read_projects(&self, ids: &[ProjectId]) -> Result<Vec<Project>, StoreError> {
        let keys = ids.iter().map(|id| item([(KEY, s(id))])).collect();
        let items = self.get_all(TABLE, keys).await?;
        self.undamaged(&items, read_project)
    }

    /// Returns the project that receives errors with a numeric id, and the limits of the stack if
    /// `with_limits`. Strongly consistent, so that a DSN works as soon as it is printed.
    pub async fn find_ingest_access(
        &self,
        id: IngestId,
        with_limits: bool,
    ) -> Result<(Option<IngestAccess>, Option<Limits>), StoreError> {
        let limits = async {
            if !with_limits {
                return Ok::<_, StoreError>(None);
            }
            let found = self.get(TABLE, stack_key()).await?;
            let read =
                found.map_or_else(|| Ok(Limits::default()), |it| self.read_stack_limits(&it));
            read.map(Some)
        };
        let (access, limits) = tokio::try_join!(self.get(TABLE, ingest_key(id)), limits)?;
        Ok((access.as_ref().map(read_ingest_access).transpose()?, limits))
    }

    /// Returns the whole project with this id. Strongly consistent, like [`Self::find_project`].
    pub async fn read_project(&self, id: ProjectId) -> Result<Option<Project>, StoreError> {
        let found = self.get(TABLE, item([(KEY, s(id))])).await?;
        found.as_ref().map(read_project).transpose()
    }

    /// Returns the action that fails a transaction if there is no project with this id.
    pub fn check_project(&self, id: ProjectId) -> Result<TransactWriteItem, StoreError> {
        self.check(TABLE, item([(KEY, s(id))]))
            .condition_expression("attribute_exists(idOrSlug)")
            .into_action()
    }

    /// Returns the project with this id or slug. Strongly consistent, since commands follow each
    /// other closely.
    pub async fn find_project(
        &self,
        name: &IdOrSlug,
    ) -> Result<Option<ProjectIdentity>, StoreError> {
        let found = self.get(TABLE, item([(KEY, s(name))])).await?;
        found.as_ref().map(read_identity).transpose()
    }
}

/// Reads the identity, which the items under the id and under the slug contain.
pub(super) fn read_identity(item: &Item) -> Result<ProjectIdentity, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(ProjectIdentity {
        id: reader.parsed("projectId", ProjectId::parse)?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        requests_per_minute: read_limits(item)?.get(Limit::RequestsPerMinute),
    })
}

/// Reads the limits that an item has.
fn read_limits(item: &Item) -> Result<Limits, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let mut limits = Limits::default();
    for limit in Limit::ALL {
        let name = limit.as_str();
        let value = reader.optional_count(name)?;
        let value = value.map(|value| u32::try_from(value).map_err(|_| reader.damaged(name)));
        limits = limits.with(limit, value.transpose()?);
    }
    Ok(limits)
}

/// Returns the attributes of changed limits.
fn limit_changes(
    limits: &BTreeMap<Limit, Option<u32>>,
) -> impl Iterator<Item = (&'static str, Option<AttributeValue>)> {
    limits.iter().map(|(limit, value)| (limit.as_str(), value.map(n)))
}

/// Sets attributes, and removes those without a value.
fn set_or_remove(
    mut update: UpdateBuilder,
    changes: Vec<(&'static str, Option<AttributeValue>)>,
) -> UpdateBuilder {
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for (name, value) in changes {
        update = update.expression_attribute_names(format!("#{name}"), name);
        match value {
            Some(value) => {
                set.push(format!("#{name} = :{name}"));
                update = update.expression_attribute_values(format!(":{name}"), value);
            }
            None => removed.push(format!("#{name}")),
        }
    }
    let clause = |verb: &str, parts: &[String]| match parts {
        [] => String::new(),
        parts => format!("{verb} {} ", parts.join(", ")),
    };
    update.update_expression(clause("SET", &set) + &clause("REMOVE", &removed))
}

/// Returns the key of the item with the stack's limits.
pub(super) fn stack_key() -> Item {
    item([(KEY, s(STACK))])
}

/// `true` for the item with the stack's limits.
pub(super) fn is_of_stack(item: &Item) -> bool {
    item.get(KEY).is_some_and(|name| *name == s(STACK))
}

/// Returns the key of the item under a numeric id. Slugs contain no `#`.
pub(super) fn ingest_key(id: IngestId) -> Item {
    item([(KEY, s(format!("ingest#{id}")))])
}

/// The attributes of an item's key in the index by organization.
const INDEX_KEY: [&str; 3] = ["organization", "slug", KEY];

/// Returns a position in that index as text. Its parts contain no `/`.
fn write_index_position(key: &Item) -> Result<String, StoreError> {
    let reader = ItemReader { table: TABLE, item: key };
    let parts = INDEX_KEY.map(|name| reader.text(name));
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.join("/"))
}

fn read_index_position(position: &str) -> Option<Item> {
    let parts: Vec<&str> = position.split('/').collect();
    let parts: [&str; 3] = parts.try_into().ok()?;
    Some(item([0, 1, 2].map(|at| (INDEX_KEY[at], s(parts[at])))))
}

fn read_ingest_access(item: &Item) -> Result<IngestAccess, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(IngestAccess {
        project: reader.parsed("projectId", ProjectId::parse)?,
        public_key: reader.parsed("publicKey", PublicKey::parse)?,
        limits: read_limits(item)?,
    })
}

/// Reads a project and the name with which it was requested.
pub(super) fn read_named_identity(item: &Item) -> Result<(IdOrSlug, ProjectIdentity), StoreError> {
    let name = ItemReader { table: TABLE, item }.parsed(KEY, IdOrSlug::parse)?;
    Ok((name, read_identity(item)?))
}

fn read_project(item: &Item) -> Result<Project, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let ProjectIdentity { id, organization, .. } = read_identity(item)?;
    Ok(Project {
        id,
        organization,
        limits: read_limits(item)?,
        production: reader.optional_boolean(PRODUCTION)?.unwrap_or_default(),
        slug: reader.parsed("slug", |text| Slug::parse(text).ok())?,
        name: reader.parsed("name", |text| ProjectName::parse(text).ok())?,
        ingest_id: reader.parsed("ingestId", IngestId::parse)?,
        public_key: reader.parsed("publicKey", PublicKey::parse)?,
        created_at: reader.time("createdAt")?,
    })
}
