//! Sign-ins, sessions and their emails, in table `people`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `sign-in#DIGEST` | `sign-in` | a sign-in that waits for its token |
//! | `session#DIGEST` | `session` | a session |
//! | `user#USER` | `account` | the last time that a user signed out everywhere |
//! | `email#queue` | time and id | an email to send |
//! | `email#never` | time and id | the same for a user who gets none, so that writes look alike |
//! | `oidc#DIGEST` | `oidc` | an OpenID Connect sign-in that waits for the provider |
//!
//! The tables contain no token and no code: the sender of an email creates them, and stores hashes.

use std::fmt::Display;
use std::time::Duration;

use aws_sdk_dynamodb::types::{Select, TransactWriteItem};
use uuid::Uuid;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item_at, key, n, s, time_key};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::Transaction;
use shared::projects::api_key::UserId;
use shared::projects::member::Member;
use shared::projects::project::Organization;
use shared::projects::secret::SecretDigest;
use shared::projects::session::Session;
use shared::projects::store::people::{
    TABLE, account_key, member_key, read_member, session_key, user_partition, write_session,
};
use shared::timestamp::Timestamp;

use super::PeopleStore;
use super::invitations::read_invitation;
use crate::sign_in::{Binding, CodeHash, LINK_LIFETIME, MAX_ATTEMPTS, PendingSignIn};
use crate::{EmailJob, EmailKind, Invitation, InvitationId, OidcSignIn, RequestedFrom};

/// Partition of emails that are sent.
const QUEUE: &str = "email#queue";
/// Partition of emails that are not sent, with a name of the same length. DynamoDB removes them.
const NO_QUEUE: &str = "email#never";
/// Time for which an invocation of the sender keeps an email for itself.
const CLAIM: Duration = Duration::from_secs(30);
/// Most emails that an invocation reads.
const EMAILS_AT_ONCE: i32 = 100;
/// Time that an invitation's email waits for a sender.
const INVITATION_WAIT: Duration = crate::LIFETIME;

/// The memberships and open invitations of a user.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The memberships, sorted by organization.
    pub members: Vec<Member>,
    /// The open invitations, sorted by organization.
    pub invitations: Vec<Invitation>,
}

