//! What a warm function remembers of the flags that it evaluates.

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::app::App;
use crate::dynamodb::{Store, StoreError};
use crate::projects::project::ProjectId;

use super::FlagKey;
use super::evaluation::Flags;
use super::state_cache::{Bounds, Freshness, Made, StateCache};
use super::store::StoredFlags;

/// How much is remembered, in bytes of stored flags.
const BOUNDS: Bounds = Bounds {
    entries: NonZeroUsize::MIN.saturating_add(999),
    bytes: 32_000_000,
    bytes_of_project: 16_000_000,
};

/// The flags of projects that were evaluated lately: all flags of a project, or one of them with all that
/// it depends on.
pub(crate) struct FlagCache(StateCache<Option<FlagKey>, Flags>);

impl Default for FlagCache {
    fn default() -> Self {
        Self(StateCache::new(BOUNDS))
    }
}

impl App {
    /// All flags of a project that are not archived.
    pub async fn evaluated_flags(
        &self,
        project: ProjectId,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let read = move |store: Store, known: Option<Arc<Flags>>| async move {
            let read = store.flags_to_evaluate(project, known.as_deref()).await?;
            Ok(made(read, true))
        };
        let cache = self.cache::<FlagCache>();
        cache.0.get(self, (project, None), freshness, read).await
    }

    /// A flag with all that it depends on; nothing if there is no such flag, or it is archived. That
    /// there is none is not remembered: a flag can be evaluated from the moment it is made.
    pub async fn evaluated_flag(
        &self,
        project: ProjectId,
        flag: &FlagKey,
        freshness: Freshness,
    ) -> Result<Arc<Flags>, StoreError> {
        let key = flag.clone();
        let read = move |store: Store, known: Option<Arc<Flags>>| {
            let key = key.clone();
            async move {
                let read = store.flag_to_evaluate(project, &key, known.as_deref()).await?;
                let is_there = read.flags.get(key.as_str()).is_some();
                Ok(made(read, is_there))
            }
        };
        let cache = self.cache::<FlagCache>();
        cache.0.get(self, (project, Some(flag.clone())), freshness, read).await
    }
}

fn made(StoredFlags { flags, bytes, state }: StoredFlags, is_kept: bool) -> Made<Flags> {
    Made { value: flags, state, bytes, is_kept }
}
