//! What a mail says, before it is text or HTML.

use shared::text::{counted, grouped};
use shared::timestamp::Timestamp;

use super::html::html_of;
use super::plot::Plot;
use super::safe_text::{line, title};
use super::wording::{Wording, wording};
use super::{Email, safe_text};
use crate::address::{EmailAddress, ReplacedAddress};
use crate::domain_event::{DigestSubject, DomainEvent, DomainEventKind};
use crate::feed::most_important;
use crate::notification_type::NotificationType;
use crate::store::UserName;

/// How many projects are shown of a week.
const MOST_PROJECTS: usize = 10;

/// A project as mails name it, and where it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLink {
    /// Its name.
    pub name: String,
    /// Its slug.
    pub slug: String,
}

impl ProjectLink {
    /// Its name, if anything of that is to be seen.
    fn shown(&self) -> String {
        let name = line(&self.name);
        if name.is_empty() { self.slug.clone() } else { name }
    }
}

/// What happened in a place, or to the user alone where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSection {
    /// The project.
    pub place: Option<ProjectLink>,
    /// How often it happened.
    pub count: u64,
    /// The most important times.
    pub lines: Vec<DomainEvent>,
}

/// A notification of one type to one user.
#[derive(Debug, Clone, Copy)]
pub struct NotificationEmail<'l> {
    /// What happened.
    pub kind: DomainEventKind,
    /// Where, and how often. There is at least one.
    pub stories: &'l [ProjectSection],
    /// The events of the last 24 hours, where it is about errors.
    pub plot: Option<&'l Plot>,
    /// Where the console is, without a slash at its end.
    pub base_url: &'l str,
    /// Where mails of its type are switched off.
    pub unsubscribe_url: &'l str,
    /// How many mails had to wait until there was room for them in their hour, if it is to say so.
    pub held_back: u64,
}

/// A line of a mail about one happening.
pub(super) struct Item {
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) url: Option<String>,
}

/// The parts of a mail, in their order.
pub(super) struct Parts<'p> {
    pub(super) headline: String,
    pub(super) items: Vec<Item>,
    pub(super) more: Option<String>,
    pub(super) plot: Option<(String, String)>,
    pub(super) button: Option<(&'static str, String)>,
    pub(super) foot: String,
    pub(super) unsubscribe_url: Option<&'p str>,
}

impl NotificationEmail<'_> {
    /// The mail.
    pub fn mail(&self) -> Email {
        let parts = self.parts();
        Email {
            subject: self.subject(),
            text: text_of(&parts),
            html: html_of(&parts),
            unsubscribe_url: Some(self.unsubscribe_url.to_owned()),
        }
    }

    /// Whether it sums up a week, project by project, and does not tell of one thing or several.
    fn is_digest(&self) -> bool {
        self.kind == DomainEventKind::WeekEnded
    }

    fn count(&self) -> u64 {
        self.stories.iter().map(|story| story.count).sum()
    }

    /// Where it happened, in a few words.
    fn places(&self) -> Option<String> {
        let mut places = self.stories.iter().filter_map(|story| story.place.as_ref());
        let first = places.next()?;
        Some(match places.count() {
            0 => first.shown(),
            more => format!("{} projects", more + 1),
        })
    }

    fn subject(&self) -> String {
        let Wording { one, many, .. } = wording(self.kind);
        let place = self.places().map(|place| format!(" in {place}")).unwrap_or_default();
        let first = self.stories.first().and_then(|story| story.lines.first());
        let text = match first {
            // The first line about a week tells its counts.
            Some(first) if self.is_digest() && self.stories.len() == 1 => {
                format!("{one}{place}: {}", title(&first.title))
            }
            _ if self.is_digest() => format!("{one}{place}"),
            Some(first) if self.count() == 1 => format!("{one}{place}: {}", title(&first.title)),
            _ => format!("{} {many}{place}", grouped(self.count())),
        };
        safe_text::subject(&text)
    }

    fn parts(&self) -> Parts<'_> {
        let all: Vec<(&DomainEvent, Option<&ProjectLink>)> = self
            .stories
            .iter()
            .flat_map(|story| story.lines.iter().map(move |line| (line, story.place.as_ref())))
            .collect();
        let shown = if self.is_digest() {
            // Project by project, as many of them as a mail has room for.
            let stories = self.stories.iter().take(MOST_PROJECTS);
            stories.flat_map(|story| story.lines.clone()).collect()
        } else {
            most_important(all.iter().map(|(domain_event, _)| *domain_event))
        };
        let place_of = |domain_event: &DomainEvent| {
            let found = all.iter().find(|(other, _)| other.scene == domain_event.scene);
            found.and_then(|(_, place)| *place)
        };
        let items: Vec<Item> = shown
            .iter()
            .map(|domain_event| self.item(domain_event, place_of(domain_event)))
            .collect();
        let more = if self.is_digest() {
            let more = self.stories.len().saturating_sub(MOST_PROJECTS);
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            (more > 0).then(|| format!("and {}", counted(more, ("more project", "more projects"))))
        } else {
            let more = self.count().saturating_sub(items.len().try_into().unwrap_or(u64::MAX));
            (more > 0).then(|| format!("and {} more", grouped(more)))
        };
        Parts {
            headline: self.headline(),
            items,
            more,
            plot: self.plot.map(|plot| (plot.bars(), plot.caption())),
            button: None,
            foot: self.foot(),
            unsubscribe_url: Some(self.unsubscribe_url),
        }
    }

    fn foot(&self) -> String {
        let about = subject_of(self.kind.notification_type());
        let because = format!("You get this because mails about {about} are switched on for you.");
        match self.held_back {
            0 => because,
            held_back => format!(
                "Since the last such mail, {} had to wait until there was room for more in an hour. {because}",
                counted(held_back, ("mail", "mails"))
            ),
        }
    }

    fn headline(&self) -> String {
        let Wording { one, many, .. } = wording(self.kind);
        let place = self.places().map(|place| format!(" in {place}")).unwrap_or_default();
        match self.count() {
            _ if self.is_digest() => format!("{one}{place}"),
            1 => format!("{one}{place}"),
            count => format!("{} {many}{place}", grouped(count)),
        }
    }

    fn item(&self, domain_event: &DomainEvent, place: Option<&ProjectLink>) -> Item {
        let Wording { weight, .. } = wording(domain_event.kind);
        let mut details = Vec::new();
        let detail = line(&domain_event.detail);
        if !detail.is_empty() {
            details.push(detail);
        }
        let weight = weight.filter(|_| domain_event.weight > 0);
        details.extend(weight.map(|words| counted(domain_event.weight, words)));
        if self.stories.len() > 1 {
            details.extend(place.map(ProjectLink::shown));
        }
        details.extend(
            domain_event.actor.as_ref().map(|actor| format!("by {}", line(actor.as_str()))),
        );
        if !self.is_digest() {
            details.push(minute(domain_event.at));
        }
        Item {
            title: title(&domain_event.title),
            detail: details.join(" · "),
            url: place.and_then(|place| console_url(self.base_url, place, domain_event)),
        }
    }
}

