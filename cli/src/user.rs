//! `waymark user`: lists and erases users, and sets where they get mail.

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
    /// List the users for whom API keys act, and where they get mail.
    List,
    /// Delete a user with keys, preferences and address, for good (docs/erasure.md).
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
    /// Set where a user gets mail, without asking the user to confirm it.
    SetAddress(SetAddress),
}

#[derive(Debug, Args)]
pub(crate) struct SetAddress {
    /// The address.
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

/// Runs a command on the tables.
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

/// A user as a program sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedUser {
    organization: Organization,
    user: UserId,
    /// How many API keys act for the user, those that have ended included.
    keys: usize,
    email: Option<EmailAddress>,
    pending_email: Option<EmailAddress>,
    refused_at: Option<Timestamp>,
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
        let UserAddress { confirmed, pending, refusal, .. } =
            NotificationStore::new(store).find_address(&name).await?;
        users.push(ListedUser {
            organization: name.organization,
            user: name.user,
            keys,
            email: confirmed,
            pending_email: pending.map(|pending| pending.email),
            refused_at: refusal.map(|refusal| refusal.at),
        });
    }
    if users.is_empty() && !output.is_json() {
        note("There are no users yet; `waymark key create --user USER` makes one.");
        return Ok(());
    }
    let rows = users.iter().map(|user| {
        let ListedUser { organization, user, keys, email, pending_email, refused_at } = user;
        let text = |email: &Option<EmailAddress>| {
            email.as_ref().map_or("none".to_owned(), ToString::to_string)
        };
        [
            organization.to_string(),
            user.to_string(),
            keys.to_string(),
            text(email),
            text(pending_email),
            refused_at.map_or("no".to_owned(), |at| format!("since {}", minute(at))),
        ]
    });
    let names = ["organization", "user", "keys", "address", "to be confirmed", "refused"];
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
            let text = format!("{} of {} gets mail at {email}.", name.user, name.organization);
            return Ok(output.show(&address.shown(), &text)?);
        }
    }
    Err(CliError::AddressChanged)
}
