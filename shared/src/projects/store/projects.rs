//! Table `projects`, key `idOrSlug`: three items per project.
//!
//! The item under the id is the project; those under the slug and under `ingest#` and the numeric
//! id hold what a request needs that names it so, and each costs one read.

use aws_sdk_dynamodb::types::TransactWriteItem;

use crate::page::{Page, PageRequest};
use crate::projects::dsn::{IngestId, PublicKey};
use crate::projects::project::{
    IdOrSlug, Organization, Project, ProjectId, ProjectName, ProjectSummary, Slug,
};

use crate::dynamodb::item::{Item, ItemReader, item, n, s};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::transaction::Transaction;
use crate::dynamodb::{Store, StoreError};

pub(super) const TABLE: &str = "projects";
pub(super) const KEY: &str = "idOrSlug";
/// The index of the items under ids, which alone have a slug, by it.
const BY_ORGANIZATION: &str = "byOrganization";
/// Of the item under the ingest id.
const LIMIT: &str = "eventsPerMinute";

/// What a request needs to know of the project in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectIdentity {
    /// The project.
    pub id: ProjectId,
    /// The organization that owns it.
    pub organization: Organization,
}

/// What became of a new project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectCreation {
    /// It is stored.
    Created,
    /// Another project has its slug.
    SlugTaken,
    /// Another project has its ingest id; a new one will do.
    IngestIdTaken,
}

/// What an SDK's request needs to know of the project that it reports errors to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestAccess {
    /// The project.
    pub project: ProjectId,
    /// The key that the request must bring.
    pub public_key: PublicKey,
    /// How many deliveries a minute the project takes, 0 for any number, if it has a limit of its own.
    pub events_per_minute: Option<u32>,
}

