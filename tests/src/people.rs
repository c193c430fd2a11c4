//! Members and signed-in users.

use std::collections::BTreeSet;

use lambda_http::http::header::SET_COOKIE;
use people::store::{PeopleChange, PeopleStore};
use serde_json::Value;
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::{Organization, ProjectId};
use shared::projects::role::Role;
use shared::projects::session::{COOKIE, Session};

use crate::app::TestApp;
use crate::call::{Call, Reply};
use crate::notifications::PUBLIC_URL;

/// Adds a member to an organization.
pub async fn add_member(
    test: &TestApp,
    email: &str,
    organization: &str,
    role: Role,
    projects: Option<BTreeSet<ProjectId>>,
) -> Member {
    let now = test.app.clock.now();
    let member = Member {
        id: MemberId::new(test.app.ids.new_uuid(now)),
        organization: Organization::parse(organization).expect("a valid organization"),
        user: UserId::parse(email).expect("a valid user"),
        role,
        projects,
        joined_at: now,
        version: 1,
    };
    let store = test.patient_store();
    let added = PeopleStore::new(&store).add_member(&member, Vec::new()).await;
    assert_eq!(added.expect("a successful write"), PeopleChange::Done);
    member
}

/// Signs a member in, and returns the secret of its session.
pub async fn session_of(test: &TestApp, member: &Member) -> String {
    let (user, organization) = (member.user.clone(), member.organization.clone());
    let started = Session::start(user, organization, test.app.clock.now());
    let (session, secret) = started.expect("randomness");
    let store = test.patient_store();
    let stored = PeopleStore::new(&store).start_session(&session, member, Vec::new()).await;
    assert!(stored.expect("a successful write"));
    secret.reveal()
}

/// Adds a member of the default organization, and signs it in.
pub async fn signed_in(test: &TestApp, email: &str, role: Role) -> (Member, String) {
    let member = add_member(test, email, "default", role, None).await;
    let session = session_of(test, &member).await;
    (member, session)
}

impl Call {
    /// Sends a session like the console.
    #[must_use]
    pub fn session(self, secret: &str) -> Self {
        self.from_console().cookie(COOKIE, secret)
    }

    /// Sends the header of the console.
    #[must_use]
    pub fn from_console(self) -> Self {
        self.header("x-waymark-console", "1")
    }

    /// Sends a cookie.
    #[must_use]
    pub fn cookie(self, name: &str, value: &str) -> Self {
        self.header("cookie", &format!("{name}={value}"))
    }
}

impl Reply {
    /// Returns the value that the response gives a cookie. Empty: it removes the cookie.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let cookies = self.headers.get_all(SET_COOKIE).iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().expect("ASCII"));
        let value = cookies.find_map(|it| it.strip_prefix(name)?.strip_prefix('='))?;
        value.split(';').next().map(str::to_owned)
    }
}

/// Returns the token in the sign-in link of an email.
pub fn sign_in_token(mail: &Value) -> String {
    let text = mail["text"].as_str().expect("an email with text");
    let start = format!("{PUBLIC_URL}/console/sign-in#token=");
    let rest = text.split_once(&start).expect("an email with a link").1;
    rest.split_whitespace().next().expect("a token").to_owned()
}

/// Returns the code in a sign-in email, such as `482 913`.
pub fn sign_in_code(mail: &Value) -> String {
    let text = mail["text"].as_str().expect("an email with text");
    text.split_once("Code: ").expect("an email with a code").1[..7].to_owned()
}
