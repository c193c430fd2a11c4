//! Addresses: where a user gets mail, once that is confirmed (`docs/notifications.md`, "Addresses and
//! tokens").

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, JsonPath, ViolationCode, Violations, text};
use shared::timestamp::Timestamp;

/// How long a new address may be confirmed.
pub const TIME_TO_CONFIRM: Duration = Duration::from_hours(24);
/// How many mails that ask for a confirmation a user causes in an hour at most: they go to addresses that
/// nobody has confirmed.
const MAILS_TO_CONFIRM_PER_HOUR: usize = 5;
const HOUR: Duration = Duration::from_hours(1);
/// Minimum time between two confirmation emails to one address, over all users.
const ADDRESS_PAUSE: Duration = Duration::from_mins(10);
/// Maximum confirmation emails to one address in [`DAY`], over all users.
const MAILS_TO_CONFIRM_PER_DAY: usize = 5;
/// Time for which a confirmation email counts for its address.
pub const DAY: Duration = Duration::from_hours(24);
/// Time in which the owner of a replaced address can undo the change.
pub const TIME_TO_UNDO: Duration = Duration::from_hours(72);
/// Maximum replaced addresses that can undo their change. The earliest keep that right.
const MAX_REPLACED: usize = 5;

/// The most characters of an address, as it may have in a command of SMTP (RFC 5321 §4.5.3.1.3).
const MAX_ADDRESS: usize = 254;
/// The most characters before the `@` (RFC 5321 §4.5.3.1.1).
const MAX_LOCAL: usize = 64;
/// The most characters between two dots of a domain (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;
/// What a label of a domain begins with that stands for other letters (RFC 5890 §2.3.2.1).
const ENCODED: &str = "xn--";

/// An e-mail address: ASCII, as Amazon SES takes it. That it has the form says nothing of whether there is
/// such a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Reads an address, in the form that `openapi.yaml` tells.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        if is_address(text) {
            return Ok(Self(text.to_owned()));
        }
        let message = "must be an e-mail address such as mira@example.com; a domain with other letters \
                       than a to z is written in its ASCII form (xn--…)";
        Err(FieldError::new(ViolationCode::InvalidFormat, message))
    }

    /// Reads an address that was stored: it had the form that was asked for when it was set, which need not be
    /// today's. Whether there is such a mailbox, SES says.
    pub(super) fn stored(text: &str) -> Option<Self> {
        let is_one = text.contains('@') && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_one.then(|| Self(text.to_owned()))
    }

    /// The address's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let Some((host, top_level)) = domain.rsplit_once('.') else { return false };
    text.len() <= MAX_ADDRESS
        && local.len() <= MAX_LOCAL
        && local.split('.').all(is_atom)
        && host.split('.').all(is_label)
        && is_top_level(top_level)
}

/// Whether it may stand between two dots before the `@` (RFC 5321 §4.1.2).
fn is_atom(text: &str) -> bool {
    let is_atext =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_atext)
}

/// Whether it may stand between two dots of a domain.
fn is_label(text: &str) -> bool {
    (1..=MAX_LABEL).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether it may stand after a domain's last dot: letters, or what stands for other letters.
fn is_top_level(text: &str) -> bool {
    let is_word = text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let start = text.get(..ENCODED.len());
    let is_encoded = start.is_some_and(|start| start.eq_ignore_ascii_case(ENCODED));
    is_label(text) && (is_word || is_encoded)
}

/// Reads the body of set-email-address.
pub fn read_email_address(body: &Json<'_>) -> Result<EmailAddress, Violations> {
    let mut violations = Violations::default();
    let address = Fields::read(body, &JsonPath::Root, &mut violations, |fields, violations| {
        fields.required("email", violations, text(EmailAddress::parse))
    });
    violations.into_result(address)
}

/// What makes the links of one mail different from those of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

/// An address that is to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAddress {
    /// The address.
    pub email: EmailAddress,
    /// What the link in the mail must name.
    pub nonce: Nonce,
    /// From when on it cannot be confirmed any more.
    pub ends: Timestamp,
}

