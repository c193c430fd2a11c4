//! Commands that request and watch the erasure of a project or user.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use notifications::store::{NotificationStore, UserName};
use people::store::PeopleStore;
use shared::app::Clock;
use shared::audit::{AuditAction, AuditTarget};
use shared::dynamodb::Store;
use shared::projects::api_key::UserId;
use shared::projects::erasure::{Erasure, Stage, Subject};
use shared::projects::project::{IdOrSlug, Organization, ProjectId};
use shared::timestamp::Timestamp;

use crate::error::CliError;
use crate::member::{entry, remove};
use crate::output::{Output, card, minute, note, prompt, table};
use crate::project::audit;

/// Interval between progress checks with `--wait`.
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(crate) enum ErasureCommand {
    /// List the erasures in progress.
    List,
}

/// Options of commands that erase.
#[derive(Debug, Args)]
pub(crate) struct EraseOptions {
    /// Skip the confirmation.
    #[arg(long)]
    yes: bool,
    /// Report the progress until the erasure is complete, after 25 hours. Interrupting the command
    /// does not stop the erasure.
    #[arg(long)]
    wait: bool,
    /// Erase remaining data of a user or project that no longer exists, for example after a table
    /// restore brought the data back.
    #[arg(long)]
    pub(crate) even_if_unknown: bool,
}

/// An erasure in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'e> {
    subject: String,
    organization: &'e Organization,
    name: &'e str,
    requested_at: Timestamp,
    stage: Stage,
    not_before: Timestamp,
    removed: u64,
}

impl<'e> Shown<'e> {
    fn new(erasure: &'e Erasure) -> Self {
        Self {
            subject: erasure.subject.to_string(),
            organization: &erasure.organization,
            name: &erasure.name,
            requested_at: erasure.requested_at,
            stage: erasure.stage,
            not_before: erasure.not_before,
            removed: erasure.removed,
        }
    }
}

/// Runs the command.
pub(crate) async fn run(
    command: ErasureCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        ErasureCommand::List => list(store, output).await,
    }
}

/// Hides a project and requests its erasure. `organization` is used only if the project no longer
/// exists.
pub(crate) async fn erase_project(
    named: &IdOrSlug,
    organization: &Organization,
    consent: &EraseOptions,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let unknown = || CliError::UnknownProject(named.clone());
    let id = match (store.find_project(named).await?, named) {
        (Some(project), _) => project.id,
        (None, IdOrSlug::Id(id)) if consent.even_if_unknown => {
            return erase_rest_of_project(*id, organization, consent, store, output).await;
        }
        (None, IdOrSlug::Slug(slug)) if consent.even_if_unknown => {
            return Err(CliError::ErasedByIdOnly(slug.clone()));
        }
        (None, _) => return Err(unknown()),
    };
    let project = store.read_project(id).await?.ok_or_else(unknown)?;
    let slug = project.slug.to_string();
    let what = format!(
        "The project `{slug}` of {}, including all its flags, insights, markers, errors and events, will \
         be permanently deleted.",
        project.organization
    );
    confirm(&what, &slug, consent)?;
    let now = Clock::System.now();
    let entry = audit(&project, AuditAction::ProjectDeleted);
    if !store.erase_project_with(&project, now, vec![store.audit(&entry)?]).await? {
        return Err(unknown());
    }
    note("Requests to the project are rejected from now on; by warm functions within 60 seconds.");
    let subject = Subject::Project(id);
    report_start(&Erasure::new(subject, project.organization, slug, now), consent, store, output)
        .await
}

/// Requests the erasure of remaining data of a project that no longer exists.
async fn erase_rest_of_project(
    id: ProjectId,
    organization: &Organization,
    consent: &EraseOptions,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let name = id.to_string();
    let what = format!(
        "The project {name} no longer exists. Its remaining data in {organization} will be permanently deleted."
    );
    confirm(&what, &name, consent)?;
    let subject = Subject::Project(id);
    let now = Clock::System.now();
    let erasure = Erasure::new(subject, organization.clone(), name.clone(), now);
    if !store.erase_rest_of_project(id, &erasure).await? {
        return Err(CliError::BeingErased(format!("project `{name}`")));
    }
    report_start(&erasure, consent, store, output).await
}

/// Revokes a user's keys and requests the user's erasure.
pub(crate) async fn erase_user(
    user: &UserId,
    organization: &Organization,
    consent: &EraseOptions,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let keys = store.list_keys_of(organization, user).await?;
    let people = PeopleStore::new(store);
    let member = people.find_member_of(organization, user).await?;
    if keys.is_empty() && member.is_none() && !consent.even_if_unknown {
        reject_unknown_user(user, organization, store).await?;
    }
    let what = format!(
        "The user `{user}` of {organization}, including {} API keys, preferences and address, will be \
         permanently deleted.",
        keys.len()
    );
    confirm(&what, user.as_str(), consent)?;
    let now = Clock::System.now();
    // Removed and revoked first, so that neither session nor key acts for the user during the
    // erasure.
    if member.is_some() {
        remove(user, organization, store).await?;
    }
    for key in &keys {
        store.revoke_api_key(&key.key_id, now).await?;
    }
    let subject = Subject::User(organization.clone(), user.clone());
    let erasure = Erasure::new(subject, organization.clone(), user.to_string(), now);
    let target = AuditTarget::new("user", user, user.as_str());
    let entry = store.audit(&entry(organization, AuditAction::UserErased, target))?;
    if !store.erase_user(&erasure, vec![entry]).await? {
        return Err(CliError::BeingErased(format!("user `{user}`")));
    }
    if !keys.is_empty() {
        note("The user's keys are rejected within 60 seconds.");
    }
    report_start(&erasure, consent, store, output).await
}

