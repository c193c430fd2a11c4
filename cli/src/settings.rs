//! `waymark settings`: shows and changes the limits of a project.

use clap::Subcommand;
use serde_json::{Map, Value};
use shared::audit::AuditAction;
use shared::dynamodb::Store;
use shared::projects::ingest_limits::IngestLimit;
use shared::projects::project::{IdOrSlug, Project, ProjectPatch};
use shared::projects::store::IngestAccess;

use crate::error::CliError;
use crate::output::{Output, note, table};
use crate::project::{audit, find, parse_id_or_slug};

/// The limits of [`ProjectPatch`].
const EVENTS: &str = "eventsPerMinute";
const REQUESTS: &str = "requestsPerMinute";

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the limits of a project.
    Show {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
    },
    /// Change limits of a project. They take effect within 60 seconds.
    Set {
        /// Id or slug of the project.
        #[arg(value_parser = parse_id_or_slug)]
        project: IdOrSlug,
        /// Limits, such as `replaysPerMinute=500`; 0: no limit; `default`: the stack's parameter.
        #[arg(required = true, value_name = "NAME=N", value_parser = parse_setting)]
        settings: Vec<Setting>,
    },
}

/// A changed limit; `None` is the stack's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    name: &'static str,
    value: Option<u32>,
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    let of_ingestion = IngestLimit::ALL.map(|limit| (limit.as_str(), limit.range()));
    let others = [EVENTS, REQUESTS].map(|name| (name, 0..=u32::MAX));
    let known: Vec<_> = others.into_iter().chain(of_ingestion).collect();
    let (given, value) = text.split_once('=').unwrap_or((text, ""));
    let Some((name, range)) = known.iter().find(|(name, _)| *name == given) else {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        return Err(format!("the limits are {}", names.join(", ")));
    };
    let value = if value == "default" {
        None
    } else {
        let number = value.parse().ok().filter(|number| range.contains(number));
        Some(number.ok_or_else(|| {
            let (first, last) = (range.start(), range.end());
            format!("{name} is a whole number from {first} to {last}, or `default`")
        })?)
    };
    Ok(Setting { name, value })
}

/// Runs the command.
pub(crate) async fn run(
    command: SettingsCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let (SettingsCommand::Show { project: named } | SettingsCommand::Set { project: named, .. }) =
        &command;
    let project = find(named, store).await?;
    if let SettingsCommand::Set { settings, .. } = &command {
        set(&project, settings, store).await?;
        note("The limits take effect within 60 seconds.");
    }
    show(&find(named, store).await?, store, output).await
}

/// Changes limits. The last of several values of a limit counts.
async fn set(project: &Project, settings: &[Setting], store: &Store) -> Result<(), CliError> {
    let of = |name| settings.iter().rfind(|it| it.name == name).map(|it| it.value);
    let entry = || store.audit(&audit(project, AuditAction::ProjectUpdated));
    let unknown = || CliError::UnknownProject(IdOrSlug::Id(project.id));
    let patch = ProjectPatch {
        events_per_minute: of(EVENTS),
        requests_per_minute: of(REQUESTS),
        ..ProjectPatch::default()
    };
    if patch != ProjectPatch::default()
        && !store.update_project(project, &patch, vec![entry()?]).await?
    {
        return Err(unknown());
    }
    let of_ingestion = IngestLimit::ALL.into_iter();
    let of_ingestion = of_ingestion.filter_map(|limit| Some((limit, of(limit.as_str())?)));
    let of_ingestion: Vec<_> = of_ingestion.collect();
    if !of_ingestion.is_empty()
        && !store.set_ingest_limits(project, &of_ingestion, vec![entry()?]).await?
    {
        return Err(unknown());
    }
    Ok(())
}

async fn show(project: &Project, store: &Store, output: &Output) -> Result<(), CliError> {
    let access = store.find_ingest_access(project.ingest_id).await?;
    let IngestAccess { limits: of_ingestion, .. } =
        access.ok_or_else(|| CliError::UnknownProject(IdOrSlug::Id(project.id)))?;
    let limits = project.limits;
    let others = [(EVENTS, limits.events_per_minute), (REQUESTS, limits.requests_per_minute)];
    let of_ingestion = IngestLimit::ALL.map(|limit| (limit.as_str(), of_ingestion.get(limit)));
    let all: Vec<_> = others.into_iter().chain(of_ingestion).collect();
    let text = |value: Option<u32>| match value {
        None => "default".to_owned(),
        Some(0) => "no limit".to_owned(),
        Some(value) => value.to_string(),
    };
    let rows = all.iter().map(|(name, value)| [(*name).to_owned(), text(*value)]);
    let rows = table(["limit", "value"], rows);
    let all: Map<String, Value> =
        all.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    Ok(output.show(&all, &rows)?)
}
