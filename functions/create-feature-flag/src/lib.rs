//! Creates a feature flag.

use flags::draft::FlagDraft;
use flags::history::ChangeKind;
use flags::store::{FlagCreation, FlagStore};
use flags::{FeatureFlag, FlagKey, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, ProblemCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/feature-flags",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    let project_id = caller.project()?;
    let draft = FlagDraft::read(&incoming.json()?)?;

    // Rules: parsing has already checked the rules within the body.
    let now = app.clock.now();
    let flag = draft.into_flag(project_id, now, || app.ids.new_uuid(now))?;

    // Storage: conditions on other flags are part of one transaction.
    let key = flag.key.clone();
    let stored = |flag: &FeatureFlag| respond(flag).map(|response| response.to_stored());
    let store = FlagStore::new(&app.store);
    let entry = caller.audit(&app.ids, ChangeKind::Created.audit_action(), flag.audit_target());
    let outcome = store.create_flag(flag, &entry, request.as_ref(), stored).await?;

    // Response.
    match outcome {
        FlagCreation::Created(flag) => respond(&flag),
        FlagCreation::Replay(replay) => ApiResponse::replay(replay),
        FlagCreation::InvalidReferences(violations) => Err(violations.into()),
        FlagCreation::KeyTaken => Err(flag_exists(&key)),
        FlagCreation::LimitReached(limit) => Err(http::project_limit_reached(limit)),
    }
}

fn respond(flag: &FeatureFlag) -> ApiResult {
    let location = format!("/v0/project/{}/feature-flags/{}", flag.project_id, flag.key);
    ApiResponse::created(&location, flag)?.with_version(flag.tag())
}

fn flag_exists(key: &FlagKey) -> Problem {
    let detail = format!(
        "The project already has a flag with the key {key}, possibly archived. Choose another key, \
         or delete that flag."
    );
    Problem::new(ProblemCode::FlagExists, detail)
}
