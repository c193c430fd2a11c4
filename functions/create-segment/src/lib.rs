//! Creates a segment.

use flags::segment::SegmentDraft;
use flags::store::{FlagStore, SegmentCreation};
use flags::{Segment, http};
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
    "/v0/project/{idOrSlug}/segments",
    Access::ApiKey(Scope::FlagsWrite, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let request = incoming.idempotent(caller.key_id())?;
    let project_id = caller.project()?;
    let draft = SegmentDraft::read(&incoming.json()?)?;

    // Rules.
    let now = app.clock.now();
    let segment = draft.into_segment(project_id, now, app.ids.new_uuid(now))?;

    // Storage and answer.
    let request = request.as_ref();
    match create(app, &segment, request).await? {
        (SegmentCreation::Successor, _) => {
            let successor = Segment { is_successor: true, ..segment };
            let (outcome, answer) = create(app, &successor, request).await?;
            answered(&successor, outcome, answer)
        }
        (outcome, answer) => answered(&segment, outcome, answer),
    }
}

/// Stores a segment, with the answer that it gets then.
async fn create(
    app: &App,
    segment: &Segment,
    request: Option<&IdempotentRequest>,
) -> Result<(SegmentCreation, Answer), Problem> {
    let answer = Answer::created(&location(segment), segment)?.with_version(segment.tag())?;
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request, &stored_answer);
    Ok((FlagStore::new(&app.store).create_segment(segment, idempotent).await?, answer))
}

fn answered(
    segment: &Segment,
    outcome: SegmentCreation,
    answer: Answer,
) -> Result<Answer, Problem> {
    match outcome {
        SegmentCreation::Created => Ok(answer),
        SegmentCreation::Replay(replay) => Answer::replay(replay),
        SegmentCreation::KeyTaken => Err(segment_exists(segment)),
        SegmentCreation::LimitReached(limit) => Err(http::project_limit_reached(limit)),
        SegmentCreation::Successor => Err(Problem::internal("a successor is to be made as one")),
    }
}

fn location(segment: &Segment) -> String {
    format!("/v0/project/{}/segments/{}", segment.project_id, segment.key)
}

fn segment_exists(segment: &Segment) -> Problem {
    let key = &segment.key;
    let detail = format!(
        "The project has a segment with the key {key}. Choose another key, or change that segment."
    );
    Problem::new(ProblemCode::SegmentExists, detail)
}
