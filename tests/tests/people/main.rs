//! Tests of people, keys and projects together, against a real engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_keys;
mod attacks;
mod audit;
mod invitations;
mod members;
mod oidc;
mod openid_provider;
mod projects;
mod sessions;
mod sign_in;
mod support;

use std::time::Duration;

use people::Grant;
use people::store::PeopleStore;
use serde_json::{Value, json};
use shared::projects::member::Member;
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::people::{add_member, session_of};

/// Time after which changed roles, members and keys have taken effect.
const EFFECT: Duration = Duration::from_millis(60_001);

/// A member with a session.
struct Person {
    member: Member,
    session: String,
}

impl Person {
    /// Adds a member of the tests' organization, and signs the member in.
    async fn join(test: &TestApp, email: &str, role: Role) -> Self {
        Self::join_in(test, email, role, "default").await
    }

    /// Adds a member of an organization, and signs the member in.
    async fn join_in(test: &TestApp, email: &str, role: Role, organization: &str) -> Self {
        let member = add_member(test, email, organization, role, None).await;
        let session = session_of(test, &member).await;
        Self { member, session }
    }

    /// Sends a call with the session of the person.
    async fn send(&self, test: &TestApp, call: Call) -> Reply {
        call.session(&self.session).send(&test.app).await
    }

    /// Gives the person another role, as if another member changed it.
    async fn give(&self, test: &TestApp, role: Role) {
        let store = test.patient_store();
        let people = PeopleStore::new(&store);
        let Member { organization, user, .. } = &self.member;
        let stored = people.find_member_of(organization, user).await.unwrap().unwrap();
        let grant = Grant::new(role, None).unwrap();
        people.change_member(&stored, &grant, None, vec![], test.app.clock.now()).await.unwrap();
    }
}

/// Returns a field of each item of a list.
fn column<'r>(reply: &'r Reply, field: &str) -> Vec<&'r Value> {
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.body["items"].as_array().unwrap().iter().map(|item| &item[field]).collect()
}

/// Returns the body of a new API key.
fn key_body(scopes: &[&str]) -> Value {
    json!({"name": "CI", "scopes": scopes})
}
