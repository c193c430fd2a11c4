//! Emails about feed entries: the first of a kind immediately, later ones in batches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use errors::ErrorId;
use errors::spike::Hour;
use errors::store::ErrorStore;
use notifications::TokenKeyCache;
use notifications::address::{Rejection, UserAddress};
use notifications::delivery_state::DeliveryState;
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::feed::{FeedEntry, most_important};
use notifications::mail::{Email, NotificationEmail, Plot, ProjectLink, ProjectSection};
use notifications::store::{Feed, FeedCheckpoint, NotificationStore, Shard, UserName};
use notifications::token::Token;
use people::store::PeopleStore;
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::page::{PageRequest, all_pages};
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use crate::JobContext;
use crate::audience::recipient;
use crate::people_emails::browser_name;
use crate::senders::{Mailer, SendError};
use crate::subjects::drop_deleted;

/// Number of hours in a plot.
const PLOTTED_HOURS: u16 = 24;
/// Maximum errors of a project whose events are counted: the most frequent, including old ones.
const WEIGHED_ERRORS: usize = 100;

/// Sends all due emails. Organizations take turns, with one user and kind each, so that none waits
/// for all users of another.
pub(crate) async fn send(job: &mut JobContext<'_>) {
    let Some(mailer) = &job.senders.mailer else { return };
    let mut passes = begin_passes(job).await;
    while let Some(mut pass) = passes.pop_front() {
        let advanced = pass.advance(job, mailer).await;
        match job.unless_failed(advanced) {
            Some(PassProgress::More) => passes.push_back(pass),
            Some(PassProgress::Done) => {
                let finished = pass.end(job).await;
                if let Some(Some(next)) = job.unless_failed(finished) {
                    passes.push_back(next);
                }
            }
            Some(PassProgress::Cut) => {
                let saved = pass.save_checkpoint(job.app).await;
                job.unless_failed(saved);
                pass.note_waiting(job);
            }
            // The next invocation retries.
            None => pass.note_waiting(job),
        }
    }
}

/// Returns the passes over all feeds that fit into the time left.
async fn begin_passes(job: &mut JobContext<'_>) -> VecDeque<FeedPass> {
    let app = job.app;
    let mut passes = VecDeque::new();
    for shard in job.leases.shards() {
        let feeds = job.notifications().organizations_with_feed(shard).await;
        for organization in job.unless_failed(feeds).unwrap_or_default() {
            if job.deadline.has_passed() {
                // The age of unread feeds is unknown.
                job.note_waiting(app.clock.now());
                return passes;
            }
            let pass = FeedPass::begin(app, shard, organization).await;
            passes.extend(job.unless_failed(pass));
        }
    }
    passes
}

/// Returns the users who are members of an organization.
async fn members_of(
    app: &App,
    organization: &Organization,
) -> Result<BTreeSet<String>, StoreError> {
    let people = PeopleStore::new(&app.store);
    let read = async |request: &PageRequest| people.list_members(organization, request).await;
    let members = all_pages(usize::MAX, read).await?;
    Ok(members.into_iter().map(|member| member.user.to_string()).collect())
}

/// The progress of a pass after one turn.
enum PassProgress {
    /// One user and kind was processed. More can follow.
    More,
    /// All users are processed.
    Done,
    /// The deadline has passed, or the lease is lost.
    Cut,
}

/// A pass over all users of an organization.
struct FeedPass {
    shard: Shard,
    organization: Organization,
    feed: Feed,
    /// The number of the last entry to deliver.
    last: u64,
    /// `true` if the pass resumes at a checkpoint and newer entries need another pass.
    has_newer_entries: bool,
    /// Users and kinds whose windows have ended.
    due: VecDeque<(UserId, DomainEventKind)>,
    /// Users and kinds without a window, by name.
    remaining: VecDeque<(UserId, DomainEventKind)>,
    /// The last user of `remaining` whose kinds are all processed.
    last_checked: Option<UserId>,
    /// `true` if no user has to be processed again.
    is_complete: bool,
}

