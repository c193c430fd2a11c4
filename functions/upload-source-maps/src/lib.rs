//! Receives source maps and releases from Sentry's command line and bundler plugins, which need no
//! change: they get Waymark's URL, an organization, a project and an API key as their token.
//!
//! The tools upload chunks, and then have them assembled. Most bundles are assembled immediately, so
//! that the tool shows what is wrong with them. maintain-source-maps assembles larger ones.

mod assembling;
mod releases;

use serde::Deserialize;
use serde_json::json;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, ProblemCode};
use shared::page::PageRequest;
use shared::projects::api_key::Scope;
use shared::projects::project::{IdOrSlug, ProjectId, ProjectSummary};
use shared::text::check_label;
use source_maps::http::{SENTRY_TOOLS, bad, read_chunks, segments};
use source_maps::store::SourceMapStore;
use source_maps::{CHUNK_BYTES, CHUNKS_PER_REQUEST, MAX_CHUNKS};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/api/0/{path}/",
    Access::ApiKey(Scope::SourceMapsWrite, shared::handler!(handle)),
)
.speaking(SENTRY_TOOLS)
.within(COUNTING_TIME_BUDGET);

/// Maximum bytes of a request, with the headers of its parts.
const MAX_REQUEST_BYTES: usize = CHUNKS_PER_REQUEST * (CHUNK_BYTES + 1_024);
/// Most projects of a request.
const MAX_PROJECTS: usize = 20;
/// Most projects that a tool can list.
const MAX_LISTED: u32 = 100;

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let segments = segments(incoming.path());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (organization, project, path) = match segments.as_slice() {
        path @ ["auth" | "organizations"] => (None, None, path),
        ["organizations", organization, path @ ..] => (Some(*organization), None, path),
        ["projects", organization, project, path @ ..] => {
            (Some(*organization), Some(*project), path)
        }
        _ => return Err(not_found()),
    };
    let own = caller.organization();
    if organization.is_some_and(|it| it != own.as_str()) {
        let detail = format!("The API key belongs to the organization {own}. Use that name.");
        return Err(Problem::new(ProblemCode::ProjectNotFound, detail));
    }
    let organization = json!({"id": own, "slug": own, "name": own, "links": {}});
    match (incoming.method().as_str(), project, path) {
        ("GET", None, ["auth"] | ["releases", .., "previous-with-commits"]) => {
            ApiResponse::ok(&json!({}))
        }
        ("GET", None, ["organizations"]) => ApiResponse::ok(&json!([organization])),
        ("GET", None, []) => ApiResponse::ok(&organization),
        ("GET", None, ["projects"]) => {
            let listed = list_projects(caller).await?;
            let project =
                |it: &ProjectSummary| json!({"id": it.id, "slug": it.slug, "name": it.name});
            ApiResponse::ok(&listed.iter().map(project).collect::<Vec<_>>())
        }
        ("GET", None, ["repos"]) => ApiResponse::ok(&json!([])),
        ("GET", None, ["chunk-upload"]) => options(incoming),
        ("POST", None, ["chunk-upload"]) => put_chunks(app, caller, incoming).await,
        ("POST", None, ["artifactbundle", "assemble"]) => {
            assembling::assemble(app, caller, incoming).await
        }
        ("POST", None, ["releases", release @ .., "deploys"]) => {
            releases::note_deploy(app, caller, incoming, &release.join("/")).await
        }
        ("POST", project, ["releases"]) => {
            releases::note(app, caller, incoming, None, project).await
        }
        ("PUT", project, ["releases", release @ ..]) if !release.is_empty() => {
            releases::note(app, caller, incoming, Some(&release.join("/")), project).await
        }
        _ => Err(not_found()),
    }
}

/// 404: the tools use a part of Sentry's API that is not supported.
fn not_found() -> Problem {
    let detail =
        "Waymark does not support this path of Sentry's API. It takes source maps and releases.";
    Problem::new(ProblemCode::ProjectNotFound, detail)
}

/// Returns how to upload chunks. The command line needs an absolute URL, and the bundler plugins one
/// of the host that they were given.
fn options(incoming: &ApiRequest) -> ApiResult {
    let base = incoming.base_url().unwrap_or_default();
    ApiResponse::ok(&json!({
        "url": format!("{base}{}", incoming.path()),
        "chunkSize": CHUNK_BYTES,
        "chunksPerRequest": CHUNKS_PER_REQUEST,
        "maxFileSize": MAX_CHUNKS * CHUNK_BYTES,
        "maxRequestSize": CHUNKS_PER_REQUEST * CHUNK_BYTES,
        "concurrency": 4,
        "hashAlgorithm": "sha1",
        "compression": ["gzip"],
        // Without the first, older versions upload single files. Without the second, they upload
        // chunks that are already there.
        "accept": ["release_files", "artifact_bundles", "artifact_bundles_v2"],
    }))
}

/// Stores the chunks of a request.
async fn put_chunks(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let length = incoming.body().len();
    if length > MAX_REQUEST_BYTES {
        let detail = format!(
            "The body has {length} bytes, but the limit is {MAX_REQUEST_BYTES}. Send fewer chunks."
        );
        return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
    }
    let chunks = read_chunks(incoming).await?;
    let (store, now) = (SourceMapStore::new(&app.store), app.clock.now());
    for (checksum, bytes) in &chunks {
        store.put_chunk(caller.organization().as_str(), checksum, bytes, now).await?;
    }
    ApiResponse::ok(&json!({}))
}

/// Returns the projects with these IDs or slugs, of which a request names at least one. Sentry's
/// tools name them in either form.
async fn find_projects(caller: &Caller<'_>, names: &[String]) -> Result<Vec<ProjectId>, Problem> {
    if names.is_empty() || names.len() > MAX_PROJECTS {
        return Err(bad(format!("Name 1 to {MAX_PROJECTS} projects.")));
    }
    let parsed: Vec<Option<IdOrSlug>> = names.iter().map(|name| IdOrSlug::parse(name)).collect();
    let names = names.iter().zip(&parsed).map(|(name, parsed)| (name.as_str(), parsed.as_ref()));
    caller.projects(names).await
}

/// Returns the projects that a tool can list.
async fn list_projects(caller: &Caller<'_>) -> Result<Vec<ProjectSummary>, Problem> {
    let all = PageRequest { limit: MAX_LISTED, after: None };
    let listed = caller.list_projects(&all).await?.items;
    Ok(listed.into_iter().map(|it| it.summary).collect())
}

/// Reads a JSON body.
fn read<T: for<'de> Deserialize<'de>>(incoming: &ApiRequest) -> Result<T, Problem> {
    incoming.json()?;
    serde_json::from_slice(incoming.body())
        .map_err(|error| bad(format!("The body cannot be read: {error}.")))
}

/// Fails if a text is too short or too long, or has control characters.
fn check(name: &str, text: &str, least: usize, most: usize) -> Result<(), Problem> {
    check_label(text, least, most)
        .map_err(|fault| bad(format!("The {name} is invalid: {}.", fault.message)))
}
