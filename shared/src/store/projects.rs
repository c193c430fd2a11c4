//! Table `projects`, key `idOrSlug`: two items per project.
//!
//! The item under the id is the project; the one under the slug is an alias that holds what a
//! request needs, so that either name costs one read.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};

use crate::models::project::{IdOrSlug, Organization, Project, ProjectId, ProjectName, Slug};
use crate::models::timestamp::Timestamp;

use super::item::{Item, Reader, item, s};
use super::transaction::Commit;
use super::{Store, StoreError};

pub(super) const TABLE: &str = "projects";
pub(super) const KEY: &str = "idOrSlug";

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
}

impl Store {
    /// Stores a new project under its id and its slug, both or neither.
    pub async fn create_project(&self, project: &Project) -> Result<ProjectCreation, StoreError> {
        let by_id = item([
            (KEY, s(project.id)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
            ("slug", s(&project.slug)),
            ("name", s(project.name.as_str())),
            ("createdAt", s(project.created_at)),
        ]);
        let by_slug = item([
            (KEY, s(&project.slug)),
            ("projectId", s(project.id)),
            ("organization", s(&project.organization)),
        ]);
        let mut actions = Vec::with_capacity(2);
        for item in [by_id, by_slug] {
            let put = Put::builder()
                .table_name(self.table(TABLE))
                .set_item(Some(item))
                .condition_expression("attribute_not_exists(idOrSlug)")
                .build()?;
            actions.push(TransactWriteItem::builder().put(put).build());
        }
        match self.commit(actions, None, project.created_at).await? {
            Commit::Refused(cancelled) if cancelled.condition_failed() => {
                Ok(ProjectCreation::SlugTaken)
            }
            Commit::Refused(cancelled) => Err(cancelled.into_error()),
            Commit::Done | Commit::Repetition(_) => Ok(ProjectCreation::Created),
        }
    }

    /// All projects of all organizations. Scans the table: a command for operators, not a request.
    pub async fn list_projects(&self) -> Result<Vec<Project>, StoreError> {
        let mut pages = self
            .client
            .scan()
            .table_name(self.table(TABLE))
            .filter_expression("attribute_exists(slug)")
            .into_paginator()
            .items()
            .send();
        let mut projects = Vec::new();
        while let Some(item) = pages.next().await {
            projects.push(read_project(&item?)?);
        }
        projects.sort_by_key(|project| (project.created_at, project.id));
        Ok(projects)
    }

    /// The project of an id or slug. Strongly consistent: commands follow each other closely.
    pub async fn find_project(
        &self,
        name: &IdOrSlug,
    ) -> Result<Option<ProjectIdentity>, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(self.table(TABLE))
            .key(KEY, s(name))
            .consistent_read(true)
            .send()
            .await?;
        answer.item.as_ref().map(read_identity).transpose()
    }
}

/// Reads what both items of a project hold.
pub(super) fn read_identity(item: &Item) -> Result<ProjectIdentity, StoreError> {
    let reader = Reader { table: TABLE, item };
    Ok(ProjectIdentity {
        id: reader.parsed("projectId", ProjectId::parse)?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
    })
}

fn read_project(item: &Item) -> Result<Project, StoreError> {
    let reader = Reader { table: TABLE, item };
    let ProjectIdentity { id, organization } = read_identity(item)?;
    Ok(Project {
        id,
        organization,
        slug: reader.parsed("slug", |text| Slug::parse(text).ok())?,
        name: reader.parsed("name", |text| ProjectName::parse(text).ok())?,
        created_at: reader.parsed("createdAt", |text| Timestamp::parse_rfc3339(text).ok())?,
    })
}
