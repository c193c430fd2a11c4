//! Email addresses of users and their confirmation (`docs/notifications.md`, "Addresses and
//! tokens").

use std::time::Duration;

use serde::Serialize;

use shared::json::{FieldError, Fields, Json, ViolationCode, Violations, text};
use shared::timestamp::Timestamp;

/// Lifetime of a confirmation link.
pub const TIME_TO_CONFIRM: Duration = Duration::from_hours(24);
/// Maximum confirmation emails per hour and user: their recipients have not agreed to them.
const CONFIRMATIONS_PER_HOUR: usize = 5;
const HOUR: Duration = Duration::from_hours(1);
/// Minimum time between two confirmation emails to one address, for all users together.
const ADDRESS_COOLDOWN: Duration = Duration::from_mins(10);
/// Maximum confirmation emails to one address in a [`DAY`], for all users together.
const CONFIRMATIONS_PER_DAY: usize = 5;
/// Time for which a confirmation email counts toward its address's limit.
pub const DAY: Duration = Duration::from_hours(24);
/// Lifetime of the link that undoes an address change.
pub const TIME_TO_UNDO: Duration = Duration::from_hours(72);
/// Maximum stored replaced addresses of a user. The earliest ones are kept.
const MAX_REPLACED: usize = 5;

/// Maximum characters of an address: the limit of SMTP commands (RFC 5321 §4.5.3.1.3).
const MAX_ADDRESS_LENGTH: usize = 254;
/// Maximum characters before the `@` (RFC 5321 §4.5.3.1.1).
const MAX_LOCAL_LENGTH: usize = 64;
/// Maximum characters of a domain label (RFC 1035 §2.3.4).
const MAX_LABEL_LENGTH: usize = 63;
/// Prefix of an internationalized domain label in ASCII form (RFC 5890 §2.3.2.1).
const PUNYCODE_PREFIX: &str = "xn--";

/// An ASCII email address, as Amazon SES accepts it. Its mailbox need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// Parses an address in the format of `openapi.yaml`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        if is_address(text) {
            return Ok(Self(text.to_owned()));
        }
        let message = "must be an email address such as mira@example.com; write a domain with \
                       non-ASCII letters in ASCII (xn--…)";
        Err(FieldError::new(ViolationCode::InvalidFormat, message))
    }

    /// Parses a stored address. An earlier release can have stored it under a more lenient rule.
    pub(super) fn stored(text: &str) -> Option<Self> {
        let is_valid = text.contains('@') && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.to_owned()))
    }
}

shared::text_type!(EmailAddress);

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let Some((host, top_level)) = domain.rsplit_once('.') else { return false };
    text.len() <= MAX_ADDRESS_LENGTH
        && local.len() <= MAX_LOCAL_LENGTH
        && local.split('.').all(is_atom)
        && host.split('.').all(is_label)
        && is_top_level(top_level)
}

/// Returns `true` for a valid atom of the local part (RFC 5321 §4.1.2).
fn is_atom(text: &str) -> bool {
    let is_atext =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_atext)
}

/// Returns `true` for a valid domain label.
fn is_label(text: &str) -> bool {
    (1..=MAX_LABEL_LENGTH).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns `true` for a valid top-level domain: ASCII letters, or an internationalized label.
fn is_top_level(text: &str) -> bool {
    let is_word = text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let start = text.get(..PUNYCODE_PREFIX.len());
    let is_encoded = start.is_some_and(|start| start.eq_ignore_ascii_case(PUNYCODE_PREFIX));
    is_label(text) && (is_word || is_encoded)
}

/// Parses the request body of set-email-address.
pub fn read_email_address(body: &Json<'_>) -> Result<EmailAddress, Violations> {
    Fields::of_body(body, |fields, violations| {
        fields.required("email", violations, text(EmailAddress::parse))
    })
}

/// The random part of a confirmation link or undo link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; 16]);

/// An unconfirmed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAddress {
    /// The address.
    pub email: EmailAddress,
    /// The nonce of the confirmation link.
    pub nonce: Nonce,
    /// The expiry of the link.
    pub ends: Timestamp,
    /// The `user-agent` of the browser that requested it, if one did.
    pub user_agent: Option<String>,
}

/// A formerly confirmed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedAddress {
    /// The address.
    pub email: EmailAddress,
    /// The nonce of the link that undoes the change.
    pub nonce: Nonce,
    /// The expiry of the link.
    pub ends: Timestamp,
    /// `true` once the security email was sent.
    pub is_notified: bool,
}

