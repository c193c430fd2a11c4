//! Interprets a query in natural language as error filters (`interface.md` §4.5): POST
//! `/v0/errors/filters/interpret`.

pub mod interpretation;
pub mod question;
pub mod second_opinion;

use std::iter;
use std::time::Instant;

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

use interpretation::interpret;
use question::Question;
use second_opinion::{Model, review};

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request. `model` may be asked about queries that are not wholly understood.
pub async fn handle(
    app: &App,
    incoming: &Incoming,
    model: Option<&Model>,
) -> Result<Answer, Problem> {
    let started = Instant::now();

    // Request, in the order of checks that contract.md §1 lays down. Nothing of the project is read:
    // all that a query can name comes with it.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsRead)?;
    let question = Question::read(&incoming.json()?)?;
    let project = &question.project;
    caller.projects(app, iter::once((project.written.as_str(), project.name.as_ref()))).await?;

    // Rules.
    let request = question.request();
    let interpretation = interpret(&request);
    let filters = match model {
        Some(model) => review(model, app, incoming, started, &request, interpretation).await,
        None => interpretation.filters,
    };

    // Answer.
    Answer::ok(&question.answer(filters))
}
