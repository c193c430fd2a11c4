//! Sign-in by link and code (`docs/semantics/people.md`, "Sign-in").

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use sha2::{Digest, Sha256};
use shared::json::{FieldError, Fields, Json, ViolationCode, Violations, boolean, text};
use shared::projects::NoRandomness;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::projects::secret::{Secret, SecretDigest};
use shared::timestamp::Timestamp;
use subtle::ConstantTimeEq;

use crate::{InvitationId, read_email};

/// Lifetime of a sign-in link. A request whose email is not sent within this time is dropped.
pub const LINK_LIFETIME: Duration = Duration::from_mins(10);
/// Most attempts at a code.
pub const MAX_ATTEMPTS: u8 = 5;
/// Most sign-in emails to an address per hour.
pub const EMAILS_PER_ADDRESS: u64 = 5;
/// Most requests for sign-in emails from a network address per hour.
pub const REQUESTS_PER_NETWORK: u64 = 20;
/// The cookie that binds a link to the browser that requested it.
pub const BROWSER_COOKIE: &str = "__Host-waymark-sign-in";
/// Lifetime of that cookie: that of a link, and the time until its email is sent.
pub const BROWSER_LIFETIME: Duration = Duration::from_mins(20);

/// Returns the network of an address, for the limit per network: the address itself, or the /64 of
/// an IPv6 address, since a connection usually has a whole one.
pub fn network_of(address: &str) -> String {
    match address.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V6(address)) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX));
            format!("{network}/64")
        }
        Ok(address) => address.to_string(),
        Err(_) => address.to_owned(),
    }
}

/// The six digits in a sign-in email.
#[derive(Clone, PartialEq, Eq)]
pub struct Code([u8; 6]);

impl Code {
    /// Generates a code from the operating system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        // 64 random bits for a million codes: the bias is below one in 10^13.
        let mut number = Secret::generate()?.leading_number() % 1_000_000;
        let mut digits = [b'0'; 6];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
        Ok(Self(digits))
    }

    /// Parses a code. Spaces between digits are permitted, since emails show them.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
        let digits = <[u8; 6]>::try_from(digits).ok();
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_digit));
        digits.map(Self).ok_or_else(|| {
            FieldError::new(ViolationCode::InvalidFormat, "must be the six digits of the email")
        })
    }

    /// Returns the code in two groups of digits.
    pub fn shown(&self) -> String {
        let digits: String = self.0.iter().map(|digit| char::from(*digit)).collect();
        let (first, second) = digits.split_at(3);
        format!("{first} {second}")
    }

    /// Returns the hash that is stored. Only a holder of the token can search for its code.
    pub fn hash(&self, token: &Secret) -> CodeHash {
        let mut hash = Sha256::new();
        hash.update(token.reveal());
        hash.update(self.0);
        CodeHash(hash.finalize().into())
    }
}

/// The hash of a code with its token. Compared in constant time.
#[derive(Clone, Eq)]
pub struct CodeHash(pub [u8; 32]);

impl PartialEq for CodeHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::fmt::Debug for CodeHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CodeHash(…)")
    }
}

/// A sign-in that waits for its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// The hash of the token.
    pub digest: SecretDigest,
    /// The user to sign in.
    pub user: UserId,
    /// The organization of the session. `None`: the one that the user joined first.
    pub organization: Option<Organization>,
    /// The invitation that the sign-in accepts, if any.
    pub invitation: Option<InvitationId>,
    /// The browser that requested the link, and the code that other browsers need. `None` for
    /// links of the command and of invitations.
    pub binding: Option<Binding>,
    /// Time at which the link expires.
    pub expires_at: Timestamp,
    /// Number of codes that were tried.
    pub attempts: u8,
}

/// The binding of a link to a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The hash of the browser's cookie.
    pub browser: SecretDigest,
    /// The hash of the code.
    pub code: CodeHash,
}

impl PendingSignIn {
    /// Creates a sign-in without a binding, for a link of the command. Returns its token.
    pub fn by_command(
        user: UserId,
        organization: Organization,
        now: Timestamp,
    ) -> Result<(Self, Secret), NoRandomness> {
        let (pending, token) = Self::new(user, now.plus(LINK_LIFETIME))?;
        Ok((Self { organization: Some(organization), ..pending }, token))
    }

    /// Creates a sign-in that accepts an invitation. Returns its token.
    pub fn by_invitation(invitation: &crate::Invitation) -> Result<(Self, Secret), NoRandomness> {
        let (pending, token) = Self::new(invitation.user.clone(), invitation.expires_at)?;
        Ok((Self { invitation: Some(invitation.id), ..pending }, token))
    }