impl PeopleStore<'_> {
    /// Returns the memberships and open invitations of a user. Strongly consistent.
    pub async fn find_account(self, user: &UserId, now: Timestamp) -> Result<Account, StoreError> {
        let query = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(user_partition(user)));
        let mut items = query.into_paginator().items().send();
        let mut account = Account::default();
        while let Some(item) = items.next().await {
            let item = item?;
            let sk = ItemReader { table: TABLE, item: &item }.text("sk")?;
            if sk.starts_with("member#") {
                account.members.extend(self.db.unless_damaged(&item, read_member(&item))?);
            } else if sk.starts_with("invitation#") {
                let read = self.db.unless_damaged(&item, read_invitation(&item))?;
                account.invitations.extend(read.filter(|invitation| invitation.is_open(now)));
            }
        }
        self.retain_permitted(&mut account.invitations).await?;
        Ok(account)
    }

    /// Returns `true` if a user is a member of an organization. Only a count is read: an item, or
    /// the key after which a limited query continues, would take time that reveals members.
    pub async fn is_member(self, user: &UserId) -> Result<bool, StoreError> {
        let query = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .select(Select::Count)
            .key_condition_expression("pk = :pk AND begins_with(sk, :member)")
            .expression_attribute_values(":pk", s(user_partition(user)))
            .expression_attribute_values(":member", s("member#"));
        Ok(query.send().await?.count > 0)
    }

    /// Stores a sign-in.
    pub async fn put_sign_in(self, pending: &PendingSignIn) -> Result<(), StoreError> {
        let mut stored = item_at(
            sign_in_key(&pending.digest),
            [
                ("user", s(&pending.user)),
                ("endsAt", n(pending.expires_at.as_millis())),
                ("expiresAt", n(pending.expires_at.as_seconds())),
                ("attempts", n(pending.attempts)),
            ],
        );
        let optional = [
            ("organization", pending.organization.as_ref().map(s)),
            ("invitationId", pending.invitation.map(s)),
            ("browser", pending.binding.as_ref().map(|binding| s(&binding.browser))),
            ("codeHash", pending.binding.as_ref().map(|binding| b(&binding.code.0))),
        ];
        for (attribute, value) in optional {
            stored.extend(value.map(|value| (attribute.to_owned(), value)));
        }
        self.db.put_unless_there(TABLE, "pk", stored).await
    }

    /// Returns the sign-in of a token, if it is open at `now`.
    pub async fn find_sign_in(
        self,
        digest: &SecretDigest,
        now: Timestamp,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let found = self.db.get(TABLE, sign_in_key(digest)).await?;
        let pending = found.as_ref().map(read_sign_in).transpose()?;
        Ok(pending.filter(|pending| pending.is_open(now)))
    }

    /// Counts an attempt at a code, before the code is compared. Returns `false` if the link is
    /// used or has no attempts left. Concurrent attempts count each.
    pub async fn take_attempt(self, digest: &SecretDigest) -> Result<bool, StoreError> {
        let update = self
            .db
            .update(TABLE, sign_in_key(digest))
            .condition_expression("attribute_exists(pk) AND attempts < :most")
            .update_expression("SET attempts = attempts + :one")
            .expression_attribute_values(":most", n(MAX_ATTEMPTS))
            .expression_attribute_values(":one", n(1));
        self.db.write_if(update).await
    }

    /// Returns the action that uses up a token. It fails if the token was used.
    pub fn use_sign_in(self, digest: &SecretDigest) -> Result<TransactWriteItem, StoreError> {
        let delete = self.db.delete(TABLE, sign_in_key(digest));
        delete.condition_expression("attribute_exists(pk)").into_action()
    }

    /// Returns the action that stores a session.
    pub fn put_session(self, session: &Session) -> Result<TransactWriteItem, StoreError> {
        let put = self.db.put(TABLE, write_session(session));
        put.condition_expression("attribute_not_exists(pk)").into_action()
    }

    /// Returns the action that ends a session in favor of another. It fails if the session ended.
    pub fn replace_session(self, session: &Session) -> Result<TransactWriteItem, StoreError> {
        let delete = self.db.delete(TABLE, session_key(&session.digest));
        delete.condition_expression("attribute_exists(pk)").into_action()
    }

    /// Stores a session of a member, in a transaction with more actions. Returns `false` if a
    /// condition failed: the membership ended, or a token or session was used concurrently.
    pub async fn start_session(
        self,
        session: &Session,
        member: &Member,
        more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let mut transaction = Transaction::from(more);
        transaction.add("session", self.put_session(session)?)?;
        let check = self
            .db
            .check(TABLE, member_key(&member.user, &member.organization))
            .condition_expression("memberId = :id")
            .expression_attribute_values(":id", s(member.id));
        transaction.add("member", check)?;
        Ok(self.db.commit_all(transaction).await?.is_none())
    }

    /// Ends a session, and all sessions of its user if `everywhere`.
    pub async fn end_session(
        self,
        session: &Session,
        everywhere: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut transaction = Transaction::default();
        transaction.add("session", self.db.delete(TABLE, session_key(&session.digest)))?;
        if everywhere {
            let update = self
                .db
                .update(TABLE, account_key(&session.user))
                .update_expression("SET signedOutAt = :now")
                .expression_attribute_values(":now", n(now.as_millis()));
            transaction.add("account", update)?;
        }
        match self.db.commit_all(transaction).await? {
            None => Ok(()),
            Some(cancelled) => Err(cancelled.into_error()),
        }
    }

    /// Queues a sign-in email, or writes an equal item that is not sent.
    pub async fn queue_sign_in(
        self,
        id: Uuid,
        user: &UserId,
        from: &RequestedFrom,
        is_sent: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut stored = item_at(
            email_key(if is_sent { QUEUE } else { NO_QUEUE }, id, now),
            [
                ("kind", s("sign_in")),
                ("user", s(user)),
                ("browser", s(&from.browser)),
                ("createdAt", n(now.as_millis())),
                ("expiresAt", n(now.plus(LINK_LIFETIME).as_seconds())),
            ],
        );
        let optional = [("userAgent", &from.user_agent), ("place", &from.place)];
        for (attribute, value) in optional {
            stored.extend(value.as_ref().map(|value| (attribute.to_owned(), s(value))));
        }
        self.db.put_unless_there(TABLE, "pk", stored).await
    }

    /// Returns the action that queues the email of an invitation.
    pub fn queue_invitation_email(
        self,
        invitation: &Invitation,
    ) -> Result<TransactWriteItem, StoreError> {
        let now = invitation.created_at;
        let stored = item_at(
            email_key(QUEUE, invitation.id, now),
            [
                ("kind", s("invitation")),
                ("user", s(&invitation.user)),
                ("invitationId", s(invitation.id)),
                ("createdAt", n(now.as_millis())),
                ("expiresAt", n(now.plus(INVITATION_WAIT).as_seconds())),
            ],
        );
        self.db.put(TABLE, stored).into_action()
    }

    /// Returns the oldest emails to send. Strongly consistent.
    pub async fn waiting_emails(self, now: Timestamp) -> Result<Vec<EmailJob>, StoreError> {
        let query = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(QUEUE))
            .limit(EMAILS_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        let mut jobs: Vec<EmailJob> = self.db.undamaged(&items, read_email_job)?;
        jobs.retain(|job| now < job.expires_at);
        Ok(jobs)
    }

    /// Claims an email for this invocation. Returns `false` if another one sends or sent it.
    pub async fn claim_email(self, job: &EmailJob, now: Timestamp) -> Result<bool, StoreError> {
        let update = self
            .db
            .update(TABLE, key(QUEUE, &job.position))
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(claimedUntil) OR claimedUntil < :now)",
            )
            .update_expression("SET claimedUntil = :until")
            .expression_attribute_values(":now", n(now.as_millis()))
            .expression_attribute_values(":until", n(now.plus(CLAIM).as_millis()));
        self.db.write_if(update).await
    }

    /// Deletes an email that was sent, or will not be.
    pub async fn delete_email(self, job: &EmailJob) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![key(QUEUE, &job.position)]).await
    }

    /// Stores an OpenID Connect sign-in.
    pub async fn put_oidc_sign_in(self, started: &OidcSignIn) -> Result<(), StoreError> {
        let stored = item_at(
            oidc_key(&started.state),
            [
                ("browser", s(&started.browser)),
                ("nonce", s(&started.nonce)),
                ("verifier", s(&started.verifier)),
                ("endsAt", n(started.expires_at.as_millis())),
                ("expiresAt", n(started.expires_at.as_seconds())),
            ],
        );
        self.db.put_unless_there(TABLE, "pk", stored).await
    }

    /// Takes the OpenID Connect sign-in of a state. Returns `None` if it is unknown, expired or
    /// was taken, also by a concurrent request.
    pub async fn take_oidc_sign_in(
        self,
        state: &SecretDigest,
        now: Timestamp,
    ) -> Result<Option<OidcSignIn>, StoreError> {
        let Some(found) = self.db.get(TABLE, oidc_key(state)).await? else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item: &found };
        let started = OidcSignIn {
            state: state.clone(),
            browser: reader.parsed("browser", SecretDigest::parse)?,
            nonce: reader.text("nonce")?.to_owned(),
            verifier: reader.text("verifier")?.to_owned(),
            expires_at: reader.millis("endsAt")?,
        };
        let delete = self.db.delete(TABLE, oidc_key(state));
        let is_taken =
            self.db.write_if(delete.condition_expression("attribute_exists(pk)")).await?;
        Ok((is_taken && now < started.expires_at).then_some(started))
    }
}

