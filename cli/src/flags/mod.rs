//! `waymark flags`: takes the flags of a project out into a file, and brings them in from one.

mod apply;
mod comparison;
mod document;
mod export;
mod file;
mod import;
mod plan;
mod segments;

use clap::{Args, Subcommand, ValueEnum};
use file::{Destination, Source};

use flags::flagd::GENERAL_DIFFERENCES;
use flags::store::{FlagStore, ListedFlags};
use flags::{FeatureFlag, Segment};
use shared::dynamodb::Store;
use shared::page::PageRequest;
use shared::projects::project::{IdOrSlug, Project, ProjectId};

use crate::error::CliError;
use crate::output::Output;
use crate::project::parse_id_or_slug;

pub(crate) use document::DocumentError;
pub(crate) use plan::Conflicts;

/// How many flags are read at a time.
const PAGE: u32 = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum FlagsCommand {
    /// Write the flags of a project as JSON.
    #[command(after_long_help = differences_of_flagd())]
    Export(ExportOptions),
    /// Compare a file with the flags of a project, and with --apply make them alike.
    ///
    /// A flag or segment that the file has and the project has not is created; one that differs is
    /// changed, as far as an update through the API could; nothing is deleted. Without --apply nothing is
    /// written. An import that was interrupted goes on when it is run again.
    Import(ImportOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The project.
    #[arg(long, value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    project: IdOrSlug,
    /// The form of the flags.
    #[arg(long, value_enum, default_value_t = Format::Waymark)]
    format: Format,
    /// The file to write, in one piece [default: the standard output].
    #[arg(long, value_name = "FILE")]
    output: Option<Destination>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Everything about every flag, archived ones too, and every segment: what `waymark flags import`
    /// reads.
    Waymark,
    /// A flag definition document of flagd, without archived flags, segments as `$evaluators`. What flagd cannot express is
    /// left out, and reported on the standard error.
    Flagd,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// What `waymark flags export` has written; `-` is the standard input.
    #[arg(value_name = "FILE")]
    file: Source,
    /// The project to bring the flags into; it may be another than they come from.
    #[arg(long, value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    project: IdOrSlug,
    /// Make the changes that are shown.
    #[arg(long)]
    apply: bool,
    /// Archive the flags of the project that the file does not have.
    #[arg(long)]
    archive_missing: bool,
}

fn differences_of_flagd() -> String {
    let differences = GENERAL_DIFFERENCES.map(|difference| format!("- {difference}\n"));
    format!("How flagd differs, whatever the flag:\n{}", differences.concat())
}

/// Runs a command on the tables.
pub(crate) async fn run(
    command: FlagsCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        FlagsCommand::Export(options) => export::run(options, store).await,
        FlagsCommand::Import(options) => import::run(options, store, output).await,
    }
}

async fn find_project(name: &IdOrSlug, store: &Store) -> Result<Project, CliError> {
    let found = match store.find_project(name).await? {
        None => None,
        Some(identity) => store.read_project(identity.id).await?,
    };
    found.ok_or_else(|| CliError::UnknownProject(name.clone()))
}

async fn all_flags(
    project: ProjectId,
    listed: ListedFlags,
    store: &Store,
) -> Result<Vec<FeatureFlag>, CliError> {
    let mut flags = Vec::new();
    let mut after = None;
    loop {
        let page = FlagStore::new(store)
            .list_flags(project, listed, &PageRequest { limit: PAGE, after })
            .await?;
        flags.extend(page.items);
        after = page.end;
        if after.is_none() {
            return Ok(flags);
        }
    }
}

async fn all_segments(project: ProjectId, store: &Store) -> Result<Vec<Segment>, CliError> {
    let mut segments = Vec::new();
    let mut after = None;
    loop {
        let page = FlagStore::new(store)
            .list_segments(project, &PageRequest { limit: PAGE, after })
            .await?;
        segments.extend(page.items);
        after = page.end;
        if after.is_none() {
            return Ok(segments);
        }
    }
}
