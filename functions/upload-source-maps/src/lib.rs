//! Receives source maps and releases from Sentry's command line and bundler plugins, which need no
//! change: they get Waymark's URL, an organization, a project and an API key as their token.
//!
//! The tools upload chunks, and then have them assembled. Most bundles are assembled immediately, so
//! that the tool shows what is wrong with them. maintain-source-maps assembles larger ones.

mod assembling;
mod releases;

use lambda_http::http::Method as HttpMethod;
use serde_json::json;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, ProblemCode};
use shared::page::PageRequest;
use shared::projects::api_key::Scope;
use shared::projects::project::{IdOrSlug, ProjectId, ProjectSummary};
use source_maps::http::{SENTRY_TOOLS, bad, read_chunks, segments};
use source_maps::store::SourceMapStore;
use source_maps::{CHUNK_BYTES, MAX_CHUNKS};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/api/0/{path}/",
    Access::ApiKey(Scope::SourceMapsWrite, shared::handler!(handle)),
)
.speaking(SENTRY_TOOLS)
.within(COUNTING_TIME_BUDGET);

/// Chunks of a request, which then has at most 4.3 MB. Lambda accepts 6 MB in Base64.
const CHUNKS_PER_REQUEST: usize = 16;
/// Maximum bytes of a request, with the headers of its parts.
const MAX_REQUEST_BYTES: usize = CHUNKS_PER_REQUEST * (CHUNK_BYTES + 1_024);
/// Most projects of a request.
const MAX_PROJECTS: usize = 20;
/// Most projects that a tool can list.
const MAX_LISTED: u32 = 100;

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let segments = segments(incoming.path());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (organization, path) = match segments.as_slice() {
        ["auth" | "organizations"] => (None, segments.as_slice()),
        ["organizations", organization, path @ ..] => (Some(*organization), path),
        ["projects", organization, _, ..] => (Some(*organization), segments.as_slice()),
        _ => return Err(not_found()),
    };
    let own = caller.organization();
    if organization.is_some_and(|it| it != own.as_str()) {
        let detail = format!("The API key belongs to the organization {own}. Use that name.");
        return Err(Problem::new(ProblemCode::ProjectNotFound, detail));
    }
    let organization = json!({"id": own, "slug": own, "name": own, "links": {}});
    match (incoming.method(), path) {
        (&HttpMethod::GET, ["auth"]) => ApiResponse::ok(&json!({})),
        (&HttpMethod::GET, ["organizations"]) => ApiResponse::ok(&json!([organization])),
        (&HttpMethod::GET, []) => ApiResponse::ok(&organization),
        (&HttpMethod::GET, ["projects"]) => {
            let all = PageRequest { limit: MAX_LISTED, after: None };
            let listed = caller.list_projects(&all).await?.items;
            let listed = listed.iter().map(|it| &it.summary);
            let project =
                |it: &ProjectSummary| json!({"id": it.id, "slug": it.slug, "name": it.name});
            ApiResponse::ok(&listed.map(project).collect::<Vec<_>>())
        }
        (&HttpMethod::GET, ["repos"]) => ApiResponse::ok(&json!([])),
        (&HttpMethod::GET, ["releases", .., "previous-with-commits"]) => {
            ApiResponse::ok(&json!({}))
        }
        (&HttpMethod::GET, ["chunk-upload"]) => options(incoming),
        (&HttpMethod::POST, ["chunk-upload"]) => put_chunks(app, caller, incoming).await,
        (&HttpMethod::POST, ["artifactbundle", "assemble"]) => {
            assembling::assemble(app, caller, incoming).await
        }
        (&HttpMethod::POST, ["releases"]) => {
            releases::note(app, caller, incoming, None, None).await
        }
        (&HttpMethod::POST, ["releases", release @ .., "deploys"]) => {
            releases::note_deploy(app, caller, incoming, &release.join("/")).await
        }
        (&HttpMethod::PUT, ["releases", release @ ..]) if !release.is_empty() => {
            releases::note(app, caller, incoming, Some(&release.join("/")), None).await
        }
        (&HttpMethod::POST, ["projects", _, project, "releases"]) => {
            releases::note(app, caller, incoming, None, Some(project)).await
        }
        (&HttpMethod::PUT, ["projects", _, project, "releases", release @ ..])
            if !release.is_empty() =>
        {
            releases::note(app, caller, incoming, Some(&release.join("/")), Some(project)).await
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
    let chunks = read_chunks(incoming)?;
    if chunks.len() > CHUNKS_PER_REQUEST {
        return Err(bad(format!("The body has more than {CHUNKS_PER_REQUEST} chunks.")));
    }
    let (store, now) = (SourceMapStore::new(&app.store), app.clock.now());
    for (checksum, bytes) in &chunks {
        store.put_chunk(caller.organization(), checksum, bytes, now).await?;
    }
    ApiResponse::ok(&json!({}))
}

/// Returns the projects with these IDs or slugs, of which a request names at least one. Sentry's
/// tools name them in either form.
async fn find_projects(caller: &Caller<'_>, names: &[&str]) -> Result<Vec<ProjectId>, Problem> {
    if names.is_empty() || names.len() > MAX_PROJECTS {
        return Err(bad(format!("Name 1 to {MAX_PROJECTS} projects.")));
    }
    let parsed: Vec<Option<IdOrSlug>> = names.iter().map(|name| IdOrSlug::parse(name)).collect();
    let names = names.iter().zip(&parsed).map(|(name, parsed)| (*name, parsed.as_ref()));
    caller.projects(names).await
}
