//! `waymark invitation`: creates, lists and revokes invitations to organizations.

use clap::Subcommand;

use people::store::PeopleStore;
use people::{Invitation, InvitationId};
use shared::app::{Clock, Ids};
use shared::audit::{AuditAction, AuditTarget};
use shared::dynamodb::Store;
use shared::page::{PageRequest, all_pages};
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::projects::role::Role;

use crate::error::{CliError, require_done};
use crate::member::{Place, entry, parse_email};
use crate::output::{Output, card, minute, note, table};

#[derive(Debug, Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite a person by email. The link in the email is valid for 7 days.
    Create {
        /// Email address of the person.
        #[arg(value_name = "EMAIL", value_parser = parse_email)]
        user: UserId,
        /// Role of the new member: viewer, member, admin or owner.
        #[arg(long)]
        role: Role,
        /// User who invites, as the email names it.
        #[arg(long, default_value = "owner", value_parser = UserId::parse)]
        by: UserId,
        #[command(flatten)]
        place: Place,
    },
    /// List the open invitations of an organization.
    List {
        /// The organization.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
    },
    /// Revoke an invitation. Its link ends immediately.
    Revoke {
        /// ID of the invitation, as listed by `waymark invitation list --json`.
        #[arg(value_parser = parse_id)]
        id: InvitationId,
    },
}

fn parse_id(text: &str) -> Result<InvitationId, String> {
    InvitationId::parse(text).ok_or_else(|| "an invitation is given by its UUID".to_owned())
}

/// Runs the command.
pub(crate) async fn run(
    command: InvitationCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        InvitationCommand::Create { user, role, by, place } => {
            create(user, role, by, &place, store, output).await
        }
        InvitationCommand::List { org } => list(&org, store, output).await,
        InvitationCommand::Revoke { id } => revoke(id, store, output).await,
    }
}

async fn create(
    user: UserId,
    role: Role,
    by: UserId,
    place: &Place,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let grant = place.grant(role, store).await?;
    let now = Clock::System.now();
    let id = InvitationId::new(Ids::Random.new_uuid(now));
    let invitation = Invitation::new(id, place.org.clone(), user.clone(), grant, by, now);
    let people = PeopleStore::new(store);
    let target = AuditTarget::new("invitation", id, user.as_str());
    let entry = entry(&place.org, AuditAction::InvitationCreated, target);
    let more = vec![store.audit(&entry)?, people.queue_invitation_email(&invitation)?];
    let change = people.create_invitation(&invitation, None, more, None).await?;
    require_done(&change, &user)?;
    note("The email is sent within a minute, if the stack sends email.");
    let text = card([
        ("id", id.to_string()),
        ("email", user.to_string()),
        ("organization", place.org.to_string()),
        ("role", role.to_string()),
        ("expires", minute(invitation.expires_at)),
    ]);
    Ok(output.show(&invitation, &text)?)
}

async fn list(org: &Organization, store: &Store, output: &Output) -> Result<(), CliError> {
    let (people, now) = (PeopleStore::new(store), Clock::System.now());
    let read = async |request: &PageRequest| people.list_invitations(org, request, now).await;
    let invitations = all_pages(usize::MAX, read).await?;
    if invitations.is_empty() && !output.is_json() {
        note(&format!("{org} has no open invitations."));
        return Ok(());
    }
    let rows = invitations.iter().map(|invitation| {
        [
            invitation.id.to_string(),
            invitation.user.to_string(),
            invitation.role.to_string(),
            invitation.invited_by.to_string(),
            minute(invitation.expires_at),
        ]
    });
    let text = table(["id", "email", "role", "invited by", "expires"], rows);
    Ok(output.show(&invitations, &text)?)
}

async fn revoke(id: InvitationId, store: &Store, output: &Output) -> Result<(), CliError> {
    let people = PeopleStore::new(store);
    let unknown = || CliError::UnknownInvitation(id);
    let invitation = people.find_invitation(id, Clock::System.now()).await?.ok_or_else(unknown)?;
    let target = AuditTarget::new("invitation", id, invitation.user.as_str());
    let entry = entry(&invitation.organization, AuditAction::InvitationRevoked, target);
    let more = vec![store.audit(&entry)?];
    let change = people.revoke_invitation(&invitation, None, more).await?;
    require_done(&change, &invitation.user)?;
    let text = format!("Revoked the invitation of {}.", invitation.user);
    Ok(output.show(&invitation, &text)?)
}