impl FeedPass {
    async fn begin(
        app: &App,
        shard: Shard,
        organization: Organization,
    ) -> Result<Self, StoreError> {
        let notifications = NotificationStore::new(&app.store);
        let feed = notifications.find_feed(&organization).await?;
        let now = app.clock.now();
        let newest = feed.entries.last().map_or(feed.head.delivered, |entry| entry.number);
        let checkpoint = feed.checkpoint.as_ref();
        let last = checkpoint.map_or(newest, |checkpoint| checkpoint.last.min(newest));
        let last_checked = checkpoint.map(|checkpoint| checkpoint.user.clone());
        let (mut due, mut remaining) = (VecDeque::new(), VecDeque::new());
        for (user, state) in &feed.delivery_states {
            let Ok(user) = UserId::parse(user) else { continue };
            due.extend(state.due(now).into_iter().map(|kind| (user.clone(), kind)));
        }
        let mut is_complete = feed.unreadable.is_empty();
        let is_new =
            |entry: &&FeedEntry| entry.number > feed.head.delivered && entry.number <= last;
        let new = feed.entries.iter().filter(is_new);
        let mut kinds: Vec<DomainEventKind> = new.filter_map(FeedEntry::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if !kinds.is_empty() {
            let mut members = members_of(app, &organization).await?;
            let known = notifications.list_addresses(&organization).await?;
            let mut users = Vec::with_capacity(known.len());
            for known in known {
                let user = known.name.user;
                let is_member = members.remove(user.as_str());
                let Some(address) =
                    known.address.filter(|_| !feed.unreadable.contains(user.as_str()))
                else {
                    // The entries stay until the unreadable item is fixed.
                    is_complete = false;
                    continue;
                };
                if is_member || address.confirmed.is_some() {
                    users.push(user);
                }
            }
            // Members without an address of their own get emails at the sign-in address.
            users.extend(members.iter().filter_map(|user| UserId::parse(user).ok()));
            users.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            for user in users {
                if last_checked.as_ref().is_some_and(|last| user.as_str() <= last.as_str()) {
                    continue;
                }
                let state = feed.delivery_states.get(user.as_str());
                for kind in &kinds {
                    let has_window = state.is_some_and(|it| it.windows.contains_key(kind));
                    if !has_window {
                        remaining.push_back((user.clone(), *kind));
                    }
                }
            }
        }
        let has_newer_entries = last < newest;
        Ok(Self {
            shard,
            organization,
            feed,
            last,
            has_newer_entries,
            due,
            remaining,
            last_checked,
            is_complete,
        })
    }

    /// Processes one user and kind.
    async fn advance(
        &mut self,
        job: &mut JobContext<'_>,
        mailer: &Mailer,
    ) -> Result<PassProgress, StoreError> {
        let next = self.due.pop_front();
        let is_due = next.is_some();
        let Some((user, kind)) = next.or_else(|| self.remaining.pop_front()) else {
            return Ok(PassProgress::Done);
        };
        if job.deadline.has_passed() || !job.leases.keep(job.app, self.shard).await? {
            self.is_complete = false;
            return Ok(PassProgress::Cut);
        }
        match self.deliver(job, mailer, &user, kind).await {
            Ok(()) => {}
            // An unreadable item does not delay other users.
            Err(failure @ StoreError::Damaged { .. }) => {
                self.is_complete = false;
                job.note_failure(failure);
            }
            Err(failure) => return Err(failure),
        }
        if !is_due && self.remaining.front().is_none_or(|(next, _)| *next != user) {
            self.last_checked = Some(user);
        }
        Ok(PassProgress::More)
    }

    /// Sends a user the email about new entries of a kind, if it is due.
    async fn deliver(
        &mut self,
        job: &mut JobContext<'_>,
        mailer: &Mailer,
        user: &UserId,
        kind: DomainEventKind,
    ) -> Result<(), StoreError> {
        let (app, now) = (job.app, job.app.clock.now());
        let name = UserName { organization: self.organization.clone(), user: user.clone() };
        let mut state = self.feed.delivery_states.get(user.as_str()).cloned().unwrap_or_default();
        let delivered = self.feed.head.delivered;
        let Some(after) = state.covered(kind, delivered, now) else { return Ok(()) };
        let new_entries = self.feed.entries.iter().filter(|entry| {
            entry.number > after
                && entry.number <= self.last
                && entry.kind() == Some(kind)
                && entry.concerns(user)
        });
        let new_entries: Vec<FeedEntry> = new_entries.cloned().collect();
        let recipient =
            if new_entries.is_empty() { None } else { recipient(app, &name, kind).await? };
        let Some(recipient) = recipient else { return self.close(app, &name, state, kind).await };
        let mut visible: Vec<&FeedEntry> = Vec::with_capacity(new_entries.len());
        for entry in &new_entries {
            let Some(visibility) =
                entry.visibility().filter(|visibility| recipient.can_see(kind, visibility))
            else {
                continue;
            };
            if job.visibility_exists(visibility).await? {
                visible.push(entry);
            }
        }
        if visible.is_empty() {
            return self.close(app, &name, state, kind).await;
        }
        if let Some(limited_until) = state.rate_limited_until(mailer.emails_per_hour, now) {
            let is_newly_deferred = state.defer(kind, after, limited_until, now);
            self.save(app, &name, state).await?;
            if is_newly_deferred {
                change_address(app, &name, |address| address.delayed_emails += 1).await?;
            }
            return Ok(());
        }
        // Only digests report delayed emails.
        let is_digest = kind == DomainEventKind::WeekEnded;
        let delayed_emails = if is_digest { recipient.delayed_emails } else { 0 };
        let Some(email) = write(job, mailer, &name, kind, &visible, delayed_emails).await? else {
            return self.close(app, &name, state, kind).await;
        };
        let mut reported_delays = 0;
        match mailer.send(&recipient.email, &email).await {
            Ok(()) => {
                reported_delays = delayed_emails;
                state.note_sent(kind, self.last, now);
            }
            Err(SendError::Rejected(reason)) => {
                job.rejected_emails += 1;
                let rejection = Rejection { at: now, reason };
                change_address(app, &name, |address| address.rejection = Some(rejection)).await?;
                state.note_sent(kind, self.last, now);
            }
            Err(SendError::Failed(cause)) => {
                self.is_complete = false;
                job.note_failure(StoreError::OtherService { service: "SES", cause });
                return Ok(());
            }
        }
        self.save(app, &name, state).await?;
        if reported_delays > 0 {
            let subtract = |address: &mut UserAddress| {
                address.delayed_emails = address.delayed_emails.saturating_sub(reported_delays);
            };
            change_address(app, &name, subtract).await?;
        }
        Ok(())
    }

    /// Closes the window of a user without new entries. Writes nothing if there is no window.
    async fn close(
        &mut self,
        app: &App,
        name: &UserName,
        mut state: DeliveryState,
        kind: DomainEventKind,
    ) -> Result<(), StoreError> {
        if state.close(kind, self.feed.head.delivered) {
            self.save(app, name, state).await?;
        }
        Ok(())
    }

    /// Stores the delivery state of a user.
    async fn save(
        &mut self,
        app: &App,
        name: &UserName,
        mut state: DeliveryState,
    ) -> Result<(), StoreError> {
        let now = app.clock.now();
        let notifications = NotificationStore::new(&app.store);
        if !notifications.replace_delivery_state(name, &state, now).await? {
            // Another invocation has taken over the lease.
            return Err(StoreError::Contended("another invocation emails the same user".into()));
        }
        if state.is_idle(now) {
            self.feed.delivery_states.remove(name.user.as_str());
        } else {
            state.revision = state.revision.saturating_add(1);
            self.feed.delivery_states.insert(name.user.as_str().to_owned(), state);
        }
        Ok(())
    }

    /// Advances the feed and deletes obsolete items, if all users are processed. Returns the pass
    /// over newer entries after a resumed pass.
    async fn end(mut self, job: &mut JobContext<'_>) -> Result<Option<Self>, StoreError> {
        let (notifications, organization) = (job.notifications(), &self.organization);
        if !self.is_complete {
            if self.feed.checkpoint.is_some() {
                // An unreadable recipient does not delay newer entries.
                notifications.save_checkpoint(organization, self.feed.head.delivered, None).await?;
            }
            self.note_waiting(job);
            return Ok(None);
        }
        let (app, now) = (job.app, job.app.clock.now());
        let windows = self.feed.delivery_states.values().flat_map(|state| state.windows.values());
        let obsolete = windows
            .map(|window| window.covered)
            .min()
            .map_or(self.last, |covered| covered.min(self.last));
        notifications.advance_feed(organization, &self.feed, self.last, obsolete).await?;
        let idle: Vec<(String, DeliveryState)> =
            self.feed.delivery_states.extract_if(.., |_, state| state.is_idle(now)).collect();
        for (user, state) in idle {
            let Ok(user) = UserId::parse(&user) else { continue };
            let name = UserName { organization: organization.clone(), user };
            notifications.replace_delivery_state(&name, &state, now).await?;
        }
        if self.feed.delivery_states.is_empty() {
            notifications.delete_feed_head(organization, self.last).await?;
        }
        if !self.has_newer_entries {
            return Ok(None);
        }
        Self::begin(app, self.shard, self.organization).await.map(Some)
    }

    /// Stores the last checked user, so that the next invocation resumes there.
    async fn save_checkpoint(&self, app: &App) -> Result<(), StoreError> {
        let Some(user) = self.last_checked.clone() else { return Ok(()) };
        let checkpoint = FeedCheckpoint { last: self.last, user };
        if self.feed.checkpoint.as_ref() == Some(&checkpoint) {
            return Ok(());
        }
        NotificationStore::new(&app.store)
            .save_checkpoint(&self.organization, self.feed.head.delivered, Some(&checkpoint))
            .await
    }

    /// Reports the age of the feed's overdue emails to the job.
    fn note_waiting(&self, job: &mut JobContext<'_>) {
        if let Some(since) = self.feed.waiting_since(job.app.clock.now()) {
            job.note_waiting(since);
        }
    }
}

/// Returns the email about some entries, or `None` if their subjects no longer exist.
async fn write(
    job: &mut JobContext<'_>,
    mailer: &Mailer,
    name: &UserName,
    kind: DomainEventKind,
    entries: &[&FeedEntry],
    delayed_emails: u64,
) -> Result<Option<Email>, StoreError> {
    let mut visibilities: BTreeMap<String, Vec<&FeedEntry>> = BTreeMap::new();
    for entry in entries {
        let visibility = entry.visibility().map(ToString::to_string).unwrap_or_default();
        visibilities.entry(visibility).or_default().push(entry);
    }
    let mut sections = Vec::with_capacity(visibilities.len());
    for entries in visibilities.into_values() {
        let project = match entries.first().and_then(|entry| entry.visibility()) {
            Some(Visibility::Project(id)) => {
                job.named_project(*id).await?.map(|project| ProjectLink {
                    name: project.name.as_str().to_owned(),
                    slug: project.slug.as_str().to_owned(),
                })
            }
            _ => None,
        };
        let mut lines: Vec<DomainEvent> =
            entries.iter().flat_map(|entry| entry.lines.iter().cloned()).collect();
        for line in lines.iter_mut().filter(|line| line.kind == DomainEventKind::ApiKeyCreated) {
            if !line.detail.is_empty() {
                line.detail = browser_name(Some(&line.detail));
            }
        }
        // An email with a line too many, or in another order, is better than none.
        let dropped = drop_deleted(job, &mut lines).await;
        let dropped = job.unless_failed(dropped).unwrap_or_default();
        let count = entries.iter().map(|entry| entry.count).sum::<u64>().saturating_sub(dropped);
        if count == 0 {
            continue;
        }
        let since = entries.iter().map(|entry| entry.since).min();
        let weighed = weigh(job, &mut lines, since).await;
        job.unless_failed(weighed);
        let lines = most_important(lines.iter());
        sections.push(ProjectSection { project, count, lines });
    }
    if sections.is_empty() {
        return Ok(None);
    }
    let first =
        most_important(sections.iter().flat_map(|section| &section.lines)).into_iter().next();
    let plot = match &first {
        // An email without its plot is better than none.
        Some(first) => {
            let plot = plot_of(job, first).await;
            job.unless_failed(plot).flatten()
        }
        None => None,
    };
    let key = job.app.cache::<TokenKeyCache>().get(&job.app.store).await?;
    let token = Token::Unsubscribe {
        organization: name.organization.clone(),
        user: name.user.clone(),
        notification_type: kind.notification_type(),
    };
    let base_url = &mailer.base_url;
    let unsubscribe_url =
        format!("{base_url}/v0/notifications/unsubscribe?token={}", token.seal(&key));
    let email = NotificationEmail {
        kind,
        sections: &sections,
        plot: plot.as_ref(),
        base_url,
        unsubscribe_url: &unsubscribe_url,
        delayed_emails,
    };
    Ok(Some(email.render()))
}

/// Sets the weights of one project's errors: their events since the hour of `since`. The job caches
/// these counts.
async fn weigh(
    job: &mut JobContext<'_>,
    lines: &mut [DomainEvent],
    since: Option<Timestamp>,
) -> Result<(), StoreError> {
    let has_deferred_weight = lines.first().is_some_and(|line| line.kind.has_deferred_weight());
    let project = lines.first().map(|line| &line.visibility);
    let (Some(Visibility::Project(project)), Some(since)) = (project, since) else { return Ok(()) };
    if lines.len() < 2 || !has_deferred_weight {
        return Ok(());
    }
    let (project, hour) = (*project, Hour::of(since));
    let counts = if let Some(known) = job.frequent.get(&(project, hour)) {
        known
    } else {
        let (store, now) = (&job.app.store, job.app.clock.now());
        let counts =
            ErrorStore::new(store).most_frequent_errors(project, hour, WEIGHED_ERRORS, now).await?;
        job.frequent.entry((project, hour)).or_insert(counts)
    };
    for line in lines {
        let events = ErrorId::parse(&line.subject).and_then(|id| counts.get(&id));
        line.weight = events.copied().unwrap_or_default();
    }
    Ok(())
}

/// Returns the plot of an email's first event, if that is about an error. The job caches its
/// counts.
async fn plot_of(
    job: &mut JobContext<'_>,
    first: &DomainEvent,
) -> Result<Option<Plot>, StoreError> {
    let is_error = matches!(
        first.kind,
        DomainEventKind::ErrorCreated
            | DomainEventKind::ErrorReopened
            | DomainEventKind::ErrorSpiked
    );
    let (Visibility::Project(project), true) = (&first.visibility, is_error) else {
        return Ok(None);
    };
    let Some(id) = ErrorId::parse(&first.subject) else { return Ok(None) };
    let hours = if let Some(known) = job.plotted.get(&(*project, id)) {
        known.clone()
    } else {
        let (store, now) = (&job.app.store, job.app.clock.now());
        let counted =
            ErrorStore::new(store).latest_events_by_hour(*project, id, PLOTTED_HOURS, now).await?;
        let Some(counted) = counted else { return Ok(None) };
        job.plotted.insert((*project, id), counted.clone());
        counted
    };
    Ok(Some(Plot { title: first.title.clone(), hours }))
}

/// Changes a user's address item, unless a concurrent request changes it. The change can be
/// dropped: a rejection does not apply to a newer address, and the number of delayed emails is
/// informational.
async fn change_address(
    app: &App,
    name: &UserName,
    change: impl FnOnce(&mut UserAddress),
) -> Result<(), StoreError> {
    let notifications = NotificationStore::new(&app.store);
    let mut address = notifications.find_address(name).await?;
    if !address.is_stored() {
        // Do not restore the item of an erased user.
        return Ok(());
    }
    change(&mut address);
    notifications.replace_address(name, &address, false).await.map(drop)
}
