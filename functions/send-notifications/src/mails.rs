//! Feeds become mails: the first of a kind at once, what follows together.

use std::collections::{BTreeMap, VecDeque};

use errors::ErrorId;
use errors::spike::Hour;
use errors::store::{ErrorStore, EventsByHour, EventsOfError};
use notifications::TokenKeyCache;
use notifications::address::{Refusal, UserAddress};
use notifications::delivery_state::{DeliveryState, SendDecision};
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::feed::{FeedEntry, most_important};
use notifications::mail::{Email, NotificationEmail, Plot, ProjectLink, ProjectSection};
use notifications::store::{Feed, FeedCheckpoint, NotificationStore, Shard, UserName};
use notifications::token::Token;
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use crate::JobContext;
use crate::audience::recipient;
use crate::senders::{Mailer, SendError};
use crate::subjects::drop_gone;

/// How many events of a partition are read for a plot at most; where there are more, of each hour.
const PLOTTED_EVENTS: i32 = 1_000;
/// How many hours a plot shows.
const PLOTTED_HOURS: u32 = 24;
/// How many errors of a project are weighed at most: those of the most events, old ones among them.
const WEIGHED: usize = 100;

/// Sends all mails that are due. Organizations take turns of one user and kind each, so that none waits for all
/// the users of another.
pub(crate) async fn send(run: &mut JobContext<'_>) {
    let Some(mailer) = &run.senders.mailer else { return };
    let mut visits = begin_visits(run).await;
    while let Some(mut visit) = visits.pop_front() {
        let advanced = visit.advance(run, mailer).await;
        match run.unless_failed(advanced) {
            Some(PassProgress::More) => visits.push_back(visit),
            Some(PassProgress::Done) => {
                let ended = visit.end(run).await;
                if let Some(Some(next)) = run.unless_failed(ended) {
                    visits.push_back(next);
                }
            }
            // What could not be read or written now is done in the next run; it is not lost.
            Some(PassProgress::Cut) => {
                let noted = visit.note_looked(run.app).await;
                run.unless_failed(noted);
                visit.leave(run);
            }
            None => visit.leave(run),
        }
    }
}

/// The visits to all feeds that hold something, as far as there is time.
async fn begin_visits(run: &mut JobContext<'_>) -> VecDeque<FeedPass> {
    let app = run.app;
    let mut visits = VecDeque::new();
    for shard in run.leases.shards() {
        let feeds = NotificationStore::new(&app.store).busy_feeds(shard).await;
        for organization in run.unless_failed(feeds).unwrap_or_default() {
            if run.deadline.has_passed() {
                // Since when something waits in a feed, only reading it would tell.
                run.leave(app.clock.now());
                return visits;
            }
            let visit = FeedPass::begin(app, shard, organization).await;
            visits.extend(run.unless_failed(visit));
        }
    }
    visits
}

/// What became of a turn.
enum PassProgress {
    /// A user was looked at; others may follow.
    More,
    /// Everybody was told.
    Done,
    /// The time is up, or the lease lost.
    Cut,
}

/// An organization's turns in a run.
struct FeedPass {
    shard: Shard,
    organization: Organization,
    feed: Feed,
    /// The last step that users are told of.
    last: u64,
    /// Whether an earlier run had no time for all users: then steps that came since are told after that.
    goes_on: bool,
    /// Whose windows have ended.
    due: VecDeque<(UserId, DomainEventKind)>,
    /// Who else is to be looked at for what, by name.
    left: VecDeque<(UserId, DomainEventKind)>,
    /// The last of those who were looked at for all of it.
    looked: Option<UserId>,
    /// Whether everybody could be told who is to be.
    is_complete: bool,
}

