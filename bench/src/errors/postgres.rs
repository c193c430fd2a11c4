//! `PostgreSQL` 15 from Debian's packages, with the data set in a table with a covering index.
//!
//! `PostgreSQL` gets the best conditions that do not depend on the question. All data fits in its
//! buffers, sorts and hash tables stay in memory, and nothing else runs. Short numbers replace
//! fingerprints. The index has every column that the timeseries read, so they do not read the table
//! itself.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::SinkExt;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Row, Statement};

use errors::attribute::Attribute;
use errors::grouping::Fingerprint;
use errors::log::row::EventRow;

use super::data_set::{DataSet, PROJECTS, status_of};
use super::question::BucketCount;
use crate::Result;

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
/// Debian's user and group `nobody`, since `PostgreSQL` does not run as root.
const NOBODY: u32 = 65_534;
const USER: &str = "postgres";
/// The time limit of the server start.
const START_TIME: Duration = Duration::from_secs(20);

const SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "shared_buffers=1GB",
    "effective_cache_size=2GB",
    "work_mem=256MB",
    "maintenance_work_mem=512MB",
    "random_page_cost=1.1",
    "max_wal_size=4GB",
    // Background work would distort the measurement.
    "autovacuum=off",
    "fsync=off",
];

const TABLES: &str = "
    CREATE TABLE errors (id integer NOT NULL, fingerprint text NOT NULL, status text NOT NULL);
    CREATE TABLE error_events (
        project_id integer NOT NULL,
        error_id integer NOT NULL,
        occurred_at timestamptz NOT NULL,
        environment text,
        release text,
        level text,
        handled text,
        browser text,
        os text,
        device text,
        country text,
        platform text,
        transaction text,
        bot text,
        url text,
        type text,
        culprit text,
        user_hash text
    );";

const INDEXES: &str = "
    ALTER TABLE errors ADD PRIMARY KEY (id);
    CREATE INDEX ON error_events (project_id, occurred_at) INCLUDE (error_id, browser, release);";

/// A running server. Drop kills it; `stop` shuts it down cleanly.
pub(super) struct Postgres {
    client: Client,
    connection: JoinHandle<()>,
    server: Child,
    folder: Folder,
}

impl Postgres {
    /// Starts a server. Returns `None` if `PostgreSQL` is not installed.
    pub(super) async fn start() -> Result<Option<Self>> {
        if !Path::new(BINARIES).join("postgres").exists() {
            return Ok(None);
        }
        let folder = Folder::new()?;
        let initdb = folder
            .command("initdb")
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg(format!("--username={USER}"))
            .output()
            .await?;
        if !initdb.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&initdb.stderr)).into());
        }
        let log = folder.path().join("log");
        let server = folder
            .command("postgres")
            .arg("-k")
            .arg(folder.path())
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let Some((client, connection)) = connect(folder.path()).await else {
            return Err(format!("PostgreSQL: {}", fs::read_to_string(log)?).into());
        };
        Ok(Some(Self { client, connection, server, folder }))
    }

    /// Stores the events and creates the indexes.
    pub(super) async fn load(&self, data_set: DataSet) -> Result<()> {
        self.client.batch_execute(TABLES).await?;
        let mut errors = HashMap::new();
        let events = self.client.copy_in("COPY error_events FROM STDIN").await?;
        let mut events = pin!(events);
        for project in 0..PROJECTS {
            for day in data_set.project(project)? {
                events.send(event_lines(project, &day.rows, &mut errors)?).await?;
            }
        }
        events.as_mut().finish().await?;

        let mut lines = String::new();
        for (fingerprint, id) in &errors {
            writeln!(lines, "{id}\t{fingerprint}\t{}", status_of(*fingerprint).as_str())?;
        }
        let errors = self.client.copy_in("COPY errors FROM STDIN").await?;
        let mut errors = pin!(errors);
        errors.send(Bytes::from(lines)).await?;
        errors.as_mut().finish().await?;
        self.client.batch_execute(INDEXES).await?;
        Ok(self.client.batch_execute("VACUUM (ANALYZE, FREEZE)").await?)
    }

    /// Prepares a statement that is executed repeatedly.
    pub(super) async fn prepare(&self, statement: &str) -> Result<Statement> {
        Ok(self.client.prepare(statement).await?)
    }

    /// Returns the rows of a statement, and its duration.
    pub(super) async fn timed_rows(&self, statement: &Statement) -> Result<(Vec<Row>, Duration)> {
        let started = Instant::now();
        let rows = self.client.query(statement, &[]).await?;
        Ok((rows, started.elapsed()))
    }

    /// Returns the rows of a statement that is executed once.
    pub(super) async fn rows(&self, statement: &str) -> Result<Vec<Row>> {
        Ok(self.client.query(statement, &[]).await?)
    }

    /// Shuts the server down cleanly, so that it leaves no shared memory behind.
    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.client);
        self.connection.await?;
        self.folder.command("pg_ctl").args(["--mode=fast", "stop"]).output().await?;
        self.server.wait().await?;
        Ok(())
    }
}

