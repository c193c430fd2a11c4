//! Addresses: where a user gets mail, once that is confirmed (`docs/notifications.md`, "Addresses and
//! tokens").

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::json::{Fault, Fields, Json, JsonPath, ViolationCode, Violations, text};
use crate::timestamp::Timestamp;

/// How long a new address may be confirmed.
pub const TIME_TO_CONFIRM: Duration = Duration::from_hours(24);
/// How many mails that ask for a confirmation a user causes in an hour at most: they go to addresses that
/// nobody has confirmed.
const MAILS_TO_CONFIRM_PER_HOUR: usize = 5;
const HOUR: Duration = Duration::from_hours(1);

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
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if is_address(text) {
            return Ok(Self(text.to_owned()));
        }
        let message = "must be an e-mail address such as mira@example.com; a domain with other letters \
                       than a to z is written in its ASCII form (xn--…)";
        Err(Fault::new(ViolationCode::InvalidFormat, message))
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
    /// confirmed again. Links to any other one are void from now on.
    pub fn set(&mut self, email: EmailAddress, nonce: Nonce, now: Timestamp) {
        let ends = now.plus(TIME_TO_CONFIRM);
        let is_new = self.confirmed.as_ref() != Some(&email);
        self.pending = is_new.then_some(PendingAddress { email, nonce, ends });
    }

    /// Sets an address without asking, for whoever may write to the tables.
    pub fn set_confirmed(&mut self, email: EmailAddress) {
        (self.confirmed, self.pending, self.refusal) = (Some(email), None, None);
    }

    /// Confirms the address whose mail named this.
    pub fn confirm(&mut self, nonce: Nonce, now: Timestamp) -> Result<EmailAddress, NotConfirmed> {
        match self.pending.take() {
            Some(pending) if pending.nonce == nonce => {
                if now >= pending.ends {
                    self.pending = Some(pending);
                    return Err(NotConfirmed::Expired);
                }
                (self.confirmed, self.refusal) = (Some(pending.email.clone()), None);
                self.used = Some(nonce);
                Ok(pending.email)
            }
            other => {
                self.pending = other;
                let is_used = self.used == Some(nonce);
                Err(if is_used { NotConfirmed::Used } else { NotConfirmed::Outdated })
            }
        }
    }

    /// From when on a mail may ask for a confirmation again.
    pub fn may_ask_from(&self, now: Timestamp) -> Timestamp {
        let lately = self.asked.iter().filter(|at| at.plus(HOUR) > now);
        let full = lately.clone().count() >= MAILS_TO_CONFIRM_PER_HOUR;
        lately.min().filter(|_| full).map_or(now, |oldest| oldest.plus(HOUR))
    }

    /// Since when a mail could ask for the confirmation that is waited for.
    pub fn asks_since(&self) -> Option<Timestamp> {
        let set = self.pending.as_ref()?.ends.minus(TIME_TO_CONFIRM);
        // Before, there was no room for it.
        let full = self.asked.len().checked_sub(MAILS_TO_CONFIRM_PER_HOUR);
        let oldest = full.and_then(|at| self.asked.get(at));
        Some(oldest.map_or(set, |oldest| set.max(oldest.plus(HOUR))))
    }

    /// Notes that a mail asked for a confirmation.
    pub fn note_asked(&mut self, now: Timestamp) {
        self.asked.retain(|at| at.plus(HOUR) > now);
        self.asked.push(now);
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
        assert_eq!(user.confirm(Nonce([2; 16]), at(1)), Err(NotConfirmed::Outdated));
        assert_eq!(user.confirm(Nonce([1; 16]), at(24 * 60 - 1)), Ok(email("a@b.de")));
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(user.confirm(Nonce([1; 16]), at(2)), Err(NotConfirmed::Used));
    }

    #[test]
    fn a_newer_address_voids_older_links_and_leaves_the_confirmed_one() {
        let mut user = UserAddress { confirmed: Some(email("a@b.de")), ..UserAddress::default() };
        user.set(email("c@d.de"), Nonce([1; 16]), at(0));
        user.set(email("e@f.de"), Nonce([2; 16]), at(1));
        assert_eq!(user.confirm(Nonce([1; 16]), at(2)), Err(NotConfirmed::Outdated));
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(user.confirm(Nonce([2; 16]), at(24 * 60 + 1)), Err(NotConfirmed::Expired));
        // Back to what is confirmed: nothing is left to confirm.
        user.set(email("a@b.de"), Nonce([3; 16]), at(3));
        assert_eq!(user.pending, None);
        assert_eq!(user.confirm(Nonce([2; 16]), at(4)), Err(NotConfirmed::Outdated));
    }

    #[test]
    fn a_user_causes_five_mails_an_hour() {
        let mut user = UserAddress::default();
        for minute in [0, 1, 2, 3, 4] {
            assert_eq!(user.may_ask_from(at(minute)), at(minute));
            user.note_asked(at(minute));
        }
        assert_eq!(user.may_ask_from(at(5)), at(60));
        assert_eq!(user.may_ask_from(at(60)), at(60));
        user.note_asked(at(60));
        assert_eq!(user.may_ask_from(at(60)), at(61));
    }

    #[test]
    fn a_confirmation_waits_from_when_it_could_be_asked_for() {
        let mut user = UserAddress::default();
        assert_eq!(user.asks_since(), None);
        user.set(email("a@b.de"), Nonce([1; 16]), at(3));
        assert_eq!(user.asks_since(), Some(at(3)));
        for minute in [4, 5, 6, 7, 8] {
            user.note_asked(at(minute));
        }
        user.set(email("b@b.de"), Nonce([2; 16]), at(9));
        assert_eq!(user.asks_since(), Some(at(64)), "there was no room before");
        user.set(email("c@b.de"), Nonce([3; 16]), at(90));
        assert_eq!(user.asks_since(), Some(at(90)));
    }
}
