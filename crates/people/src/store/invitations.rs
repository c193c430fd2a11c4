//! Invitations, in table `people`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `user#USER` | `invitation#ORGANIZATION` | an invitation |
//! | `invitation#ID` | `invitation` | the user and organization of an invitation |
//! | `invitations#ORGANIZATION#DAY` | `count` | number of invitations that were created on a day |
//!
//! A user has at most one invitation to an organization.

use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;

use shared::dynamodb::StoreError;
use shared::dynamodb::idempotency::Idempotent;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s, ss};
use shared::dynamodb::transaction::{Transaction, TransactionOutcome};
use shared::page::{Page, PageRequest};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::Organization;
use shared::projects::role::Role;
use shared::projects::store::people::{
    TABLE, member_key, read_member, read_projects, user_partition,
};
use shared::timestamp::Timestamp;

use super::change::{INVITER, LIMIT, NEW_INVITATION, NO_MEMBER, OPEN_INVITATION, outcome};
use super::members::{CallerMember, in_list};
use super::{PeopleChange, PeopleStore};
use crate::{Invitation, InvitationId};

/// Most invitations that an organization creates on a day (UTC).
pub const MAX_INVITATIONS_PER_DAY: u32 = 50;
/// Time that a day's count is kept.
const COUNT_RETENTION: Duration = Duration::from_hours(48);
/// Prefix of invitations in the index, and of their keys.
const INVITATION: &str = "invitation";

