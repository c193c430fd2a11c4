//! Insights that affect many more sessions than before.

use std::time::Duration;

use insights::StatusFilter;
use insights::store::InsightStore;
use notifications::store::NotificationStore;
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::page::PageRequest;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// How long ago the last pain point of an insight is at most: what nobody sees any more does not trend.
const RECENT: Duration = Duration::from_hours(7 * 24);
/// For how many days an insight is not announced again: as long as its period.
const REST: u64 = 30;
/// How many insights are read at a time: most projects have none that is recent.
const PAGE: u32 = 10;

/// Announces what trends in a project.
pub(crate) async fn visit(app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
    let since = now.minus(RECENT);
    let mut request = PageRequest { limit: PAGE, after: None };
    loop {
        let page = InsightStore::new(&app.store)
            .list_insights(project, Some(StatusFilter::OPEN), &request)
            .await?;
        for insight in &page.items {
            if insight.latest.as_ref().is_none_or(|latest| latest.occurred_at < since) {
                return Ok(());
            }
            if let Some(trending) = insight.trending(now) {
                NotificationStore::new(&app.store).announce_once(&[trending], REST).await?;
            }
        }
        if page.end.is_none() {
            return Ok(());
        }
        request.after = page.end;
    }
}