fn sign_in_key(digest: &SecretDigest) -> Item {
    key(&format!("sign-in#{digest}"), "sign-in")
}

fn oidc_key(state: &SecretDigest) -> Item {
    key(&format!("oidc#{state}"), "oidc")
}

fn email_key(partition: &str, id: impl Display, now: Timestamp) -> Item {
    key(partition, &format!("{}#{id}", time_key(now)))
}

fn read_sign_in(item: &Item) -> Result<PendingSignIn, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let browser = reader.optional_parsed("browser", SecretDigest::parse)?;
    let binding = browser
        .map(|browser| {
            Ok::<_, StoreError>(Binding { browser, code: CodeHash(reader.bytes("codeHash")?) })
        })
        .transpose()?;
    Ok(PendingSignIn {
        digest: reader.parsed("pk", |text| SecretDigest::parse(text.strip_prefix("sign-in#")?))?,
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        organization: reader
            .optional_parsed("organization", |text| Organization::parse(text).ok())?,
        invitation: reader.optional_parsed("invitationId", InvitationId::parse)?,
        binding,
        expires_at: reader.millis("endsAt")?,
        attempts: reader.small_count("attempts")?,
    })
}

fn read_email_job(item: &Item) -> Result<EmailJob, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let kind = match reader.text("kind")? {
        "sign_in" => EmailKind::SignIn(RequestedFrom {
            browser: reader.parsed("browser", SecretDigest::parse)?,
            user_agent: reader.optional_text("userAgent")?.map(str::to_owned),
            place: reader.optional_text("place")?.map(str::to_owned),
        }),
        "invitation" => EmailKind::Invitation(reader.parsed("invitationId", InvitationId::parse)?),
        _ => return Err(reader.damaged("kind")),
    };
    Ok(EmailJob {
        position: reader.text("sk")?.to_owned(),
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        kind,
        created_at: reader.millis("createdAt")?,
        expires_at: Timestamp::from_millis(
            reader.optional_integer("expiresAt")?.unwrap_or_default().saturating_mul(1_000),
        ),
    })
}
