//! The signing key of tokens: created on first use, cached in each execution environment.

use std::sync::OnceLock;

use shared::dynamodb::{Store, StoreError};

use super::store::NotificationStore;
use super::token::TokenKey;

/// The cached signing key of tokens.
#[derive(Debug, Default)]
pub struct TokenKeyCache(OnceLock<TokenKey>);

impl TokenKeyCache {
    /// Returns the key. The first call in the stack creates it.
    pub async fn get(&self, db: &Store) -> Result<TokenKey, StoreError> {
        if let Some(key) = self.0.get() {
            return Ok(*key);
        }
        let mut new = [0; 32];
        // Only the system's randomness is unpredictable enough.
        getrandom::fill(&mut new).map_err(|error| StoreError::OtherService {
            service: "the system's randomness",
            cause: error.to_string(),
        })?;
        let key = NotificationStore::new(db).token_key(TokenKey(new)).await?;
        Ok(*self.0.get_or_init(|| key))
    }
}
