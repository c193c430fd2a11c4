//! Erasures, in table `projects`, and the removal of keys.
//!
//! | idOrSlug | item |
//! | --- | --- |
//! | `erasures#` | the list of erasures in progress |
//! | `erasure#SUBJECT` | the progress of one erasure |

use aws_sdk_dynamodb::types::TransactWriteItem;

use crate::projects::erasure::{Erasure, Stage, Subject};
use crate::projects::project::{Organization, Project, ProjectId};
use crate::timestamp::Timestamp;

use super::projects::{KEY, TABLE, ingest_key};
use super::{api_keys, projects};
use crate::dynamodb::item::{Item, ItemReader, count, item, n, s, ss};
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError, Sweep};

/// The item that lists the erasures.
const LIST: &str = "erasures#";
/// The attribute with the list.
const SUBJECTS: &str = "subjects";

impl Store {
    /// Hides a project from all callers and queues its erasure, in one transaction. Returns `true`
    /// if the project existed.
    pub async fn erase_project(
        &self,
        project: &Project,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.erase_project_with(project, now, Vec::new()).await
    }

    /// Like [`Self::erase_project`], in a transaction with more actions.
    pub async fn erase_project_with(
        &self,
        project: &Project,
        now: Timestamp,
        more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let name = project.slug.to_string();
        let subject = Subject::Project(project.id);
        let erasure = Erasure::new(subject, project.organization.clone(), name, now);
        let keys = [
            item([(KEY, s(project.id))]),
            item([(KEY, s(&project.slug))]),
            ingest_key(project.ingest_id),
        ];
        let mut actions = self.queue_erasure(&erasure)?;
        actions.extend(more);
        for key in keys {
            let delete = self.delete(projects::TABLE, key);
            let delete = delete
                .condition_expression("projectId = :id")
                .expression_attribute_values(":id", s(project.id));
            actions.push(delete.into_action()?);
        }
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// Queues the erasure of remaining or reappeared data of a project that no longer exists.
    /// Returns `false` if the project exists, or if its erasure was already queued.
    pub async fn erase_rest_of_project(
        &self,
        project: ProjectId,
        erasure: &Erasure,
    ) -> Result<bool, StoreError> {
        let check = self.check(TABLE, item([(KEY, s(project))]));
        let check = check.condition_expression("attribute_not_exists(idOrSlug)").into_action()?;
        let mut actions = self.queue_erasure(erasure)?;
        actions.push(check);
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// Queues the erasure of a user, in a transaction with more actions. Returns `false` if it was
    /// already queued.
    pub async fn erase_user(
        &self,
        erasure: &Erasure,
        more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let mut actions = self.queue_erasure(erasure)?;
        actions.extend(more);
        Ok(self.commit_all(actions).await?.is_none())
    }

    fn queue_erasure(&self, erasure: &Erasure) -> Result<Vec<TransactWriteItem>, StoreError> {
        let put = self.put(TABLE, write_erasure(erasure));
        let put = put.condition_expression("attribute_not_exists(idOrSlug)").into_action()?;
        let listed = self.list_change("ADD", &erasure.subject).into_action()?;
        Ok(vec![put, listed])
    }

    fn list_change(
        &self,
        change: &str,
        subject: &Subject,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        self.update(TABLE, item([(KEY, s(LIST))]))
            .update_expression(format!("{change} {SUBJECTS} :subjects"))
            .set_expression_attribute_values(
                ss([subject]).map(|set| [(":subjects".to_owned(), set)].into()),
            )
    }

    /// Returns the erasures in progress, oldest first. Strongly consistent.
    pub async fn list_erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        let Some(list) = self.get(TABLE, item([(KEY, s(LIST))])).await? else {
            return Ok(Vec::new());
        };
        if !list.contains_key(SUBJECTS) {
            return Ok(Vec::new());
        }
        let subjects = ItemReader { table: TABLE, item: &list }.text_set(SUBJECTS)?;
        let keys = subjects.iter().map(|subject| erasure_key(subject)).collect();
        let items = self.get_all(TABLE, keys).await?;
        let mut erasures: Vec<Erasure> = self.undamaged(&items, read_erasure)?;
        erasures.sort_by_key(|erasure| erasure.requested_at);
        Ok(erasures)
    }

    /// Stores the progress of an erasure that was read as `read`. Returns `false` if another run
    /// continued it.
    pub async fn note_erasure(&self, read: &Erasure, now: &Erasure) -> Result<bool, StoreError> {
        let next = Erasure { revision: read.revision.saturating_add(1), ..now.clone() };
        let put = self.put(TABLE, write_erasure(&next));
        self.write_if(
            put.condition_expression("revision = :read")
                .expression_attribute_values(":read", count(read.revision)),
        )
        .await
    }

    /// Deletes the record of a completed erasure, including the name.
    pub async fn finish_erasure(&self, erasure: &Erasure) -> Result<bool, StoreError> {
        let key = erasure_key(&erasure.subject.to_string());
        let delete = self.delete(TABLE, key);
        let delete = delete
            .condition_expression("revision = :read")
            .expression_attribute_values(":read", count(erasure.revision));
        let unlisted = self.list_change("DELETE", &erasure.subject).into_action()?;
        Ok(self.commit_all(vec![delete.into_action()?, unlisted]).await?.is_none())
    }

    /// Removes a project from the keys that list it. Deletes keys that list no other project, since
    /// a key without projects would see all of them. Returns the number of these keys.
    pub async fn erase_project_from_keys(
        &self,
        organization: &Organization,
        project: ProjectId,
    ) -> Result<Sweep, StoreError> {
        let mut removed = 0;
        for key in self.list_keys_of_organization(organization).await? {
            let Some(projects) = key.projects.filter(|projects| projects.contains(&project)) else {
                continue;
            };
            let place = item([(api_keys::KEY, s(&key.key_id))]);
            let only = ss([project]);
            let written = if projects.len() == 1 {
                let delete = self.delete(api_keys::TABLE, place);
                let delete = delete.condition_expression("projects = :only");
                let values = only.map(|only| [(":only".to_owned(), only)].into());
                self.write_if(delete.set_expression_attribute_values(values)).await?
            } else {
                let update = self
                    .update(api_keys::TABLE, place)
                    .condition_expression("contains(projects, :id) AND size(projects) > :one")
                    .update_expression("DELETE projects :only");
                let values = only.map(|only| {
                    [
                        (":only".to_owned(), only),
                        (":id".to_owned(), s(project)),
                        (":one".to_owned(), n(1)),
                    ]
                    .into()
                });
                self.write_if(update.set_expression_attribute_values(values)).await?
            };
            removed += u64::from(written);
        }
        Ok(Sweep { removed, after: None })
    }

    /// Deletes the keys of a user that were created up to `until`. Returns their number.
    pub async fn erase_keys_of(
        &self,
        organization: &Organization,
        user: &crate::projects::api_key::UserId,
        until: Timestamp,
    ) -> Result<Sweep, StoreError> {
        let keys = self.list_keys_of(organization, user).await?;
        let keys = keys.into_iter().filter(|key| key.created_at <= until);
        let keys = keys.map(|key| item([(api_keys::KEY, s(&key.key_id))])).collect();
        self.sweep_away(api_keys::TABLE, keys, None).await
    }
}

fn erasure_key(subject: &str) -> Item {
    item([(KEY, s(format_args!("erasure#{subject}")))])
}

/// Returns the item of an erasure. Its attributes do not include those of the project index.
fn write_erasure(erasure: &Erasure) -> Item {
    let mut written = erasure_key(&erasure.subject.to_string());
    written.extend(item([
        ("subject", s(&erasure.subject)),
        ("ofOrganization", s(&erasure.organization)),
        ("calledBefore", s(&erasure.name)),
        ("requestedAt", s(erasure.requested_at)),
        ("stage", s(erasure.stage.as_str())),
        ("notBefore", s(erasure.not_before)),
        ("dueSince", s(erasure.due_since)),
        ("removed", count(erasure.removed)),
        ("revision", count(erasure.revision)),
    ]));
    written.extend(erasure.after.as_ref().map(|after| ("after".to_owned(), s(after))));
    written
}

fn read_erasure(item: &Item) -> Result<Erasure, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let organization = |text: &str| Organization::parse(text).ok();
    let not_before = reader.time("notBefore")?;
    Ok(Erasure {
        subject: reader.parsed("subject", Subject::parse)?,
        organization: reader.parsed("ofOrganization", organization)?,
        name: reader.text("calledBefore")?.to_owned(),
        requested_at: reader.time("requestedAt")?,
        stage: reader.parsed("stage", Stage::named)?,
        after: reader.optional_text("after")?.map(str::to_owned),
        not_before,
        due_since: reader.time("dueSince")?,
        removed: reader.count("removed")?,
        revision: reader.count("revision")?,
    })
}
