//! Assembles a bundle from its chunks, or names the chunks that are missing. Tools ask again until
//! the bundle is assembled.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use shared::app::App;
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Problem, ProblemCode};
use shared::projects::project::ProjectId;
use source_maps::assembly::{self, MAX_REQUEST_BYTES, Outcome};
use source_maps::bundle::Checksum;
use source_maps::http::{MAX_RELEASE_CHARS, bad};
use source_maps::store::{BundleState, SourceMapStore, Upload};
use source_maps::{BundleFault, FaultKind, MAX_CHUNKS};

/// Longest time of a request.
const LONGEST: Duration = Duration::from_secs(30);
/// Time for which a tool that waits for a queued bundle sees its failure. After that, the bundle can
/// be uploaded again.
const FAILURE_SHOWN: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
struct Body {
    checksum: String,
    chunks: Vec<String>,
    #[serde(default)]
    projects: Vec<String>,
    version: Option<String>,
    dist: Option<String>,
}

pub(crate) async fn assemble(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    incoming.json()?;
    let body: Body = serde_json::from_slice(incoming.body())
        .map_err(|error| bad(format!("The body is not an assembly request: {error}.")))?;
    let upload = read_upload(caller, &body)?;
    let names: Vec<&str> = body.projects.iter().map(String::as_str).collect();
    let projects = super::find_projects(caller, &names).await?;

    // An earlier request can have assembled the bundle.
    let store = SourceMapStore::new(&app.store);
    if let Some(response) = known_state(app, &projects, &upload).await? {
        return Ok(response);
    }
    let now = app.clock.now();
    let chunks = store.find_chunks(caller.organization(), &upload.chunks, now).await?;
    let missing = upload.chunks.iter().filter(|it| !chunks.contains_key(it));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if !missing.is_empty() {
        return ApiResponse::ok(&json!({"state": "not_found", "missingChunks": missing}));
    }

    // Rules and storage.
    let bundle = match assembly::join(&upload, &chunks) {
        Ok(bundle) => bundle,
        Err(fault) => return rejected(&fault),
    };
    drop(chunks);
    let opened = assembly::open(&upload, &bundle);
    if opened.as_ref().is_ok_and(|opened| opened.maps_bytes() > MAX_REQUEST_BYTES) {
        for project in &projects {
            store.queue_bundle(*project, &upload, now).await?;
        }
        note_release(app, &projects, &upload).await?;
        return state("created");
    }
    let outcome = assembly::assemble(app, &projects, &upload, opened, LONGEST).await?;

    // Response.
    match outcome {
        Outcome::Assembled => {
            note_release(app, &projects, &upload).await?;
            state("ok")
        }
        Outcome::Removed => state("assembling"),
        Outcome::Rejected(fault) => rejected(&fault),
    }
}

/// Registers the release of an upload. At the limit of the day, its first event does.
async fn note_release(app: &App, projects: &[ProjectId], upload: &Upload) -> Result<(), Problem> {
    if let Some(release) = &upload.release {
        crate::releases::register(app, projects, release).await?;
    }
    Ok(())
}

fn read_upload(caller: &Caller<'_>, body: &Body) -> Result<Upload, Problem> {
    let checksum = |text: &String| {
        Checksum::parse(text).ok_or_else(|| bad(format!("`{text:.60}` is not a SHA-1.")))
    };
    if body.chunks.len() > MAX_CHUNKS {
        let detail = format!(
            "The bundle has {} chunks, but the limit is {MAX_CHUNKS}. Upload fewer files at a time.",
            body.chunks.len()
        );
        return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
    }
    let chunks: Vec<Checksum> = body.chunks.iter().map(checksum).collect::<Result<_, _>>()?;
    let short = |name: &str, text: &Option<String>| match text {
        Some(text)
            if text.chars().count() > MAX_RELEASE_CHARS || text.chars().any(char::is_control) =>
        {
            let detail = format!(
                "The {name} has more than {MAX_RELEASE_CHARS} characters or control characters."
            );
            Err(bad(detail))
        }
        Some(text) if text.is_empty() => Ok(None),
        text => Ok(text.clone()),
    };
    Ok(Upload {
        organization: caller.organization().clone(),
        checksum: checksum(&body.checksum)?,
        chunks,
        release: short("release", &body.version)?,
        dist: short("distribution", &body.dist)?,
    })
}

/// Returns the response if the state of the bundle in all projects is known.
async fn known_state(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
) -> Result<Option<ApiResponse>, Problem> {
    let store = SourceMapStore::new(&app.store);
    let now = app.clock.now();
    let mut is_assembled = true;
    for project in projects {
        let bundle = store.find_bundle(*project, &upload.checksum).await?;
        // The same files can belong to another release now.
        let bundle = bundle
            .filter(|it| (&it.upload.release, &it.upload.dist) == (&upload.release, &upload.dist));
        let response = match bundle.map(|bundle| bundle.state) {
            Some(BundleState::Assembled) => continue,
            Some(BundleState::Queued) => state("created"),
            Some(BundleState::Assembling(until)) if until > now => state("assembling"),
            Some(BundleState::Failed { detail, at }) if at.plus(FAILURE_SHOWN) > now => {
                rejected(&BundleFault { kind: FaultKind::Invalid, detail })
            }
            _ => {
                is_assembled = false;
                continue;
            }
        };
        return response.map(Some);
    }
    if !is_assembled {
        return Ok(None);
    }
    note_release(app, projects, upload).await?;
    state("ok").map(Some)
}

fn state(state: &str) -> ApiResult {
    ApiResponse::ok(&json!({"state": state, "missingChunks": []}))
}

/// Returns the response for a rejected bundle, which the tools show.
fn rejected(fault: &BundleFault) -> ApiResult {
    let code = match fault.kind {
        FaultKind::Invalid => {
            let body = json!({"state": "error", "missingChunks": [], "detail": fault.detail});
            return ApiResponse::ok(&body);
        }
        FaultKind::TooLarge => ProblemCode::BodyTooLarge,
        FaultKind::QuotaReached => ProblemCode::SourceMapLimitReached,
    };
    Err(Problem::new(code, fault.detail.clone()))
}
