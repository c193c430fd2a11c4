//! The week of a project: events, new errors, insights that trend, and flags that changed.

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
use shared::page::PageRequest;
use shared::projects::project::ProjectId;
use shared::text;
use shared::timestamp::Timestamp;

/// How many errors, insights and flags are named of a project: three of each and the line with the counts
/// are as many as a mail shows.
const NAMED: usize = 3;
/// A digest is announced once a week.
const REST: u64 = 1;
/// How many flags are read at a time.
const FLAGS_AT_ONCE: u32 = 100;
/// The hour of Monday at which a week ends, in UTC.
const END: Duration = Duration::from_hours(8);
const DAY: Duration = Duration::from_hours(24);
const WEEK: Duration = Duration::from_hours(7 * 24);
/// For how long a week that is over is still summed up.
const DUE: Duration = DAY;

/// The seven days up to a Monday, 08:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Week {
    end: Timestamp,
}

impl Week {
    /// The week that is to be summed up at `now`: the one that ended in the last day.
    pub fn to_sum_up(now: Timestamp) -> Option<Self> {
        // The first Monday after the epoch was its fifth day.
        let first_end = Timestamp::from_millis(0).plus(DAY * 4 + END);
        let since = first_end.until(now);
        let weeks = u32::try_from(since.as_secs() / WEEK.as_secs()).unwrap_or_default();
        let end = first_end.plus(WEEK * weeks);
        (now >= first_end && now < end.plus(DUE)).then_some(Self { end })
    }

    /// Its number: the year, and which week of that it is, by ISO 8601, as `202647`.
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

    /// What lies in it. What comes after its end, before it is summed up, is the next one's.
    fn time(&self) -> Range<Timestamp> {
        self.begin()..self.end
    }
}

/// What a week of a project was like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Digest {
    /// What occurred.
    pub errors: ErrorSummary,
    /// The insights that were announced as trending.
    pub trending: Vec<DomainEvent>,
    /// The flags that changed, the latest change first.
    pub flags: Vec<FeatureFlag>,
}

impl Digest {
    /// What is told of it, the counts first; nothing of a week in which nothing happened.
    pub fn domain_events(&self, project: ProjectId, week: &Week) -> Vec<DomainEvent> {
        let counts = [
            (self.errors.events, ("event", "events")),
            (self.errors.new_errors, ("new error", "new errors")),
            (length(&self.trending), ("insight trends", "insights trend")),
            (length(&self.flags), ("flag changed", "flags changed")),
        ];
        let counted = counts.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> =
            counted.map(|(count, words)| text::counted(*count, *words)).collect();
        if counted.is_empty() {
            return Vec::new();
        }
        let line = |subject: &DigestSubject, title: &str, detail: &str| {
            let (kind, scene) = (DomainEventKind::WeekEnded, Visibility::Project(project));
            let domain_event = DomainEvent::new(kind, scene, subject, title, week.end);
            domain_event.detailed(detail).at_occasion(week.number())
        };
        let mut lines = vec![line(&DigestSubject::Overview, &counted.join(", "), "")];
        for (error, events) in self.errors.most_frequent.iter().take(NAMED) {
            let ErrorRecord { id, description, .. } = error;
            let detail = format!("new error, {}", text::counted(*events, ("event", "events")));
            lines.push(line(&DigestSubject::Error(id.to_string()), &description.title, &detail));
        }
        for insight in self.trending.iter().take(NAMED) {
            let detail = format!("insight, {}", insight.detail);
            let subject = DigestSubject::Insight(insight.subject.clone());
            lines.push(line(&subject, &insight.title, &detail));
        }
        for flag in self.flags.iter().take(NAMED) {
            let subject = DigestSubject::Flag(flag.key.to_string());
            lines.push(line(&subject, &flag.name, "flag, changed"));
        }
        // What is first is shown first.
        let weights = (0..u64::try_from(lines.len()).unwrap_or_default()).rev();
        lines.into_iter().zip(weights).map(|(line, weight)| line.with_event_count(weight)).collect()
    }
}

fn length<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

/// Announces what the week of a project was like.
pub(crate) async fn visit(
    app: &App,
    project: ProjectId,
    week: &Week,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (store, scene, time) = (&app.store, Visibility::Project(project), week.time());
    let hours = Hour::of(time.start)..=Hour::of(week.end).minus(1);
    let digest = Digest {
        errors: ErrorStore::new(store).sum_up_errors(project, &hours, NAMED, now).await?,
        trending: NotificationStore::new(store)
            .announced_in(&scene, DomainEventKind::InsightTrending, &time)
            .await?,
        flags: changed_flags(app, project, &time).await?,
    };
    NotificationStore::new(store)
        .announce_once(&digest.domain_events(project, week), REST)
        .await
        .map(drop)
}

/// The flags whose latest change was in some time, and that are still there, archived or not.
async fn changed_flags(
    app: &App,
    project: ProjectId,
    time: &Range<Timestamp>,
) -> Result<Vec<FeatureFlag>, StoreError> {
    let mut request = PageRequest { limit: FLAGS_AT_ONCE, after: None };
    let mut changed = Vec::new();
    loop {
        let page =
            FlagStore::new(&app.store).list_flags(project, ListedFlags::All, &request).await?;
        changed.extend(page.items.into_iter().filter(|flag| time.contains(&flag.updated_at)));
        if page.end.is_none() {
            break;
        }
        request.after = page.end;
    }
    changed.sort_by_key(|flag| std::cmp::Reverse(flag.updated_at));
    Ok(changed)
}

#[cfg(test)]
mod tests;
