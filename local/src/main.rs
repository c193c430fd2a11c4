//! `make run`: starts the local stack and tells how to use it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use local::demo::Demo;
use local::engine::Engine;
use local::watch::{Watch, WatchOptions};
use local::{demo, environment, template};
use shared::store::{Store, client};
use shared::telemetry::METRICS_VARIABLE;
use tokio::signal::unix::{SignalKind, signal};

/// Starts the local stack: an embedded DynamoDB and every function behind one address.
#[derive(Debug, Parser)]
#[command(name = "waymark-local", version)]
struct Options {
    /// The port of the API.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// The port of the embedded DynamoDB.
    #[arg(long, default_value_t = 8000)]
    dynamodb_port: u16,
    /// The folder of the workspace.
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
}

/// Building a function that was not built before takes a while.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_mins(10);

type AnyError = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr)] // A command's messages are for its terminal.
fn tell(message: &str) {
    eprintln!("{message}");
}

async fn run(options: &Options) -> Result<(), AnyError> {
    let started = Instant::now();
    let data = options.workspace.join(".local");
    fs::create_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let api = free_address("PORT", options.port)?;
    let dynamodb = free_address("DYNAMODB_PORT", options.dynamodb_port)?;

    tell("Starting DynamoDB …");
    let template_file = options.workspace.join("template.yaml");
    let tables = template::read_tables(&template_file)?;
    let schedules = template::read_schedules(&template_file)?;
    let engine = Engine::start(dynamodb, Some(&data.join("dynamodb.sqlite")), &tables)?;
    let variables = environment::variables(&engine.endpoint());
    let environment_file = data.join(environment::FILE);
    let base_url = format!("http://{api}");
    let mut variables_of_commands = variables;
    variables_of_commands.push((environment::BASE_URL_VARIABLE, base_url.clone()));
    // Nobody makes metrics of lines that a person reads.
    variables_of_commands.push((METRICS_VARIABLE, "off".to_owned()));
    environment::write(&environment_file, &variables_of_commands)?;
    let demo = demo::ensure(&store(&engine)?, &data.join("demo-key")).await?;

    tell("Starting the functions …");
    let mut watch = Watch::start(WatchOptions {
        workspace: &options.workspace,
        address: api,
        environment: &environment_file,
        reload: true,
        log: None,
    })?;
    let first_url = format!("{base_url}/v0/project/{}/feature-flags", demo::SLUG);
    let stopped = stop_signal()?;
    tokio::select! {
        answered = watch.until_answered(&first_url, FIRST_ANSWER_LIMIT) => answered?,
        () = stopped => return stop(watch, engine).await,
    }
    tell(&welcome(&base_url, &demo, &data, started.elapsed()));
    tokio::select! {
        ended = watch.ended() => Err(ended.into()),
        () = stop_signal()? => stop(watch, engine).await,
        () = Watch::run_schedules(&base_url, &schedules) => Ok(()),
    }
}

async fn stop(watch: Watch, engine: Engine) -> Result<(), AnyError> {
    tell("\nStopping …");
    watch.stop().await;
    engine.stop().await;
    Ok(())
}

/// Resolves on Ctrl-C, or when asked to end.
fn stop_signal() -> Result<impl Future<Output = ()>, AnyError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    })
}

fn free_address(variable: &str, port: u16) -> Result<SocketAddr, AnyError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).map_err(|error| {
        format!(
            "port {port} cannot be used ({error}). Stop what uses it, or choose another: \
             make run {variable}={}",
            port.wrapping_add(1).max(1024)
        )
    })?;
    Ok(address)
}

fn store(engine: &Engine) -> Result<Store, AnyError> {
    Ok(Store::new(client::for_endpoint(&engine.endpoint())?, environment::table_prefix()))
}

