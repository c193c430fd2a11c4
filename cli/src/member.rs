//! `waymark member`: adds, lists, changes and removes members of organizations.

use clap::{Args, Subcommand};
use serde::Serialize;

use people::sign_in::PendingSignIn;
use people::store::{PeopleChange, PeopleStore};
use people::{Grant, ListedMember, read_email};
use shared::app::{Clock, Ids};
use shared::audit::{AuditAction, AuditEntry, AuditTarget};
use shared::dynamodb::{ConflictRetry, Store};
use shared::page::{PageRequest, all_pages};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::{IdOrSlug, Organization};
use shared::projects::role::Role;
use shared::projects::store::UseOf;
use shared::timestamp::Timestamp;

use crate::error::{CliError, require_done};
use crate::key::find_projects;
use crate::output::{Output, card, minute, note, table};
use crate::project::parse_id_or_slug;

/// Members whose last uses are read at once.
const AT_ONCE: usize = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Add a member, or change an existing one, and print a link that signs the member in.
    Add {
        /// Email address of the member.
        #[arg(value_name = "EMAIL", value_parser = parse_email)]
        user: UserId,
        /// Role of the member: viewer, member, admin or owner.
        #[arg(long)]
        role: Role,
        #[command(flatten)]
        place: Place,
    },
    /// List the members of an organization.
    List {
        /// The organization.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
    },
    /// Change the role or projects of a member. Takes effect within 60 seconds.
    Update {
        /// Email address of the member.
        #[arg(value_name = "EMAIL", value_parser = parse_email)]
        user: UserId,
        /// New role: viewer, member, admin or owner [default: the current one].
        #[arg(long)]
        role: Option<Role>,
        #[command(flatten)]
        place: Place,
    },
    /// Remove a member. Sessions and keys of the member end within 60 seconds.
    Remove {
        /// Email address of the member.
        #[arg(value_name = "EMAIL", value_parser = parse_email)]
        user: UserId,
        /// The organization.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
    },
}

/// An organization, and the projects that someone can see.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The organization. It need not exist.
    #[arg(long, default_value = "default", value_parser = Organization::parse)]
    pub(crate) org: Organization,
    /// Project that the member can see; repeatable [default: all of the organization].
    #[arg(long = "project", value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    projects: Vec<IdOrSlug>,
}

impl Place {
    /// Returns the grant of a role for these projects.
    pub(crate) async fn grant(&self, role: Role, store: &Store) -> Result<Grant, CliError> {
        let projects = find_projects(&self.projects, &self.org, store).await?;
        Grant::new(role, projects).map_err(|_| CliError::LimitedRole(role))
    }
}

/// Parses the address of a user.
pub(crate) fn parse_email(text: &str) -> Result<UserId, String> {
    read_email(text).map_err(|error| error.message)
}

/// Returns the entry of a change by this command.
pub(crate) fn entry(org: &Organization, action: AuditAction, target: AuditTarget) -> AuditEntry {
    let now = Clock::System.now();
    AuditEntry::of_command(Ids::Random.new_uuid(now), org.clone(), action, target, now)
}

/// Runs the command.
pub(crate) async fn run(
    command: MemberCommand,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        MemberCommand::Add { user, role, place } => {
            add(&user, role, &place, store, base_url, output).await
        }
        MemberCommand::List { org } => list(&org, store, output).await,
        MemberCommand::Update { user, role, place } => {
            let member = change(&user, role, &place, store).await?;
            note("Sessions and keys of the member change within 60 seconds.");
            show(&member, store, output).await
        }
        MemberCommand::Remove { user, org } => {
            let member = remove(&user, &org, store).await?;
            note("Sessions and keys of the member end within 60 seconds.");
            let text = format!("Removed {user} from {org}.");
            Ok(output.show(&ListedMember::new(&member, None), &text)?)
        }
    }
}

/// A new link in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Added<'a> {
    member: ListedMember<'a>,
    sign_in: &'a str,
    expires_at: Timestamp,
}

async fn add(
    user: &UserId,
    role: Role,
    place: &Place,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    let member = ensure(user, role, place, store).await?;
    let (link, expires_at) = sign_in_link(&member, base_url, store).await?;
    let added = Added { member: ListedMember::new(&member, None), sign_in: &link, expires_at };
    if !output.is_json() {
        note(&format!("{user} is {role} of {}.", place.org));
        if base_url.is_none() {
            note(
                "Replace HOST in the link with the host of the stack's output BaseUrl, or pass --base-url.",
            );
        }
    }
    output.show(&added, &link)?;
    note(&format!("The link signs in {user} once, until {}.", minute(expires_at)));
    Ok(())
}

