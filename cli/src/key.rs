//! `waymark key`: creates, lists and revokes API keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;

use notifications::store::NotificationStore;
use people::read_key_name;
use people::store::PeopleStore;
use shared::app::Clock;
use shared::audit::{AuditAction, AuditEntry, AuditTarget};
use shared::dynamodb::Store;
use shared::projects::api_key::{ApiKey, ApiKeyRecord, KeyId, NotAScope, Scope, UserId};
use shared::projects::project::{IdOrSlug, Organization, ProjectId};
use shared::projects::store::Revocation;
use shared::timestamp::Timestamp;

use crate::error::CliError;
use crate::member::entry;
use crate::output::{Output, card, minute, note, prompt, table};
use crate::project::parse_id_or_slug;

/// Suggested lifetime of a key.
const YEAR: Duration = Duration::from_hours(365 * 24);

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key. It is shown only once.
    Create(NewKey),
    /// List the keys of all organizations, oldest first.
    List,
    /// Permanently revoke a key.
    Revoke {
        /// Key id, as listed by `waymark key list`.
        // Parsed later: clap would repeat a whole API key in its error.
        #[arg(value_name = "KEYID")]
        key_id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewKey {
    #[command(flatten)]
    grant: Grant,
    /// Name of the key, such as the program that uses it [default: none].
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,
    /// Expiry of the key [default: never].
    ///
    /// An RFC 3339 date-time, such as 2026-11-21T04:16:00Z, or a date, which means 00:00 UTC.
    #[arg(long, value_name = "DATE", value_parser = parse_expiry)]
    expires: Option<Timestamp>,
}

/// The user, scopes and projects of a key.
#[derive(Debug, Args)]
pub(crate) struct Grant {
    #[arg(
        long, value_name = "SCOPE,…", value_delimiter = ',', value_parser = parse_scopes,
        help = "Scopes of the key, or `all`",
        long_help = format!("Scopes of the key:\n{}\n- all", scope_names()),
    )]
    scopes: Vec<Scopes>,
    /// Project that the key can access; repeatable [default: all of its organization].
    #[arg(long = "project", value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    projects: Vec<IdOrSlug>,
    /// Organization that the key belongs to.
    #[arg(long, default_value = "default", value_parser = Organization::parse)]
    org: Organization,
    /// User that the key acts for, such as an email address.
    #[arg(long, default_value = "owner", value_parser = UserId::parse)]
    user: UserId,
}

impl Grant {
    /// Returns the given scopes, or `None` if there are none.
    pub(crate) fn scopes(&self) -> Option<BTreeSet<Scope>> {
        (!self.scopes.is_empty()).then(|| scopes_of(&self.scopes))
    }
}

fn scope_names() -> String {
    Scope::ALL.map(|scope| format!("- {scope}")).join("\n")
}

/// One scope, or all.
#[derive(Debug, Clone, Copy)]
enum Scopes {
    All,
    One(Scope),
}

fn parse_scopes(text: &str) -> Result<Scopes, NotAScope> {
    match text.trim() {
        "all" => Ok(Scopes::All),
        scope => scope.parse().map(Scopes::One),
    }
}

fn scopes_of(chosen: &[Scopes]) -> BTreeSet<Scope> {
    let scopes = chosen.iter().map(|scopes| match scopes {
        Scopes::All => Scope::of_keys(),
        Scopes::One(scope) => BTreeSet::from([*scope]),
    });
    scopes.flatten().collect()
}

/// Prompts for the scopes of a key.
///
/// # Errors
///
/// [`CliError::NoScopes`] if none is entered or standard input is not a terminal.
fn prompt_for_scopes() -> Result<BTreeSet<Scope>, CliError> {
    let missing = || CliError::NoScopes { scopes: scope_names() };
    let Some(line) = prompt(&format!(
        "Scopes of the key, separated by commas, or `all`:\n{}\n> ",
        scope_names()
    ))?
    else {
        return Err(missing());
    };
    let chosen = line.split(',').filter(|scope| !scope.trim().is_empty()).map(parse_scopes);
    let chosen: Vec<Scopes> = chosen.collect::<Result<_, _>>()?;
    if chosen.is_empty() { Err(missing()) } else { Ok(scopes_of(&chosen)) }
}

fn parse_name(text: &str) -> Result<String, String> {
    read_key_name(text).map_err(|error| error.message)
}

fn name_or_none(name: &str) -> String {
    if name.is_empty() { "none".to_owned() } else { name.to_owned() }
}

fn parse_expiry(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_date_or_date_time(text)
        .map_err(|error| format!("{error}, or a date, such as 2026-11-21"))
}