impl PeopleStore<'_> {
    /// Stores a new invitation, in a transaction with more actions.
    pub async fn create_invitation(
        self,
        invitation: &Invitation,
        by: Option<&CallerMember>,
        more: Vec<TransactWriteItem>,
        idempotent: Option<Idempotent<'_>>,
    ) -> Result<PeopleChange, StoreError> {
        let Invitation { id, organization, user, created_at: now, expires_at, .. } = invitation;
        let ended = self.ended_invitation(user, organization).await?;
        let mut transaction = Transaction::from(more);
        let put = self
            .db
            .put(TABLE, write_invitation(invitation))
            // DynamoDB can take days to remove an expired item.
            .condition_expression(
                "attribute_not_exists(pk) OR expiresAt <= :now OR invitationId = :ended",
            )
            .expression_attribute_values(":now", n(now.as_seconds()))
            .expression_attribute_values(":ended", ended.map_or_else(|| s(""), s));
        transaction.add(NEW_INVITATION, put)?;
        let names = [
            ("user", s(user)),
            ("organization", s(organization)),
            ("expiresAt", n(expires_at.as_seconds())),
        ];
        transaction.add("id", self.db.put(TABLE, item_at(id_key(*id), names)))?;
        let check = self.db.check(TABLE, member_key(user, organization));
        transaction.add(NO_MEMBER, check.condition_expression("attribute_not_exists(pk)"))?;
        let day = now.to_string();
        let day = day.split('T').next().unwrap_or_default();
        let count = self
            .db
            .update(TABLE, key(&format!("invitations#{organization}#{day}"), "count"))
            .condition_expression("attribute_not_exists(pk) OR created < :most")
            .update_expression("ADD created :one SET expiresAt = :expiresAt")
            .expression_attribute_values(":most", n(MAX_INVITATIONS_PER_DAY))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":expiresAt", n(now.plus(COUNT_RETENTION).as_seconds()));
        transaction.add(LIMIT, count)?;
        if let Some(by) = by {
            self.require_caller(by, &mut transaction)?;
        }
        match self.db.commit(transaction, idempotent, *now).await? {
            TransactionOutcome::Done => Ok(PeopleChange::Done),
            TransactionOutcome::Replay(replay) => Ok(PeopleChange::Replay(replay)),
            TransactionOutcome::Rejected(cancelled) => outcome(Some(cancelled)),
        }
    }

    /// Returns the invitation of a user that ended because of its inviter, if any.
    async fn ended_invitation(
        self,
        user: &UserId,
        organization: &Organization,
    ) -> Result<Option<InvitationId>, StoreError> {
        let items = self.db.get_all(TABLE, vec![invitation_key(user, organization)]).await?;
        let stored: Vec<Invitation> = self.db.undamaged(&items, read_invitation)?;
        let mut permitted = stored.clone();
        self.retain_permitted(&mut permitted).await?;
        Ok(stored.first().filter(|_| permitted.is_empty()).map(|stored| stored.id))
    }

    /// Revokes an invitation, in a transaction with more actions.
    pub async fn revoke_invitation(
        self,
        invitation: &Invitation,
        by: Option<&CallerMember>,
        more: Vec<TransactWriteItem>,
    ) -> Result<PeopleChange, StoreError> {
        let mut transaction = Transaction::from(more);
        self.close(invitation, invitation.created_at, &mut transaction)?;
        if let Some(by) = by {
            self.require_caller(by, &mut transaction)?;
        }
        outcome(self.db.commit_all(transaction).await?)
    }

    /// Accepts an invitation: deletes it and stores its member, in a transaction with more actions.
    pub async fn accept_invitation(
        self,
        invitation: &Invitation,
        member: &Member,
        more: Vec<TransactWriteItem>,
    ) -> Result<PeopleChange, StoreError> {
        let mut transaction = Transaction::from(more);
        self.close(invitation, member.joined_at, &mut transaction)?;
        if let Some(inviter) = invitation.inviter {
            let check = self
                .db
                .check(TABLE, member_key(&invitation.invited_by, &invitation.organization))
                .condition_expression("memberId = :id AND #role IN (:lowest, :owner)")
                .expression_attribute_names("#role", "role")
                .expression_attribute_values(":id", s(inviter))
                .expression_attribute_values(":lowest", s(invitation.lowest_inviter()))
                .expression_attribute_values(":owner", s(Role::Owner));
            transaction.add(INVITER, check)?;
        }
        self.join(member, &mut transaction)?;
        outcome(self.db.commit_all(transaction).await?)
    }

    /// Adds the actions that delete an invitation. They fail if it is not open at `now`.
    fn close(
        self,
        Invitation { id, user, organization, .. }: &Invitation,
        now: Timestamp,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let delete = self
            .db
            .delete(TABLE, invitation_key(user, organization))
            .condition_expression("invitationId = :id AND expiresAt > :now")
            .expression_attribute_values(":id", s(id))
            .expression_attribute_values(":now", n(now.as_seconds()));
        transaction.add(OPEN_INVITATION, delete)?;
        transaction.add("id", self.db.delete(TABLE, id_key(*id)))
    }

    /// Returns an open invitation. Strongly consistent: a revoked invitation is gone immediately.
    pub async fn find_invitation(
        self,
        id: InvitationId,
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError> {
        let Some(found) = self.db.get(TABLE, id_key(id)).await? else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item: &found };
        let user = reader.parsed("user", |text| UserId::parse(text).ok())?;
        let organization = reader.parsed("organization", |text| Organization::parse(text).ok())?;
        let found = self.db.get(TABLE, invitation_key(&user, &organization)).await?;
        let invitation = found.as_ref().map(read_invitation).transpose()?;
        // Another invitation can have replaced one that ended.
        let mut open: Vec<_> =
            invitation.into_iter().filter(|it| it.id == id && it.is_open(now)).collect();
        self.retain_permitted(&mut open).await?;
        Ok(open.pop())
    }

    /// Drops the invitations whose inviting member was removed, or cannot invite to the role now.
    pub(super) async fn retain_permitted(
        self,
        invitations: &mut Vec<Invitation>,
    ) -> Result<(), StoreError> {
        let mut keys: Vec<Item> = Vec::new();
        for invitation in invitations.iter().filter(|it| it.inviter.is_some()) {
            let key = member_key(&invitation.invited_by, &invitation.organization);
            // A batch read rejects duplicates.
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let items = self.db.get_all(TABLE, keys).await?;
        let members: Vec<Member> = self.db.undamaged(&items, read_member)?;
        invitations.retain(|invitation| {
            let permits = |member: &Member| {
                Some(member.id) == invitation.inviter && member.role >= invitation.lowest_inviter()
            };
            invitation.inviter.is_none() || members.iter().any(permits)
        });
        Ok(())
    }

    /// Returns an organization's open invitations, sorted by user. The index is eventually
    /// consistent; the invitations are not.
    pub async fn list_invitations(
        self,
        organization: &Organization,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<Invitation>, StoreError> {
        let list =
            self.list(INVITATION, organization, page_request, invitation_key, read_invitation);
        let mut page = list.await?;
        page.items.retain(|invitation| invitation.is_open(now));
        self.retain_permitted(&mut page.items).await?;
        Ok(page)
    }
}

/// Returns the key of a user's invitation to an organization.
pub(super) fn invitation_key(user: &UserId, organization: &Organization) -> Item {
    key(&user_partition(user), &format!("{INVITATION}#{organization}"))
}

/// Returns the key of the item that leads from an id to its invitation.
pub(super) fn id_key(id: InvitationId) -> Item {
    key(&format!("{INVITATION}#{id}"), INVITATION)
}

fn write_invitation(invitation: &Invitation) -> Item {
    let Invitation {
        id,
        organization,
        user,
        role,
        projects,
        invited_by,
        inviter,
        created_at,
        expires_at,
    } = invitation;
    let mut item = item_at(
        invitation_key(user, organization),
        [
            ("invitationId", s(id)),
            ("user", s(user)),
            ("role", s(role)),
            ("invitedBy", s(invited_by)),
            ("createdAt", n(created_at.as_millis())),
            ("endsAt", n(expires_at.as_millis())),
            ("expiresAt", n(expires_at.as_seconds())),
        ],
    );
    item.extend(inviter.map(|id| ("inviterId".to_owned(), s(id))));
    item.extend(in_list(INVITATION, organization, user));
    item.extend(projects.as_ref().and_then(ss).map(|set| ("projects".to_owned(), set)));
    item
}

pub(super) fn read_invitation(item: &Item) -> Result<Invitation, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let user = |text: &str| UserId::parse(text).ok();
    Ok(Invitation {
        id: reader.parsed("invitationId", InvitationId::parse)?,
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        user: reader.parsed("user", user)?,
        role: reader.parsed("role", |text| text.parse::<Role>().ok())?,
        projects: read_projects(reader)?,
        invited_by: reader.parsed("invitedBy", user)?,
        inviter: reader.optional_parsed("inviterId", MemberId::parse)?,
        created_at: reader.millis("createdAt")?,
        expires_at: reader.millis("endsAt")?,
    })
}
