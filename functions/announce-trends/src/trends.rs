//! Trending insights.

use std::time::Duration;

use insights::StatusFilter;
use insights::store::InsightStore;
use notifications::store::NotificationStore;
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::page::PageRequest;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// Maximum age of an insight's last pain point. Older insights do not trend.
const RECENT: Duration = Duration::from_hours(7 * 24);
/// Minimum days between two announcements of an insight: the period of its trend.
const MIN_INTERVAL: u64 = 30;
/// Insights per read. Small, because most projects have no recent insight.
const PAGE_SIZE: u32 = 10;

/// Announces the trending insights of a project.
pub(crate) async fn check(app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
    let since = now.minus(RECENT);
    let mut request = PageRequest { limit: PAGE_SIZE, after: None };
    loop {
        let page = InsightStore::new(&app.store)
            .list_insights(project, Some(StatusFilter::OPEN), &request)
            .await?;
        for insight in &page.items {
            if insight.latest.as_ref().is_none_or(|latest| latest.occurred_at < since) {
                return Ok(());
            }
            if let Some(trending) = insight.trending(now) {
                NotificationStore::new(&app.store).announce_once(&[trending], MIN_INTERVAL).await?;
            }
        }
        if page.end.is_none() {
            return Ok(());
        }
        request.after = page.end;
    }
}
