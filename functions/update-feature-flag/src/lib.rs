//! Changes, archives, unarchives or restores a feature flag.

use flags::history::ChangeKind;
use flags::store::{FlagReplacement, FlagStore};
use flags::update::{FlagUpdate, unknown_version, unrestorable};
use flags::{FeatureFlag, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/project/{idOrSlug}/feature-flags/{key}",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let body = incoming.merge_patch()?;
    let update = FlagUpdate::check(&body)?;
    let key = http::flag_key(incoming)?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current flag.
        let stored = FlagStore::new(&app.store).find_flag(project_id, &key).await?;
        let stored = stored.ok_or_else(http::flag_not_found)?;

        // Rules.
        if_match.check(stored.tag())?;
        let (flag, kind) = match &update {
            FlagUpdate::Patch(patch) => {
                let flag = patch.apply(&stored, now, || app.ids.new_uuid(now))?;
                let kind = ChangeKind::of(&stored, &flag);
                (flag, kind)
            }
            FlagUpdate::Restore(version) => {
                (restored(app, &stored, *version, now).await?, ChangeKind::Restored)
            }
        };
        let response = ApiResponse::ok(&flag)?.with_version(flag.tag())?;
        if flag == stored {
            return Ok(response);
        }
        if stored.archived_at.is_some() && flag.archived_at.is_some() {
            return Err(http::flag_archived());
        }

        // Storage and response.
        let entry = caller.audit(&app.ids, kind.audit_action(), flag.audit_target());
        match FlagStore::new(&app.store).replace_flag(&stored, &flag, kind, &entry).await? {
            FlagReplacement::Done => return Ok(response),
            FlagReplacement::Outdated => {}
            FlagReplacement::LimitReached(limit) => {
                return Err(http::project_limit_reached(limit));
            }
            FlagReplacement::InvalidReferences(violations) => {
                return Err(match update {
                    FlagUpdate::Patch(_) => violations.into(),
                    FlagUpdate::Restore(_) => unrestorable(&violations).into(),
                });
            }
            FlagReplacement::InUse(dependents) => return Err(http::flag_in_use(&dependents)),
        }
    }
    Err(Problem::conflict("the flag or its dependencies kept changing"))
}

/// Reads an earlier version, and returns the flag in that state.
async fn restored(
    app: &App,
    stored: &FeatureFlag,
    version: u64,
    now: Timestamp,
) -> Result<FeatureFlag, Problem> {
    if stored.archived_at.is_some() {
        return Err(http::flag_archived());
    }
    if version == stored.version {
        return Ok(stored.clone());
    }
    let state = FlagStore::new(&app.store).find_flag_state(stored, version, now).await?;
    let state = state.ok_or_else(unknown_version)?;
    Ok(state.restored(stored, now))
}
