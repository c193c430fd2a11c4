//! Emails about sign-ins and invitations. Their tokens and codes are created here and only hashed
//! in the table, so nothing that waits in the queue can sign a user in.

use errors::user_agent::UserAgent;
use notifications::address::EmailAddress;
use notifications::mail::{Email, InvitationEmail, SignInEmail, invitation, sign_in};
use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use people::{EmailJob, EmailKind, InvitationId, RequestedFrom};
use shared::dynamodb::StoreError;
use shared::projects::secret::Secret;

use crate::JobContext;
use crate::senders::{Mailer, SendError};

/// Sends waiting emails, if there is a mailer. They come before all others, since a person waits.
pub(crate) async fn send(job: &mut JobContext<'_>) {
    let Some(mailer) = job.senders.mailer.as_ref() else { return };
    let (people, now) = (PeopleStore::new(&job.app.store), job.app.clock.now());
    let waiting = people.waiting_emails(now).await;
    for email in job.unless_failed(waiting).unwrap_or_default() {
        if job.deadline.has_passed() {
            job.note_waiting(email.created_at);
            return;
        }
        let sent = send_one(job, mailer, &email).await;
        job.unless_failed(sent);
    }
}

async fn send_one(
    job: &mut JobContext<'_>,
    mailer: &Mailer,
    waiting: &EmailJob,
) -> Result<(), StoreError> {
    let people = PeopleStore::new(&job.app.store);
    if !people.claim_email(waiting, job.app.clock.now()).await? {
        return Ok(());
    }
    let email = match &waiting.kind {
        EmailKind::SignIn(from) => sign_in_email(job, mailer, waiting, from).await?,
        EmailKind::Invitation(id) => invitation_email(job, mailer, *id).await?,
    };
    let (Some(email), Ok(to)) = (email, EmailAddress::parse(waiting.user.as_str())) else {
        // The membership or invitation has ended.
        return people.delete_email(waiting).await;
    };
    match mailer.send(&to, &email).await {
        Ok(()) => {}
        Err(SendError::Rejected(_)) => job.rejected_emails += 1,
        // The claim ends in time for the next invocation.
        Err(SendError::Failed(cause)) => {
            job.note_waiting(waiting.created_at);
            return Err(StoreError::OtherService { service: "SES", cause });
        }
    }
    people.delete_email(waiting).await
}

async fn sign_in_email(
    job: &JobContext<'_>,
    mailer: &Mailer,
    waiting: &EmailJob,
    from: &RequestedFrom,
) -> Result<Option<Email>, StoreError> {
    let (people, now) = (PeopleStore::new(&job.app.store), job.app.clock.now());
    let account = people.find_account(&waiting.user, now).await?;
    let organizations: Vec<&str> =
        account.members.iter().map(|member| member.organization.as_str()).collect();
    if organizations.is_empty() {
        return Ok(None);
    }
    let created = PendingSignIn::by_email(waiting.user.clone(), from.browser.clone(), now);
    let (pending, token, code) = created.map_err(no_randomness)?;
    people.put_sign_in(&pending).await?;
    Ok(Some(sign_in(&SignInEmail {
        organizations: &organizations,
        code: &code.shown(),
        url: &link(mailer, &token),
        browser: &browser_name(from.user_agent.as_deref()),
        place: from.place.as_deref(),
        requested_at: waiting.created_at,
    })))
}

async fn invitation_email(
    job: &JobContext<'_>,
    mailer: &Mailer,
    id: InvitationId,
) -> Result<Option<Email>, StoreError> {
    let people = PeopleStore::new(&job.app.store);
    let found = people.find_invitation(id, job.app.clock.now()).await?;
    let Some(invited) = found else { return Ok(None) };
    let (pending, token) = PendingSignIn::by_invitation(&invited).map_err(no_randomness)?;
    people.put_sign_in(&pending).await?;
    Ok(Some(invitation(&InvitationEmail {
        organization: invited.organization.as_str(),
        invited_by: invited.invited_by.as_str(),
        role: invited.role.as_str(),
        url: &link(mailer, &token),
        expires_at: invited.expires_at,
    })))
}

/// Returns the link to the page that posts the token. Browsers send fragments to no server.
fn link(mailer: &Mailer, token: &Secret) -> String {
    format!("{}/console/sign-in#token={}", mailer.base_url, token.reveal())
}

#[allow(clippy::needless_pass_by_value)] // The form of `map_err`.
fn no_randomness(error: shared::projects::NoRandomness) -> StoreError {
    StoreError::Unavailable(error.to_string().into())
}

/// Returns the name of a browser and its system, such as `Chrome on macOS`.
pub(crate) fn browser_name(user_agent: Option<&str>) -> String {
    let found = user_agent.map(UserAgent::read).unwrap_or_default();
    let system =
        found.os.map(|os| if os.name == "Mac OS X" { "macOS".to_owned() } else { os.name });
    match (found.browser.map(|browser| browser.name), system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name,
        (None, None) => "An unknown browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_with_their_system() {
        let chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, \
                      like Gecko) Chrome/126.0.0.0 Safari/537.36";
        assert_eq!(browser_name(Some(chrome)), "Chrome on macOS");
        for unknown in [None, Some(""), Some("x")] {
            assert_eq!(browser_name(unknown), "An unknown browser");
        }
    }
}
