//! `waymark settings`: shows and changes the limits of a project, or of all projects together, and
//! whether a project serves users.

use clap::{Args, Subcommand};
use serde::Serialize;
use shared::dynamodb::Store;
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::{IdOrSlug, Project, ProjectPatch};

use crate::error::CliError;
use crate::output::{Output, note, table};
use crate::project::{find, parse_id_or_slug, update};

/// The setting of projects that serve users: the console confirms dangerous changes.
const PRODUCTION: &str = "production";

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show settings.
    Show(Target),
    /// Change settings. They take effect within 60 seconds.
    Set {
        #[command(flatten)]
        target: Target,
        /// Settings, such as `replaysPerMinute=500` or `production=true`.
        ///
        /// For limits per minute, 0 means no limit. `default` is the limit of all projects, or with
        /// --all-projects the stack's parameter.
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = parse_setting)]
        settings: Vec<Setting>,
    },
}

/// One project, or all projects without limits of their own.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Id or slug of the project.
    #[arg(long, value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    project: Option<IdOrSlug>,
    /// The limits of all projects without their own, and of requests outside projects.
    #[arg(long)]
    all_projects: bool,
}

/// A changed setting.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Setting {
    Limit(Limit, Option<u32>),
    Production(bool),
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if name == PRODUCTION {
        let value = value.parse().map_err(|_| format!("{PRODUCTION} is true or false"))?;
        return Ok(Setting::Production(value));
    }
    let Some(limit) = Limit::named(name) else {
        let limits = Limit::ALL.map(Limit::as_str).join(", ");
        return Err(format!("the settings are {limits} and {PRODUCTION}"));
    };
    Ok(Setting::Limit(limit, parse_limit(limit, value)?))
}

/// Parses the value of a limit. `None` is `default`.
pub(crate) fn parse_limit(limit: Limit, value: &str) -> Result<Option<u32>, String> {
    if value == "default" {
        return Ok(None);
    }
    let range = limit.range();
    value.parse().ok().filter(|number| range.contains(number)).map(Some).ok_or_else(|| {
        let (name, first, last) = (limit.as_str(), range.start(), range.end());
        format!("{name} is a whole number from {first} to {last}, or `default`")
    })
}

/// Runs the command.
pub(crate) async fn run(
    command: SettingsCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let (target, settings) = match command {
        SettingsCommand::Show(target) => (target, Vec::new()),
        SettingsCommand::Set { target, settings } => (target, settings),
    };
    match target.project {
        Some(project) => set_project(&project, &settings, store, output).await,
        None => set_all_projects(&settings, store, output).await,
    }
}

/// Changes settings of a project, and shows all. The last of several values counts.
pub(crate) async fn set_project(
    named: &IdOrSlug,
    settings: &[Setting],
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let mut patch = ProjectPatch::default();
    for setting in settings {
        match setting {
            Setting::Limit(limit, value) => drop(patch.limits.insert(*limit, *value)),
            Setting::Production(production) => patch.production = Some(*production),
        }
    }
    let project = if settings.is_empty() {
        find(named, store).await?
    } else {
        note("The settings take effect within 60 seconds.");
        update(named, &patch, store).await?
    };
    let Project { limits, production, .. } = project;
    show(limits, Some(production), output)
}

/// Changes the limits of all projects without their own, and shows all.
async fn set_all_projects(
    settings: &[Setting],
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let of_all = settings.iter().map(|setting| match setting {
        Setting::Limit(limit, value) => Ok((*limit, *value)),
        Setting::Production(_) => Err(CliError::SettingOfProject(PRODUCTION)),
    });
    let limits = of_all.collect::<Result<_, _>>()?;
    if !settings.is_empty() {
        store.set_stack_limits(&limits).await?;
        note("The settings take effect within 60 seconds.");
    }
    show(store.stack_limits().await?, None, output)
}

/// Settings in the JSON output.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    limits: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    production: Option<bool>,
}

fn show(limits: Limits, production: Option<bool>, output: &Output) -> Result<(), CliError> {
    let text = |value: Option<u32>| match value {
        None => "default".to_owned(),
        Some(0) => "no limit".to_owned(),
        Some(value) => value.to_string(),
    };
    let rows = Limit::ALL.map(|limit| [limit.as_str().to_owned(), text(limits.get(limit))]);
    let production_row = production.map(|it| [PRODUCTION.to_owned(), it.to_string()]);
    let rows = table(["setting", "value"], rows.into_iter().chain(production_row));
    Ok(output.show(&Shown { limits, production }, &rows)?)
}
