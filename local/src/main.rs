//! `make run`: starts the local stack and prints how to use it.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use clap::{Parser, Subcommand};
use local::demo::Demo;
use local::engine::Engine;
use local::examples::{ExampleError, Examples, Target};
use local::gateway::{Gateway, GatewayOptions};
use local::guard::{Guard, hidden_address};
use local::messages::{self, Message};
use local::watch::{Watch, WatchOptions};
use local::{demo, environment, instance, template};
use shared::dynamodb::{Store, client};
use shared::telemetry::METRICS_VARIABLE;
use tokio::signal::unix::{SignalKind, signal};

/// Starts the local stack: an embedded DynamoDB and every function behind one address.
///
/// Prints a line per request. With LOG=json in the environment, prints the functions' log lines
/// instead.
#[derive(Debug, Parser)]
#[command(name = "waymark-local", version)]
struct Options {
    /// Port of the API.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Port of the embedded DynamoDB.
    #[arg(long, default_value_t = 8000)]
    dynamodb_port: u16,
    /// Folder of the workspace.
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs an instance of a function. `cargo lambda watch` starts it.
    #[command(name = instance::COMMAND, hide = true)]
    RunInstance {
        /// Program of the function.
        program: Option<PathBuf>,
    },
}

/// Function whose response shows that functions run.
const PROBE_FUNCTION: &str = "create-feature-flag";
/// Timeout of the first response, which can include a build.
const FIRST_RESPONSE_TIMEOUT: Duration = Duration::from_mins(10);

/// Timeout of a request to a function that is rebuilt after a code change.
const REBUILD_TIMEOUT: Duration = Duration::from_mins(5);

/// Environment variable with the terminal output: `json` for the functions' log lines.
const LOG_VARIABLE: &str = "LOG";

type AnyError = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.command {
        Some(Command::RunInstance { program }) => instance::run(program.as_deref(), report).await,
        None => run(&options).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr)] // Commands print messages to the terminal.
fn report(message: &str) {
    eprintln!("{message}");
}

async fn run(options: &Options) -> Result<(), AnyError> {
    let started = Instant::now();
    let data = options.workspace.join(".local");
    fs::create_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    let listener = listen("PORT", options.port)?;
    let dynamodb = listen("DYNAMODB_PORT", options.dynamodb_port)?;

    report("Starting DynamoDB …");
    let template_file = options.workspace.join("template.yaml");
    let tables = template::read_tables(&template_file)?;
    let schedules = template::read_local_schedules(&template_file)?;
    let examples = Examples::read(&options.workspace.join("openapi.yaml"))?;
    let file = data.join("dynamodb.sqlite");
    let engine = Engine::start(hidden_address(), Some(&file), &tables)?;
    let variables = environment::variables(&format!("http://{}", dynamodb.local_addr()?));
    let guard = Guard::start(dynamodb, engine.endpoint())?;
    let environment_file = data.join(environment::FILE);
    let base_url = format!("http://{}", listener.local_addr()?);
    let mut command_variables = variables;
    command_variables.push((environment::BASE_URL_VARIABLE, base_url.clone()));
    command_variables.extend(environment::outside(&base_url));
    // No metrics: the lines go to a terminal.
    command_variables.push((METRICS_VARIABLE, "off".to_owned()));
    environment::write(&environment_file, &command_variables)?;
    let demo = demo::ensure(&store(&engine)?, &data.join("demo-key")).await?;

    report("Starting the functions …");
    let shows_json = env::var(LOG_VARIABLE).is_ok_and(|log| log == "json");
    let mut watch = Watch::start(&WatchOptions {
        workspace: &options.workspace,
        environment: &environment_file,
        runner: &env::current_exe()?,
        on_line: if shows_json { show_json } else { show },
    })?;
    let stopped = stop_signal()?;
    tokio::select! {
        ready = watch.wait_until_ready(PROBE_FUNCTION, FIRST_RESPONSE_TIMEOUT) => ready?,
        () = stopped => return stop(watch, guard, engine).await,
    }
    let _gateway = Gateway::start(
        listener,
        GatewayOptions {
            workspace: &options.workspace,
            functions: watch.url().to_owned(),
            patience: REBUILD_TIMEOUT,
            report: if shows_json {
                Box::new(|_| ())
            } else {
                Box::new(|it| report(&it.to_string()))
            },
        },
    )?;
    let sign_in = demo::sign_in_link(&store(&engine)?, &base_url).await?;
    report(&welcome(&base_url, &demo, &data, started.elapsed(), &examples)?);
    report(&format!("Sign in as {} (once, within ten minutes)\n  {sign_in}\n", demo::OWNER));
    let functions = watch.url().to_owned();
    tokio::select! {
        ended = watch.ended() => Err(ended.into()),
        () = stop_signal()? => stop(watch, guard, engine).await,
        () = Watch::run_schedules(&functions, &schedules, report) => Ok(()),
    }
}

