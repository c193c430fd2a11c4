//! Releases and deploys that the tools name. The responses have the least that satisfies the tools.

use serde::Deserialize;
use serde_json::json;
use shared::app::App;
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, Problem};
use source_maps::http::{MAX_RELEASE_CHARS, bad};
use source_maps::store::SourceMapStore;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    version: Option<String>,
    projects: Option<Vec<String>>,
    date_released: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeployBody {
    environment: Option<String>,
    name: Option<String>,
    url: Option<String>,
    date_started: Option<String>,
    date_finished: Option<String>,
}

/// Notes a release in the projects that the path and the body name.
pub(crate) async fn note(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
    release: Option<&str>,
    project: Option<&str>,
) -> Result<ApiResponse, Problem> {
    // Request.
    let body: Body = read(incoming)?;
    let release = release.map(str::to_owned).or(body.version).unwrap_or_default();
    check_release(&release)?;
    let mut names: Vec<&str> = body.projects.iter().flatten().map(String::as_str).collect();
    names.extend(project);
    let projects = super::find_projects(caller, &names).await?;

    // Storage: one place for all that follows from a new release.
    let now = app.clock.now();
    for project in &projects {
        SourceMapStore::new(&app.store).note_release(*project, &release, now).await?;
    }

    // Response.
    let named: Vec<_> = projects
        .iter()
        .zip(&names)
        .map(|(id, name)| json!({"id": id, "slug": name, "name": name}))
        .collect();
    ApiResponse::ok(&json!({
        "id": 0, "version": release, "dateCreated": now, "dateReleased": body.date_released,
        "projects": named, "newGroups": 0, "url": null, "lastEvent": null, "firstEvent": null,
        "data": {},
    }))
}

/// Accepts a deploy.
pub(crate) fn note_deploy(incoming: &ApiRequest, release: &str) -> Result<ApiResponse, Problem> {
    let body: DeployBody = read(incoming)?;
    check_release(release)?;
    ApiResponse::ok(&json!({
        "id": "0", "environment": body.environment.unwrap_or_default(), "name": body.name,
        "url": body.url, "dateStarted": body.date_started, "dateFinished": body.date_finished,
    }))
}

fn read<T: for<'de> Deserialize<'de>>(incoming: &ApiRequest) -> Result<T, Problem> {
    incoming.json()?;
    serde_json::from_slice(incoming.body())
        .map_err(|error| bad(format!("The body cannot be read: {error}.")))
}

fn check_release(release: &str) -> Result<(), Problem> {
    let length = release.chars().count();
    if (1..=MAX_RELEASE_CHARS).contains(&length) && !release.chars().any(char::is_control) {
        return Ok(());
    }
    Err(bad(format!(
        "The release must have 1 to {MAX_RELEASE_CHARS} characters without control characters."
    )))
}