/// The effect of a link, with the user's new address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEffect {
    /// The pending address is confirmed.
    Confirmed(EmailAddress),
    /// A replaced address is restored.
    Undone(EmailAddress),
}

/// The reason why a link has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkError {
    /// The link has already taken effect.
    Used,
    /// The address was changed since, or none is pending.
    Outdated,
    /// The link has expired.
    Expired,
}

/// A permanent rejection of an email by SES.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The time of the rejection.
    pub at: Timestamp,
    /// The error code of SES.
    pub reason: String,
}

/// The confirmed, pending and replaced addresses of a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserAddress {
    /// The address that receives emails.
    pub confirmed: Option<EmailAddress>,
    /// The address that replaces it after confirmation.
    pub pending: Option<PendingAddress>,
    /// Earlier confirmed addresses, earliest first.
    pub replaced: Vec<ReplacedAddress>,
    /// The nonce of the latest link that took effect.
    pub used_nonce: Option<Nonce>,
    /// Times of the user's confirmation emails in the last hour.
    pub confirmations: Vec<Timestamp>,
    /// The latest permanent rejection by SES.
    pub rejection: Option<Rejection>,
    /// Emails that the hourly limit delayed and no digest has reported yet.
    pub delayed_emails: u64,
    /// Incremented by each write; 0 if nothing is stored.
    pub revision: u64,
}

impl UserAddress {
    /// Returns `true` if the item exists. It does not for erased users and users without an
    /// address.
    pub fn is_stored(&self) -> bool {
        self.revision > 0
    }

    /// Sets the pending address and voids links to any other one. Setting the pending address again
    /// keeps its links and renews their expiry. Setting the confirmed address only removes the
    /// pending one.
    pub fn set(&mut self, email: EmailAddress, nonce: Nonce, now: Timestamp) {
        let ends = now.plus(TIME_TO_CONFIRM);
        let is_new = self.confirmed.as_ref() != Some(&email);
        let unchanged = self.pending.take().filter(|it| it.email == email && now < it.ends);
        let nonce = unchanged.map_or(nonce, |pending| pending.nonce);
        self.pending = is_new.then_some(PendingAddress { email, nonce, ends, user_agent: None });
    }

    /// Sets a confirmed address, for operators. Voids all links.
    pub fn set_confirmed(&mut self, email: EmailAddress) {
        (self.confirmed, self.pending, self.rejection) = (Some(email), None, None);
        self.replaced.clear();
    }

    /// Applies a link: confirms the pending address, or restores a replaced one and voids all later
    /// ones. `undo` becomes the nonce of the link that undoes a confirmation.
    ///
    /// # Errors
    /// [`LinkError`] if the link is not valid. Nothing changes then.
    pub fn follow(
        &mut self,
        nonce: Nonce,
        undo: Nonce,
        now: Timestamp,
    ) -> Result<LinkEffect, LinkError> {
        let valid_until = |ends| if now < ends { Ok(()) } else { Err(LinkError::Expired) };
        let effect = if let Some(pending) = self.pending.take_if(|it| it.nonce == nonce) {
            if let Err(expired) = valid_until(pending.ends) {
                self.pending = Some(pending);
                return Err(expired);
            }
            if let Some(at) = self.replaced.iter().position(|it| it.email == pending.email) {
                // Confirming a replaced address also undoes the change.
                self.replaced.truncate(at);
            } else if let Some(email) = self.confirmed.take() {
                let ends = now.plus(TIME_TO_UNDO);
                self.replaced.retain(|it| now < it.ends);
                self.replaced.push(ReplacedAddress {
                    email,
                    nonce: undo,
                    ends,
                    is_notified: false,
                });
                self.replaced.truncate(MAX_REPLACED);
            }
            LinkEffect::Confirmed(pending.email)
        } else if let Some(at) = self.replaced.iter().position(|it| it.nonce == nonce) {
            valid_until(self.replaced[at].ends)?;
            // A later address can be an attacker's: its link must not restore it.
            let email = self.replaced.drain(at..).next().map(|it| it.email);
            self.pending = None;
            LinkEffect::Undone(email.ok_or(LinkError::Outdated)?)
        } else if self.used_nonce == Some(nonce) {
            return Err(LinkError::Used);
        } else {
            return Err(LinkError::Outdated);
        };
        let (LinkEffect::Confirmed(email) | LinkEffect::Undone(email)) = &effect;
        (self.confirmed, self.rejection, self.used_nonce) =
            (Some(email.clone()), None, Some(nonce));
        Ok(effect)
    }

