//! Revokes an API key of an organization.

use people::http;
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/api-keys/{keyId}",
    Access::ApiKey(Scope::KeysWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let id = http::key_id(incoming)?;

    // Storage: the key.
    let mut found = app.store.find_api_key(&id).await?.into_iter().collect();
    PeopleStore::new(&app.store).end_with_members(&mut found).await?;
    found.retain(|key| key.revoked_at.is_none() && http::can_administer(caller, key));
    let key = found.pop().ok_or_else(http::api_key_not_found)?;

    // Storage and response.
    let target = AuditTarget::new("api_key", &id, &key.name);
    let entry = caller.audit(&app.ids, AuditAction::ApiKeyRevoked, target);
    let more = vec![app.store.audit(&entry)?];
    if !app.store.revoke_active_key(&id, app.clock.now(), more).await? {
        return Err(http::api_key_not_found());
    }
    Ok(ApiResponse::empty(StatusCode::NO_CONTENT))
}