/// Reads the buckets of a timeseries from its rows.
pub(super) fn read_buckets(rows: &[Row]) -> Result<Vec<BucketCount>> {
    let mut buckets = Vec::with_capacity(rows.len());
    for row in rows {
        let (events, errors): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        let (events, errors) = (events.try_into()?, errors.try_into()?);
        buckets.push(BucketCount { start: row.try_get(0)?, events, errors });
    }
    Ok(buckets)
}

/// A folder for the server's data and its socket.
struct Folder {
    folder: TempDir,
    /// The user and group id of the programs; `None`: those of this process.
    account: Option<u32>,
}

impl Folder {
    fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("waymark-postgresql-").tempdir()?;
        let is_root = fs::metadata("/proc/self")?.uid() == 0;
        if is_root {
            chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        }
        Ok(Self { folder, account: is_root.then_some(NOBODY) })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command that runs a program of `PostgreSQL` on this folder's data.
    fn command(&self, name: &str) -> Command {
        let program: PathBuf = [BINARIES, name].iter().collect();
        let mut command = Command::new(program);
        command.arg("-D").arg(self.path().join("data"));
        command.current_dir(self.path()).stdin(Stdio::null()).kill_on_drop(true);
        if let Some(id) = self.account {
            command.uid(id).gid(id);
        }
        command
    }
}

/// Connects when the server accepts connections. Returns `None` after [`START_TIME`].
async fn connect(socket_folder: &Path) -> Option<(Client, JoinHandle<()>)> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(socket_folder).user(USER).dbname("postgres");
    let deadline = Instant::now() + START_TIME;
    while Instant::now() < deadline {
        if let Ok((client, connection)) = config.connect(NoTls).await {
            // A connection error appears as a failed statement.
            let connection = tokio::spawn(async move { drop(connection.await) });
            return Some((client, connection));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

/// Formats events as COPY text. Errors are numbered in order of their first event.
fn event_lines(
    project: u8,
    rows: &[EventRow],
    errors: &mut HashMap<Fingerprint, usize>,
) -> Result<Bytes> {
    let mut lines = String::new();
    for row in rows {
        let next = errors.len();
        let error = errors.entry(row.fingerprint).or_insert(next);
        write!(lines, "{project}\t{error}\t{}", row.occurred_at)?;
        for attribute in Attribute::ALL {
            write!(lines, "\t{}", row.attributes.get(attribute).unwrap_or("\\N"))?;
        }
        match row.attributes.user() {
            Some(user) => writeln!(lines, "\t{:x}", u64::from_be_bytes(user.to_bytes()))?,
            None => writeln!(lines, "\t\\N")?,
        }
    }
    Ok(lines.into())
}
