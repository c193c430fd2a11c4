//! The key of tokens: made when it is first needed, and remembered by warm functions.

use std::sync::OnceLock;

use crate::app::App;
use crate::dynamodb::StoreError;

use super::token::TokenKey;

#[derive(Default)]
struct RememberedKey(OnceLock<TokenKey>);

/// What tokens are signed with.
pub async fn token_key(app: &App) -> Result<TokenKey, StoreError> {
    let remembered = app.cache::<RememberedKey>();
    if let Some(key) = remembered.0.get() {
        return Ok(*key);
    }
    let mut new = [0; 32];
    // What others cannot guess must come from the system, and from nowhere else.
    getrandom::fill(&mut new).map_err(|error| StoreError::OtherService {
        service: "the system's randomness",
        cause: error.to_string(),
    })?;
    let key = app.store.token_key(TokenKey(new)).await?;
    Ok(*remembered.0.get_or_init(|| key))
}