/// Returns a link that signs a member in, and its expiry.
async fn sign_in_link(
    member: &Member,
    base_url: Option<&str>,
    store: &Store,
) -> Result<(String, Timestamp), CliError> {
    let now = Clock::System.now();
    let (user, organization) = (member.user.clone(), member.organization.clone());
    let (pending, token) = PendingSignIn::by_command(user, organization, now)?;
    PeopleStore::new(store).put_sign_in(&pending).await?;
    let base_url = base_url.unwrap_or("https://HOST").trim_end_matches('/');
    Ok((format!("{base_url}/console/sign-in#token={}", token.reveal()), pending.expires_at))
}

/// Adds a member, or gives an existing one the role and projects.
async fn ensure(
    user: &UserId,
    role: Role,
    place: &Place,
    store: &Store,
) -> Result<Member, CliError> {
    let Grant { role, projects } = place.grant(role, store).await?;
    let now = Clock::System.now();
    let member = Member {
        id: MemberId::new(Ids::Random.new_uuid(now)),
        organization: place.org.clone(),
        user: user.clone(),
        role,
        projects,
        joined_at: now,
        version: 1,
    };
    let target = AuditTarget::new("member", member.id, user.as_str());
    let entry = entry(&place.org, AuditAction::MemberAdded, target);
    match PeopleStore::new(store).add_member(&member, vec![store.audit(&entry)?]).await? {
        PeopleChange::Done => Ok(member),
        _ => change(user, Some(role), place, store).await,
    }
}

/// Changes a member, and returns it.
async fn change(
    user: &UserId,
    role: Option<Role>,
    place: &Place,
    store: &Store,
) -> Result<Member, CliError> {
    let people = PeopleStore::new(store);
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        let stored = find(user, &place.org, store).await?;
        let grant = place.grant(role.unwrap_or(stored.role), store).await?;
        let Grant { role, projects } = grant.clone();
        let member = Member { role, projects, ..stored.clone() };
        if member == stored {
            return Ok(member);
        }
        let target = AuditTarget::new("member", stored.id, user.as_str());
        let entry = entry(&place.org, AuditAction::MemberUpdated, target);
        let more = vec![store.audit(&entry)?];
        let now = Clock::System.now();
        let change = people.change_member(&stored, &grant, None, more, now).await?;
        if change != PeopleChange::Outdated {
            return require_done(&change, user).map(|()| member);
        }
    }
    Err(CliError::MemberChanged)
}

/// Removes a member, and returns it.
pub(crate) async fn remove(
    user: &UserId,
    org: &Organization,
    store: &Store,
) -> Result<Member, CliError> {
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        let stored = find(user, org, store).await?;
        let target = AuditTarget::new("member", stored.id, user.as_str());
        let entry = entry(org, AuditAction::MemberRemoved, target);
        let more = vec![store.audit(&entry)?];
        let now = Clock::System.now();
        let change = PeopleStore::new(store).remove_member(&stored, None, more, now).await?;
        if change != PeopleChange::Outdated {
            return require_done(&change, user).map(|()| stored);
        }
    }
    Err(CliError::MemberChanged)
}

async fn find(user: &UserId, org: &Organization, store: &Store) -> Result<Member, CliError> {
    let found = PeopleStore::new(store).find_member_of(org, user).await?;
    found.ok_or_else(|| CliError::UnknownMember { user: user.clone(), organization: org.clone() })
}

async fn show(member: &Member, store: &Store, output: &Output) -> Result<(), CliError> {
    let used = UseOf::Member(member.id);
    let uses = store.last_uses(std::slice::from_ref(&used)).await?;
    let text = card([
        ("email", member.user.to_string()),
        ("organization", member.organization.to_string()),
        ("role", member.role.to_string()),
        ("projects", projects_of(member)),
    ]);
    Ok(output.show(&ListedMember::new(member, uses.get(&used).copied()), &text)?)
}

fn projects_of(member: &Member) -> String {
    let all = || "all".to_owned();
    member
        .projects
        .as_ref()
        .map_or_else(all, |ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

async fn list(org: &Organization, store: &Store, output: &Output) -> Result<(), CliError> {
    let people = PeopleStore::new(store);
    let members = all_pages(usize::MAX, async |request: &PageRequest| {
        people.list_members(org, request).await
    })
    .await?;
    if members.is_empty() && !output.is_json() {
        note(&format!("{org} has no members yet; `waymark member add` adds one."));
        return Ok(());
    }
    let mut seen = std::collections::HashMap::new();
    for members in members.chunks(AT_ONCE) {
        let uses: Vec<UseOf> = members.iter().map(|member| UseOf::Member(member.id)).collect();
        seen.extend(store.last_uses(&uses).await?);
    }
    let last_seen = |member: &Member| seen.get(&UseOf::Member(member.id)).copied();
    let rows = members.iter().map(|member| {
        [
            member.user.to_string(),
            member.role.to_string(),
            projects_of(member),
            minute(member.joined_at),
            last_seen(member).map_or("never".to_owned(), minute),
        ]
    });
    let text = table(["email", "role", "projects", "joined", "last seen"], rows);
    let shown: Vec<_> =
        members.iter().map(|member| ListedMember::new(member, last_seen(member))).collect();
    Ok(output.show(&shown, &text)?)
}