    /// Creates a sign-in for the browser that requested it. Returns its token and code.
    pub fn by_email(
        user: UserId,
        browser: SecretDigest,
        now: Timestamp,
    ) -> Result<(Self, Secret, Code), NoRandomness> {
        let (pending, token) = Self::new(user, now.plus(LINK_LIFETIME))?;
        let code = Code::generate()?;
        let binding = Some(Binding { browser, code: code.hash(&token) });
        Ok((Self { binding, ..pending }, token, code))
    }

    fn new(user: UserId, expires_at: Timestamp) -> Result<(Self, Secret), NoRandomness> {
        let token = Secret::generate()?;
        let pending = Self {
            digest: token.digest(),
            user,
            organization: None,
            invitation: None,
            binding: None,
            expires_at,
            attempts: 0,
        };
        Ok((pending, token))
    }

    /// Returns `true` if the token can sign in at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at && self.attempts < MAX_ATTEMPTS
    }

    /// Returns the binding if another browser than `browser` sends the token.
    pub fn binding_against(&self, browser: Option<&SecretDigest>) -> Option<&Binding> {
        self.binding.as_ref().filter(|binding| Some(&binding.browser) != browser)
    }
}

/// The body of request-sign-in.
pub fn read_sign_in_request(body: &Json<'_>) -> Result<UserId, Violations> {
    Fields::of_body(body, |fields, violations| {
        fields.required("email", violations, text(read_email))
    })
}

/// The body of complete-sign-in.
pub struct SignInCompletion {
    /// The token. `None` if it has no token's form.
    pub token: Option<Secret>,
    /// The code, if sent.
    pub code: Option<Code>,
}

impl SignInCompletion {
    /// Reads the body.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let token = fields.required("token", violations, text(|text| Ok(Secret::parse(text))));
            let code = fields.optional("code", violations, text(Code::parse));
            let code = code.map(Some).or_default();
            Some(Self { token: token?, code: code? })
        })
    }
}

/// Reads the body of sign-out: `true` for all sessions of the user.
pub fn read_sign_out(body: &Json<'_>) -> Result<bool, Violations> {
    Fields::of_body(body, |fields, violations| {
        fields.optional("everywhere", violations, boolean).or_default()
    })
}

/// Reads the body of update-session. `None` if the name is not one of an organization.
pub fn read_session_update(body: &Json<'_>) -> Result<Option<Organization>, Violations> {
    Fields::of_body(body, |fields, violations| {
        let name = text(|text: &str| Ok(Organization::parse(text).ok()));
        fields.required("organization", violations, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> UserId {
        UserId::parse("mira@example.com").unwrap()
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    #[test]
    fn networks_are_addresses_or_64_bits_of_ipv6() {
        for (address, network) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(network_of(address), network);
        }
    }

    #[test]
    fn codes_have_six_digits_in_two_groups() {
        for _ in 0..100 {
            let code = Code::generate().unwrap();
            assert_eq!(code.shown().len(), 7);
            assert!(Code::parse(&code.shown()).unwrap() == code);
        }
        for text in ["", "12345", "1234567", "12345a", "１２３４５６", "-12345"] {
            assert!(Code::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn code_hashes_depend_on_the_token() {
        let [one, other] = [(), ()].map(|()| Secret::generate().unwrap());
        let code = Code::parse("123456").unwrap();
        assert_eq!(code.hash(&one), code.hash(&one));
        assert_ne!(code.hash(&one), code.hash(&other));
        assert_ne!(code.hash(&one), Code::parse("123457").unwrap().hash(&one));
    }

    #[test]
    fn links_expire_after_ten_minutes_or_five_codes() {
        let browser = Secret::generate().unwrap().digest();
        let (pending, ..) = PendingSignIn::by_email(user(), browser, at(0)).unwrap();
        assert!(pending.is_open(at(9)));
        assert!(!pending.is_open(at(10)));
        assert!(PendingSignIn { attempts: 4, ..pending.clone() }.is_open(at(9)));
        assert!(!PendingSignIn { attempts: 5, ..pending }.is_open(at(9)));
    }

    #[test]
    fn only_other_browsers_need_the_code() {
        let [own, other] = [(), ()].map(|()| Secret::generate().unwrap().digest());
        let (pending, token, code) = PendingSignIn::by_email(user(), own.clone(), at(0)).unwrap();
        assert_eq!(pending.binding_against(Some(&own)), None);
        for browser in [None, Some(&other)] {
            let binding = pending.binding_against(browser).unwrap();
            assert_eq!(binding.code, code.hash(&token));
        }
        let organization = Organization::parse("acme").unwrap();
        let (pending, _) = PendingSignIn::by_command(user(), organization, at(0)).unwrap();
        assert_eq!(pending.binding_against(None), None);
    }
}
