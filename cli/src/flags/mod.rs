//! `waymark flags`: exports a project's flags to a file, and imports them.

mod apply;
mod audit;
mod comparison;
pub(crate) mod conflict;
pub(crate) mod document;
mod export;
mod file;
mod import;
mod plan;
mod planned;
mod segments;

use clap::{Args, Subcommand, ValueEnum};
use file::{Destination, Source};

use flags::flagd::GENERAL_DIFFERENCES;
use flags::store::{FlagStore, ListedFlags};
use flags::{FeatureFlag, Segment};
use shared::dynamodb::Store;
use shared::page::{PageRequest, all_pages};
use shared::projects::project::{IdOrSlug, ProjectId};

use crate::error::CliError;
use crate::output::Output;
use crate::project::parse_id_or_slug;

#[derive(Debug, Subcommand)]
pub(crate) enum FlagsCommand {
    /// Write a project's flags and segments as JSON.
    #[command(after_long_help = differences_of_flagd())]
    Export(ExportOptions),
    /// Compare a file with a project's flags, and with --apply write the differences.
    ///
    /// Creates flags and segments that the project lacks, and changes those that differ, if an
    /// update through the API could. Deletes nothing. Without --apply, nothing is written. An
    /// interrupted import resumes when it is run again.
    Import(ImportOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The project.
    #[arg(long, value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    project: IdOrSlug,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Waymark)]
    format: Format,
    /// File to write, in one piece [default: standard output].
    #[arg(long, value_name = "FILE")]
    output: Option<Destination>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// All flags, including archived ones, and all segments. `waymark flags import` reads this
    /// format.
    Waymark,
    /// A flagd flag definition document, without archived flags and with segments as `$evaluators`.
    /// Features that flagd does not support are left out and reported on standard error.
    Flagd,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// File written by `waymark flags export`; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: Source,
    /// Project to import into. It can differ from the exported project.
    #[arg(long, value_name = "SLUG_OR_ID", value_parser = parse_id_or_slug)]
    project: IdOrSlug,
    /// Apply the changes that are shown.
    #[arg(long)]
    apply: bool,
    /// Archive flags of the project that are not in the file.
    #[arg(long)]
    archive_missing: bool,
}

fn differences_of_flagd() -> String {
    let differences = GENERAL_DIFFERENCES.map(|difference| format!("- {difference}\n"));
    format!("Differences of flagd that affect all flags:\n{}", differences.concat())
}

/// Runs the command.
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

async fn all_flags(
    project: ProjectId,
    listed: ListedFlags,
    store: &Store,
) -> Result<Vec<FeatureFlag>, CliError> {
    let flags = FlagStore::new(store);
    let read = async |request: &PageRequest| flags.list_flags(project, listed, request).await;
    Ok(all_pages(usize::MAX, read).await?)
}

async fn all_segments(project: ProjectId, store: &Store) -> Result<Vec<Segment>, CliError> {
    let flags = FlagStore::new(store);
    let read = async |request: &PageRequest| flags.list_segments(project, request).await;
    Ok(all_pages(usize::MAX, read).await?)
}
