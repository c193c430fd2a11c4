//! `waymark audit`: lists the changes in an organization.

use clap::Subcommand;

use shared::app::Clock;
use shared::dynamodb::Store;
use shared::page::{PageRequest, all_pages};
use shared::projects::project::Organization;

use crate::error::CliError;
use crate::output::{Output, minute, note, table};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List the changes in an organization and its sign-ins, newest first.
    List {
        /// The organization.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
        /// Maximum number of entries.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
}

/// Runs the command.
pub(crate) async fn run(
    command: AuditCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    let AuditCommand::List { org, limit } = command;
    let now = Clock::System.now();
    let read = async |request: &PageRequest| store.list_audit(&org, request, now).await;
    let mut entries = all_pages(limit, read).await?;
    entries.truncate(limit);
    if entries.is_empty() && !output.is_json() {
        note(&format!("{org} has no audit entries."));
        return Ok(());
    }
    let rows = entries.iter().map(|entry| {
        [
            minute(entry.at),
            entry.actor.name.clone(),
            entry.action.clone(),
            entry.target.name.clone(),
            entry.source.address.clone().unwrap_or_default(),
        ]
    });
    let text = table(["time", "author", "action", "target", "address"], rows);
    Ok(output.show(&entries, &text)?)
}
