use shared::projects::api_key::UserId;
use shared::projects::project::{Organization, ProjectId};

use super::*;
use crate::address::Nonce;
use crate::domain_event::Visibility;

const STOP: &str = "https://api.example.com/v0/notifications/unsubscribe?token=abc";

/// Titles that want to be more than text.
const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</div></body></html>",
    "<a href='https://evil.example'>click</a>",
    "' style='position:fixed",
    "<!--",
    "&lt;b&gt;",
    "x\r\nBcc: everybody@example.com\r\n\r\n<h1>",
    "\u{202e}gnp.exe",
    "{{7*7}} ${7*7} %s \\u003cb\\u003e",
    "evil.\u{200b}example",
    "https:\u{1}//x",
    "c\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}\u{300}\u{301}art",
    "\u{489}\u{489}\u{489}\u{489}\u{489}\u{489} x",
    "\u{e01}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}",
    "\u{3164}\u{2800}\u{34f}\u{fe0f} \u{ffa0}",
];

fn domain_event(title: &str) -> DomainEvent {
    let project = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
    let at = Timestamp::from_millis(1_795_234_560_000);
    DomainEvent::new(DomainEventKind::ErrorCreated, project, "e-1", title, at)
}

fn story(name: &str, count: u64, titles: &[&str]) -> ProjectSection {
    let place = ProjectLink { name: name.to_owned(), slug: "shop".to_owned() };
    ProjectSection {
        place: Some(place),
        count,
        lines: titles.iter().map(|it| domain_event(it)).collect(),
    }
}

fn mail(stories: &[ProjectSection], plot: Option<&Plot>) -> Email {
    let (kind, base_url) = (DomainEventKind::ErrorCreated, "https://api.example.com");
    NotificationEmail { kind, stories, plot, base_url, unsubscribe_url: STOP, held_back: 0 }.mail()
}

#[test]
fn one_domain_event_is_told_in_the_subject() {
    let told = mail(&[story("Shop", 1, &["TypeError: cart is undefined"])], None);
    assert_eq!(told.subject, "New error in Shop: TypeError: cart is undefined");
    assert_eq!(
        told.text,
        "New error in Shop\n\nTypeError: cart is undefined\n  2026-11-21 04:16 UTC\n  \
         https://api.example.com/console/error?project=shop&id=e-1\n\n-- \nYou get this because mails \
         about new errors are switched on for you.\nStop these mails: "
            .to_owned()
            + STOP
            + "\n"
    );
}

#[test]
fn many_are_counted_and_the_rest_is_a_number() {
    let plot = Plot { title: "a".to_owned(), hours: vec![0, 1_000, 250], is_cut: false };
    let told = mail(&[story("Shop", 1_000, &["a", "b"])], Some(&plot));
    assert_eq!(told.subject, "1,000 new errors in Shop");
    assert!(told.text.contains("\n\nand 998 more\n\n▁█▃\n1,250 events of a in"), "{}", told.text);
    let told = mail(&[story("Shop", 2, &["a"]), story("Blog", 3, &["b"])], None);
    assert_eq!(told.subject, "5 new errors in 2 projects");
}

#[test]
fn a_week_is_told_project_by_project() {
    let week = |number: u128, name: &str, slug: &str, lines: &[(&str, &str, &str)]| {
        let line = |(subject, title, detail): &(&str, &str, &str)| DomainEvent {
            kind: DomainEventKind::WeekEnded,
            scene: Visibility::Project(ProjectId::new(uuid::Uuid::from_u128(number))),
            subject: (*subject).to_owned(),
            ..domain_event(title).detailed(detail)
        };
        let place = ProjectLink { name: name.to_owned(), slug: slug.to_owned() };
        let count = lines.len().try_into().unwrap();
        ProjectSection { place: Some(place), count, lines: lines.iter().map(line).collect() }
    };
    let told = |stories: &[ProjectSection]| {
        let (kind, base_url) = (DomainEventKind::WeekEnded, "https://api.example.com");
        NotificationEmail {
            kind,
            stories,
            plot: None,
            base_url,
            unsubscribe_url: STOP,
            held_back: 0,
        }
        .mail()
    };
    let overview = ("overview", "1,204 events, 1 new error", "");
    let error = ("error/e-1", "TypeError", "new error, 1,000 events");
    let shop = week(0, "Shop", "shop", &[overview, error, ("flag/beta", "Beta", "flag, changed")]);
    let one = told(std::slice::from_ref(&shop));
    assert_eq!(one.subject, "The week in Shop: 1,204 events, 1 new error");
    assert!(
        one.text.starts_with(
            "The week in Shop\n\n1,204 events, 1 new error\n  \
             https://api.example.com/console/?project=shop\n\nTypeError\n  new error, 1,000 events\n  \
             https://api.example.com/console/error?project=shop&id=e-1\n\nBeta\n"
        ),
        "{}",
        one.text
    );
    assert!(one.text.contains("/console/flag?project=shop&key=beta\n\n-- \n"), "{}", one.text);
    let (kind, base_url) = (DomainEventKind::WeekEnded, "https://api.example.com");
    let stories = std::slice::from_ref(&shop);
    let held = NotificationEmail {
        kind,
        stories,
        plot: None,
        base_url,
        unsubscribe_url: STOP,
        held_back: 3,
    };
    assert!(held.mail().text.contains("Since the last such mail, 3 mails had to wait until"));
    let project = |number| week(number, &format!("P{number}"), "p", &[overview, error]);
    let many: Vec<ProjectSection> = (0..12).map(project).collect();
    let all = told(&many);
    assert_eq!(all.subject, "The week in 12 projects");
    assert_eq!(all.text.matches("/console/").count(), 20);
    assert!(all.text.contains("\n  new error, 1,000 events · P3\n"), "{}", all.text);
    assert!(all.text.contains("\n\nand 2 more projects\n\n"), "{}", all.text);
}