/// Asks whoever reads it to confirm an address.
pub fn confirmation(email: &EmailAddress, organization: &str, url: &str) -> Email {
    let foot = format!(
        "A user of the organization {} asked to have notifications sent to {}. If that was not you, do \
         nothing: without a confirmation nothing is sent. The link is valid for 24 hours.",
        line(organization),
        line(email.as_str())
    );
    of_address(
        "Confirm your address for notifications of Waymark",
        "Confirm your address",
        None,
        ("Confirm this address", url),
        foot,
    )
}

/// Returns the security email to the owner of a replaced address.
pub fn address_changed(replaced: &ReplacedAddress, name: &UserName, url: &str) -> Email {
    let more = format!(
        "Notifications for the user {} of the organization {} no longer go to {}. If you did not change \
         the address, another person has an API key of that user: undo the change, and revoke the key.",
        line(name.user.as_str()),
        line(name.organization.as_str()),
        line(replaced.email.as_str())
    );
    let foot = format!(
        "If you changed the address, do nothing. The link is good until {}.",
        minute(replaced.ends)
    );
    of_address(
        "Your notifications of Waymark go to another address",
        "Your notifications go to another address",
        Some(more),
        ("Undo the change", url),
        foot,
    )
}

/// Returns an email about an address, without a link to unsubscribe.
fn of_address(
    subject: &str,
    headline: &str,
    more: Option<String>,
    (label, url): (&'static str, &str),
    foot: String,
) -> Email {
    let parts = Parts {
        headline: headline.to_owned(),
        items: Vec::new(),
        more,
        plot: None,
        button: Some((label, url.to_owned())),
        foot,
        unsubscribe_url: None,
    };
    Email {
        subject: safe_text::subject(subject),
        text: text_of(&parts),
        html: html_of(&parts),
        unsubscribe_url: None,
    }
}

/// What mails of a type are about, in a sentence.
pub(crate) fn subject_of(notification_type: NotificationType) -> &'static str {
    match notification_type {
        NotificationType::OrganizationInvite => "invitations to organizations",
        NotificationType::ProjectInvite => "invitations to projects",
        NotificationType::ErrorNew => "new errors",
        NotificationType::ErrorRegression => "errors that are back",
        NotificationType::ErrorSpike => "errors that occur far more often than before",
        NotificationType::InsightNew => "new insights",
        NotificationType::InsightTrending => "insights that affect many more sessions than before",
        NotificationType::FlagChanged => "changes of feature flags",
        NotificationType::WeeklyDigest => "the week that is over",
        NotificationType::ApiKeyCreated => "new API keys",
        NotificationType::Billing => "invoices and payments",
    }
}

/// Where the console shows it.
fn console_url(base_url: &str, place: &ProjectLink, domain_event: &DomainEvent) -> Option<String> {
    let slug = &place.slug;
    // Ids, slugs and keys of flags need no encoding in a URL.
    Some(match domain_event.about()? {
        DigestSubject::Overview => format!("{base_url}/console/?project={slug}"),
        DigestSubject::Error(id) => format!("{base_url}/console/error?project={slug}&id={id}"),
        DigestSubject::Insight(id) => format!("{base_url}/console/insight?project={slug}&id={id}"),
        DigestSubject::Flag(key) => format!("{base_url}/console/flag?project={slug}&key={key}"),
    })
}

fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    let minute = text.get(.."2026-11-21T04:16".len()).unwrap_or(&text);
    format!("{} UTC", minute.replace('T', " "))
}

fn text_of(parts: &Parts<'_>) -> String {
    let mut paragraphs = vec![parts.headline.clone()];
    for Item { title, detail, url } in &parts.items {
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        let below = detail.into_iter().chain(url).map(|line| format!("\n  {line}"));
        paragraphs.push(title.clone() + &below.collect::<String>());
    }
    paragraphs.extend(parts.more.clone());
    paragraphs.extend(parts.plot.as_ref().map(|(bars, caption)| format!("{bars}\n{caption}")));
    paragraphs.extend(parts.button.as_ref().map(|(label, url)| format!("{label}:\n{url}")));
    let stop = parts.unsubscribe_url.map(|url| format!("\nStop these mails: {url}"));
    paragraphs.push(format!("-- \n{}{}", parts.foot, stop.unwrap_or_default()));
    paragraphs.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests;
