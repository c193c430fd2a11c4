//! Connection to the tables: in the AWS account of the environment's variables and profiles, or in
//! the local stack.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::output::note;
use clap::Args;
use shared::dynamodb::client::ClientError;
use shared::dynamodb::{
    DEFAULT_TABLE_PREFIX, DamagedItem, RESTORED_TABLES_VARIABLE, Store, StoreError,
    TABLE_PREFIX_VARIABLE, TableNames, TableNamesError, client,
};

/// File in which `make run` stores the addresses of the local stack.
const LOCAL_FILE: &str = ".local/env";
const ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL_DYNAMODB";
const BASE_URL_VARIABLE: &str = "WAYMARK_BASE_URL";

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct ConnectionOptions {
    /// Use the local stack that `make run` started in this folder or a parent folder.
    #[arg(long, global = true)]
    local: bool,
    #[arg(
        long, global = true, value_name = "PREFIX",
        help = format!(
            "Prefix of all table names [env: {TABLE_PREFIX_VARIABLE}] \
             [default: {DEFAULT_TABLE_PREFIX}]"
        ),
    )]
    table_prefix: Option<String>,
    /// Address of the API: the stack's output `BaseUrl`. DSNs and console links use it.
    #[arg(long, global = true, value_name = "URL", env = BASE_URL_VARIABLE)]
    base_url: Option<String>,
}

/// Separator in the names of restored tables, between the original name and the restored time.
const RESTORED: &str = "-restored-";
/// Tables that commands use.
const TABLES: [&str; 9] = [
    "projects",
    "people",
    "api-keys",
    "audit",
    "feature-flags",
    "flag-changes",
    "email-preferences",
    "notifications",
    "idempotency",
];

/// The reason why the tables cannot be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(
        "the local stack has not been started here; run `make run` (there is no {LOCAL_FILE} in \
         {} or a parent folder)", folder.display()
    )]
    NoLocalStack { folder: PathBuf },
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} does not set {ENDPOINT_VARIABLE}; run `make run` to write it again", path.display())]
    NoEndpoint { path: PathBuf },
    #[error(transparent)]
    TableNames(#[from] TableNamesError),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The tables and their location.
pub(crate) struct Connection {
    pub(crate) store: Store,
    /// Address of the API, if known.
    pub(crate) base_url: Option<String>,
    place: Target,
    table_prefix: String,
}

enum Target {
    Aws,
    LocalStack { endpoint: String },
}

impl Connection {
    /// Finds the tables, without a request to them.
    pub(crate) async fn open(options: &ConnectionOptions) -> Result<Self, ConnectionError> {
        let (client, place, configured, base_url) = if options.local {
            let folder = env::current_dir()
                .map_err(|source| ConnectionError::Unreadable { path: ".".into(), source })?;
            let LocalStack { endpoint, table_prefix, base_url } = LocalStack::find(&folder)?;
            let client = client::for_endpoint(&endpoint)?;
            let prefix = table_prefix.unwrap_or_else(|| DEFAULT_TABLE_PREFIX.to_owned());
            (client, Target::LocalStack { endpoint }, TableNames::new(prefix), base_url)
        } else {
            (client::for_command().await?, Target::Aws, TableNames::from_environment()?, None)
        };
        let tables = match &options.table_prefix {
            Some(prefix) => configured.with_prefix(prefix),
            None => configured,
        };
        let table_prefix = tables.prefix().to_owned();
        let base_url = options.base_url.clone().or(base_url);
        if let Some(url) = base_url.as_deref().filter(|url| is_exposed(url)) {
            note(&format!(
                "Warning: {url} is not encrypted, so others on the network can read API keys and DSNs. Use https."
            ));
        }
        let store = Store::new(client, tables).reporting_damage(warn);
        Ok(Self { store, base_url, place, table_prefix })
    }

    /// Rejects all commands if restored tables exist and the environment does not say which tables
    /// the stack uses. Otherwise a key could be revoked in a table that no function reads.
    pub(crate) async fn reject_ambiguous_tables(&self) -> Result<(), String> {
        if matches!(self.place, Target::LocalStack { .. })
            || env::var_os(RESTORED_TABLES_VARIABLE).is_some()
        {
            return Ok(());
        }
        let names = match self.store.list_table_names().await {
            Ok(names) => names,
            // Permission to use the tables does not imply permission to list them.
            Err(StoreError::Rejected(_)) => return Ok(()),
            Err(error) => return Err(self.explain(&error)),
        };
        let is_restored = |name: &&String| {
            name.split_once(RESTORED).is_some_and(|(table, _)| TABLES.contains(&table))
        };
        let Some(name) = names.iter().find(is_restored) else {
            return Ok(());
        };
        let prefix = &self.table_prefix;
        Err(format!(
            "there is a restored table {prefix}{name}, so it is unclear which tables the stack uses: set \
             {RESTORED_TABLES_VARIABLE} to the stack's parameter RestoredTables, also if it is \
             empty\n  export {RESTORED_TABLES_VARIABLE}=$(aws cloudformation describe-stacks --stack-name \
             {} --output text --query \\\n    \
             \"Stacks[0].Parameters[?ParameterKey=='RestoredTables'].ParameterValue\")",
            prefix.trim_end_matches('-')
        ))
    }

    /// Describes an error of the store and its remedy.
    pub(crate) fn explain(&self, error: &StoreError) -> String {
        let prefix = &self.table_prefix;
        match (error, &self.place) {
            (StoreError::Unavailable(cause), Target::LocalStack { endpoint }) => format!(
                "the local stack does not respond at {endpoint}; `make run` must be running\n\
                 cause: {cause}"
            ),
            (StoreError::Unavailable(cause), Target::Aws) => format!(
                "DynamoDB cannot be reached; check the region, the credentials (`waymark --help` \
                 lists their sources) and the network, or use --local for the local \
                 stack\ncause: {cause}"
            ),
            (StoreError::Rejected(cause), Target::LocalStack { .. }) => format!(
                "the local stack rejected the request; check that `{prefix}` is the prefix of its \
                 tables, and restart `make run` if the tables have changed\ncause: {cause}"
            ),
            (StoreError::Rejected(cause), Target::Aws) => format!(
                "DynamoDB rejected the request; check that the credentials are valid and have \
                 permission to use the tables, and that the region and the table prefix \
                 `{prefix}` are those of your stack (--table-prefix, {TABLE_PREFIX_VARIABLE})\n\
                 cause: {cause}"
            ),
            (
                StoreError::Contended(_)
                | StoreError::Throttled { .. }
                | StoreError::OtherService { .. },
                _,
            ) => {
                format!("{error}; try again")
            }
            (StoreError::Damaged { .. }, _) => format!(
                "{error}; use the `waymark` version that matches your stack, or restore \
                 the table from a backup"
            ),
        }
    }
}

/// Returns `true` for HTTP addresses of other machines.
fn is_exposed(base_url: &str) -> bool {
    let Some((scheme, rest)) = base_url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => host.split(':').next(),
    };
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let is_loopback = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    scheme.eq_ignore_ascii_case("http") && !is_loopback
}

