//! Confirmation emails, and security emails to replaced addresses.

use notifications::TokenKeyCache;
use notifications::address::{Nonce, Rejection, TIME_TO_UNDO, UserAddress};
use notifications::mail::{address_changed, confirmation};
use notifications::store::{NotificationStore, Shard, UserName};
use notifications::token::Token;
use shared::app::App;
use shared::dynamodb::{ConflictRetry, StoreError};

use crate::JobContext;
use crate::people_emails::browser_name;
use crate::senders::{Mailer, NO_RESPONSE, SendError};

/// Sends due confirmation and security emails, if there is a mailer. Deletes expired requests in
/// any case, so that later invocations need not read them.
pub(crate) async fn send(job: &mut JobContext<'_>) {
    let mailer = job.senders.mailer.as_ref();
    for shard in job.leases.shards() {
        let users = job.notifications().pending_confirmations(shard).await;
        for name in job.unless_failed(users).unwrap_or_default() {
            let processed = process_request(job, mailer, shard, &name).await;
            job.unless_failed(processed);
            if job.deadline.has_passed() {
                // The remaining requests are most likely newer.
                return;
            }
        }
    }
}

async fn process_request(
    job: &mut JobContext<'_>,
    mailer: Option<&Mailer>,
    shard: Shard,
    name: &UserName,
) -> Result<(), StoreError> {
    let (app, notifications) = (job.app, job.notifications());
    let mut address = notifications.find_address(name).await?;
    while let Some(replaced) = address.unnotified(app.clock.now()).cloned() {
        let Some(mailer) = mailer else { return Ok(()) };
        let since = replaced.ends.minus(TIME_TO_UNDO);
        if job.deadline.has_passed() || !job.leases.keep(app, shard).await? {
            job.note_waiting(since);
            return Ok(());
        }
        let email =
            address_changed(&replaced, name, &link(app, mailer, name, replaced.nonce).await?);
        match mailer.send(&replaced.email, &email).await {
            Ok(()) => {}
            Err(SendError::Rejected(_)) => job.rejected_emails += 1,
            Err(SendError::Failed(cause)) => {
                job.note_waiting(since);
                return Err(StoreError::OtherService { service: "SES", cause });
            }
        }
        address = mark_notified(notifications, name, replaced.nonce).await?;
    }

    let now = app.clock.now();
    let Some(pending) = address.pending.clone().filter(|pending| now < pending.ends) else {
        // The address was confirmed or withdrawn, unless it has expired.
        let has_expired = address.pending.take().is_some();
        return notifications.end_confirmation_request(name, &address, has_expired).await.map(drop);
    };
    let Some(mailer) = mailer else { return Ok(()) };
    let email = &pending.email;
    let earlier = notifications.confirmation_times(email).await?;
    let since = address.next_confirmation_at(&earlier).unwrap_or(now);
    if since > now {
        return Ok(());
    }
    if job.deadline.has_passed() || !job.leases.keep(app, shard).await? {
        job.note_waiting(since);
        return Ok(());
    }
    let url = link(app, mailer, name, pending.nonce).await?;
    // Counted before it is sent, so that a crash cannot cause uncounted emails.
    let confirmations = address.record_confirmation(&earlier, now);
    let counted = [&earlier[..], &confirmations];
    if !notifications.record_confirmation_times(name, &address, email, counted).await? {
        // A concurrent request changed the address. The next invocation sends the email to the new
        // one.
        job.note_waiting(since);
        return Ok(());
    }
    address.revision = address.revision.saturating_add(1);
    let browser = pending.user_agent.as_deref().map(|it| browser_name(Some(it)));
    let message = confirmation(email, name.organization.as_str(), browser.as_deref(), &url);
    let is_rejected = match mailer.send(email, &message).await {
        Ok(()) => false,
        Err(SendError::Rejected(reason)) => {
            job.rejected_emails += 1;
            address.rejection = Some(Rejection { at: now, reason });
            address.pending = None;
            true
        }
        Err(SendError::Failed(cause)) => {
            job.note_waiting(since);
            // Without a response, the email can have been sent: it counts for the user. It does not
            // count for the address, whose daily limit would outlast an outage of SES.
            if cause != NO_RESPONSE {
                address.confirmations.pop();
            }
            let uncounted = [&confirmations[..], &earlier];
            notifications.record_confirmation_times(name, &address, email, uncounted).await?;
            return Err(StoreError::OtherService { service: "SES", cause });
        }
    };
    notifications.end_confirmation_request(name, &address, is_rejected).await.map(drop)
}

/// Returns the link that confirms or restores an address.
async fn link(
    app: &App,
    mailer: &Mailer,
    name: &UserName,
    nonce: Nonce,
) -> Result<String, StoreError> {
    let UserName { organization, user } = name.clone();
    let token = Token::Confirm { organization, user, nonce }
        .seal(&app.cache::<TokenKeyCache>().get(&app.store).await?);
    Ok(format!("{}/v0/notifications/confirm?token={token}", mailer.base_url))
}

/// Records that the security email was sent, and returns the address. Retries after concurrent
/// changes.
async fn mark_notified(
    notifications: NotificationStore<'_>,
    name: &UserName,
    nonce: Nonce,
) -> Result<UserAddress, StoreError> {
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        let mut address = notifications.find_address(name).await?;
        let Some(replaced) = address.replaced.iter_mut().find(|it| it.nonce == nonce) else {
            return Ok(address);
        };
        replaced.is_notified = true;
        if notifications.replace_address(name, &address, false).await? {
            address.revision = address.revision.saturating_add(1);
            return Ok(address);
        }
    }
    Err(StoreError::Contended("the address kept changing".into()))
}
