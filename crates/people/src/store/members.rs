//! Members, in table `people`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `user#USER` | `member#ORGANIZATION` | a member |
//! | `member#ID` | `member` | the user and organization of a member, or the end of a membership |
//! | `organization#NAME` | `organization` | the owners of an organization |
//!
//! Each transaction that changes owners also changes the organization's item, so concurrent ones
//! cannot remove the last owner.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item, item_at, key, n, s, ss};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::transaction::Transaction;
use shared::page::{Page, PageRequest};
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::member::{Member, MemberId};
use shared::projects::project::Organization;
use shared::projects::role::Role;
use shared::projects::store::people::{TABLE, member_key, read_member};
use shared::timestamp::Timestamp;

use super::change::{CALLER, MEMBER_AS_READ, NEW_MEMBER, OWNERS, outcome};
use super::invitations::invitation_key;
use super::{PeopleChange, PeopleStore};
use crate::Grant;

/// Time that the end of a membership is kept, as the end of the member's keys.
const END_RETENTION: Duration = Duration::from_hours(400 * 24);
/// The index by organization and list.
const BY_ORGANIZATION: &str = "byOrganization";
/// Sort key of the index: the list and the user.
const LIST_KEY: &str = "listKey";
/// Prefix of members in the index, and of their keys.
const MEMBER: &str = "member";

/// The membership that makes a change. Its role must still be the one that permitted the change.
#[derive(Debug, Clone)]
pub struct CallerMember {
    /// The membership.
    pub id: MemberId,
    /// The organization.
    pub organization: Organization,
    /// The user.
    pub user: UserId,
    /// The role that permitted the change.
    pub role: Role,
}

