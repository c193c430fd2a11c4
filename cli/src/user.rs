//! `waymark user`: lists and erases users, and sets their email addresses.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;

use notifications::address::{EmailAddress, UserAddress};
use notifications::store::{NotificationStore, UserName};
use shared::dynamodb::{ConflictRetry, Store};
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use crate::erasure::{EraseOptions, erase_user};
use crate::error::CliError;
use crate::output::{Output, minute, note, table};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// List the users of API keys, and their email addresses.
    List,
    /// Permanently delete a user, including keys, preferences and address (docs/erasure.md).
    Erase {
        /// The user.
        #[arg(value_parser = UserId::parse)]
        user: UserId,
        /// The user's organization.
        #[arg(long, default_value = "default", value_parser = Organization::parse)]
        org: Organization,
        #[command(flatten)]
        consent: EraseOptions,
    },
    /// Set a user's email address without asking the user to confirm it.
    SetAddress(SetAddress),
}

#[derive(Debug, Args)]
pub(crate) struct SetAddress {
    /// The email address.
    #[arg(value_name = "EMAIL", value_parser = parse_email)]
    email: EmailAddress,
    /// The user's organization.
    #[arg(long, default_value = "default", value_parser = Organization::parse)]
    org: Organization,
    /// The user.
    #[arg(long, default_value = "owner", value_parser = UserId::parse)]
    user: UserId,
}

fn parse_email(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse(text).map_err(|fault| fault.message)
}

/// Runs the command.
pub(crate) async fn run(
    command: UserCommand,
    store: &Store,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        UserCommand::List => list(store, output).await,
        UserCommand::Erase { user, org, consent } => {
            erase_user(&user, &org, &consent, store, output).await
        }
        UserCommand::SetAddress(options) => set_address(options, store, output).await,
    }
}

/// A user in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedUser {
    organization: Organization,
    user: UserId,
    /// Number of the user's API keys, including expired and revoked ones.
    keys: usize,
    email: Option<EmailAddress>,
    pending_email: Option<EmailAddress>,
    rejected_at: Option<Timestamp>,
}

async fn list(store: &Store, output: &Output) -> Result<(), CliError> {
    let mut keys: BTreeMap<(String, String), (UserName, usize)> = BTreeMap::new();
    for key in store.list_api_keys().await? {
        let place = (key.organization.to_string(), key.user.to_string());
        let name = UserName { organization: key.organization, user: key.user };
        keys.entry(place).or_insert((name, 0)).1 += 1;
    }
    let mut users = Vec::with_capacity(keys.len());
    for (name, keys) in keys.into_values() {
        let UserAddress { confirmed, pending, rejection, .. } =
            NotificationStore::new(store).find_address(&name).await?;
        users.push(ListedUser {
            organization: name.organization,
            user: name.user,
            keys,
            email: confirmed,
            pending_email: pending.map(|pending| pending.email),
            rejected_at: rejection.map(|rejection| rejection.at),
        });
    }
    if users.is_empty() && !output.is_json() {
        note("There are no users yet; `waymark key create --user USER` creates one.");
        return Ok(());
    }
    let rows = users.iter().map(|user| {
        let ListedUser { organization, user, keys, email, pending_email, rejected_at } = user;
        let text = |email: &Option<EmailAddress>| {
            email.as_ref().map_or("none".to_owned(), ToString::to_string)
        };
        [
            organization.to_string(),
            user.to_string(),
            keys.to_string(),
            text(email),
            text(pending_email),
            rejected_at.map_or("no".to_owned(), |at| format!("since {}", minute(at))),
        ]
    });
    let names = ["organization", "user", "keys", "address", "pending address", "rejected"];
    Ok(output.show(&users, &table(names, rows))?)
}

async fn set_address(options: SetAddress, store: &Store, output: &Output) -> Result<(), CliError> {
    let SetAddress { email, org, user } = options;
    let name = UserName { organization: org, user };
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        let mut address = NotificationStore::new(store).find_address(&name).await?;
        address.set_confirmed(email.clone());
        if NotificationStore::new(store).replace_address(&name, &address, false).await? {
            let text =
                format!("User {} of {} now gets email at {email}.", name.user, name.organization);
            return Ok(output.show(&address.shown(), &text)?);
        }
    }
    Err(CliError::AddressChanged)
}
