//! Insights without recent pain points.

use insights::statistics::PERIOD;
use insights::store::{InsightStore, RequestRecord};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// Resolves the open insights of a project that had no pain point for 30 days.
pub(crate) async fn check(app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
    let store = InsightStore::new(&app.store);
    let since = now.minus(PERIOD);
    let mut after = None;
    loop {
        let (ids, next) = store.list_open_unseen(project, since, after).await?;
        for id in ids {
            let found = match store.find_insight(project, id).await {
                // Reading it reported it.
                Err(StoreError::Damaged { .. }) => continue,
                found => found?,
            };
            let Some(mut insight) = found else { continue };
            if !insight.resolve_unless_seen(since) {
                continue;
            }
            // If a pain point or a user has changed the insight since, the next pass decides again.
            store.save_insights(&[&insight], RequestRecord::None, None, now).await?;
        }
        after = next;
        if after.is_none() {
            return Ok(());
        }
    }
}
