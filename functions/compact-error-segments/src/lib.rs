//! Packs the error events of closed hours into segments. A schedule runs it every five minutes; who
//! queries packs as well, so that nothing depends on the schedule.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what is left is a day in the
//! queue, and the next run goes on with it.

use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::error_tracking::ErrorId;
use shared::error_tracking::log::day::Day;
use shared::error_tracking::store::PackingLimits;
use shared::telemetry::log_metric;
use shared::timestamp::Timestamp;

/// What this function is.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// The name of the metric that tells how many seconds ago the oldest day in the queue ended.
pub const OLDEST_UNPACKED_DAY_AGE: &str = "OldestUnpackedDayAge";

/// Works on all days in the queue, the oldest first, until they are packed or the time is up.
async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    for (project, day) in app.store.list_packing_queue().await? {
        if deadline.has_passed() {
            break;
        }
        // A day that cannot be packed must not hold up those after it.
        let (limits, now) = (&PackingLimits::SCHEDULED, app.clock.now());
        let packed = app.store.pack_day(project, day, limits, &|| new_error_id(app), now).await;
        outcome = outcome.and(packed.map(drop));
    }

    // Measured afterwards: a late event puts an old day into the queue, which is no lag.
    let (queue, now) = (app.store.list_packing_queue().await?, app.clock.now());
    let oldest = queue.iter().map(|(_, day)| *day).min();
    #[allow(clippy::cast_precision_loss)] // An age in seconds is far below 2^53.
    let age = oldest.map_or(0, |day| age_of(day, now)) as f64;
    log_metric(JOB.name, OLDEST_UNPACKED_DAY_AGE, "Seconds", age, now);
    outcome
}

/// How many seconds ago a day ended; 0 for one that has not.
fn age_of(day: Day, now: Timestamp) -> i64 {
    now.as_seconds().saturating_sub(day.next().start().as_seconds()).max(0)
}

fn new_error_id(app: &App) -> ErrorId {
    ErrorId::new(app.ids.new_uuid(app.clock.now()))
}
