//! `waymark console`: opens the console in a browser with a single-use link to a new API key.

use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use shared::app::Clock;
use shared::dynamodb::Store;
use shared::projects::api_key::{KeyId, Scope};
use shared::projects::console_code::{CODE_LIFETIME, ConsoleCode};
use shared::timestamp::Timestamp;

use crate::error::CliError;
use crate::key::{Grant, issue};
use crate::output::{Output, minute, note};

/// Lifetime of the API key: a working day.
const LIFETIME: Duration = Duration::from_hours(8);

/// Program that opens an address in the default browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

#[derive(Debug, Args)]
pub(crate) struct ConsoleOptions {
    #[command(flatten)]
    grant: Grant,
    /// Only print the address. Opening a browser passes the address as an argument, which other
    /// users of this machine can read.
    #[arg(long)]
    no_open: bool,
}

/// The JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'o> {
    address: &'o str,
    key_id: &'o KeyId,
    expires_at: Timestamp,
}

/// Creates an API key and opens the console with it.
pub(crate) async fn run(
    options: &ConsoleOptions,
    store: &Store,
    base_url: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    let base_url = base_url.ok_or(CliError::NoBaseUrl)?;
    let now = Clock::System.now();
    let expires_at = now.plus(LIFETIME);
    // All scopes by default: the console shows every feature area.
    let scopes = options.grant.scopes().unwrap_or_else(Scope::of_keys);
    let (record, key) =
        issue(&options.grant, String::new(), scopes, Some(expires_at), now, store).await?;
    let code = ConsoleCode::generate()?;
    store.put_console_code(&code, &key, Clock::System.now().plus(CODE_LIFETIME)).await?;
    let address = address(base_url, &code.reveal());
    let opened = Opened { address: &address, key_id: &record.key_id, expires_at };
    output
        .show(&opened, &address)
        .map_err(|source| CliError::SecretLost { key_id: record.key_id.clone(), source })?;
    let ends = minute(expires_at);
    let seconds = CODE_LIFETIME.as_secs();
    note(&format!(
        "The address works once, within {seconds} seconds. Its API key expires at {ends}."
    ));
    if !options.no_open && !output.is_json() && !open(&address) {
        note("No browser could be opened. Open the address yourself.");
    }
    Ok(())
}

/// Returns a link with the code in its fragment: browsers do not send fragments, and the page removes it.
fn address(base_url: &str, code: &str) -> String {
    format!("{}/console#code={code}", base_url.trim_end_matches('/'))
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
    fn the_code_is_in_the_fragment() {
        let address = address("https://api.example/", "code");
        assert_eq!(address, "https://api.example/console#code=code");
    }
}
