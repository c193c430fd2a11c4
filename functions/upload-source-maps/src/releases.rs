//! Releases and deploys that the tools name. The responses have the least that satisfies the tools.

use errors::store::{ErrorStore, MAX_NEW_RELEASES, Registrar};
use futures_util::future::try_join_all;
use markers::store::MarkerStore;
use markers::{EventMarker, MarkerSource};
use serde::Deserialize;
use serde_json::json;
use shared::app::App;
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Problem, ProblemCode};
use shared::projects::project::ProjectId;
use shared::text::parse_time;
use source_maps::http::{MAX_RELEASE_CHARS, bad};

use crate::{check, find_projects, list_projects, read};

/// Maximum characters of the texts of a deploy.
const MAX_DEPLOY_CHARS: usize = 200;
/// Maximum characters of the URL of a deploy: those of an event marker's attribute.
const MAX_URL_CHARS: usize = 1_000;

/// The fields of a release (version and its date), and those of a deploy.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    projects: Option<Vec<String>>,
    version: Option<String>,
    date_released: Option<String>,
    environment: Option<String>,
    name: Option<String>,
    url: Option<String>,
    date_started: Option<String>,
    date_finished: Option<String>,
}

/// Registers a release in the projects that the path and the body name. A change of a release
/// (`changed`) can name none.
pub(crate) async fn note(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
    changed: Option<&str>,
    project: Option<&str>,
) -> ApiResult {
    // Request.
    let body: Body = read(incoming)?;
    let release = changed.map(str::to_owned).or(body.version).unwrap_or_default();
    check("release", &release, 1, MAX_RELEASE_CHARS)?;
    let mut names = body.projects.unwrap_or_default();
    names.extend(project.map(str::to_owned));
    let projects = match changed {
        Some(_) if names.is_empty() => Vec::new(),
        _ => find_projects(caller, &names).await?,
    };

    // Storage.
    if !register(app, &projects, Some(&release)).await? {
        return Err(limit_reached("releases"));
    }

    // Response.
    let named: Vec<_> = projects
        .iter()
        .zip(&names)
        .map(|(id, name)| json!({"id": id, "slug": name, "name": name}))
        .collect();
    ApiResponse::ok(&json!({
        "id": 0, "version": release, "dateCreated": app.clock.now(),
        "dateReleased": body.date_released, "projects": named, "newGroups": 0, "url": null,
        "lastEvent": null, "firstEvent": null, "data": {},
    }))
}

/// Registers a release, if any, with its markers, like the first event of the release. Returns
/// `false` if the limit of a project is reached.
pub(crate) async fn register(
    app: &App,
    projects: &[ProjectId],
    release: Option<&str>,
) -> Result<bool, Problem> {
    let Some(release) = release else { return Ok(true) };
    let (errors, markers) = (ErrorStore::new(&app.store), MarkerStore::new(&app.store));
    let now = app.clock.now();
    for project in projects {
        let marker = EventMarker::of_release(*project, release, now);
        let add = || markers.automatic_event(*project, MarkerSource::Releases, &marker, now);
        if errors.see_release(*project, release, Registrar::Tool, add, now).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds a deploy of a known release to the projects that the body names, else to all that know the
/// release: as an event marker of each collection of releases.
pub(crate) async fn note_deploy(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
    release: &str,
) -> ApiResult {
    // Request.
    let body: Body = read(incoming)?;
    let [environment, name, url] =
        [body.environment, body.name, body.url].map(Option::unwrap_or_default);
    check("release", release, 1, MAX_RELEASE_CHARS)?;
    check("environment", &environment, 1, MAX_DEPLOY_CHARS)?;
    check("name", &name, 0, MAX_DEPLOY_CHARS)?;
    check("url", &url, 0, MAX_URL_CHARS)?;
    let time = |name: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(parse_time).transpose();
        parsed.map_err(|fault| bad(format!("The date `{name}` is invalid: {}.", fault.message)))
    };
    let started_at = time("dateStarted", &body.date_started)?;
    let finished_at = time("dateFinished", &body.date_finished)?;
    let names = body.projects.unwrap_or_default();
    let projects: Vec<ProjectId> = if names.is_empty() {
        list_projects(caller).await?.iter().map(|it| it.id).collect()
    } else {
        find_projects(caller, &names).await?
    };

    // Rules: each project that is named knows the release.
    let (errors, markers) = (ErrorStore::new(&app.store), MarkerStore::new(&app.store));
    let now = app.clock.now();
    let finds = projects.iter().map(|project| errors.find_release(*project, release, now));
    let found = try_join_all(finds).await?;
    let known = projects.iter().zip(&found).filter_map(|(it, seen)| seen.map(|_| *it));
    let known: Vec<ProjectId> = known.collect();
    if known.is_empty() || (!names.is_empty() && known.len() < projects.len()) {
        let detail = format!(
            "The release {release} is unknown. Create it first: sentry-cli releases new {release}."
        );
        return Err(Problem::new(ProblemCode::ProjectNotFound, detail));
    }

    // Storage. The ID does not depend on the time of the request: a repetition has the same.
    let title = format!("{release} deployed to {environment}");
    let identity = json!(["deploy", release, environment, name, url, started_at, finished_at]);
    let identity = identity.to_string();
    let attributes = [("release", release), ("environment", &environment), ("url", &url)];
    let attributes = attributes.into_iter().filter(|(_, value)| !value.is_empty());
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let at = finished_at.unwrap_or(now);
    let deploy = EventMarker::automatic(&identity, &title, &name, attributes, at);
    for project in known {
        let add = || markers.automatic_event(project, MarkerSource::Releases, &deploy, now);
        if !errors.see_deploy(project, deploy.id, add, now).await? {
            return Err(limit_reached("deploys"));
        }
    }

    // Response.
    ApiResponse::ok(&json!({
        "id": deploy.id, "environment": environment, "name": name, "url": url,
        "dateStarted": body.date_started, "dateFinished": at,
    }))
}

fn limit_reached(what: &str) -> Problem {
    let detail = format!(
        "The project got {MAX_NEW_RELEASES} new {what} today, which is the limit. Try again \
         tomorrow (UTC)."
    );
    Problem::new(ProblemCode::SourceMapLimitReached, detail)
}