fn welcome(base_url: &str, demo: &Demo, data: &Path, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let Demo { project, key } = demo;
    let (slug, dsn) = (&project.slug, project.dsn(base_url));
    let (ingest_id, public_key) = (project.ingest_id, project.public_key);
    let data = data.display();
    format!(
        r#"
Waymark runs at {base_url} (ready after {seconds:.1} s; Ctrl-C stops it).

create-feature-flag, update-feature-flag, evaluate-feature-flag
  curl -i {base_url}/v0/project/{slug}/feature-flags \
    -H 'x-api-key: {key}' \
    -H 'content-type: application/json' \
    -d '{{"key": "new-checkout", "name": "New checkout", "type": "boolean"}}'
  curl -i -X PATCH {base_url}/v0/project/{slug}/feature-flags/new-checkout \
    -H 'x-api-key: {key}' -H 'content-type: application/json' -d '{{"enabled": true}}'
  curl -i {base_url}/v0/project/{slug}/ofrep/v1/evaluate/flags/new-checkout \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"context": {{"targetingKey": "user-1"}}}}'

create-insight, split-insight
  NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  FIRST=$(python3 -c 'import uuid; print(uuid.uuid4())')
  SECOND=$(python3 -c 'import uuid; print(uuid.uuid4())')
  INSIGHT=$(curl -s {base_url}/v0/projects/{slug}/replay-insights \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"title": "Checkout button does nothing", "painPoints": [
      {{"id": "'$FIRST'", "sessionId": "s-1", "occurredAt": "'$NOW'", "title": "Clicked five times"}},
      {{"id": "'$SECOND'", "sessionId": "s-2", "occurredAt": "'$NOW'", "title": "Left the page"}}]}}' \
    | sed 's/.*"id":"\([^"]*\)".*/\1/')
  curl -i {base_url}/v0/projects/{slug}/replay-insights/$INSIGHT/split \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"painPointIds": ["'$SECOND'"], "title": "Visitors leave"}}'

create-event-marker-collection, add-event-markers, delete-event-marker-collection
  COLLECTION=$(curl -s {base_url}/v0/projects/{slug}/event-marker-collections \
    -H 'x-api-key: {key}' -d '{{"name": "Releases"}}' -H 'content-type: application/json' \
    | sed 's/.*"id":"\([^"]*\)".*/\1/')
  curl -i {base_url}/v0/projects/{slug}/event-marker-collections/$COLLECTION/events \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"events": [{{"name": "v1.2.3", "occurredAt": "2026-11-21T04:16:00Z"}}]}}'
  curl -i -X DELETE {base_url}/v0/projects/{slug}/event-marker-collections/$COLLECTION \
    -H 'x-api-key: {key}'

ingest-error-events, query-error-timeseries
  curl -i '{base_url}/api/{ingest_id}/store/?sentry_key={public_key}' \
    -d '{{"exception": {{"values": [{{"type": "TypeError", "value": "cart is undefined"}}]}},
      "environment": "production", "release": "shop@2.4.1"}}'
  curl -i {base_url}/v0/errors/timeseries/query \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"projectIds": ["{slug}"], "searchQuery": "TypeError", "limit": 3}}'

interpret-error-filters
  curl -i {base_url}/v0/errors/filters/interpret \
    -H 'x-api-key: {key}' -H 'content-type: application/json' \
    -d '{{"projectId": "{slug}", "query": "prod errors on firefox, but not from germany", "categories": [
      {{"id": "browser", "label": "Browser", "values": ["Chrome", "Firefox", "Safari"]}},
      {{"id": "environment", "label": "Environment", "values": ["production", "staging"]}},
      {{"id": "country", "label": "Country", "values": ["France", "Germany"]}}], "currentFilters": []}}'

update-email-preferences
  curl -i -X PUT {base_url}/v0/notifications/email-preferences \
    -H 'x-api-key: {key}' \
    -H 'content-type: application/json' \
    -d '{{"preferences": [{{"type": "weekly_digest", "emailEnabled": false}}]}}'

OFREP base URL       {base_url}/v0/project/{slug}
API reference        {base_url}/docs (make docs renders it)
DSN for Sentry SDKs  {dsn}
Projects and keys    target/debug/waymark --local --help
Data                 {data}/ (make reset starts afresh)
"#
    )
}
