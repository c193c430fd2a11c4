//! Interprets a query in natural language as error filters (`interface.md` §4.5): POST
//! `/v0/errors/filters/interpret`.

pub mod interpretation;
pub mod question;

use std::iter;

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

use interpretation::interpret;
use question::Question;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request, in the order of checks that contract.md §1 lays down. Nothing of the project is read:
    // all that a query can name comes with it.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsRead)?;
    let question = Question::read(&incoming.json()?)?;
    let project = &question.project;
    caller.projects(app, iter::once((project.written.as_str(), project.name.as_ref()))).await?;

    // Rules.
    let interpretation = interpret(&question.request());

    // Answer.
    Answer::ok(&question.answer(interpretation.filters))
}
