//! `waymark project`: creates, lists, changes and deletes projects, and replaces their DSN keys.

use clap::Subcommand;
use markers::store::MarkerStore;
use serde::Serialize;
use shared::app::{Clock, Ids};
use shared::audit::{AuditAction, AuditEntry, AuditTarget};
use shared::dynamodb::Store;
use shared::projects::dsn::PublicKey;
use shared::projects::limits::Limit;
use shared::projects::project::{
    IdOrSlug, NotASlug, Organization, Project, ProjectId, ProjectName, ProjectPatch, Slug,
};
use shared::projects::store::ProjectCreation;

use crate::erasure::{EraseOptions, erase_project};
use crate::error::CliError;
use crate::member::entry;
use crate::output::{Output, card, minute, note, table};
use crate::settings::{Setting, parse_limit, set_project};

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// Create a project.
    Create {
        /// Display name.
        #[arg(long, value_parser = ProjectName::parse)]
        name: ProjectName,
        /// Unique name in paths, such as `my-shop`.
        #[arg(long, value_parser = Slug::parse)]
        slug: Slug,
        /// Organization that owns the project.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
    },
    /// List the projects of all organizations, oldest first.
    List,
    /// Permanently delete a project and all its data. The project rejects requests immediately; its
    /// data is removed in the background (docs/erasure.md).
    Delete {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
        /// Organization of a project that no longer exists.
        #[arg(
            long, requires = "even_if_unknown", default_value = "default",
            value_parser = Organization::parse
        )]
        org: Organization,
        #[command(flatten)]
        consent: EraseOptions,
    },
    /// Limit the error events or requests per minute of a project, like `waymark settings set`.
    SetLimit {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
        /// Events per minute; 0: no limit; `default`: the limit of all projects.
        #[arg(
            long, value_name = "N", required_unless_present = "requests_per_minute",
            value_parser = |text: &str| parse_setting_of(Limit::EventsPerMinute, text)
        )]
        events_per_minute: Option<Setting>,
        /// Requests per minute of each API key; 0: no limit; `default`: the limit of all projects.
        #[arg(
            long, value_name = "N",
            value_parser = |text: &str| parse_setting_of(Limit::RequestsPerMinute, text)
        )]
        requests_per_minute: Option<Setting>,
    },
    /// Change the display name of a project.
    Rename {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
        /// New display name.
        #[arg(long, value_parser = ProjectName::parse)]
        name: ProjectName,
    },
    /// Replace a project's DSN key. Errors with the old DSN are rejected within 60 seconds.
    RotateDsnKey {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
    },
}

/// A project in the JSON output. `dsn` is `null` if the address of the API is unknown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'p> {
    #[serde(flatten)]
    project: &'p Project,
    dsn: Option<String>,
}

impl<'p> Shown<'p> {
    fn new(project: &'p Project, base_url: Option<&str>) -> Self {
        let dsn = base_url.map(|base_url| project.dsn(base_url).to_string());
        Self { project, dsn }
    }
}

/// Placeholder for an unknown API address in a DSN.
const UNKNOWN_BASE_URL: &str = "https://HOST";

/// Parses an argument that names a project.
pub(crate) fn parse_id_or_slug(text: &str) -> Result<IdOrSlug, String> {
    let named = IdOrSlug::parse(text);
    named.ok_or_else(|| format!("a project is given by its UUID or its slug; {NotASlug}"))
}

fn parse_setting_of(limit: Limit, text: &str) -> Result<Setting, String> {
    parse_limit(limit, text).map(|value| Setting::Limit(limit, value))
}

/// Runs the command.
pub(crate) async fn run(
    command: ProjectCommand,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        ProjectCommand::Create { name, slug, org } => {
            let now = Clock::System.now();
            let id = ProjectId::new(Ids::Random.new_uuid(now));
            let project = Project::new(id, slug, name, org, now)?;
            create(&project, store, base_url, output).await
        }
        ProjectCommand::List => list(store, base_url, output).await,
        ProjectCommand::Delete { project, org, consent } => {
            erase_project(&project, &org, &consent, store, output).await
        }
        ProjectCommand::SetLimit { project, events_per_minute, requests_per_minute } => {
            let settings: Vec<Setting> =
                [events_per_minute, requests_per_minute].into_iter().flatten().collect();
            set_project(&project, &settings, store, output).await
        }
        ProjectCommand::Rename { project, name } => {
            let patch = ProjectPatch { name: Some(name), ..ProjectPatch::default() };
            let project = update(&project, &patch, store).await?;
            let (slug, name) = (project.slug.to_string(), project.name.as_str().to_owned());
            let text = card([("slug", slug), ("name", name)]);
            Ok(output.show(&Shown::new(&project, base_url), &text)?)
        }
        ProjectCommand::RotateDsnKey { project } => {
            rotate_dsn_key(&project, store, base_url, output).await
        }
    }
}

