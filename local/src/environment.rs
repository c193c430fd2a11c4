//! The environment variables by which functions and commands find the local stack: those that AWS's
//! own tools read, and the prefix of the tables.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use shared::app::CURSOR_KEY_VARIABLE;
use shared::dynamodb::TABLE_PREFIX_VARIABLE;

use crate::gateway::{EVENT_BRIDGE_PATH, SES_PATH};
use crate::template::STACK_NAME;

/// The file below the data folder that holds the variables.
pub const FILE: &str = "env";

/// The prefix of the local stack's tables.
pub fn table_prefix() -> String {
    format!("{STACK_NAME}-")
}

/// The variable that tells commands where the API is.
pub const BASE_URL_VARIABLE: &str = "WAYMARK_BASE_URL";

/// The variables of a stack whose engine is at `endpoint`.
pub fn variables(endpoint: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.to_owned()),
        ("AWS_REGION", "local".to_owned()),
        // The engine checks no signature, but the SDK signs every request.
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        (TABLE_PREFIX_VARIABLE, table_prefix()),
        // On a laptop nobody is to be kept from making cursors.
        (CURSOR_KEY_VARIABLE, "local".to_owned()),
    ]
}

/// The variables by which functions send mails and events to the gateway at `base_url`, whose `/mail` shows them.
pub fn outside(base_url: &str) -> [(&'static str, String); 5] {
    [
        ("AWS_ENDPOINT_URL_SESV2", format!("{base_url}{SES_PATH}")),
        ("AWS_ENDPOINT_URL_EVENTBRIDGE", format!("{base_url}{EVENT_BRIDGE_PATH}")),
        ("WAYMARK_MAIL_FROM", "waymark@example.com".to_owned()),
        ("WAYMARK_PUBLIC_URL", base_url.to_owned()),
        ("WAYMARK_EVENT_BUS", "default".to_owned()),
    ]
}

/// Writes the variables into a file of lines `NAME=value`.
pub fn write(path: &Path, variables: &[(&'static str, String)]) -> io::Result<()> {
    let lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| {
            format!(
                "{name}={value}
"
            )
        })
        .collect();
    let mut file = open_private(path)?;
    file.set_len(0)?;
    file.write_all(lines.concat().as_bytes())
}

/// Opens a file for writing, and creates it if it is missing. Only its owner can read it, also if others could
/// before.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
