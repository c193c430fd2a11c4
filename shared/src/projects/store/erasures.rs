//! Erasures, in table `projects`, and the keys that they end.
//!
//! | idOrSlug | item |
//! | --- | --- |
//! | `erasures#` | the erasures that are under way |
//! | `erasure#SUBJECT` | how far one has come |

use aws_sdk_dynamodb::types::AttributeValue;

use crate::projects::erasure::{Erasure, Stage, Subject};
use crate::projects::project::{Organization, Project, ProjectId};
use crate::timestamp::Timestamp;

use super::projects::{KEY, TABLE, ingest_key};
use super::{api_keys, projects};
use crate::dynamodb::item::{Item, ItemReader, item, n, s, ss};
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError, Sweep};

/// The item that lists them.
const LIST: &str = "erasures#";
/// Its attribute.
const SUBJECTS: &str = "subjects";

impl Store {
    /// Takes a project out of everybody's sight and queues its erasure, in one transaction. Answers
    /// whether it was there.
    pub async fn erase_project(
        &self,
        project: &Project,
        now: Timestamp,
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
        for key in keys {
            let delete = self.delete(projects::TABLE, key);
            let delete = delete
                .condition_expression("projectId = :id")
                .expression_attribute_values(":id", s(project.id));
            actions.push(delete.into_action()?);
        }
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// Queues the erasure of what is left, or has come back, of a project that is no longer there. Answers
    /// whether it is not there, and was not queued before.
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

    /// Queues the erasure of a user. Answers whether it was not queued before.
    pub async fn erase_user(&self, erasure: &Erasure) -> Result<bool, StoreError> {
        Ok(self.commit_all(self.queue_erasure(erasure)?).await?.is_none())
    }

    fn queue_erasure(
        &self,
        erasure: &Erasure,
    ) -> Result<Vec<aws_sdk_dynamodb::types::TransactWriteItem>, StoreError> {
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

    /// The erasures that are under way, the oldest first. Strongly consistent.
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

    /// Notes how far an erasure has come that was read as `read`. False if somebody else carries it on.
    pub async fn note_erasure(&self, read: &Erasure, now: &Erasure) -> Result<bool, StoreError> {
        let next = Erasure { revision: read.revision.saturating_add(1), ..now.clone() };
        let put = self.put(TABLE, write_erasure(&next));
        self.write_if(
            put.condition_expression("revision = :read")
                .expression_attribute_values(":read", count(read.revision)),
        )
        .await
    }

    /// Forgets an erasure that is done, name and all.
    pub async fn finish_erasure(&self, erasure: &Erasure) -> Result<bool, StoreError> {
        let key = erasure_key(&erasure.subject.to_string());
        let delete = self.delete(TABLE, key);
        let delete = delete
            .condition_expression("revision = :read")
            .expression_attribute_values(":read", count(erasure.revision));
        let unlisted = self.list_change("DELETE", &erasure.subject).into_action()?;
        Ok(self.commit_all(vec![delete.into_action()?, unlisted]).await?.is_none())
    }

    /// Takes a project out of the keys that name it, and deletes those that name no other: a key without
    /// projects would see all of them. Answers how many there were.
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

    /// Deletes the keys of a user that were made up to a time. Answers how many there were.
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

fn count(value: u64) -> AttributeValue {
    n(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Its attributes are none that the index of projects is made of.
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
        stage: reader.parsed("stage", Stage::parse)?,
        after: reader.optional_text("after")?.map(str::to_owned),
        not_before,
        due_since: reader.time("dueSince")?,
        removed: reader.count("removed")?,
        revision: reader.count("revision")?,
    })
}