/// Runs the command.
pub(crate) async fn run(
    command: KeyCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let now = Clock::System.now();
    match command {
        KeyCommand::Create(options) => create(options, now, store, output).await,
        KeyCommand::List => list(now, store, output).await,
        KeyCommand::Revoke { key_id } => revoke(&parse_key_id(&key_id)?, now, store, output).await,
    }
}

/// A new key in the JSON output, the only one with the secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedKey<'k> {
    #[serde(flatten)]
    record: &'k ApiKeyRecord,
    api_key: &'k str,
}

async fn create(
    options: NewKey,
    now: Timestamp,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    if let Some(expires) = options.expires.filter(|expires| *expires <= now) {
        return Err(CliError::Expired { expires, now });
    }
    let scopes = options.grant.scopes().map_or_else(prompt_for_scopes, Ok)?;
    let name = options.name.unwrap_or_default();
    let (record, key) = issue(&options.grant, name, scopes, options.expires, now, store).await?;
    let api_key = key.reveal();
    if !output.is_json() {
        // Standard output has only the key, so that `KEY=$(waymark key create)` works.
        let card = card([
            ("key id", record.key_id.to_string()),
            ("name", name_or_none(&record.name)),
            ("user", record.user.to_string()),
            ("organization", record.organization.to_string()),
            ("scopes", scopes_or_all(&record.scopes, ", ")),
            ("projects", joined_or_all(&options.grant.projects)),
            ("expires", record.expires_at.map_or("never".to_owned(), minute)),
        ]);
        note(&format!("{card}\n"));
    }
    output
        .show(&CreatedKey { record: &record, api_key: &api_key }, &api_key)
        .map_err(|source| CliError::SecretLost { key_id: record.key_id.clone(), source })?;
    note("The API key is shown only once: store it in a safe place.");
    if record.expires_at.is_none() {
        let in_a_year = now.plus(YEAR).to_string();
        let date = in_a_year.split('T').next().unwrap_or_default();
        note(&format!("It never expires; --expires {date} would limit it to a year."));
    }
    Ok(())
}

/// Generates a key and stores its record.
pub(crate) async fn issue(
    grant: &Grant,
    name: String,
    scopes: BTreeSet<Scope>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
    store: &Store,
) -> Result<(ApiKeyRecord, ApiKey), CliError> {
    let projects = find_projects(&grant.projects, &grant.org, store).await?;
    let key = ApiKey::generate()?;
    let record = ApiKeyRecord {
        key_id: key.key_id().clone(),
        secret_hash: key.secret_hash(),
        organization: grant.org.clone(),
        user: grant.user.clone(),
        name,
        member: None,
        scopes,
        projects,
        created_at: now,
        expires_at,
        revoked_at: None,
    };
    let more = vec![store.audit(&audit(&record, AuditAction::ApiKeyCreated))?];
    NotificationStore::new(store).create_api_key(&record, None, more).await?;
    Ok((record, key))
}

/// Returns the entry of a change of a key by this command.
fn audit(key: &ApiKeyRecord, action: AuditAction) -> AuditEntry {
    entry(&key.organization, action, AuditTarget::new("api_key", &key.key_id, &key.name))
}

/// Returns the ids of the named projects, or `None` if no project is named. All must belong to the
/// organization.
pub(crate) async fn find_projects(
    names: &[IdOrSlug],
    organization: &Organization,
    store: &Store,
) -> Result<Option<BTreeSet<ProjectId>>, CliError> {
    let mut found = BTreeSet::new();
    let mut unknown = Vec::new();
    for name in names {
        match store.find_project(name).await? {
            Some(project) if project.organization == *organization => {
                found.insert(project.id);
            }
            _ => unknown.push(format!("`{name}`")),
        }
    }
    if !unknown.is_empty() {
        let organization = organization.clone();
        return Err(CliError::UnknownProjects { names: unknown.join(", "), organization });
    }
    Ok((!found.is_empty()).then_some(found))
}

async fn list(now: Timestamp, store: &Store, output: &Output) -> Result<(), CliError> {
    let mut keys = store.list_api_keys().await?;
    PeopleStore::new(store).end_with_members(&mut keys).await?;
    if output.is_json() {
        return Ok(output.show(&keys, "")?);
    }
    if keys.is_empty() {
        note("There are no API keys yet; `waymark key create` creates one.");
        return Ok(());
    }
    let slugs = if keys.iter().any(|key| key.projects.is_some()) {
        let projects = store.list_projects().await?;
        projects.into_iter().map(|project| (project.id, project.slug.to_string())).collect()
    } else {
        BTreeMap::new()
    };
    let slug = |id: &ProjectId| slugs.get(id).cloned().unwrap_or_else(|| id.to_string());
    let rows = keys.iter().map(|key| {
        let projects = key.projects.as_ref();
        [
            key.key_id.to_string(),
            name_or_none(&key.name),
            key.user.to_string(),
            key.organization.to_string(),
            scopes_or_all(&key.scopes, "\n"),
            projects.map_or("all".to_owned(), |ids| {
                ids.iter().map(slug).collect::<Vec<_>>().join("\n")
            }),
            minute(key.created_at),
            key.expires_at.map_or("never".to_owned(), minute),
            status(key, now).to_owned(),
        ]
    });
    let names = [
        "key id",
        "name",
        "user",
        "organization",
        "scopes",
        "projects",
        "created",
        "expires",
        "status",
    ];
    Ok(output.show(&keys, &table(names, rows))?)
}

