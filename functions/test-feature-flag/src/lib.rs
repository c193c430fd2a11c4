//! Evaluates a flag with changes that are not saved, as if it were on.

use flags::evaluation::Context;
use flags::patch::FlagPatch;
use flags::store::FlagStore;
use flags::{FeatureFlag, http, ofrep};
use serde::Serialize;
use serde_json::value::RawValue;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::json::{Fields, Json, JsonPath, ViolationCode, Violations};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/feature-flags/{key}/test",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

/// The response.
#[derive(Serialize)]
struct FlagTest {
    enabled: bool,
    evaluation: Box<RawValue>,
}

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let project_id = caller.project()?;
    let body = incoming.json()?;
    let (context, changes) = read(&body)?;
    let changes = changes.map(FlagPatch::check).transpose().map_err(below_changes)?;
    let key = http::flag_key(incoming)?;

    // Storage: the saved flag.
    let now = app.clock.now();
    let stored = FlagStore::new(&app.store).find_flag(project_id, &key).await?;
    let stored = stored.ok_or_else(http::flag_not_found)?;

    // Rules: the flag with its changes, turned on.
    let changed = match changes {
        Some(changes) => {
            let changed = changes.apply(&stored, now, || app.ids.new_uuid(now));
            changed.map_err(below_changes)?
        }
        None => stored.clone(),
    };
    let enabled = changed.enabled && changed.archived_at.is_none();
    let version = stored.version;
    let tested = FeatureFlag { enabled: true, archived_at: None, version, ..changed };

    // Storage and response: the flag's prerequisites and segments.
    let flags = FlagStore::new(&app.store).flag_to_test(&tested).await?;
    let evaluated = ofrep::evaluate_one(&flags, key.as_str(), &context, now);
    let evaluation = RawValue::from_string(evaluated.body.unwrap_or_default());
    let evaluation = evaluation.map_err(|_| Problem::internal("an evaluation is JSON"))?;
    ApiResponse::ok(&FlagTest { enabled, evaluation })
}

/// Reads the context and the changes.
fn read<'j, 'a>(body: &'j Json<'a>) -> Result<(Context<'a>, Option<&'j Json<'a>>), Violations> {
    let mut violations = Violations::default();
    let read = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
        let context = fields.optional("context", violations, |json, path, violations| {
            let read = Context::read(json.clone());
            read.map_err(|error| violations.note(path, ViolationCode::InvalidValue, error)).ok()
        });
        let changes = fields.optional("changes", violations, |json, _, _| Some(Some(json)));
        Some((context.or_default()?, changes.or_default()?))
    });
    violations.into_result(read)
}

/// Moves violations of the patch to their places in the body.
fn below_changes(violations: Violations) -> Violations {
    violations.below("/changes")
}