/// An address that another one replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedAddress {
    /// The address.
    pub email: EmailAddress,
    /// Part of the link that undoes the change.
    pub nonce: Nonce,
    /// The link's expiry.
    pub ends: Timestamp,
    /// `true` once the security email was sent.
    pub is_told: bool,
}

/// The effect of a link: where mail goes from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The pending address is confirmed.
    Confirmed(EmailAddress),
    /// A replaced address is back.
    Undone(EmailAddress),
}

/// Why an address cannot be confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotConfirmed {
    /// Its link was used before.
    Used,
    /// Another address was set since, or none is to be confirmed.
    Outdated,
    /// Its time has passed.
    Expired,
}

/// That SES does not send to an address, and never will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// When it said so.
    pub at: Timestamp,
    /// What it calls that.
    pub reason: String,
}

/// All that is known of where a user gets mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserAddress {
    /// Where mail is sent.
    pub confirmed: Option<EmailAddress>,
    /// What is to take its place.
    pub pending: Option<PendingAddress>,
    /// Addresses before it, earliest first.
    pub replaced: Vec<ReplacedAddress>,
    /// What the link named by which the latest address was confirmed.
    pub used: Option<Nonce>,
    /// When mails were sent that ask for a confirmation, in the last hour.
    pub asked: Vec<Timestamp>,
    /// What SES last refused for good.
    pub refusal: Option<Refusal>,
    /// How often mails had to wait for room, since a digest said so.
    pub held_back: u64,
    /// Grows with each change; 0 if nothing is stored.
    pub revision: u64,
}

impl UserAddress {
    /// Whether anything is stored of it, confirmed or not. Nothing is of users who never set an address, and
    /// of those who were erased.
    pub fn is_stored(&self) -> bool {
        self.revision > 0
    }

    /// Sets another address, which is to be confirmed at first; one that is confirmed already is not
    /// confirmed again. Links to any other one are void from now on; those to the same one stay valid.
    pub fn set(&mut self, email: EmailAddress, nonce: Nonce, now: Timestamp) {
        let ends = now.plus(TIME_TO_CONFIRM);
        let is_new = self.confirmed.as_ref() != Some(&email);
        let same = self.pending.take().filter(|it| it.email == email && now < it.ends);
        let nonce = same.map_or(nonce, |pending| pending.nonce);
        self.pending = is_new.then_some(PendingAddress { email, nonce, ends });
    }

    /// Sets an address without a confirmation, for operators. Voids all links.
    pub fn set_confirmed(&mut self, email: EmailAddress) {
        (self.confirmed, self.pending, self.refusal) = (Some(email), None, None);
        self.replaced.clear();
    }

    /// Follows a link: confirms the pending address, or restores a replaced one and voids what came after it.
    /// `undo` is for the link that undoes a confirmation.
    ///
    /// # Errors
    /// [`NotConfirmed`] if the link is not valid. Nothing is changed then.
    pub fn follow(
        &mut self,
        nonce: Nonce,
        undo: Nonce,
        now: Timestamp,
    ) -> Result<Followed, NotConfirmed> {
        let valid_until = |ends| if now < ends { Ok(()) } else { Err(NotConfirmed::Expired) };
        let followed = if let Some(pending) = self.pending.take_if(|it| it.nonce == nonce) {
            if let Err(expired) = valid_until(pending.ends) {
                self.pending = Some(pending);
                return Err(expired);
            }
            if let Some(at) = self.replaced.iter().position(|it| it.email == pending.email) {
                // The user undoes the change without its link.
                self.replaced.truncate(at);
            } else if let Some(email) = self.confirmed.take() {
                let ends = now.plus(TIME_TO_UNDO);
                self.replaced.retain(|it| now < it.ends);
                self.replaced.push(ReplacedAddress { email, nonce: undo, ends, is_told: false });
                self.replaced.truncate(MAX_REPLACED);
            }
            Followed::Confirmed(pending.email)
        } else if let Some(at) = self.replaced.iter().position(|it| it.nonce == nonce) {
            valid_until(self.replaced[at].ends)?;
            // A later address may be an attacker's, who must not get it back by a link.
            let email = self.replaced.drain(at..).next().map(|it| it.email);
            self.pending = None;
            Followed::Undone(email.ok_or(NotConfirmed::Outdated)?)
        } else if self.used == Some(nonce) {
            return Err(NotConfirmed::Used);
        } else {
            return Err(NotConfirmed::Outdated);
        };
        let (Followed::Confirmed(email) | Followed::Undone(email)) = &followed;
        (self.confirmed, self.refusal, self.used) = (Some(email.clone()), None, Some(nonce));
        Ok(followed)
    }

