//! Weekly digest of a project: events, new errors, trending insights and changed flags.

use std::ops::Range;
use std::time::Duration;

use errors::ErrorRecord;
use errors::log::day::Day;
use errors::spike::Hour;
use errors::store::{ErrorStore, ErrorSummary};
use flags::FeatureFlag;
use flags::store::{FlagStore, ListedFlags};
use notifications::domain_event::{DigestSubject, DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::page::{PageRequest, all_pages};
use shared::projects::project::ProjectId;
use shared::text;
use shared::timestamp::Timestamp;

/// Maximum lines for each of errors, insights and flags. With the line of counts, a digest has at
/// most ten lines.
const MAX_NAMED: usize = 3;
/// Minimum difference between the numbers of two announced weeks.
const MIN_INTERVAL: u64 = 1;
/// End of a week: Monday 08:00 UTC.
const WEEK_END: Duration = Duration::from_hours(8);
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(7 * 24);
/// Time after the end of a week in which its digest is due.
const DIGEST_PERIOD: Duration = DAY;

/// The seven days before a Monday, 08:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Week {
    end: Timestamp,
}

impl Week {
    /// Returns the week whose digest is due at `now`: the one that ended in the last day.
    pub fn due_at(now: Timestamp) -> Option<Self> {
        // The first Monday after the epoch was its fifth day.
        let first_end = Timestamp::from_millis(0).plus(DAY * 4 + WEEK_END);
        let since = first_end.until(now);
        let weeks = u32::try_from(since.as_secs() / WEEK.as_secs()).unwrap_or_default();
        let end = first_end.plus(WEEK * weeks);
        (now >= first_end && now < end.plus(DIGEST_PERIOD)).then_some(Self { end })
    }

    /// Returns the year and the ISO 8601 week number, such as `202647`.
    pub fn number(&self) -> u64 {
        // A week belongs to the year of its Thursday, three days after the Monday.
        let thursday = self.begin().plus(DAY * 3);
        let text = Day::of(thursday).to_string();
        let year = text.get(..4).unwrap_or_default();
        let first = Timestamp::parse_rfc3339(&format!("{year}-01-01T00:00:00Z"));
        let day = first.map_or(0, |first| first.until(thursday).as_secs() / DAY.as_secs());
        year.parse::<u64>().unwrap_or_default() * 100 + day / 7 + 1
    }

    fn begin(&self) -> Timestamp {
        self.end.minus(WEEK)
    }

    /// Returns the time range. Events after its end belong to the next week.
    fn time_range(&self) -> Range<Timestamp> {
        self.begin()..self.end
    }
}

/// The digest of a project's week.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Digest {
    /// The events and new errors.
    pub errors: ErrorSummary,
    /// The announcements of trending insights.
    pub trending: Vec<DomainEvent>,
    /// The changed flags, latest change first.
    pub flags: Vec<FeatureFlag>,
}

impl Digest {
    /// Returns the lines of the digest, starting with the counts. Empty if all counts are 0.
    pub fn domain_events(&self, project: ProjectId, week: &Week) -> Vec<DomainEvent> {
        let counts = [
            (self.errors.events, ("event", "events")),
            (self.errors.new_errors, ("new error", "new errors")),
            (length(&self.trending), ("trending insight", "trending insights")),
            (length(&self.flags), ("changed flag", "changed flags")),
        ];
        let counted = counts.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> =
            counted.map(|(count, words)| text::counted(*count, *words)).collect();
        if counted.is_empty() {
            return Vec::new();
        }
        let line = |subject: &DigestSubject, title: &str, detail: &str| {
            let (kind, visibility) = (DomainEventKind::WeekEnded, Visibility::Project(project));
            let domain_event = DomainEvent::new(kind, visibility, subject, title, week.end);
            domain_event.detailed(detail).at_instance(week.number())
        };
        let mut lines = vec![line(&DigestSubject::Overview, &counted.join(", "), "")];
        for (error, events) in self.errors.most_frequent.iter().take(MAX_NAMED) {
            let ErrorRecord { id, description, .. } = error;
            let detail = format!("new error, {}", text::counted(*events, ("event", "events")));
            lines.push(line(&DigestSubject::Error(id.to_string()), &description.title, &detail));
        }
        for insight in self.trending.iter().take(MAX_NAMED) {
            let detail = format!("trending insight, {}", insight.detail);
            let subject = DigestSubject::Insight(insight.subject.clone());
            lines.push(line(&subject, &insight.title, &detail));
        }
        for flag in self.flags.iter().take(MAX_NAMED) {
            let subject = DigestSubject::Flag(flag.key.to_string());
            lines.push(line(&subject, &flag.name, "changed flag"));
        }
        // Weights keep the order of the lines.
        let weights = (0..u64::try_from(lines.len()).unwrap_or_default()).rev();
        lines.into_iter().zip(weights).map(|(line, weight)| line.with_event_count(weight)).collect()
    }
}

fn length<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

/// Announces the digest of a project.
pub(crate) async fn check(
    app: &App,
    project: ProjectId,
    week: &Week,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (store, visibility, time_range) =
        (&app.store, Visibility::Project(project), week.time_range());
    let hours = Hour::of(time_range.start)..=Hour::of(week.end).minus(1);
    let digest = Digest {
        errors: ErrorStore::new(store).sum_up_errors(project, &hours, MAX_NAMED, now).await?,
        trending: NotificationStore::new(store)
            .announced_in(&visibility, DomainEventKind::InsightTrending, &time_range)
            .await?,
        flags: changed_flags(app, project, &time_range).await?,
    };
    NotificationStore::new(store)
        .announce_once(&digest.domain_events(project, week), MIN_INTERVAL)
        .await
        .map(drop)
}

/// Returns the existing flags, archived or not, with their latest change in a time range.
async fn changed_flags(
    app: &App,
    project: ProjectId,
    time_range: &Range<Timestamp>,
) -> Result<Vec<FeatureFlag>, StoreError> {
    let flags = FlagStore::new(&app.store);
    let read =
        async |request: &PageRequest| flags.list_flags(project, ListedFlags::All, request).await;
    let mut changed = all_pages(usize::MAX, read).await?;
    changed.retain(|flag| time_range.contains(&flag.updated_at));
    changed.sort_by_key(|flag| std::cmp::Reverse(flag.updated_at));
    Ok(changed)
}

#[cfg(test)]
mod tests;
