//! Sessions of signed-in users (`docs/semantics/people.md`, "Sessions").

use std::time::Duration;

use super::NoRandomness;
use super::api_key::UserId;
use super::project::Organization;
use super::secret::{Secret, SecretDigest};
use crate::timestamp::Timestamp;

/// The cookie with a session's secret. The prefix makes browsers bind it to host and HTTPS.
pub const COOKIE: &str = "__Host-waymark";
/// Time after which an unused session ends.
pub const IDLE_LIFETIME: Duration = Duration::from_hours(12);
/// Time after which every session ends.
pub const LIFETIME: Duration = Duration::from_hours(7 * 24);

/// A session: a user in one organization. Only the hash of its secret is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The hash of the secret in the cookie.
    pub digest: SecretDigest,
    /// The user.
    pub user: UserId,
    /// The organization in which the session acts.
    pub organization: Organization,
    /// The time of the sign-in.
    pub signed_in_at: Timestamp,
    /// The time at which this secret was created: at sign-in, or when the session switched to
    /// another organization.
    pub issued_at: Timestamp,
}

impl Session {
    /// Starts a session at `now`. Returns it with its secret.
    pub fn start(
        user: UserId,
        organization: Organization,
        now: Timestamp,
    ) -> Result<(Self, Secret), NoRandomness> {
        let secret = Secret::generate()?;
        let digest = secret.digest();
        let session = Self { digest, user, organization, signed_in_at: now, issued_at: now };
        Ok((session, secret))
    }

    /// Returns the session that replaces this one in an organization, with its new secret. The
    /// longest lifetime still starts at the sign-in.
    pub fn switch(
        &self,
        organization: Organization,
        now: Timestamp,
    ) -> Result<(Self, Secret), NoRandomness> {
        let (session, secret) = Self::start(self.user.clone(), organization, now)?;
        Ok((Self { signed_in_at: self.signed_in_at, ..session }, secret))
    }

    /// Returns the latest end of the session.
    pub fn ends_at(&self) -> Timestamp {
        self.signed_in_at.plus(LIFETIME)
    }

    /// Returns `true` if the session is valid at `now`, given its last recorded use.
    pub fn is_active(&self, last_used_at: Option<Timestamp>, now: Timestamp) -> bool {
        let used = last_used_at.map_or(self.issued_at, |used| used.max(self.issued_at));
        now < self.ends_at() && now < used.plus(IDLE_LIFETIME)
    }
}

/// Returns the value of `set-cookie` that stores a session's secret until the session ends.
pub fn cookie(secret: &Secret, lifetime: Duration) -> String {
    set_cookie(COOKIE, &secret.reveal(), lifetime)
}

/// Returns the value of `set-cookie` for a cookie of the console: for this host and HTTPS only, and
/// not for scripts or requests from other sites.
pub fn set_cookie(name: &str, value: &str, lifetime: Duration) -> String {
    let seconds = lifetime.as_secs();
    format!("{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax")
}

/// Returns the value of `set-cookie` that removes a cookie of the console.
pub fn clear_cookie(name: &str) -> String {
    set_cookie(name, "", Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * 3_600_000)
    }

    fn session() -> Session {
        let user = UserId::parse("mira@example.com").unwrap();
        Session::start(user, Organization::parse("acme").unwrap(), at(0)).unwrap().0
    }

    #[test]
    fn sessions_end_twelve_hours_after_their_last_use() {
        assert!(session().is_active(None, at(11)));
        assert!(!session().is_active(None, at(12)));
        assert!(session().is_active(Some(at(10)), at(21)));
        assert!(!session().is_active(Some(at(10)), at(22)));
    }

    #[test]
    fn sessions_end_seven_days_after_the_sign_in() {
        assert!(session().is_active(Some(at(167)), at(167)));
        assert!(!session().is_active(Some(at(167)), at(168)));
        let other = Organization::parse("other").unwrap();
        let (switched, _) = session().switch(other, at(100)).unwrap();
        assert!(switched.is_active(None, at(111)));
        assert!(!switched.is_active(Some(at(167)), at(168)));
        assert_ne!(switched.digest, session().digest);
    }

    #[test]
    fn cookies_are_bound_to_the_host() {
        let secret = Secret::generate().unwrap();
        assert_eq!(
            cookie(&secret, Duration::from_mins(1)),
            format!(
                "__Host-waymark={}; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax",
                secret.reveal()
            )
        );
    }
}