    /// Returns the first replaced address whose owner is still to get the security email.
    pub fn untold(&self, now: Timestamp) -> Option<&ReplacedAddress> {
        self.replaced.iter().find(|it| !it.is_told && now < it.ends)
    }

    /// Returns the earliest time for the pending address's confirmation email, if there is one.
    /// `asked_address`: times of earlier ones to that address, in order.
    pub fn asks_from(&self, asked_address: &[Timestamp]) -> Option<Timestamp> {
        let set = self.pending.as_ref()?.ends.minus(TIME_TO_CONFIRM);
        let room = |times: &[Timestamp], most: usize, period| {
            let oldest = times.get(times.len().checked_sub(most)?)?;
            Some(oldest.plus(period))
        };
        let of_user = room(&self.asked, MAILS_TO_CONFIRM_PER_HOUR, HOUR);
        let of_address = room(asked_address, 1, ADDRESS_PAUSE);
        let of_day = room(asked_address, MAILS_TO_CONFIRM_PER_DAY, DAY);
        [Some(set), of_user, of_address, of_day].into_iter().flatten().max()
    }

    /// Notes a confirmation email; returns the times of those to the address, with this one.
    pub fn note_asked(&mut self, asked_address: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
        self.asked.retain(|at| at.plus(HOUR) > now);
        self.asked.push(now);
        let lately = asked_address.iter().copied().filter(|at| at.plus(DAY) > now);
        lately.chain([now]).collect()
    }

    /// What is answered of it.
    pub fn shown(&self) -> ShownAddress<'_> {
        let pending = self.pending.as_ref();
        ShownAddress {
            email: self.confirmed.as_ref(),
            pending_email: pending.map(|pending| &pending.email),
        }
    }
}