/// Returns the project with an id or slug.
pub(crate) async fn find(named: &IdOrSlug, store: &Store) -> Result<Project, CliError> {
    let unknown = || CliError::UnknownProject(named.clone());
    let id = store.find_project(named).await?.ok_or_else(unknown)?.id;
    store.read_project(id).await?.ok_or_else(unknown)
}

async fn create(
    project: &Project,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    let new_id = || Ids::Random.new_uuid(project.created_at);
    let mut more = MarkerStore::new(store).automatic_collections(project, new_id)?;
    more.push(store.audit(&audit(project, AuditAction::ProjectCreated))?);
    match store.create_project_with(project, more, None).await? {
        ProjectCreation::IngestIdTaken => Err(CliError::IngestIdTaken),
        ProjectCreation::SlugTaken => Err(CliError::SlugTaken(project.slug.clone())),
        ProjectCreation::Created | ProjectCreation::Replay(_) => {
            let text = card([
                ("slug", project.slug.to_string()),
                ("name", project.name.as_str().to_owned()),
                ("organization", project.organization.to_string()),
                ("id", project.id.to_string()),
                ("dsn", dsn(project, base_url)),
                ("created", minute(project.created_at)),
            ]);
            Ok(output.show(&Shown::new(project, base_url), &text)?)
        }
    }
}

/// Returns the entry of a change of a project by this command.
pub(crate) fn audit(project: &Project, action: AuditAction) -> AuditEntry {
    let target = AuditTarget::new("project", project.id, project.slug.as_str());
    entry(&project.organization, action, target)
}

/// Changes a project, and returns it.
pub(crate) async fn update(
    named: &IdOrSlug,
    patch: &ProjectPatch,
    store: &Store,
) -> Result<Project, CliError> {
    let project = find(named, store).await?;
    let entry = audit(&project, AuditAction::ProjectUpdated);
    if !store.update_project(&project, patch, vec![store.audit(&entry)?]).await? {
        return Err(CliError::UnknownProject(named.clone()));
    }
    Ok(patch.apply(&project))
}

async fn rotate_dsn_key(
    named: &IdOrSlug,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    let mut project = find(named, store).await?;
    let new = PublicKey::generate()?;
    let entry = audit(&project, AuditAction::ProjectUpdated);
    if !store.replace_dsn_key(&project, new, vec![store.audit(&entry)?]).await? {
        return Err(CliError::DsnKeyChanged);
    }
    project.public_key = new;
    let text = card([("slug", project.slug.to_string()), ("dsn", dsn(&project, base_url))]);
    note("Errors with the old DSN are rejected within 60 seconds: use the new DSN from now on.");
    Ok(output.show(&Shown::new(&project, base_url), &text)?)
}

/// Returns the DSN to print, and notes if the host is missing.
fn dsn(project: &Project, base_url: Option<&str>) -> String {
    if base_url.is_none() {
        note(
            "Replace HOST in the DSN with the host of the stack's output BaseUrl, or pass --base-url.",
        );
    }
    project.dsn(base_url.unwrap_or(UNKNOWN_BASE_URL)).to_string()
}

async fn list(store: &Store, base_url: Option<&str>, output: &Output) -> Result<(), CliError> {
    let projects = store.list_projects().await?;
    if projects.is_empty() && !output.is_json() {
        note("There are no projects yet; `waymark project create` creates one.");
        return Ok(());
    }
    let rows = projects.iter().map(|project| {
        [
            project.slug.to_string(),
            project.name.as_str().to_owned(),
            project.organization.to_string(),
            project.id.to_string(),
            minute(project.created_at),
        ]
    });
    let text = table(["slug", "name", "organization", "id", "created"], rows);
    let shown: Vec<_> = projects.iter().map(|project| Shown::new(project, base_url)).collect();
    Ok(output.show(&shown, &text)?)
}