impl PeopleStore<'_> {
    /// Adds a member, and drops an invitation of the user to the organization.
    pub async fn add_member(
        self,
        member: &Member,
        more: Vec<TransactWriteItem>,
    ) -> Result<PeopleChange, StoreError> {
        let mut transaction = Transaction::from(more);
        self.join(member, &mut transaction)?;
        let invitation = invitation_key(&member.user, &member.organization);
        transaction.add("invitation", self.db.delete(TABLE, invitation))?;
        outcome(self.db.commit_all(transaction).await?)
    }

    /// Adds the actions that store a new member.
    pub(super) fn join(
        self,
        member: &Member,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let put = self.db.put(TABLE, write_member(member));
        transaction.add(NEW_MEMBER, put.condition_expression("attribute_not_exists(pk)"))?;
        let names = [("user", s(&member.user)), ("organization", s(&member.organization))];
        transaction.add("id", self.db.put(TABLE, item_at(id_key(member.id), names)))?;
        self.change_owners(member, None, Some(member.role), transaction)
    }

    /// Changes a member that was read as `stored`. Another role ends the member's sessions.
    pub async fn change_member(
        self,
        stored: &Member,
        Grant { role, projects }: &Grant,
        by: Option<&CallerMember>,
        more: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<PeopleChange, StoreError> {
        let mut transaction = Transaction::from(more);
        let update = self
            .db
            .update(TABLE, member_key(&stored.user, &stored.organization))
            .condition_expression("memberId = :id AND version = :version")
            .expression_attribute_names("#role", "role")
            .expression_attribute_values(":id", s(stored.id))
            .expression_attribute_values(":version", count(stored.version))
            .expression_attribute_values(":next", count(stored.version.saturating_add(1)))
            .expression_attribute_values(":role", s(role));
        let mut set = "SET #role = :role, version = :next".to_owned();
        let update = if *role == stored.role {
            update
        } else {
            set.push_str(", roleChangedAt = :now");
            update.expression_attribute_values(":now", n(now.as_millis()))
        };
        let update = match projects.as_ref().and_then(ss) {
            Some(projects) => update
                .update_expression(format!("{set}, projects = :projects"))
                .expression_attribute_values(":projects", projects),
            None => update.update_expression(format!("{set} REMOVE projects")),
        };
        transaction.add(MEMBER_AS_READ, update)?;
        self.change_owners(stored, Some(stored.role), Some(*role), &mut transaction)?;
        self.check_caller(stored, by, &mut transaction)?;
        outcome(self.db.commit_all(transaction).await?)
    }

    /// Removes a member that was read as `stored`. The time remains, as that of the end of the
    /// member's keys.
    pub async fn remove_member(
        self,
        stored: &Member,
        by: Option<&CallerMember>,
        more: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<PeopleChange, StoreError> {
        let mut transaction = Transaction::from(more);
        let delete = self
            .db
            .delete(TABLE, member_key(&stored.user, &stored.organization))
            .condition_expression("memberId = :id AND version = :version")
            .expression_attribute_values(":id", s(stored.id))
            .expression_attribute_values(":version", count(stored.version));
        transaction.add(MEMBER_AS_READ, delete)?;
        let end = self
            .db
            .update(TABLE, id_key(stored.id))
            .update_expression("SET endedAt = :now, expiresAt = :expiresAt REMOVE #user")
            .expression_attribute_names("#user", "user")
            .expression_attribute_values(":now", n(now.as_millis()))
            .expression_attribute_values(":expiresAt", n(now.plus(END_RETENTION).as_seconds()));
        transaction.add("id", end)?;
        self.change_owners(stored, Some(stored.role), None, &mut transaction)?;
        self.check_caller(stored, by, &mut transaction)?;
        outcome(self.db.commit_all(transaction).await?)
    }

    /// Adds the action that counts an owner in or out. It fails for the last one.
    fn change_owners(
        self,
        member: &Member,
        from: Option<Role>,
        to: Option<Role>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let [was, is] = [from, to].map(|role| role == Some(Role::Owner));
        if was == is {
            return Ok(());
        }
        let update = self.db.update(TABLE, organization_key(&member.organization));
        let user = ss([&member.user]).map(|user| [(":user".to_owned(), user)].into());
        let update = update.set_expression_attribute_values(user);
        let update = if is {
            update.update_expression("ADD owners :user")
        } else {
            update
                .update_expression("DELETE owners :user")
                .condition_expression("contains(owners, :name) AND size(owners) > :one")
                .expression_attribute_values(":name", s(&member.user))
                .expression_attribute_values(":one", n(1))
        };
        transaction.add(OWNERS, update)
    }

    /// Adds the action that fails if the caller's role has changed. A change of the caller's own
    /// member depends on its version anyway.
    fn check_caller(
        self,
        target: &Member,
        by: Option<&CallerMember>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        match by {
            Some(by) if by.id != target.id => self.require_caller(by, transaction),
            _ => Ok(()),
        }
    }

    /// Adds the action that fails if the caller's role has changed.
    pub(super) fn require_caller(
        self,
        by: &CallerMember,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let check = self
            .db
            .check(TABLE, member_key(&by.user, &by.organization))
            .condition_expression("memberId = :id AND #role = :role")
            .expression_attribute_names("#role", "role")
            .expression_attribute_values(":id", s(by.id))
            .expression_attribute_values(":role", s(by.role));
        transaction.add(CALLER, check)
    }

    /// Returns a member of an organization. Strongly consistent.
    pub async fn find_member(
        self,
        organization: &Organization,
        id: MemberId,
    ) -> Result<Option<Member>, StoreError> {
        let Some(user) = self.user_at(id_key(id), organization).await? else { return Ok(None) };
        let member = self.find_member_of(organization, &user).await?;
        Ok(member.filter(|member| member.id == id))
    }

    /// Returns the member for a user. Strongly consistent.
    pub async fn find_member_of(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Option<Member>, StoreError> {
        let found = self.db.get(TABLE, member_key(user, organization)).await?;
        found.as_ref().map(read_member).transpose()
    }

    /// Returns the user in an item that stands for an id, if it belongs to the organization.
    pub(super) async fn user_at(
        self,
        key: Item,
        organization: &Organization,
    ) -> Result<Option<UserId>, StoreError> {
        let Some(item) = self.db.get(TABLE, key).await? else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item: &item };
        if reader.text("organization")? != organization.as_str() {
            return Ok(None);
        }
        reader.optional_parsed("user", |text| UserId::parse(text).ok())
    }

    /// Sets the time of revocation of keys whose member was removed, unless they were revoked
    /// before. Authentication rejects them since then. Drops keys whose membership was erased, or
    /// ended so long ago that its end has expired.
    pub async fn end_with_members(self, keys: &mut Vec<ApiKeyRecord>) -> Result<(), StoreError> {
        let ids: BTreeSet<MemberId> = keys.iter().filter_map(|key| key.member).collect();
        let mut ends = HashMap::new();
        for item in self.db.get_all(TABLE, ids.into_iter().map(id_key).collect()).await? {
            let reader = ItemReader { table: TABLE, item: &item };
            let id = |pk: &str| MemberId::parse(pk.strip_prefix("member#")?);
            ends.insert(reader.parsed("pk", id)?, reader.optional_millis("endedAt")?);
        }
        keys.retain_mut(|key| {
            let Some(id) = key.member else { return true };
            let Some(end) = ends.get(&id) else { return false };
            key.revoked_at = key.revoked_at.into_iter().chain(*end).min();
            true
        });
        Ok(())
    }

    /// Returns an organization's members, sorted by user. The index is eventually consistent; the
    /// members are not.
    pub async fn list_members(
        self,
        organization: &Organization,
        page_request: &PageRequest,
    ) -> Result<Page<Member>, StoreError> {
        self.list(MEMBER, organization, page_request, member_key, read_member).await
    }

    /// Returns a page of one of an organization's lists.
    pub(super) async fn list<T>(
        self,
        list: &str,
        organization: &Organization,
        page_request: &PageRequest,
        key_of: impl Fn(&UserId, &Organization) -> Item,
        read: impl Fn(&Item) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let mut query = self
            .db
            .query(TABLE)
            .index_name(BY_ORGANIZATION)
            .key_condition_expression(
                "organization = :organization AND begins_with(listKey, :list)",
            )
            .expression_attribute_values(":organization", s(organization))
            .expression_attribute_values(":list", s(format_args!("{list}#")))
            .limit(one_more_than(page_request.limit));
        if let Some(user) = page_request.after.as_deref().and_then(|it| UserId::parse(it).ok()) {
            let mut start = key_of(&user, organization);
            start.extend(in_list(list, organization, &user));
            query = query.set_exclusive_start_key(Some(start));
        }
        let response = query.send().await?;
        let mut users = Vec::new();
        for item in response.items.unwrap_or_default() {
            let reader = ItemReader { table: TABLE, item: &item };
            let user = reader.text(LIST_KEY)?.split_once('#').map(|(_, user)| user);
            let user = user.and_then(|user| UserId::parse(user).ok());
            users.push(user.ok_or_else(|| reader.damaged(LIST_KEY))?);
        }
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let more = users.len() > limit || response.last_evaluated_key.is_some();
        users.truncate(limit);
        let end = users.last().filter(|_| more).map(ToString::to_string);
        let keys = users.iter().map(|user| key_of(user, organization)).collect();
        let mut items = self.db.get_all(TABLE, keys).await?;
        items.sort_by(|one, other| text_of(one).cmp(&text_of(other)));
        Ok(Page { items: self.db.undamaged(&items, read)?, end })
    }
}

fn text_of(item: &Item) -> Option<&String> {
    item.get(LIST_KEY).and_then(|value| value.as_s().ok())
}

/// Returns the attributes that put an item into a list of its organization.
pub(super) fn in_list(list: &str, organization: &Organization, user: &UserId) -> Item {
    item([("organization", s(organization)), (LIST_KEY, s(format_args!("{list}#{user}")))])
}

/// Returns the key of the item that leads from an id to its member.
pub(super) fn id_key(id: MemberId) -> Item {
    key(&format!("member#{id}"), MEMBER)
}

/// Returns the key of an organization's own item.
pub(super) fn organization_key(organization: &Organization) -> Item {
    key(&format!("organization#{organization}"), "organization")
}

fn write_member(member: &Member) -> Item {
    let Member { id, organization, user, role, projects, joined_at, version } = member;
    let mut item = item_at(
        member_key(user, organization),
        [
            ("memberId", s(id)),
            ("user", s(user)),
            ("role", s(role)),
            ("joinedAt", n(joined_at.as_millis())),
            ("version", count(*version)),
        ],
    );
    item.extend(in_list(MEMBER, organization, user));
    item.extend(projects.as_ref().and_then(ss).map(|set| ("projects".to_owned(), set)));
    item
}

fn count(value: u64) -> aws_sdk_dynamodb::types::AttributeValue {
    n(i64::try_from(value).unwrap_or(i64::MAX))
}