impl Store {
    /// Stores a new project under its id, its slug and its ingest id, all or none.
    pub async fn create_project(&self, project: &Project) -> Result<ProjectCreation, StoreError> {
        let by_id = item([
            (KEY, s(project.id)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
            ("slug", s(&project.slug)),
            ("name", s(project.name.as_str())),
            ("ingestId", s(project.ingest_id)),
            ("publicKey", s(project.public_key)),
            ("createdAt", s(project.created_at)),
        ]);
        let by_slug = item([
            (KEY, s(&project.slug)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
        ]);
        let mut by_ingest_id = ingest_key(project.ingest_id);
        by_ingest_id.insert("projectId".to_owned(), s(project.id));
        by_ingest_id.insert("publicKey".to_owned(), s(project.public_key));
        let mut transaction = Transaction::default();
        for (name, item) in [("id", by_id), ("slug", by_slug), ("ingest id", by_ingest_id)] {
            let put = self.put(TABLE, item);
            transaction.add(name, put.condition_expression("attribute_not_exists(idOrSlug)"))?;
        }
        Ok(match self.commit_all(transaction).await? {
            None => ProjectCreation::Created,
            Some(cancelled) if cancelled.failed("ingest id") => ProjectCreation::IngestIdTaken,
            Some(_) => ProjectCreation::SlugTaken,
        })
    }

    /// Gives a project that was read as `project` another DSN key. Answers whether it is stored: not if
    /// another one was given in the meantime.
    pub async fn replace_dsn_key(
        &self,
        project: &Project,
        new: PublicKey,
    ) -> Result<bool, StoreError> {
        let mut actions = Vec::with_capacity(2);
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

    /// Gives a project a limit of its own for deliveries a minute, 0 for any number; `None` takes it
    /// away. Answers whether there is such a project.
    pub async fn set_events_per_minute(
        &self,
        project: &Project,
        limit: Option<u32>,
    ) -> Result<bool, StoreError> {
        let update = self
            .update(TABLE, ingest_key(project.ingest_id))
            .condition_expression("attribute_exists(idOrSlug)")
            .expression_attribute_names("#limit", LIMIT);
        self.write_if(match limit {
            Some(limit) => update
                .update_expression("SET #limit = :limit")
                .expression_attribute_values(":limit", n(limit)),
            None => update.update_expression("REMOVE #limit"),
        })
        .await
    }

    /// All projects of all organizations. Scans the table: a command for operators, not a request.
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

    /// A page of the projects of an organization, by their slugs. Eventually consistent, as indexes are.
    pub async fn list_organization(
        &self,
        organization: &Organization,
        page_request: &PageRequest,
    ) -> Result<Page<ProjectSummary>, StoreError> {
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
        let answer = query.send().await?;
        let (items, more) = (answer.items.unwrap_or_default(), answer.last_evaluated_key.is_some());
        let end_of =
            |item: &Item| ItemReader { table: TABLE, item }.text("slug").map(str::to_owned);
        self.page(items, more, page_request.limit, end_of, read_summary)
    }

    /// A page of all projects of all organizations, those of one together. `after` is where the page before
    /// ended. Eventually consistent, as indexes are: for jobs, not for requests.
    pub async fn page_of_all_projects(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ProjectIdentity>, StoreError> {
        let start = after.and_then(read_index_position);
        let answer = self
            .scan(TABLE)
            .index_name(BY_ORGANIZATION)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await?;
        let items = self.undamaged(&answer.items.unwrap_or_default(), read_identity)?;
        let end = answer.last_evaluated_key.as_ref().map(write_index_position).transpose()?;
        Ok(Page { items, end })
    }

    /// The projects of these ids that there are, in any order. Strongly consistent.
    pub async fn read_projects(&self, ids: &[ProjectId]) -> Result<Vec<Project>, StoreError> {
        let keys = ids.iter().map(|id| item([(KEY, s(id))])).collect();
        let items = self.get_all(TABLE, keys).await?;
        self.undamaged(&items, read_project)
    }

    /// The project that receives errors under a numeric id. Strongly consistent: its DSN works as
    /// soon as it was printed.
    pub async fn find_ingest_access(
        &self,
        id: IngestId,
    ) -> Result<Option<IngestAccess>, StoreError> {
        let found = self.get(TABLE, ingest_key(id)).await?;
        found.as_ref().map(read_ingest_access).transpose()
    }

    /// A project by its id, whole. Strongly consistent, as [`Self::find_project`].
    pub async fn read_project(&self, id: ProjectId) -> Result<Option<Project>, StoreError> {
        let found = self.get(TABLE, item([(KEY, s(id))])).await?;
        found.as_ref().map(read_project).transpose()
    }

    /// The action that fails a transaction if there is no project of an id.
    pub fn check_project(&self, id: ProjectId) -> Result<TransactWriteItem, StoreError> {
        self.check(TABLE, item([(KEY, s(id))]))
            .condition_expression("attribute_exists(idOrSlug)")
            .into_action()
    }

    /// The project of an id or slug. Strongly consistent: commands follow each other closely.
    pub async fn find_project(
        &self,
        name: &IdOrSlug,
    ) -> Result<Option<ProjectIdentity>, StoreError> {
        let found = self.get(TABLE, item([(KEY, s(name))])).await?;
        found.as_ref().map(read_identity).transpose()
    }
}

/// Reads what both items of a project hold.
pub(super) fn read_identity(item: &Item) -> Result<ProjectIdentity, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(ProjectIdentity {
        id: reader.parsed("projectId", ProjectId::parse)?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
    })
}

/// The key of the item under a numeric id. No slug has a `#`.
pub(super) fn ingest_key(id: IngestId) -> Item {
    item([(KEY, s(format!("ingest#{id}")))])
}

/// The attributes of an item's key in the index by organization.
const INDEX_KEY: [&str; 3] = ["organization", "slug", KEY];

/// A place in that index, as text: none of its parts has a `/`.
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
    let limit = reader.optional_count(LIMIT)?;
    let events_per_minute =
        limit.map(|limit| u32::try_from(limit).map_err(|_| reader.damaged(LIMIT)));
    Ok(IngestAccess {
        project: reader.parsed("projectId", ProjectId::parse)?,
        public_key: reader.parsed("publicKey", PublicKey::parse)?,
        events_per_minute: events_per_minute.transpose()?,
    })
}

/// Reads a project, and by which name it was asked for.
pub(super) fn read_named_identity(item: &Item) -> Result<(IdOrSlug, ProjectIdentity), StoreError> {
    let name = ItemReader { table: TABLE, item }.parsed(KEY, IdOrSlug::parse)?;
    Ok((name, read_identity(item)?))
}

fn read_summary(item: &Item) -> Result<ProjectSummary, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(ProjectSummary {
        id: reader.parsed("projectId", ProjectId::parse)?,
        slug: reader.parsed("slug", |text| Slug::parse(text).ok())?,
        name: reader.parsed("name", |text| ProjectName::parse(text).ok())?,
    })
}

fn read_project(item: &Item) -> Result<Project, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let ProjectIdentity { id, organization } = read_identity(item)?;
    Ok(Project {
        id,
        organization,
        slug: reader.parsed("slug", |text| Slug::parse(text).ok())?,
        name: reader.parsed("name", |text| ProjectName::parse(text).ok())?,
        ingest_id: reader.parsed("ingestId", IngestId::parse)?,
        public_key: reader.parsed("publicKey", PublicKey::parse)?,
        created_at: reader.time("createdAt")?,
    })
}
