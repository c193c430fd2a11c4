//! Evaluates a feature flag for `OpenFeature`'s providers (OFREP).

use std::sync::Arc;

use shared::app::App;
use shared::app::{Access, Operation};
use shared::auth::Caller;
use shared::flags::FlagKey;
use shared::flags::evaluation::Flags;
use shared::flags::ofrep::{self, OFREP};
use shared::http::{Answer, Incoming, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}",
    Access::ApiKey(Scope::FlagsEvaluate, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
)
.speaking(OFREP);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let project_id = caller.project()?;
    let asked = incoming.evaluated_key();
    let context = match incoming.evaluation_context() {
        Ok(context) => context,
        Err(failure) => return failure.for_flag(&asked).try_into(),
    };

    // Storage: the flag and what it depends on, unless it is remembered.
    let flags = match FlagKey::parse(&asked) {
        Ok(key) => app.evaluated_flag(project_id, &key, incoming.freshness()).await?,
        // What is no key is the key of no flag.
        Err(_) => Arc::new(Flags::new(project_id, [])),
    };

    // Rules and answer.
    ofrep::evaluate_one(&flags, &asked, &context, app.clock.now()).try_into()
}