impl FeedPass {
    async fn begin(
        app: &App,
        shard: Shard,
        organization: Organization,
    ) -> Result<Self, StoreError> {
        let feed = NotificationStore::new(&app.store).find_feed(&organization).await?;
        let now = app.clock.now();
        let newest = feed.steps.last().map_or(feed.head.told, |step| step.number);
        let last = feed.looked.as_ref().map_or(newest, |looked| looked.last.min(newest));
        let looked = feed.looked.as_ref().map(|looked| looked.user.clone());
        let (mut due, mut left) = (VecDeque::new(), VecDeque::new());
        for (user, mailbox) in &feed.mailboxes {
            let Ok(user) = UserId::parse(user) else { continue };
            due.extend(mailbox.due(now).into_iter().map(|kind| (user.clone(), kind)));
        }
        // Everybody else, if anything is new.
        let mut is_complete = feed.unreadable.is_empty();
        let is_new = |step: &&FeedEntry| step.number > feed.head.told && step.number <= last;
        let new = feed.steps.iter().filter(is_new);
        let mut kinds: Vec<DomainEventKind> = new.filter_map(FeedEntry::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if !kinds.is_empty() {
            for known in NotificationStore::new(&app.store).list_addresses(&organization).await? {
                let user = known.name.user;
                let Some(address) =
                    known.address.filter(|_| !feed.unreadable.contains(user.as_str()))
                else {
                    // Whoever cannot be told now is told of all of it once that is mended.
                    is_complete = false;
                    continue;
                };
                if looked.as_ref().is_some_and(|looked| user.as_str() <= looked.as_str()) {
                    continue;
                }
                let mailbox = feed.mailboxes.get(user.as_str());
                for kind in &kinds {
                    let has_window = mailbox.is_some_and(|it| it.windows.contains_key(kind));
                    if address.confirmed.is_some() && !has_window {
                        left.push_back((user.clone(), *kind));
                    }
                }
            }
        }
        let goes_on = last < newest;
        Ok(Self { shard, organization, feed, last, goes_on, due, left, looked, is_complete })
    }

    /// Looks at one user for one kind.
    async fn advance(
        &mut self,
        run: &mut JobContext<'_>,
        mailer: &Mailer,
    ) -> Result<PassProgress, StoreError> {
        let next = self.due.pop_front();
        let is_due = next.is_some();
        let Some((user, kind)) = next.or_else(|| self.left.pop_front()) else {
            return Ok(PassProgress::Done);
        };
        if run.deadline.has_passed() || !run.leases.keep(run.app, self.shard).await? {
            self.is_complete = false;
            return Ok(PassProgress::Cut);
        }
        match self.tell(run, mailer, &user, kind).await {
            Ok(()) => {}
            // Whoever is damaged is told once that is mended, and holds up nobody until then.
            Err(failure @ StoreError::Damaged { .. }) => {
                self.is_complete = false;
                run.note_failure(failure);
            }
            Err(failure) => return Err(failure),
        }
        if !is_due && self.left.front().is_none_or(|(next, _)| *next != user) {
            self.looked = Some(user);
        }
        Ok(PassProgress::More)
    }

    /// Tells a user of what happened of a kind, if it is time.
    async fn tell(
        &mut self,
        run: &mut JobContext<'_>,
        mailer: &Mailer,
        user: &UserId,
        kind: DomainEventKind,
    ) -> Result<(), StoreError> {
        let (app, now) = (run.app, run.app.clock.now());
        let name = UserName { organization: self.organization.clone(), user: user.clone() };
        let mut mailbox = self.feed.mailboxes.get(user.as_str()).cloned().unwrap_or_default();
        let told = self.feed.head.told;
        let SendDecision::Tell { after } = mailbox.turn(kind, told, now) else { return Ok(()) };
        let news = self.feed.steps.iter().filter(|step| {
            step.number > after
                && step.number <= self.last
                && step.kind() == Some(kind)
                && step.concerns(user)
        });
        let news: Vec<FeedEntry> = news.cloned().collect();
        let reader = if news.is_empty() { None } else { recipient(app, &name, kind).await? };
        let Some(reader) = reader else { return self.close(app, &name, mailbox, kind).await };
        let mut seen: Vec<&FeedEntry> = Vec::with_capacity(news.len());
        for step in &news {
            let Some(scene) = step.scene().filter(|scene| reader.may_see(kind, scene)) else {
                continue;
            };
            if run.is_there(scene).await? {
                seen.push(step);
            }
        }
        if seen.is_empty() {
            return self.close(app, &name, mailbox, kind).await;
        }
        if let Some(room) = mailbox.rate_limited_until(mailer.mails_per_hour, now) {
            let is_another = mailbox.defer(kind, after, room, now);
            self.note(app, &name, mailbox).await?;
            if is_another {
                change_address(app, &name, |address| address.held_back += 1).await?;
            }
            return Ok(());
        }
        // A digest tells what had to wait in its week.
        let is_digest = kind == DomainEventKind::WeekEnded;
        let held_back = if is_digest { reader.held_back } else { 0 };
        let Some(mail) = write(run, mailer, &name, kind, &seen, held_back).await? else {
            return self.close(app, &name, mailbox, kind).await;
        };
        let mut told_back = 0;
        match mailer.send(&reader.email, &mail).await {
            Ok(()) => {
                told_back = held_back;
                mailbox.note_sent(kind, self.last, now);
            }
            Err(SendError::Refused(reason)) => {
                run.refused += 1;
                let refusal = Refusal { at: now, reason };
                change_address(app, &name, |address| address.refusal = Some(refusal)).await?;
                mailbox.note_sent(kind, self.last, now);
            }
            Err(SendError::Failed(cause)) => {
                self.is_complete = false;
                run.note_failure(StoreError::OtherService { service: "SES", cause });
                return Ok(());
            }
        }
        self.note(app, &name, mailbox).await?;
        if told_back > 0 {
            let forget = |address: &mut UserAddress| {
                address.held_back = address.held_back.saturating_sub(told_back);
            };
            change_address(app, &name, forget).await?;
        }
        Ok(())
    }

    /// Notes that there is nothing to tell a user of. Nothing is written for who has no window.
    async fn close(
        &mut self,
        app: &App,
        name: &UserName,
        mut mailbox: DeliveryState,
        kind: DomainEventKind,
    ) -> Result<(), StoreError> {
        if mailbox.close(kind, self.feed.head.told) {
            self.note(app, name, mailbox).await?;
        }
        Ok(())
    }

    /// Stores what was sent to a user.
    async fn note(
        &mut self,
        app: &App,
        name: &UserName,
        mut mailbox: DeliveryState,
    ) -> Result<(), StoreError> {
        let now = app.clock.now();
        if !NotificationStore::new(&app.store).replace_mailbox(name, &mailbox, now).await? {
            // Somebody else works on it, who has taken over the lease.
            return Err(StoreError::Contended("another run sends mails to the same user".into()));
        }
        if mailbox.is_idle(now) {
            self.feed.mailboxes.remove(name.user.as_str());
        } else {
            mailbox.revision = mailbox.revision.saturating_add(1);
            self.feed.mailboxes.insert(name.user.as_str().to_owned(), mailbox);
        }
        Ok(())
    }

    /// Notes that everybody was told, and removes what nobody waits for any more. Answers the visit that tells of
    /// what came since an earlier run had no time for all.
    async fn end(mut self, run: &mut JobContext<'_>) -> Result<Option<Self>, StoreError> {
        if !self.is_complete {
            if self.feed.looked.is_some() {
                // A damaged recipient does not delay later steps.
                NotificationStore::new(&run.app.store)
                    .note_looked(&self.organization, self.feed.head.told, None)
                    .await?;
            }
            self.leave(run);
            return Ok(None);
        }
        let (app, now) = (run.app, run.app.clock.now());
        let windows = self.feed.mailboxes.values().flat_map(|mailbox| mailbox.windows.values());
        let needless = windows
            .map(|window| window.covered)
            .min()
            .map_or(self.last, |covered| covered.min(self.last));
        let organization = &self.organization;
        NotificationStore::new(&app.store)
            .tell_feed(organization, &self.feed, self.last, needless)
            .await?;
        // Of users who have no window any more, only how many mails they got in the last hour was kept.
        let idle: Vec<(String, DeliveryState)> =
            self.feed.mailboxes.extract_if(.., |_, mailbox| mailbox.is_idle(now)).collect();
        for (user, mailbox) in idle {
            let Ok(user) = UserId::parse(&user) else { continue };
            let name = UserName { organization: self.organization.clone(), user };
            NotificationStore::new(&app.store).replace_mailbox(&name, &mailbox, now).await?;
        }
        if self.feed.mailboxes.is_empty() {
            NotificationStore::new(&app.store).end_feed(&self.organization, self.last).await?;
        }
        if !self.goes_on {
            return Ok(None);
        }
        Self::begin(app, self.shard, self.organization).await.map(Some)
    }

    /// Notes who was looked at, so that the next run goes on with the others.
    async fn note_looked(&self, app: &App) -> Result<(), StoreError> {
        let Some(user) = self.looked.clone() else { return Ok(()) };
        let looked = FeedCheckpoint { last: self.last, user };
        if self.feed.looked.as_ref() == Some(&looked) {
            return Ok(());
        }
        NotificationStore::new(&app.store)
            .note_looked(&self.organization, self.feed.head.told, Some(&looked))
            .await
    }

    /// Notes since when what is left waits.
    fn leave(&self, run: &mut JobContext<'_>) {
        if let Some(since) = self.feed.waiting_since(run.app.clock.now()) {
            run.leave(since);
        }
    }
}

/// Returns the email about some steps; `None` if their subjects no longer exist.
async fn write(
    run: &mut JobContext<'_>,
    mailer: &Mailer,
    name: &UserName,
    kind: DomainEventKind,
    steps: &[&FeedEntry],
    held_back: u64,
) -> Result<Option<Email>, StoreError> {
    let mut scenes: BTreeMap<String, Vec<&FeedEntry>> = BTreeMap::new();
    for step in steps {
        let scene = step.scene().map(ToString::to_string).unwrap_or_default();
        scenes.entry(scene).or_default().push(step);
    }
    let mut stories = Vec::with_capacity(scenes.len());
    for steps in scenes.into_values() {
        let place = match steps.first().and_then(|step| step.scene()) {
            Some(Visibility::Project(id)) => {
                run.named_project(*id).await?.map(|project| ProjectLink {
                    name: project.name.as_str().to_owned(),
                    slug: project.slug.as_str().to_owned(),
                })
            }
            _ => None,
        };
        let mut lines: Vec<DomainEvent> =
            steps.iter().flat_map(|step| step.lines.iter().cloned()).collect();
        // An email with a line too many, or in another order, is better than none.
        let dropped = drop_gone(run, &mut lines).await;
        let dropped = run.unless_failed(dropped).unwrap_or_default();
        let count = steps.iter().map(|step| step.count).sum::<u64>().saturating_sub(dropped);
        if count == 0 {
            continue;
        }
        let since = steps.iter().map(|step| step.since).min();
        let weighed = weigh(run, &mut lines, since).await;
        run.unless_failed(weighed);
        let lines = most_important(lines.iter());
        stories.push(ProjectSection { place, count, lines });
    }
    if stories.is_empty() {
        return Ok(None);
    }
    let first = most_important(stories.iter().flat_map(|story| &story.lines)).into_iter().next();
    let plot = match &first {
        // A mail without its plot is better than none.
        Some(first) => {
            let plot = plot_of(run, first).await;
            run.unless_failed(plot).flatten()
        }
        None => None,
    };
    let key = run.app.cache::<TokenKeyCache>().get(&run.app.store).await?;
    let token = Token::Unsubscribe {
        organization: name.organization.clone(),
        user: name.user.clone(),
        notification_type: kind.notification_type(),
    };
    let base_url = &mailer.base_url;
    let unsubscribe_url =
        format!("{base_url}/v0/notifications/unsubscribe?token={}", token.seal(&key));
    let letter = NotificationEmail {
        kind,
        stories: &stories,
        plot: plot.as_ref(),
        base_url,
        unsubscribe_url: &unsubscribe_url,
        held_back,
    };
    Ok(Some(letter.mail()))
}

/// Weighs errors of one project by the events that they have since the hour in which the first of them was told.
/// These are counted once in a run, however many users are told.
async fn weigh(
    run: &mut JobContext<'_>,
    lines: &mut [DomainEvent],
    since: Option<Timestamp>,
) -> Result<(), StoreError> {
    let is_weighed_later = lines.first().is_some_and(|line| line.kind.is_weighed_later());
    let project = lines.first().map(|line| &line.scene);
    let (Some(Visibility::Project(project)), Some(since)) = (project, since) else { return Ok(()) };
    if lines.len() < 2 || !is_weighed_later {
        return Ok(());
    }
    let (project, hour) = (*project, Hour::of(since));
    let counts = if let Some(known) = run.frequent.get(&(project, hour)) {
        known
    } else {
        let (store, now) = (&run.app.store, run.app.clock.now());
        let counts =
            ErrorStore::new(store).most_frequent_errors(project, hour, WEIGHED, now).await?;
        run.frequent.entry((project, hour)).or_insert(counts)
    };
    for line in lines {
        let events = ErrorId::parse(&line.subject).and_then(|id| counts.get(&id));
        line.weight = events.copied().unwrap_or_default();
    }
    Ok(())
}

/// The events of the last 24 hours of what is told first, if that is an error. They are counted once in a run,
/// however many users are told of it.
async fn plot_of(
    run: &mut JobContext<'_>,
    first: &DomainEvent,
) -> Result<Option<Plot>, StoreError> {
    let is_error = matches!(
        first.kind,
        DomainEventKind::ErrorCreated
            | DomainEventKind::ErrorReopened
            | DomainEventKind::ErrorSpiked
    );
    let (Visibility::Project(project), true) = (&first.scene, is_error) else { return Ok(None) };
    let Some(id) = ErrorId::parse(&first.subject) else { return Ok(None) };
    let counted = if let Some(known) = run.plotted.get(&(*project, id)) {
        known.clone()
    } else {
        let (store, now) = (&run.app.store, run.app.clock.now());
        let Some(error) = ErrorStore::new(store).find_error(*project, id, now).await? else {
            return Ok(None);
        };
        let events = EventsOfError::from(&error);
        let counted = ErrorStore::new(store)
            .latest_events_by_hour(*project, &events, PLOTTED_HOURS, PLOTTED_EVENTS, now)
            .await?;
        run.plotted.insert((*project, id), counted.clone());
        counted
    };
    let EventsByHour { hours, is_cut } = counted;
    Ok(Some(Plot { title: first.title.clone(), hours, is_cut }))
}

/// Changes what is known of where a user gets mail. Where somebody else changed that meanwhile, theirs stays:
/// a refusal was not of a newer address, and one mail more or less that waited is no loss.
async fn change_address(
    app: &App,
    name: &UserName,
    change: impl FnOnce(&mut UserAddress),
) -> Result<(), StoreError> {
    let mut address = NotificationStore::new(&app.store).find_address(name).await?;
    if !address.is_stored() {
        // The user was erased just now, and must not come back.
        return Ok(());
    }
    change(&mut address);
    NotificationStore::new(&app.store).replace_address(name, &address, false).await.map(drop)
}
