//! `waymark console`: opens the console in a browser, with a key of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use shared::app::Clock;
use shared::dynamodb::Store;
use shared::projects::api_key::{KeyId, Scope};
use shared::timestamp::Timestamp;

use crate::error::CliError;
use crate::key::{Grant, issue};
use crate::output::{Output, minute, note};

/// A day's work: who needs it longer asks again.
const LIFETIME: Duration = Duration::from_hours(8);

/// What opens an address in the browser that a person has chosen.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

#[derive(Debug, Args)]
pub(crate) struct ConsoleOptions {
    #[command(flatten)]
    grant: Grant,
    /// Only show the address. A browser is given it as an argument, which others who are signed in
    /// to this machine may see.
    #[arg(long)]
    no_open: bool,
}

/// The address as a program sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'o> {
    address: &'o str,
    key_id: &'o KeyId,
    expires_at: Timestamp,
}

/// Makes the key, and opens the page with it.
pub(crate) async fn run(
    options: &ConsoleOptions,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    let base_url = base_url.ok_or(CliError::NoBaseUrl)?;
    let now = Clock::System.now();
    let expires_at = now.plus(LIFETIME);
    // A person is to see the whole product, for as long as a day's work.
    let scopes = options.grant.scopes().unwrap_or(Scope::ALL.into());
    let (record, key) = issue(&options.grant, scopes, Some(expires_at), now, store).await?;
    let address = address(base_url, &key.reveal());
    let opened = Opened { address: &address, key_id: &record.key_id, expires_at };
    output
        .show(&opened, &address)
        .map_err(|source| CliError::SecretLost { key_id: record.key_id.clone(), source })?;
    let ends = minute(expires_at);
    note(&format!("The address has an API key in it, which ends at {ends}: tell it to nobody."));
    if !options.no_open && !output.is_json() && !open(&address) {
        note("No browser could be opened; paste the address into one.");
    }
    Ok(())
}

/// The key stands behind `#`, which browsers send to nobody and the page takes away.
fn address(base_url: &str, key: &str) -> String {
    format!("{}/console#key={key}", base_url.trim_end_matches('/'))
}

fn open(address: &str) -> bool {
    let mut opener = Command::new(OPENER);
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_sent_to_nobody() {
        let address = address("https://api.example/", "wm_key");
        assert_eq!(address, "https://api.example/console#key=wm_key");
    }
}