    /// Returns the first replaced address without a security email, unless its link has expired.
    pub fn unnotified(&self, now: Timestamp) -> Option<&ReplacedAddress> {
        self.replaced.iter().find(|it| !it.is_notified && now < it.ends)
    }

    /// Returns the earliest time at which the limits allow the next confirmation email, or `None`
    /// without a pending address. `sent_to_address`: times of earlier emails to it, in order.
    pub fn next_confirmation_at(&self, sent_to_address: &[Timestamp]) -> Option<Timestamp> {
        let set = self.pending.as_ref()?.ends.minus(TIME_TO_CONFIRM);
        let limited_until = |times: &[Timestamp], max: usize, period| {
            let oldest = times.get(times.len().checked_sub(max)?)?;
            Some(oldest.plus(period))
        };
        let per_user = limited_until(&self.confirmations, CONFIRMATIONS_PER_HOUR, HOUR);
        let cooldown = limited_until(sent_to_address, 1, ADDRESS_COOLDOWN);
        let per_day = limited_until(sent_to_address, CONFIRMATIONS_PER_DAY, DAY);
        [Some(set), per_user, cooldown, per_day].into_iter().flatten().max()
    }

    /// Records a confirmation email. Returns the times of all emails to the address in the last
    /// day.
    pub fn record_confirmation(
        &mut self,
        sent_to_address: &[Timestamp],
        now: Timestamp,
    ) -> Vec<Timestamp> {
        self.confirmations.retain(|at| at.plus(HOUR) > now);
        self.confirmations.push(now);
        let recent = sent_to_address.iter().copied().filter(|at| at.plus(DAY) > now);
        recent.chain([now]).collect()
    }

    /// Returns the response body with these addresses.
    pub fn shown(&self) -> AddressResponse<'_> {
        let pending = self.pending.as_ref();
        AddressResponse {
            email: self.confirmed.as_ref(),
            pending_email: pending.map(|pending| &pending.email),
        }
    }
}

