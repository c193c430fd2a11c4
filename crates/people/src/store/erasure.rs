//! Removal of users and projects from table `people`.

use shared::dynamodb::StoreError;
use shared::dynamodb::Sweep;
use shared::dynamodb::item::{Item, ItemReader, key, s, ss};
use shared::projects::api_key::UserId;
use shared::projects::project::{Organization, ProjectId};
use shared::projects::store::people::{TABLE, account_key};
use shared::timestamp::Timestamp;

use super::PeopleStore;
use super::members::organization_key;

impl PeopleStore<'_> {
    /// Removes a user's items in an organization from the next page of the table: membership,
    /// invitation and sessions.
    pub async fn sweep_user(
        self,
        organization: &Organization,
        user: &UserId,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let owners = ss([user]).map(|user| [(":user".to_owned(), user)].into());
        let disown = self
            .db
            .update(TABLE, organization_key(organization))
            .update_expression("DELETE owners :user")
            .condition_expression("contains(owners, :name)")
            .set_expression_attribute_values(owners)
            .expression_attribute_values(":name", s(user));
        self.db.write_if(disown).await?;
        // Sessions in other organizations can depend on the end of earlier ones.
        let account = self.find_account(user, Timestamp::from_millis(0)).await?;
        if account.members.iter().all(|member| member.organization == *organization) {
            self.db.sweep_away(TABLE, vec![account_key(user)], None).await?;
        }
        let attributes = ["pk", "sk", "user", "organization"];
        let (items, after) = self.db.scan_page(TABLE, &attributes, after).await?;
        let is_of = |item: &&Item| {
            let is = |name, value: &str| text(item, name) == Some(value);
            is("user", user.as_str()) && is("organization", organization.as_str())
        };
        let keys = items.iter().filter(is_of).filter_map(key_of).collect();
        self.db.sweep_away(TABLE, keys, after).await
    }

    /// Removes a project from the members and invitations in the next page of the table. Those that
    /// are limited to it keep no project.
    pub async fn sweep_project(
        self,
        project: ProjectId,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let attributes = ["pk", "sk", "projects"];
        let (items, after) = self.db.scan_page(TABLE, &attributes, after).await?;
        let mut removed = 0;
        for item in items {
            let projects = ItemReader { table: TABLE, item: &item }.text_set("projects");
            let lists = projects.is_ok_and(|ids| ids.contains(&project.to_string()));
            let Some(key) = key_of(&item).filter(|_| lists) else { continue };
            // A missing set would mean all projects.
            let none = ProjectId::new(uuid::Uuid::nil());
            for (change, id) in [("ADD", none), ("DELETE", project)] {
                let values = ss([id]).map(|ids| [(":ids".to_owned(), ids)].into());
                let update = self
                    .db
                    .update(TABLE, key.clone())
                    .update_expression(format!("{change} projects :ids"))
                    .condition_expression("contains(projects, :id)")
                    .set_expression_attribute_values(values)
                    .expression_attribute_values(":id", s(project));
                removed += u64::from(self.db.write_if(update).await? && change == "DELETE");
            }
        }
        Ok(Sweep { removed, after })
    }
}

fn text<'i>(item: &'i Item, name: &str) -> Option<&'i str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

fn key_of(item: &Item) -> Option<Item> {
    Some(key(text(item, "pk")?, text(item, "sk")?))
}
