//! `PostgreSQL` 15, as Debian packages it, with the data set in a table with a covering index.
//!
//! It gets the best of everything that does not depend on the question: all data in its buffers, no
//! sort or hash table on the disk, no other work, short numbers in place of fingerprints, and an index
//! that has all that is asked for, so that the table itself is not read.

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
/// The user and group `nobody` of Debian: `PostgreSQL` refuses to run as root.
const NOBODY: u32 = 65_534;
const USER: &str = "postgres";
/// How long it may take to start.
const START_TIME: Duration = Duration::from_secs(20);

const SETTINGS: [&str; 9] = [
    "listen_addresses=",
    "shared_buffers=1GB",
    "effective_cache_size=2GB",
    "work_mem=256MB",
    "maintenance_work_mem=512MB",
    "random_page_cost=1.1",
    "max_wal_size=4GB",
    // Nothing else should happen while it is measured.
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

/// A server that runs until it is dropped; whoever stops it before lets it tidy up.
pub(super) struct Postgres {
    client: Client,
    connection: JoinHandle<()>,
    server: Child,
    folder: Folder,
}

impl Postgres {
    /// Starts a server; `None` where it is not installed.
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

    /// Stores the events and makes the index.
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

    /// Plans a statement once for all the times that it is asked.
    pub(super) async fn prepare(&self, statement: &str) -> Result<Statement> {
        Ok(self.client.prepare(statement).await?)
    }

    /// The rows of a statement, and how long they took.
    pub(super) async fn ask(&self, statement: &Statement) -> Result<(Vec<Row>, Duration)> {
        let started = Instant::now();
        let rows = self.client.query(statement, &[]).await?;
        Ok((rows, started.elapsed()))
    }

    /// The rows of a statement that is asked once.
    pub(super) async fn rows(&self, statement: &str) -> Result<Vec<Row>> {
        Ok(self.client.query(statement, &[]).await?)
    }

    /// Stops the server in good order, so that it leaves no shared memory behind.
    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.client);
        self.connection.await?;
        self.folder.command("pg_ctl").args(["--mode=fast", "stop"]).output().await?;
        self.server.wait().await?;
        Ok(())
    }
}

/// The buckets that rows of a timeseries tell.
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
    /// The user and group as which programs run, if not as this one.
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

    /// A program of `PostgreSQL`'s that works on this folder's data.
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

/// Connects as soon as the server takes connections; `None` if that does not come.
async fn connect(socket_folder: &Path) -> Option<(Client, JoinHandle<()>)> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(socket_folder).user(USER).dbname("postgres");
    let deadline = Instant::now() + START_TIME;
    while Instant::now() < deadline {
        if let Ok((client, connection)) = config.connect(NoTls).await {
            // What goes wrong with the connection shows as a statement that fails.
            let connection = tokio::spawn(async move { drop(connection.await) });
            return Some((client, connection));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

/// Events in the text format of COPY. Errors get numbers in the order in which they occur.
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