/// The response body of set-email-address and get-email-address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressResponse<'a> {
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

    fn follow(user: &mut UserAddress, link: u8, at: Timestamp) -> Result<LinkEffect, LinkError> {
        user.follow(Nonce([link; 16]), Nonce([link + 10; 16]), at)
    }

    #[test]
    fn only_valid_addresses_are_accepted() {
        let long = |local: usize, hosts: [usize; 2], top: usize| {
            let [one, other] = hosts.map(|length| "b".repeat(length));
            format!("{}@{one}.{other}.{}", "a".repeat(local), "c".repeat(top))
        };
        let (longest, longest_labels) = (long(64, [63, 62], 62), long(1, [63, 63], 63));
        assert_eq!(longest.len(), MAX_ADDRESS_LENGTH);
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
    fn addresses_of_older_rules_are_readable() {
        for address in ["a@b.de", "a..b@c.de", "a@b-.c.de"] {
            assert_eq!(EmailAddress::stored(address).unwrap().as_str(), address);
        }
        for other in ["", "a", "a b@c.de", "a@b.de\r\nBcc: c@d.de", "ä@b.de"] {
            assert_eq!(EmailAddress::stored(other), None, "{other:?}");
        }
    }

    #[test]
    fn links_confirm_an_address_once() {
        let mut user = UserAddress::default();
        user.set(email("a@b.de"), Nonce([1; 16]), at(0));
        assert_eq!(user.confirmed, None);
        assert_eq!(follow(&mut user, 2, at(1)), Err(LinkError::Outdated));
        let confirmed = Ok(LinkEffect::Confirmed(email("a@b.de")));
        assert_eq!(follow(&mut user, 1, at(24 * 60 - 1)), confirmed);
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(user.replaced, []);
        assert_eq!(follow(&mut user, 1, at(2)), Err(LinkError::Used));
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
        assert_eq!(user.pending.unwrap().nonce, Nonce([3; 16]), "expired links are not kept");
    }

    /// Returns a user whose address changed from `a` to `b` to `c`. Links 11 and 12 undo the
    /// changes.
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
        assert_eq!(follow(&mut user, 11, at(10)), Ok(LinkEffect::Undone(email("a@b.de"))));
        let shown = (user.confirmed.clone(), user.pending.clone(), user.replaced.len());
        assert_eq!(shown, (Some(email("a@b.de")), None, 0));
        for (link, reason) in
            [(11, LinkError::Used), (12, LinkError::Outdated), (3, LinkError::Outdated)]
        {
            assert_eq!(follow(&mut user, link, at(11)), Err(reason), "{link}");
        }
    }

    #[test]
    fn a_change_can_be_undone_for_72_hours() {
        let mut user = changed_twice();
        assert_eq!(follow(&mut user, 12, at(72 * 60 + 1)), Ok(LinkEffect::Undone(email("b@b.de"))));
        assert_eq!(follow(&mut user, 11, at(72 * 60 + 1)), Err(LinkError::Expired));
        assert_eq!(user.confirmed, Some(email("b@b.de")));
    }

    #[test]
    fn confirming_a_replaced_address_undoes_the_change() {
        let mut user = changed_twice();
        user.set(email("a@b.de"), Nonce([3; 16]), at(80 * 60));
        follow(&mut user, 3, at(80 * 60)).unwrap();
        assert_eq!((user.confirmed.clone(), user.replaced.len()), (Some(email("a@b.de")), 0));
        assert_eq!(follow(&mut user, 12, at(80 * 60)), Err(LinkError::Outdated));
    }

    #[test]
    fn the_earliest_replaced_addresses_keep_their_links() {
        let mut user = changed_twice();
        for number in 3..9 {
            user.set(email(&format!("x{number}@b.de")), Nonce([number; 16]), at(3));
            follow(&mut user, number, at(3)).unwrap();
        }
        assert_eq!(user.replaced.len(), MAX_REPLACED);
        assert_eq!(follow(&mut user, 11, at(4)), Ok(LinkEffect::Undone(email("a@b.de"))));
    }

    #[test]
    fn newer_pending_addresses_void_older_links() {
        let mut user = UserAddress { confirmed: Some(email("a@b.de")), ..UserAddress::default() };
        user.set(email("c@d.de"), Nonce([1; 16]), at(0));
        user.set(email("e@f.de"), Nonce([2; 16]), at(1));
        assert_eq!(follow(&mut user, 1, at(2)), Err(LinkError::Outdated));
        assert_eq!(user.confirmed, Some(email("a@b.de")));
        assert_eq!(follow(&mut user, 2, at(24 * 60 + 1)), Err(LinkError::Expired));
        // Setting the confirmed address leaves nothing to confirm.
        user.set(email("a@b.de"), Nonce([3; 16]), at(3));
        assert_eq!(user.pending, None);
        assert_eq!(follow(&mut user, 2, at(4)), Err(LinkError::Outdated));
    }

    #[test]
    fn confirmation_emails_per_user_are_limited() {
        let mut user = UserAddress::default();
        assert_eq!(user.next_confirmation_at(&[]), None);
        user.set(email("a@b.de"), Nonce([1; 16]), at(3));
        assert_eq!(user.next_confirmation_at(&[]), Some(at(3)));
        for minute in [4, 5, 6, 7, 8] {
            user.record_confirmation(&[], at(minute));
        }
        user.set(email("b@b.de"), Nonce([2; 16]), at(9));
        assert_eq!(user.next_confirmation_at(&[]), Some(at(64)), "five an hour");
        user.record_confirmation(&[], at(64));
        assert_eq!(user.next_confirmation_at(&[]), Some(at(65)));
        user.set(email("c@b.de"), Nonce([3; 16]), at(90));
        assert_eq!(user.next_confirmation_at(&[]), Some(at(90)));
    }

    #[test]
    fn confirmation_emails_per_address_are_limited() {
        let mut confirmations = Vec::new();
        for minute in [0, 10, 20, 30, 40] {
            let mut user = UserAddress::default();
            user.set(email("a@b.de"), Nonce([1; 16]), at(0));
            assert_eq!(user.next_confirmation_at(&confirmations), Some(at(minute)));
            confirmations = user.record_confirmation(&confirmations, at(minute));
        }
        let mut user = UserAddress::default();
        user.set(email("a@b.de"), Nonce([1; 16]), at(50));
        assert_eq!(user.next_confirmation_at(&confirmations), Some(at(24 * 60)));
        let later = user.record_confirmation(&confirmations, at(24 * 60 + 10));
        assert_eq!(later, [20, 30, 40, 24 * 60 + 10].map(at));
    }
}