/// Rejects a user without stored data, and suggests similar names. Otherwise a misspelled user
/// would seem to be erased.
async fn reject_unknown_user(
    user: &UserId,
    organization: &Organization,
    store: &Store,
) -> Result<(), CliError> {
    let name = UserName { organization: organization.clone(), user: user.clone() };
    if NotificationStore::new(store).find_address(&name).await?.is_stored()
        || NotificationStore::new(store).has_email_preferences(organization, user).await?
    {
        return Ok(());
    }
    let subject = Subject::User(organization.clone(), user.clone());
    if store.list_erasures().await?.iter().any(|erasure| erasure.subject == subject) {
        return Err(CliError::BeingErased(format!("user `{user}`")));
    }
    let keys = store.list_api_keys().await?;
    let others: BTreeSet<(String, String)> =
        keys.into_iter().map(|key| (key.user.to_string(), key.organization.to_string())).collect();
    let wanted = user.as_str().to_lowercase();
    let mut near: Vec<_> = others
        .iter()
        .map(|other| (strsim::osa_distance(&other.0.to_lowercase(), &wanted), other))
        .filter(|(distance, _)| *distance <= NEAR)
        .collect();
    near.sort();
    let near = near.iter().take(MOST_NEAR).map(|(_, (user, of))| format!("`{user}` of {of}"));
    let near: Vec<String> = near.collect();
    Err(CliError::UnknownUser {
        user: user.clone(),
        organization: organization.clone(),
        near: if near.is_empty() {
            String::new()
        } else {
            format!("; similar users: {}", near.join(", "))
        },
    })
}

/// Maximum edit distance of a suggested name, and maximum number of suggestions.
const NEAR: usize = 2;
const MOST_NEAR: usize = 3;

/// Prompts for the name, unless `--yes` is given.
fn confirm(what: &str, name: &str, consent: &EraseOptions) -> Result<(), CliError> {
    if consent.yes {
        return Ok(());
    }
    match prompt(&format!("{what}\nType `{name}` to continue: "))? {
        Some(line) if line == name => Ok(()),
        Some(_) => Err(CliError::NotConfirmed(format!("that is not `{name}`"))),
        None => Err(CliError::NotConfirmed(format!(
            "{what} Standard input is not a terminal; add --yes to confirm"
        ))),
    }
}

async fn report_start(
    erasure: &Erasure,
    consent: &EraseOptions,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let what = match &erasure.subject {
        // After a table restore, only the id still names the project.
        Subject::Project(id) => ("id", id.to_string()),
        Subject::User(_, user) => ("user", user.to_string()),
    };
    let text = card([
        ("erasing", erasure.name.clone()),
        what,
        ("organization", erasure.organization.to_string()),
        ("since", minute(erasure.requested_at)),
    ]);
    output.show(&Shown::new(erasure), &text)?;
    if !consent.wait {
        note("Keep a record of this: after restoring a table to an earlier time, erase it again.");
        note("The erasure continues in the background; `waymark erasure list` shows its progress.");
        return Ok(());
    }
    watch(&erasure.subject, store).await
}

/// Reports each change of progress until the erasure is complete.
async fn watch(subject: &Subject, store: &Store) -> Result<(), CliError> {
    let mut reported = None;
    loop {
        let erasures = store.list_erasures().await?;
        let Some(erasure) = erasures.into_iter().find(|erasure| erasure.subject == *subject) else {
            note("The erasure is complete.");
            return Ok(());
        };
        let progress = (erasure.stage, erasure.removed, erasure.not_before);
        if reported.replace(progress) != Some(progress) {
            note(&progress_of(&erasure, Clock::System.now()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn progress_of(erasure: &Erasure, now: Timestamp) -> String {
    let stage = erasure.stage.as_str().replace('_', " ");
    let waits = if erasure.not_before > now {
        format!(", waiting until {}", minute(erasure.not_before))
    } else {
        String::new()
    };
    format!("{stage}: {} items removed{waits}", erasure.removed)
}

async fn list(store: &Store, output: &Output) -> Result<(), CliError> {
    let erasures = store.list_erasures().await?;
    if erasures.is_empty() && !output.is_json() {
        note("No erasures are in progress.");
        return Ok(());
    }
    let rows = erasures.iter().map(|erasure| {
        let kind = match erasure.subject {
            Subject::Project(_) => "project",
            Subject::User(..) => "user",
        };
        [
            kind.to_owned(),
            erasure.name.clone(),
            erasure.organization.to_string(),
            minute(erasure.requested_at),
            erasure.stage.as_str().replace('_', " "),
            erasure.removed.to_string(),
            minute(erasure.not_before),
        ]
    });
    let names = ["kind", "name", "organization", "since", "stage", "removed", "continues"];
    let text = table(names, rows);
    let shown: Vec<Shown<'_>> = erasures.iter().map(Shown::new).collect();
    Ok(output.show(&shown, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_the_time_of_the_next_step() {
        let now = Timestamp::from_millis(1_795_234_560_000);
        let organization = Organization::parse("default").unwrap();
        let subject = Subject::User(organization.clone(), UserId::parse("mira").unwrap());
        let erasure = Erasure::new(subject, organization, "mira".to_owned(), now);
        assert_eq!(
            progress_of(&erasure, now),
            "settling: 0 items removed, waiting until 2026-11-21T04:19Z"
        );
        assert_eq!(progress_of(&erasure, erasure.not_before), "settling: 0 items removed");
    }
}