/// An address as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownAddress<'a> {
    email: Option<&'a EmailAddress>,
    pending_email: Option<&'a EmailAddress>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email(text: &str) -> EmailAddress {
        EmailAddress::parse(text).unwrap()
    }

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_mins(minutes))
    }

    fn follow(user: &mut UserAddress, link: u8, at: Timestamp) -> Result<Followed, NotConfirmed> {
        user.follow(Nonce([link; 16]), Nonce([link + 10; 16]), at)
    }

    #[test]
    fn takes_addresses_and_nothing_else() {
        let long = |local: usize, hosts: [usize; 2], top: usize| {
            let [one, other] = hosts.map(|length| "b".repeat(length));
            format!("{}@{one}.{other}.{}", "a".repeat(local), "c".repeat(top))
        };
        let (longest, longest_labels) = (long(64, [63, 62], 62), long(1, [63, 63], 63));
        assert_eq!(longest.len(), MAX_ADDRESS);
        for address in [
            "a@b.de",
            "first.last+tag@mail.example.com",
            "o'neil@x-y.co",
            "A@B.DE",
            "a@1.2--3.de",
            "user@xn--e1afmkfd.xn--p1ai",
            "user@b.XN--P1AI",
            &longest,
            &longest_labels,
        ] {
            assert_eq!(email(address).as_str(), address);
        }
        for other in [
            "",
            "a",
            "@",
            "a@b",
            "a@b.",
            "a@.de",
            "@b.de",
            ".a@b.de",
            "a.@b.de",
            "a..b@c.de",
            "a b@c.de",
            "a@b@c.de",
            "a@b.d",
            "a@b.d3",
            "a@b.xn--",
            "a@b.xn--p1ai-",
            "a@b.-xn--p1ai",
            "a@b.xm--p1ai",
            "a@b.de\n",
            "a@b.de\r\nBcc: c@d.de",
            "ä@b.de",
            "a@ä.de",
            "a@-b.de",
            "a@b-.de",
            "a@b.-c.de",
            "a@b..c.de",
            "a@.b.de",
            "Mira <a@b.de>",
            "a@b.de,c@d.de",
            "a\0@b.de",
            "\"a b\"@c.de",
        ] {
            assert!(EmailAddress::parse(other).is_err(), "{other:?}");
        }
        for beyond in [
            long(65, [1, 1], 2),
            long(1, [64, 1], 2),
            long(1, [1, 64], 2),
            long(1, [1, 1], 64),
            long(64, [63, 63], 62),
        ] {
            assert!(EmailAddress::parse(&beyond).is_err(), "{beyond}");
        }
    }

    #[test]
    fn what_was_stored_is_read_by_whatever_rule_it_was_taken() {
        for address in ["a@b.de", "a..b@c.de", "a@b-.c.de"] {
            assert_eq!(EmailAddress::stored(address).unwrap().as_str(), address);
        }
        for other in ["", "a", "a b@c.de", "a@b.de\r\nBcc: c@d.de", "ä@b.de"] {
            assert_eq!(EmailAddress::stored(other), None, "{other:?}");
        }
    }

    #[test]
    fn an_address_counts_once_it_is_confirmed() {
        let mut user = UserAddress::default();
        user.set(email("a@b.de"), Nonce([1; 16]), at(0));
        assert_eq!(user.confirmed, None);
        assert_eq!(follow(&mut user, 2, at(1)), Err(NotConfirmed::Outdated));
        let confirmed = Ok(Followed::Confirmed(email("a@b.de")));
        assert_eq!(follow(&mut user, 1, at(24 * 60 - 1)), confirmed);
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(user.replaced, [], "the first address replaces none");
        assert_eq!(follow(&mut user, 1, at(2)), Err(NotConfirmed::Used));
    }

    #[test]
    fn setting_the_same_address_keeps_its_links() {
        let mut user = UserAddress::default();
        for minute in [0, 60] {
            user.set(email("a@b.de"), Nonce([minute; 16]), at(minute.into()));
        }
        let pending = user.pending.clone().unwrap();
        assert_eq!((pending.nonce, pending.ends), (Nonce([0; 16]), at(25 * 60)));
        user.set(email("a@b.de"), Nonce([3; 16]), at(25 * 60));
        assert_eq!(user.pending.unwrap().nonce, Nonce([3; 16]), "the earlier links expired");
    }

    /// A user whose address became `b`, then `c`, with links 11 and 12 to undo that.
    fn changed_twice() -> UserAddress {
        let mut user = UserAddress { confirmed: Some(email("a@b.de")), ..UserAddress::default() };
        for (number, name) in [(1, "b@b.de"), (2, "c@b.de")] {
            user.set(email(name), Nonce([number; 16]), at(0));
            follow(&mut user, number, at(u64::from(number))).unwrap();
        }
        user
    }

    #[test]
    fn the_first_address_undoes_all_later_changes() {
        let mut user = changed_twice();
        user.set(email("d@b.de"), Nonce([3; 16]), at(9));
        assert_eq!(follow(&mut user, 11, at(10)), Ok(Followed::Undone(email("a@b.de"))));
        let shown = (user.confirmed.clone(), user.pending.clone(), user.replaced.len());
        assert_eq!(shown, (Some(email("a@b.de")), None, 0));
        for (link, reason) in
            [(11, NotConfirmed::Used), (12, NotConfirmed::Outdated), (3, NotConfirmed::Outdated)]
        {
            assert_eq!(follow(&mut user, link, at(11)), Err(reason), "{link}");
        }
    }

    #[test]
    fn a_change_can_be_undone_for_72_hours() {
        let mut user = changed_twice();
        assert_eq!(follow(&mut user, 12, at(72 * 60 + 1)), Ok(Followed::Undone(email("b@b.de"))));
        assert_eq!(follow(&mut user, 11, at(72 * 60 + 1)), Err(NotConfirmed::Expired));
        assert_eq!(user.confirmed, Some(email("b@b.de")));
    }

    #[test]
    fn confirming_a_replaced_address_undoes_the_change() {
        let mut user = changed_twice();
        user.set(email("a@b.de"), Nonce([3; 16]), at(80 * 60));
        follow(&mut user, 3, at(80 * 60)).unwrap();
        assert_eq!((user.confirmed.clone(), user.replaced.len()), (Some(email("a@b.de")), 0));
        assert_eq!(follow(&mut user, 12, at(80 * 60)), Err(NotConfirmed::Outdated));
    }

    #[test]
    fn the_earliest_replaced_addresses_keep_their_links() {
        let mut user = changed_twice();
        for number in 3..9 {
            user.set(email(&format!("x{number}@b.de")), Nonce([number; 16]), at(3));
            follow(&mut user, number, at(3)).unwrap();
        }
        assert_eq!(user.replaced.len(), MAX_REPLACED);
        assert_eq!(follow(&mut user, 11, at(4)), Ok(Followed::Undone(email("a@b.de"))));
    }

    #[test]
    fn a_newer_address_voids_older_links_and_leaves_the_confirmed_one() {
        let mut user = UserAddress { confirmed: Some(email("a@b.de")), ..UserAddress::default() };
        user.set(email("c@d.de"), Nonce([1; 16]), at(0));
        user.set(email("e@f.de"), Nonce([2; 16]), at(1));
        assert_eq!(follow(&mut user, 1, at(2)), Err(NotConfirmed::Outdated));
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(follow(&mut user, 2, at(24 * 60 + 1)), Err(NotConfirmed::Expired));
        // Back to what is confirmed: nothing is left to confirm.
        user.set(email("a@b.de"), Nonce([3; 16]), at(3));
        assert_eq!(user.pending, None);
        assert_eq!(follow(&mut user, 2, at(4)), Err(NotConfirmed::Outdated));
    }

    #[test]
    fn a_confirmation_email_waits_for_room() {
        let mut user = UserAddress::default();
        assert_eq!(user.asks_from(&[]), None);
        user.set(email("a@b.de"), Nonce([1; 16]), at(3));
        assert_eq!(user.asks_from(&[]), Some(at(3)));
        for minute in [4, 5, 6, 7, 8] {
            user.note_asked(&[], at(minute));
        }
        user.set(email("b@b.de"), Nonce([2; 16]), at(9));
        assert_eq!(user.asks_from(&[]), Some(at(64)), "a user causes five in an hour");
        user.note_asked(&[], at(64));
        assert_eq!(user.asks_from(&[]), Some(at(65)));
        user.set(email("c@b.de"), Nonce([3; 16]), at(90));
        assert_eq!(user.asks_from(&[]), Some(at(90)));
    }

    #[test]
    fn confirmation_emails_to_one_address_are_limited() {
        let mut asked = Vec::new();
        for minute in [0, 10, 20, 30, 40] {
            let mut user = UserAddress::default();
            user.set(email("a@b.de"), Nonce([1; 16]), at(0));
            assert_eq!(user.asks_from(&asked), Some(at(minute)));
            asked = user.note_asked(&asked, at(minute));
        }
        let mut user = UserAddress::default();
        user.set(email("a@b.de"), Nonce([1; 16]), at(50));
        assert_eq!(user.asks_from(&asked), Some(at(24 * 60)));
        let later = user.note_asked(&asked, at(24 * 60 + 10));
        assert_eq!(later, [20, 30, 40, 24 * 60 + 10].map(at));
    }
}
