//! Confirmation emails, and security emails to replaced addresses.

use notifications::TokenKeyCache;
use notifications::address::{Nonce, Refusal, TIME_TO_UNDO, UserAddress};
use notifications::mail::{address_changed, confirmation};
use notifications::store::{NotificationStore, Shard, UserName};
use notifications::token::Token;
use shared::app::App;
use shared::dynamodb::{ConflictRetry, StoreError};

use crate::JobContext;
use crate::senders::{Mailer, NO_ANSWER, SendError};

/// Asks all who are to be asked and may be, if there is a sender. Who was not asked in time is forgotten either
/// way: a request that stays would be work for each run.
pub(crate) async fn send(run: &mut JobContext<'_>) {
    let mailer = run.senders.mailer.as_ref();
    for shard in run.leases.shards() {
        let users = NotificationStore::new(&run.app.store).users_to_ask(shard).await;
        for name in run.unless_failed(users).unwrap_or_default() {
            let asked = ask(run, mailer, shard, &name).await;
            run.unless_failed(asked);
            if run.deadline.has_passed() {
                // The others most likely asked later.
                return;
            }
        }
    }
}

async fn ask(
    run: &mut JobContext<'_>,
    mailer: Option<&Mailer>,
    shard: Shard,
    name: &UserName,
) -> Result<(), StoreError> {
    let app = run.app;
    let mut address = NotificationStore::new(&app.store).find_address(name).await?;
    while let Some(replaced) = address.untold(app.clock.now()).cloned() {
        let Some(mailer) = mailer else { return Ok(()) };
        let since = replaced.ends.minus(TIME_TO_UNDO);
        if run.deadline.has_passed() || !run.leases.keep(app, shard).await? {
            run.leave(since);
            return Ok(());
        }
        let mail =
            address_changed(&replaced, name, &link(app, mailer, name, replaced.nonce).await?);
        match mailer.send(&replaced.email, &mail).await {
            Ok(()) => {}
            Err(SendError::Refused(_)) => run.refused += 1,
            Err(SendError::Failed(cause)) => {
                run.leave(since);
                return Err(StoreError::OtherService { service: "SES", cause });
            }
        }
        address = note_told(app, name, replaced.nonce).await?;
    }

    let now = app.clock.now();
    let Some(pending) = address.pending.clone().filter(|pending| now < pending.ends) else {
        if address.pending.take().is_some() {
            // It waited for too long, and nobody has a link that would confirm it.
            return NotificationStore::new(&app.store)
                .finish_asking(name, &address)
                .await
                .map(drop);
        }
        // It was confirmed or taken back.
        return NotificationStore::new(&app.store).forget_asking(name, &address).await.map(drop);
    };
    let Some(mailer) = mailer else { return Ok(()) };
    let email = &pending.email;
    let asked_before = NotificationStore::new(&app.store).times_asked(email).await?;
    let since = address.asks_from(&asked_before).unwrap_or(now);
    if since > now {
        return Ok(());
    }
    if run.deadline.has_passed() || !run.leases.keep(app, shard).await? {
        run.leave(since);
        return Ok(());
    }
    let url = link(app, mailer, name, pending.nonce).await?;
    // Noted before it is sent: whatever comes between, no mail goes out that is not counted.
    let asked = address.note_asked(&asked_before, now);
    if !NotificationStore::new(&app.store)
        .replace_asked(name, &address, email, [&asked_before, &asked])
        .await?
    {
        // The address was changed meanwhile: the next run asks for the new one.
        run.leave(since);
        return Ok(());
    }
    address.revision = address.revision.saturating_add(1);
    let mail = confirmation(email, name.organization.as_str(), &url);
    match mailer.send(email, &mail).await {
        Ok(()) => NotificationStore::new(&app.store).forget_asking(name, &address).await.map(drop),
        Err(SendError::Refused(reason)) => {
            run.refused += 1;
            address.refusal = Some(Refusal { at: now, reason });
            address.pending = None;
            NotificationStore::new(&app.store).finish_asking(name, &address).await.map(drop)
        }
        Err(SendError::Failed(cause)) => {
            run.leave(since);
            // The email may have been sent: it stays counted for the user. The address's limit of a day would
            // outlast an outage of SES.
            if cause != NO_ANSWER {
                address.asked.pop();
            }
            NotificationStore::new(&app.store)
                .replace_asked(name, &address, email, [&asked, &asked_before])
                .await?;
            Err(StoreError::OtherService { service: "SES", cause })
        }
    }
}

/// Returns the link that makes an address the user's.
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

/// Notes that the security email was sent, despite concurrent changes of the address; returns the address.
async fn note_told(app: &App, name: &UserName, nonce: Nonce) -> Result<UserAddress, StoreError> {
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        let mut address = NotificationStore::new(&app.store).find_address(name).await?;
        let Some(replaced) = address.replaced.iter_mut().find(|it| it.nonce == nonce) else {
            return Ok(address);
        };
        replaced.is_told = true;
        if NotificationStore::new(&app.store).replace_address(name, &address, false).await? {
            address.revision = address.revision.saturating_add(1);
            return Ok(address);
        }
    }
    Err(StoreError::Contended("the address kept changing".into()))
}