async fn stop(watch: Watch, guard: Guard, engine: Engine) -> Result<(), AnyError> {
    report("\nStopping …");
    watch.stop().await;
    drop(guard);
    engine.stop().await;
    Ok(())
}

/// Resolves on SIGINT (Ctrl-C) or SIGTERM.
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

/// Prints the lines of functions, builds and `cargo lambda watch` that concern a developer.
fn show(line: &str) {
    match messages::read(line) {
        Message::BuildOutput(text) | Message::Problem(text) => report(&text),
        Message::FunctionLog | Message::Noise => {}
    }
}

/// Prints log lines of functions unchanged to standard output, and other relevant lines to standard
/// error.
#[allow(clippy::print_stdout)] // Programs can read these lines.
fn show_json(line: &str) {
    match messages::read(line) {
        Message::FunctionLog | Message::Problem(_) => println!("{line}"),
        Message::BuildOutput(text) => report(&text),
        Message::Noise => {}
    }
}

fn listen(variable: &str, port: u16) -> Result<TcpListener, AnyError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!(
            "port {port} cannot be used ({error}). Stop the program that uses it, or choose \
             another port: make run {variable}={}",
            port.wrapping_add(1).max(1024)
        )
    })?;
    Ok(listener)
}

fn store(engine: &Engine) -> Result<Store, AnyError> {
    Ok(Store::new(client::for_endpoint(&engine.endpoint())?, environment::table_prefix()))
}

/// Returns commands to paste. Bodies are the examples of `openapi.yaml`, except where ids and times
/// must be new.
fn welcome(
    base_url: &str,
    demo: &Demo,
    data: &Path,
    elapsed: Duration,
    examples: &Examples,
) -> Result<String, ExampleError> {
    let seconds = elapsed.as_secs_f64();
    let Demo { project, key } = demo;
    let (slug, dsn) = (&project.slug, project.dsn(base_url));
    let (ingest_id, public_key) = (project.ingest_id, project.public_key);
    let data = data.display();
    let target = Target { base_url, slug: slug.as_str(), key };
    let curl = |id: &str| examples.curl(id, &[("key", "new-checkout")], target);
    let in_collection = |id: &str| examples.curl(id, &[("collectionId", "$COLLECTION")], target);
    let create_flag = curl("create-feature-flag")?;
    let update_flag = curl("update-feature-flag")?;
    let evaluate_flag = curl("evaluate-feature-flag")?;
    let create_collection = curl("create-event-marker-collection")?;
    let add_markers = in_collection("add-event-markers")?;
    let query_timeseries = curl("query-error-timeseries")?;
    let interpret = curl("interpret-error-filters")?;
    let update_preferences = curl("update-email-preferences")?;
    Ok(format!(
        r#"
Waymark runs at {base_url} (ready after {seconds:.1} s; Ctrl-C stops it).

create-feature-flag, update-feature-flag, evaluate-feature-flag
  curl -i {create_flag}
  curl -i {update_flag}
  curl -i {evaluate_flag}

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
  COLLECTION=$(curl -s {create_collection} \
    | sed 's/.*"id":"\([^"]*\)".*/\1/')
  curl -i {add_markers}
  curl -i -X DELETE {base_url}/v0/projects/{slug}/event-marker-collections/$COLLECTION \
    -H 'x-api-key: {key}'

ingest-error-events, query-error-timeseries
  curl -i '{base_url}/api/{ingest_id}/store/?sentry_key={public_key}' \
    -d '{{"exception": {{"values": [{{"type": "TypeError", "value": "cart is undefined"}}]}},
      "environment": "production", "release": "shop@2.4.1"}}'
  curl -i {query_timeseries}

interpret-error-filters
  curl -i {interpret}

update-email-preferences
  curl -i {update_preferences}

Console              target/debug/waymark --local console (or {base_url}/console and the key above)
OFREP base URL       {base_url}/v0/project/{slug}
API reference        {base_url}/docs (make docs renders it)
DSN for Sentry SDKs  {dsn}
Emails and events    {base_url}/mail (set-email-address sets your address)
Projects and keys    target/debug/waymark --local --help
Data                 {data}/ (make reset deletes it)
"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn welcome_has_an_example_of_each_operation() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let tables = template::read_tables(&root.join("template.yaml")).unwrap();
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let engine = Engine::start(address, None, &tables).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("demo-key");
        let demo = demo::ensure(&store(&engine).unwrap(), &key).await.unwrap();
        let examples = Examples::read(&root.join("openapi.yaml")).unwrap();

        let url = "http://127.0.0.1:9000";
        let text = welcome(url, &demo, folder.path(), Duration::ZERO, &examples).unwrap();
        assert!(text.contains(r#"-d '{"key":"new-checkout","name":"New checkout","#), "{text}");
        assert!(text.contains(r#"-d '{"projectId":"demo","query":"prod errors"#), "{text}");
        // A `/{` would be an unfilled path parameter.
        assert!(!text.contains("/{"), "{text}");
    }
}
