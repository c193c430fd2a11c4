//! `PostgreSQL` 15 from Debian's packages, with the data set in a table with a covering index.
//!
//! `PostgreSQL` gets the best conditions that do not depend on the question. All data fits in its
//! buffers, sorts and hash tables stay in memory, and nothing else runs. The index has every column
//! that the timeseries read, so they do not read the table itself.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::SinkExt;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Row};

use errors::attribute::Attribute;

use super::data_set::{DataSet, PROJECTS, is_resolved};
use super::timeseries::{BucketCount, Question};
use crate::Result;
use crate::progress::progress;

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
    CREATE TABLE errors (id integer NOT NULL, is_open boolean NOT NULL);
    CREATE TABLE error_events (
        project_id integer NOT NULL,
        error_id integer NOT NULL,
        occurred_at timestamptz NOT NULL,
        browser text,
        release text
    );";

const INDEXES: &str = "
    ALTER TABLE errors ADD PRIMARY KEY (id);
    CREATE INDEX ON error_events (project_id, occurred_at) INCLUDE (error_id, browser, release);";

/// A running server. Drop kills it; `stop` shuts it down cleanly.
pub(super) struct Postgres {
    client: Client,
    connection: JoinHandle<()>,
    server: Child,
    folder: TempDir,
}

impl Postgres {
    /// Starts a server with the data set. Returns `None` if `PostgreSQL` is not installed.
    pub(super) async fn start(data_set: DataSet) -> Result<Option<Self>> {
        if !Path::new(BINARIES).join("postgres").exists() {
            progress("PostgreSQL 15 is not installed; the comparison is skipped");
            return Ok(None);
        }
        progress("timeseries: storing the same events in PostgreSQL");
        let folder = tempfile::Builder::new().prefix("waymark-postgresql-").tempdir()?;
        if is_root()? {
            chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let initdb = command("initdb", folder.path())?
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg(format!("--username={USER}"))
            .output()
            .await?;
        if !initdb.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&initdb.stderr)).into());
        }
        let log = folder.path().join("log");
        let server = command("postgres", folder.path())?
            .arg("-k")
            .arg(folder.path())
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let Some((client, connection)) = connect(folder.path()).await else {
            return Err(format!("PostgreSQL: {}", fs::read_to_string(log)?).into());
        };
        let postgres = Self { client, connection, server, folder };
        postgres.load(data_set).await?;
        Ok(Some(postgres))
    }

    /// Stores the events and creates the indexes. Short numbers replace fingerprints.
    async fn load(&self, data_set: DataSet) -> Result<()> {
        self.client.batch_execute(TABLES).await?;
        let mut errors = HashMap::new();
        for project in 0..PROJECTS {
            let mut lines = String::new();
            for row in data_set.project(project)?.flat_map(|day| day.rows) {
                let next = errors.len();
                let error = errors.entry(row.fingerprint).or_insert(next);
                write!(lines, "{project}\t{error}\t{}", row.occurred_at)?;
                for attribute in [Attribute::Browser, Attribute::Release] {
                    write!(lines, "\t{}", row.attributes.get(attribute).unwrap_or("\\N"))?;
                }
                lines.push('\n');
            }
            self.copy("error_events", lines).await?;
        }
        let errors = errors.iter().map(|(error, id)| format!("{id}\t{}\n", !is_resolved(*error)));
        self.copy("errors", errors.collect()).await?;
        self.client.batch_execute(INDEXES).await?;
        Ok(self.client.batch_execute("VACUUM (ANALYZE, FREEZE)").await?)
    }

    async fn copy(&self, table: &str, lines: String) -> Result<()> {
        let mut sink =
            pin!(self.client.copy_in(format!("COPY {table} FROM STDIN").as_str()).await?);
        sink.send(Bytes::from(lines)).await?;
        sink.as_mut().finish().await?;
        Ok(())
    }

    /// Returns daily counts (events and errors), and the time that the query took. The statement
    /// groups by error first, which takes half the time of `count(DISTINCT)`, which sorts all
    /// events.
    pub(super) async fn query(&self, question: &Question) -> Result<(Vec<BucketCount>, Duration)> {
        let Question { data_set: DataSet { from, to }, filters } = question;
        let mut source = "error_events".to_owned();
        let mut conditions =
            format!("project_id < {PROJECTS} AND occurred_at >= '{from}' AND occurred_at < '{to}'");
        for (attribute, value) in filters {
            write!(conditions, " AND {} = '{value}'", attribute.as_str())?;
        }
        if !filters.is_empty() {
            source.push_str(" JOIN errors ON errors.id = error_id");
            conditions.push_str(" AND is_open");
        }
        let statement = format!(
            "SELECT (extract(epoch FROM bucket) * 1000)::bigint, sum(events)::bigint, count(*)
             FROM (
                 SELECT date_bin('1 day', occurred_at, '1970-01-01T00:00:00Z') AS bucket,
                     error_id, count(*) AS events
                 FROM {source} WHERE {conditions} GROUP BY bucket, error_id
             ) AS errors_of_buckets
             GROUP BY bucket ORDER BY bucket"
        );
        let statement = self.client.prepare(&statement).await?;
        let started = Instant::now();
        let rows = self.client.query(&statement, &[]).await?;
        let time = started.elapsed();
        let bucket = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        Ok((rows.iter().map(bucket).collect::<Result<_, tokio_postgres::Error>>()?, time))
    }

    /// Shuts the server down cleanly, so that it leaves no shared memory behind.
    pub(super) async fn stop(mut self) -> Result<()> {
        drop(self.client);
        self.connection.await?;
        command("pg_ctl", self.folder.path())?.args(["--mode=fast", "stop"]).output().await?;
        self.server.wait().await?;
        Ok(())
    }
}

fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

/// Returns a command that runs a program of `PostgreSQL` on a folder's data.
fn command(name: &str, folder: &Path) -> Result<Command> {
    let mut command = Command::new(Path::new(BINARIES).join(name));
    command.arg("-D").arg(folder.join("data"));
    command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    if is_root()? {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command)
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