#[test]
fn texts_of_others_are_nothing_but_text() {
    for hostile in HOSTILE {
        let told = mail(&[story(hostile, 1, &[hostile])], None);
        assert!(!told.subject.contains(['\r', '\n', '\u{202e}']), "{:?}", told.subject);
        assert!(!told.text.contains(['\r', '\u{202e}', '\0']), "{:?}", told.text);
        for text in [&told.subject, &told.text, &told.html] {
            assert!(!text.contains(['\u{3164}', '\u{2800}', '\u{34f}', '\u{fe0f}', '\u{ffa0}']));
            let marks = ['\u{300}', '\u{301}', '\u{489}', '\u{e47}'];
            let many = |text: &[char]| text.iter().all(|character| marks.contains(character));
            let characters: Vec<char> = text.chars().collect();
            assert!(!characters.windows(3).any(many), "{text}");
        }
        // Nor does a mail program find any to make of the text.
        for line in told.text.lines().filter(|it| !it.contains("https://api.example.com/")) {
            let mut pairs = line.chars().zip(line.chars().skip(1));
            let is_link = |(one, next): (char, char)| match one {
                '.' | '@' => next.is_alphanumeric(),
                ':' => next == '/',
                _ => false,
            };
            assert!(!pairs.any(is_link), "{line:?}");
        }
        let plain = mail(&[story("Shop", 1, &["plain"])], None);
        let tags = |html: &str| html.matches(['<', '>', '"']).count();
        assert_eq!(tags(&told.html), tags(&plain.html), "{}", told.html);
        // Of addresses only our own are links.
        for link in told.html.split("href=\"").skip(1) {
            assert!(link.starts_with("https://api.example.com/"), "{link}");
        }
    }
}

#[test]
fn of_what_shows_nothing_there_is_still_a_line() {
    let plot = Plot { title: "\u{2800}".to_owned(), hours: vec![1], is_cut: false };
    let told = mail(&[story("\u{3164}", 1, &["\u{3164}"])], Some(&plot));
    assert_eq!(told.subject, "New error in shop: (no title)");
    assert!(told.text.starts_with("New error in shop\n\n(no title)\n  2026-"), "{}", told.text);
    assert!(told.text.contains("\n1 event of (no title) in"), "{}", told.text);
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let told = mail(&[story("Shop", 1, &["x"])], None);
    for word in ["<img", "src=", "url(", "@import", "<link", "<script"] {
        assert!(!told.html.contains(word), "{word}");
    }
}

#[test]
fn a_confirmation_has_its_link_and_cannot_be_unsubscribed_from() {
    let email = EmailAddress::parse("mira@example.com").unwrap();
    let told =
        confirmation(&email, "default", "https://api.example.com/v0/notifications/confirm?token=x");
    assert!(told.text.contains("\nhttps://api.example.com/v0/notifications/confirm?token=x\n"));
    assert!(
        told.html.contains("href=\"https://api.example.com/v0/notifications/confirm?token=x\"")
    );
    assert_eq!(told.unsubscribe_url, None);
}

#[test]
fn a_security_mail_says_what_changed_and_undoes_it() {
    let replaced = ReplacedAddress {
        email: EmailAddress::parse("mira@example.com").unwrap(),
        nonce: Nonce([0; 16]),
        ends: Timestamp::parse_rfc3339("2026-11-24T04:16:00Z").unwrap(),
        is_told: false,
    };
    let organization = Organization::parse("default").unwrap();
    let name = UserName { organization, user: UserId::parse("mira").unwrap() };
    let url = "https://api.example.com/v0/notifications/confirm?token=x";
    let told = address_changed(&replaced, &name, url);
    assert_eq!(told.subject, "Your notifications of Waymark go to another address");
    for part in
        ["user mira of the organization default", "mira@\u{2060}example.", "2026-11-24 04:16 UTC"]
    {
        assert!(told.text.contains(part) && told.html.contains(part), "{part}: {}", told.text);
    }
    assert!(told.text.contains(&format!("Undo the change:\n{url}\n")), "{}", told.text);
    assert!(told.html.contains(&format!("href=\"{url}\"")), "{}", told.html);
    assert_eq!(told.unsubscribe_url, None);
}
