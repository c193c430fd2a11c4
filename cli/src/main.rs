//! The `waymark` command: manages members, projects, API keys and users, and exports and imports
//! flags. It uses the tables directly, in AWS or in the local stack, and so needs no API key.

mod audit;
mod connection;
mod console;
mod erasure;
mod error;
mod flags;
mod invitation;
mod key;
mod member;
mod output;
mod project;
mod settings;
mod user;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use audit::AuditCommand;
use connection::{Connection, ConnectionOptions};
use console::ConsoleOptions;
use erasure::ErasureCommand;
use error::CliError;
use flags::FlagsCommand;
use invitation::InvitationCommand;
use key::KeyCommand;
use member::MemberCommand;
use output::{Output, note};
use project::ProjectCommand;
use settings::SettingsCommand;
use user::UserCommand;

/// Manages Waymark projects, API keys and users, and exports and imports feature flags.
#[derive(Debug, Parser)]
#[command(name = "waymark", version, after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// Write JSON to the standard output.
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  waymark --local member add mira@example.com --role owner
  waymark --local project create --name 'My shop' --slug my-shop
  waymark --local key create --project my-shop --scopes flags:read,flags:evaluate
  waymark --local key list
  waymark --local console
  waymark --local flags export --project my-shop --output flags.json
  waymark --local flags import --project my-shop flags.json

Without --local, the region and credentials come from the sources of the AWS command line: AWS_REGION,
AWS_PROFILE, AWS_ACCESS_KEY_ID and so on. If only the AWS command line can obtain the credentials, export
them first:
  eval \"$(aws configure export-credentials --format env)\"";

#[derive(Debug, Subcommand)]
enum Command {
    /// Create, list, change and delete projects, and replace their DSN keys.
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Show and change the limits of a project or of all projects, and `production` of a project.
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Open the console in a browser, with an API key that expires in 8 hours.
    Console(ConsoleOptions),
    /// Add, list, change and remove members of organizations.
    #[command(subcommand)]
    Member(MemberCommand),
    /// Create, list and revoke invitations to organizations.
    #[command(subcommand)]
    Invitation(InvitationCommand),
    /// List the changes in an organization.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// List and erase users, and set their email addresses.
    #[command(subcommand)]
    User(UserCommand),
    /// Show the progress of project and user erasures.
    #[command(subcommand)]
    Erasure(ErasureCommand),
    /// Export and import a project's feature flags.
    #[command(subcommand)]
    Flags(FlagsCommand),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    let output = Output::new(options.json);
    match run(options, &output).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            note(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options, output: &Output) -> Result<(), String> {
    let connection =
        Connection::open(&options.connection).await.map_err(|error| error.to_string())?;
    connection.reject_ambiguous_tables().await?;
    let done = match options.command {
        Command::Project(command) => {
            let base_url = connection.base_url.as_deref();
            project::run(command, &connection.store, base_url, output).await
        }
        Command::Settings(command) => settings::run(command, &connection.store, output).await,
        Command::Console(options) => {
            let base_url = connection.base_url.as_deref();
            console::run(&options, &connection.store, base_url, output).await
        }
        Command::Key(command) => key::run(command, &connection.store, output).await,
        Command::Member(command) => {
            let base_url = connection.base_url.as_deref();
            member::run(command, &connection.store, base_url, output).await
        }
        Command::Invitation(command) => invitation::run(command, &connection.store, output).await,
        Command::Audit(command) => audit::run(command, &connection.store, output).await,
        Command::User(command) => user::run(command, &connection.store, output).await,
        Command::Erasure(command) => erasure::run(command, &connection.store, output).await,
        Command::Flags(command) => flags::run(command, &connection.store, output).await,
    };
    match done {
        Ok(()) => Ok(()),
        Err(CliError::Store(error)) => Err(connection.explain(&error)),
        // The reader closed the pipe, as in `waymark key list | head`.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        Err(failure) => Err(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_well_formed() {
        Options::command().debug_assert();
    }
}
