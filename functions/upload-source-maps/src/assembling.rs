//! Assembles a bundle from its chunks, or names the chunks that are missing. Tools ask again until
//! the bundle is assembled.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use shared::app::App;
use shared::auth::Caller;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Problem, ProblemCode};
use shared::timestamp::Timestamp;
use source_maps::assembly::{self, MAX_REQUEST_BYTES};
use source_maps::bundle::Checksum;
use source_maps::http::{MAX_RELEASE_CHARS, bad};
use source_maps::store::{BundleState, ProjectMaps, SourceMapStore, Upload};
use source_maps::{BundleFault, MAX_CHUNKS};

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
    let stores: Vec<_> = projects.iter().map(|it| ProjectMaps::new(&app.store, *it)).collect();
    let known = known_state(&stores, &upload, app.clock.now()).await?;
    let state = if let Some(state) = known {
        state
    } else {
        let chunks = SourceMapStore::new(&app.store).find_chunks(&upload, app.clock.now());
        let opened = match chunks.await? {
            Ok(bundle) => assembly::open(&upload, bundle),
            Err(missing) => {
                return ApiResponse::ok(&json!({"state": "not_found", "missingChunks": missing}));
            }
        };
        if opened.as_ref().is_ok_and(|bundle| bundle.maps_bytes() > MAX_REQUEST_BYTES) {
            for store in &stores {
                store.queue_bundle(&upload, app.clock.now()).await?;
            }
            Ok("created")
        } else {
            let assembled = assembly::assemble(app, &stores, &upload, opened, LONGEST).await?;
            assembled.map(|is_current| if is_current { "ok" } else { "assembling" })
        }
    };

    // Response. The tools show the fault of a rejected bundle.
    match state {
        Ok(state) => {
            // At the limit of releases of the day, the first event registers the release.
            releases::register(app, &projects, upload.release.as_deref()).await?;
            ApiResponse::ok(&json!({"state": state, "missingChunks": []}))
        }
        Err(BundleFault::Invalid(detail)) => {
            ApiResponse::ok(&json!({"state": "error", "missingChunks": [], "detail": detail}))
        }
        Err(BundleFault::TooLarge(detail)) => Err(Problem::new(ProblemCode::BodyTooLarge, detail)),
        Err(BundleFault::QuotaReached(detail)) => {
            Err(Problem::new(ProblemCode::SourceMapLimitReached, detail))
        }
    }
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
        organization: caller.organization().to_string(),
        checksum: checksum(&body.checksum)?,
        chunks: body.chunks.iter().map(checksum).collect::<Result<_, _>>()?,
        release: short("release", &body.version)?,
        dist: short("distribution", &body.dist)?,
    })
}

/// Returns the state of the bundle, if it is known in all projects.
async fn known_state(
    projects: &[ProjectMaps<'_>],
    upload: &Upload,
    now: Timestamp,
) -> Result<Option<State>, StoreError> {
    let mut known = Some(Ok("ok"));
    for project in projects {
        let bundle = project.find_bundle(&upload.checksum).await?;
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
                return Ok(Some(Err(BundleFault::Invalid(detail))));
            }
            _ => known = None,
        }
    }
    Ok(known)
}
