//! Assembles a bundle from its chunks, or names the chunks that are missing. Tools ask again until
//! the bundle is assembled.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use shared::app::App;
use shared::auth::Caller;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Problem, ProblemCode};
use shared::projects::project::ProjectId;
use source_maps::assembly::{self, MAX_REQUEST_BYTES, Outcome};
use source_maps::bundle::{Bundle, Checksum};
use source_maps::http::{MAX_RELEASE_CHARS, bad};
use source_maps::store::{BundleState, SourceMapStore, Upload};
use source_maps::{BundleFault, FaultKind, MAX_CHUNKS};

use crate::{check, find_projects, read, releases};

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

/// The state of a bundle in the words of the tools, or the reason why it is rejected.
type State = Result<&'static str, BundleFault>;

pub(crate) async fn assemble(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let body: Body = read(incoming)?;
    let upload = read_upload(caller, &body)?;
    let projects = find_projects(caller, &body.projects).await?;

    // Rules and storage. An earlier request can have assembled the bundle.
    let state = if let Some(state) = known_state(app, &projects, &upload).await? {
        state
    } else {
        let store = SourceMapStore::new(&app.store);
        let chunks = store.find_chunks(&upload, app.clock.now()).await?;
        let missing = upload.chunks.iter().filter(|it| !chunks.contains_key(it));
        let missing: Vec<&Checksum> = missing.collect();
        if !missing.is_empty() {
            return ApiResponse::ok(&json!({"state": "not_found", "missingChunks": missing}));
        }
        let opened = assembly::open(&upload, &chunks);
        drop(chunks);
        assemble_or_queue(app, &projects, &upload, opened).await?
    };

    // Response. At the limit of releases of the day, the first event registers the release.
    match state {
        Ok(state) => {
            releases::register(app, &projects, upload.release.as_deref()).await?;
            ApiResponse::ok(&json!({"state": state, "missingChunks": []}))
        }
        Err(fault) => rejected(&fault),
    }
}

async fn assemble_or_queue(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    opened: Result<Bundle, BundleFault>,
) -> Result<State, StoreError> {
    if opened.as_ref().is_ok_and(|opened| opened.maps_bytes() > MAX_REQUEST_BYTES) {
        for project in projects {
            let store = SourceMapStore::new(&app.store);
            store.queue_bundle(*project, upload, app.clock.now()).await?;
        }
        return Ok(Ok("created"));
    }
    Ok(match assembly::assemble(app, projects, upload, opened, LONGEST).await? {
        Outcome::Assembled => Ok("ok"),
        Outcome::Removed => Ok("assembling"),
        Outcome::Rejected(fault) => Err(fault),
    })
}

fn read_upload(caller: &Caller<'_>, body: &Body) -> Result<Upload, Problem> {
    if body.chunks.len() > MAX_CHUNKS {
        let detail = format!(
            "The bundle has {} chunks, but the limit is {MAX_CHUNKS}. Upload fewer files at a time.",
            body.chunks.len()
        );
        return Err(Problem::new(ProblemCode::BodyTooLarge, detail));
    }
    let checksum = |text: &String| {
        Checksum::parse(text).ok_or_else(|| bad(format!("`{text:.60}` is not a SHA-1.")))
    };
    let short = |name: &str, text: &Option<String>| {
        let text = text.clone().filter(|text| !text.is_empty());
        text.as_ref().map(|text| check(name, text, 1, MAX_RELEASE_CHARS)).transpose()?;
        Ok::<_, Problem>(text)
    };
    Ok(Upload {
        organization: caller.organization().clone(),
        checksum: checksum(&body.checksum)?,
        chunks: body.chunks.iter().map(checksum).collect::<Result<_, _>>()?,
        release: short("release", &body.version)?,
        dist: short("distribution", &body.dist)?,
    })
}

/// Returns the state of the bundle, if it is known in all projects.
async fn known_state(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
) -> Result<Option<State>, StoreError> {
    let (store, now) = (SourceMapStore::new(&app.store), app.clock.now());
    let mut known = Some(Ok("ok"));
    for project in projects {
        let bundle = store.find_bundle(*project, &upload.checksum).await?;
        // The same files can belong to another release now.
        let bundle = bundle
            .filter(|it| (&it.upload.release, &it.upload.dist) == (&upload.release, &upload.dist));
        match bundle.map(|bundle| bundle.state) {
            Some(BundleState::Assembled) => {}
            Some(BundleState::Queued) => return Ok(Some(Ok("created"))),
            Some(BundleState::Assembling(until)) if until > now => {
                return Ok(Some(Ok("assembling")));
            }
            Some(BundleState::Failed { detail, at }) if at.plus(FAILURE_SHOWN) > now => {
                return Ok(Some(Err(BundleFault::invalid(detail))));
            }
            _ => known = None,
        }
    }
    Ok(known)
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
