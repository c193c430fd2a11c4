//! Environment variables with which functions and commands find the local stack: variables of AWS
//! tools, and the table prefix.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use shared::app::CURSOR_KEY_VARIABLE;
use shared::dynamodb::TABLE_PREFIX_VARIABLE;

use crate::gateway::{EVENT_BRIDGE_PATH, SES_PATH};
use crate::template::STACK_NAME;

/// Name of the file with the variables, in the data folder.
pub const FILE: &str = "env";

/// Returns the prefix of the local stack's tables.
pub fn table_prefix() -> String {
    format!("{STACK_NAME}-")
}

/// Environment variable with the address of the API, for commands.
pub const BASE_URL_VARIABLE: &str = "WAYMARK_BASE_URL";

/// Returns the variables of a stack with its engine at `endpoint`.
pub fn variables(endpoint: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.to_owned()),
        ("AWS_REGION", "local".to_owned()),
        // The engine checks no signature, but the SDK signs every request.
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        (TABLE_PREFIX_VARIABLE, table_prefix()),
        // Clients of a local stack are trusted to forge cursors.
        (CURSOR_KEY_VARIABLE, "local".to_owned()),
    ]
}

/// Returns the variables that direct emails and events to the gateway at `base_url`. Its page
/// `/mail` shows them.
pub fn outside(base_url: &str) -> [(&'static str, String); 5] {
    [
        ("AWS_ENDPOINT_URL_SESV2", format!("{base_url}{SES_PATH}")),
        ("AWS_ENDPOINT_URL_EVENTBRIDGE", format!("{base_url}{EVENT_BRIDGE_PATH}")),
        ("WAYMARK_MAIL_FROM", "waymark@example.com".to_owned()),
        ("WAYMARK_PUBLIC_URL", base_url.to_owned()),
        ("WAYMARK_EVENT_BUS", "default".to_owned()),
    ]
}

/// Writes the variables to a file with lines `NAME=value`.
pub fn write(path: &Path, variables: &[(&'static str, String)]) -> io::Result<()> {
    let lines: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let mut file = open_private(path)?;
    file.set_len(0)?;
    file.write_all(lines.concat().as_bytes())
}

/// Opens a file for writing, and creates it if it is missing. Only its owner can read it, even if
/// it had other permissions.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