/// Notes that an item was skipped.
fn warn(item: &DamagedItem) {
    note(&format!("Skipped: {item}."));
}

/// The contents of `.local/env`.
#[derive(Debug, PartialEq, Eq)]
struct LocalStack {
    endpoint: String,
    table_prefix: Option<String>,
    base_url: Option<String>,
}

impl LocalStack {
    /// Reads the file of the closest folder that has one, starting with `folder`.
    fn find(folder: &Path) -> Result<Self, ConnectionError> {
        let path = folder.ancestors().map(|above| above.join(LOCAL_FILE)).find(|at| at.is_file());
        let path =
            path.ok_or_else(|| ConnectionError::NoLocalStack { folder: folder.to_owned() })?;
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).ok_or(ConnectionError::NoEndpoint { path }),
            Err(source) => Err(ConnectionError::Unreadable { path, source }),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |wanted: &str| {
            let mut variables = text.lines().filter_map(|line| line.split_once('='));
            let (_, value) = variables.find(|(name, _)| name.trim() == wanted)?;
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        Some(Self {
            endpoint: value(ENDPOINT_VARIABLE)?,
            table_prefix: value(TABLE_PREFIX_VARIABLE),
            base_url: value(BASE_URL_VARIABLE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000\nAWS_REGION=local\n\
                        WAYMARK_TABLE_PREFIX=waymark-\nWAYMARK_BASE_URL=http://127.0.0.1:9000\n";

    fn write(folder: &Path, text: &str) {
        fs::create_dir_all(folder.join(".local")).unwrap();
        fs::write(folder.join(LOCAL_FILE), text).unwrap();
    }

    #[test]
    fn reads_endpoint_and_prefix() {
        let endpoint = "http://127.0.0.1:8000".to_owned();
        let table_prefix = Some("waymark-".to_owned());
        let base_url = Some("http://127.0.0.1:9000".to_owned());
        assert_eq!(LocalStack::parse(FILE), Some(LocalStack { endpoint, table_prefix, base_url }));
        let windows =
            LocalStack::parse("# a comment\r\n\r\nAWS_ENDPOINT_URL_DYNAMODB=http://h/?a=b\r\n");
        let endpoint = "http://h/?a=b".to_owned();
        let nothing_else = LocalStack { endpoint, table_prefix: None, base_url: None };
        assert_eq!(windows, Some(nothing_else));
        for text in ["", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL=http://h", "nonsense"] {
            assert_eq!(LocalStack::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn unencrypted_remote_addresses_are_exposed() {
        for url in [
            "http://a.example",
            "HTTP://a.example:80/x",
            "http://localhost@10.0.0.1/",
            "http://[::2]:1",
        ] {
            assert!(is_exposed(url), "{url}");
        }
        for url in [
            "https://a.example",
            "http://127.0.0.1:9000",
            "http://127.9.9.9",
            "http://[::1]:9000/",
            "http://LOCALHOST:9000",
            "http://api.localhost",
            "a.example",
        ] {
            assert!(!is_exposed(url), "{url}");
        }
    }

    #[test]
    fn finds_the_closest_file_upward() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        write(root.path(), FILE);
        assert_eq!(LocalStack::find(&below).unwrap().endpoint, "http://127.0.0.1:8000");
        write(&root.path().join("a"), &FILE.replace("8000", "8001"));
        assert_eq!(LocalStack::find(&below).unwrap().endpoint, "http://127.0.0.1:8001");
        // A folder with this name, which some home folders have, is skipped.
        fs::create_dir_all(below.join(LOCAL_FILE)).unwrap();
        assert_eq!(LocalStack::find(&below).unwrap().endpoint, "http://127.0.0.1:8001");
    }

    #[test]
    fn says_what_to_do_where_there_is_no_stack() {
        let root = tempfile::tempdir().unwrap();
        let message = LocalStack::find(root.path()).unwrap_err().to_string();
        assert!(message.starts_with("the local stack has not been started here; run `make run`"));
        write(root.path(), "AWS_REGION=local\n");
        let message = LocalStack::find(root.path()).unwrap_err().to_string();
        assert!(
            message.contains(".local/env does not set AWS_ENDPOINT_URL_DYNAMODB; run `make run`")
        );
    }
}