fn status(key: &ApiKeyRecord, now: Timestamp) -> &'static str {
    if key.revoked_at.is_some() {
        "revoked"
    } else if key.expires_at.is_some_and(|expiry| expiry <= now) {
        "expired"
    } else {
        "active"
    }
}

fn parse_key_id(text: &str) -> Result<KeyId, CliError> {
    match (KeyId::parse(text), ApiKey::parse(text)) {
        (Some(key_id), _) => Ok(key_id),
        (None, Some(key)) => Err(CliError::WholeKey(key.key_id().clone())),
        (None, None) => Err(CliError::NotAKeyId),
    }
}

async fn revoke(
    key_id: &KeyId,
    now: Timestamp,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    if let Some(key) = store.find_api_key(key_id).await? {
        let entry = audit(&key, AuditAction::ApiKeyRevoked);
        // A key that is already revoked keeps its time.
        store.revoke_active_key(key_id, now, vec![store.audit(&entry)?]).await?;
    }
    match store.revoke_api_key(key_id, now).await? {
        Revocation::UnknownKey => Err(CliError::UnknownKey(key_id.clone())),
        Revocation::Revoked(record) => {
            let since = record.revoked_at.unwrap_or(now);
            let effect =
                if since == now { "; requests with it are rejected within 60 seconds" } else { "" };
            let text = format!("Key {key_id} was revoked at {since}{effect}.");
            Ok(output.show(&record, &text)?)
        }
    }
}

fn scopes_or_all(scopes: &BTreeSet<Scope>, separator: &str) -> String {
    if *scopes == Scope::of_keys() {
        return "all".to_owned();
    }
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(separator)
}

fn joined_or_all(names: &[impl Display]) -> String {
    if names.is_empty() { "all".to_owned() } else { joined(names) }
}

fn joined(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_key_id_and_never_repeats_anything_else() {
        let key = ApiKey::generate().unwrap();
        let key_id = key.key_id();
        assert_eq!(parse_key_id(key_id.as_str()).unwrap(), *key_id);

        let whole = key.reveal();
        let message = parse_key_id(&whole).unwrap_err().to_string();
        assert!(message.contains(&format!("revoke {key_id}")), "{message}");
        assert!(!message.contains(&whole[20..]), "{message}");

        let mistyped = &whole[..whole.len() - 1];
        for text in [mistyped, "", "AAAABBBBCCCC000", "AAAABBBBCCCC000-"] {
            let message = parse_key_id(text).unwrap_err().to_string();
            assert!(message.starts_with("this is not a key id"), "{message}");
            assert!(text.is_empty() || !message.contains(text), "{message}");
        }
    }

    #[test]
    fn all_scopes_are_given_to_who_says_so() {
        let scopes = |text: &str| scopes_of(&[parse_scopes(text).unwrap()]);
        assert_eq!(scopes("all"), Scope::of_keys());
        assert_eq!(scopes(" flags:read "), [Scope::FlagsRead].into());
        assert!(parse_scopes("everything").is_err());
    }

    #[test]
    fn a_key_expires_at_its_expiry_and_stays_revoked() {
        let now = Timestamp::from_millis(1_000);
        let at = |millis| Some(Timestamp::from_millis(millis));
        let status_of = |expires_at, revoked_at| {
            let key = ApiKey::generate().unwrap();
            let record = ApiKeyRecord {
                key_id: key.key_id().clone(),
                secret_hash: key.secret_hash(),
                organization: Organization::parse("default").unwrap(),
                user: UserId::parse("owner").unwrap(),
                name: String::new(),
                member: None,
                scopes: Scope::ALL.into(),
                projects: None,
                created_at: Timestamp::from_millis(0),
                expires_at,
                revoked_at,
            };
            status(&record, now)
        };
        assert_eq!(status_of(None, None), "active");
        assert_eq!(status_of(at(1_001), None), "active");
        assert_eq!(status_of(at(1_000), None), "expired");
        assert_eq!(status_of(at(1_000), at(900)), "revoked");
    }
}
