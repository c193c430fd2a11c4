//! Creates a feature flag (`interface.md` §4.1): POST `/v0/project/{idOrSlug}/feature-flags`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, ProblemCode};
use shared::models::api_key::Scope;
use shared::models::feature_flag::FeatureFlag;
use shared::models::feature_flag::draft::FlagDraft;
use shared::store::{FlagCreation, Idempotent};

/// The operation's name in `openapi.yaml`, in the logs and among idempotency keys.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request, in the order of checks that contract.md §1 lays down.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsWrite)?;
    let request = incoming.idempotent(caller.key_id(), OPERATION)?;
    let project_id = caller.project()?;
    let draft = FlagDraft::read(&incoming.json()?)?;

    // Rules: whatever one body alone can tell was checked on reading it.
    let now = app.clock.now();
    let flag = draft.into_flag(project_id, now, || app.ids.new_uuid(now))?;
    let answer = Answer::created(&location(&flag), &flag)?.with_version(flag.version)?;

    // Storage: whatever depends on other flags is a condition of this one transaction.
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
    let outcome = app.store.create_flag(&flag, idempotent).await?;

    // Answer.
    match outcome {
        FlagCreation::Created => Ok(answer),
        FlagCreation::Repetition(repetition) => Answer::repeated(repetition),
        FlagCreation::PrerequisitesRefused(violations) => Err(violations.into()),
        FlagCreation::KeyTaken => Err(flag_exists(&flag)),
        FlagCreation::LimitReached => Err(Problem::flag_limit_reached()),
    }
}

fn location(flag: &FeatureFlag) -> String {
    format!("/v0/project/{}/feature-flags/{}", flag.project_id, flag.key)
}

fn flag_exists(flag: &FeatureFlag) -> Problem {
    let key = &flag.key;
    let detail = format!(
        "The project has a flag with the key {key}, perhaps an archived one. Choose another key, \
         or delete that flag."
    );
    Problem::new(ProblemCode::FlagExists, detail)
}
