//! Creates a feature flag.

use flags::draft::FlagDraft;
use flags::store::{FlagCreation, FlagStore};
use flags::{FeatureFlag, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::Idempotent;
use shared::http::{Answer, Incoming, Method, Problem, ProblemCode};
use shared::idempotency::IdempotentRequest;
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/feature-flags",
    Access::ApiKey(Scope::FlagsWrite, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let request = incoming.idempotent(caller.key_id())?;
    let project_id = caller.project()?;
    let draft = FlagDraft::read(&incoming.json()?)?;

    // Rules: whatever one body alone can tell was checked on reading it.
    let now = app.clock.now();
    let flag = draft.into_flag(project_id, now, || app.ids.new_uuid(now))?;

    // Storage and answer.
    let request = request.as_ref();
    match create(app, caller, &flag, request).await? {
        (FlagCreation::Successor, _) => {
            let successor = FeatureFlag { is_successor: true, ..flag };
            let (outcome, answer) = create(app, caller, &successor, request).await?;
            answered(&successor, outcome, answer)
        }
        (outcome, answer) => answered(&flag, outcome, answer),
    }
}

/// Stores a flag, with the answer that it gets then. Whatever depends on other flags is a condition of one
/// transaction.
async fn create(
    app: &App,
    caller: &Caller<'_>,
    flag: &FeatureFlag,
    request: Option<&IdempotentRequest>,
) -> Result<(FlagCreation, Answer), Problem> {
    let answer = Answer::created(&location(flag), flag)?.with_version(flag.tag())?;
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request, &stored_answer);
    Ok((FlagStore::new(&app.store).create_flag(flag, &caller.author(), idempotent).await?, answer))
}

fn answered(flag: &FeatureFlag, outcome: FlagCreation, answer: Answer) -> Result<Answer, Problem> {
    match outcome {
        FlagCreation::Created => Ok(answer),
        FlagCreation::Replay(replay) => Answer::replay(replay),
        FlagCreation::ReferencesRefused(violations) => Err(violations.into()),
        FlagCreation::KeyTaken => Err(flag_exists(flag)),
        FlagCreation::LimitReached(limit) => Err(http::project_limit_reached(limit)),
        FlagCreation::Successor => Err(Problem::internal("a successor is to be made as one")),
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
