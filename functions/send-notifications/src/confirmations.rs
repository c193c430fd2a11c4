//! Users are asked to confirm their addresses.

use shared::dynamodb::StoreError;
use shared::notifications::address::Refusal;
use shared::notifications::mail::confirmation;
use shared::notifications::store::{Shard, UserName};
use shared::notifications::token::Token;
use shared::notifications::token_key;

use crate::Run;
use crate::outside::{Mailer, NO_ANSWER, NotSent};

/// Asks all who are to be asked and may be, if there is a sender. Who was not asked in time is forgotten either
/// way: a request that stays would be work for each run.
pub(crate) async fn send(run: &mut Run<'_>) {
    let mailer = run.outside.mailer.as_ref();
    for shard in run.leases.shards() {
        let users = run.app.store.users_to_ask(shard).await;
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
    run: &mut Run<'_>,
    mailer: Option<&Mailer>,
    shard: Shard,
    name: &UserName,
) -> Result<(), StoreError> {
    let (app, now) = (run.app, run.app.clock.now());
    let mut address = app.store.find_address(name).await?;
    let Some(pending) = address.pending.clone().filter(|pending| now < pending.ends) else {
        if address.pending.take().is_some() {
            // It waited for too long, and nobody has a link that would confirm it.
            return app.store.finish_asking(name, &address).await.map(drop);
        }
        // It was confirmed or taken back.
        return app.store.forget_asking(name, &address).await.map(drop);
    };
    let Some(mailer) = mailer else { return Ok(()) };
    let since = address.asks_since().unwrap_or(now);
    if address.may_ask_from(now) > now {
        return Ok(());
    }
    if run.deadline.has_passed() || !run.leases.keep(app, shard).await? {
        run.leave(since);
        return Ok(());
    }
    let key = token_key(app).await;
    let key = key.map_err(|_| StoreError::Unavailable("the key of tokens".into()))?;
    // Noted before it is sent: whatever comes between, no mail goes out that is not counted.
    address.note_asked(now);
    if !app.store.replace_address(name, &address, false).await? {
        // The address was changed meanwhile: the next run asks for the new one.
        run.leave(since);
        return Ok(());
    }
    address.revision = address.revision.saturating_add(1);
    let token = Token::Confirm {
        organization: name.organization.clone(),
        user: name.user.clone(),
        nonce: pending.nonce,
    };
    let url = format!("{}/v0/notifications/confirm?token={}", mailer.base_url, token.seal(&key));
    let mail = confirmation(&pending.email, name.organization.as_str(), &url);
    match mailer.send(&pending.email, &mail).await {
        Ok(()) => app.store.forget_asking(name, &address).await.map(drop),
        Err(NotSent::Refused(reason)) => {
            run.refused += 1;
            address.refusal = Some(Refusal { at: now, reason });
            address.pending = None;
            app.store.finish_asking(name, &address).await.map(drop)
        }
        Err(NotSent::Failed(cause)) => {
            tracing::error!(cause, "a mail could not be sent");
            run.leave(since);
            // One that may have been sent all the same stays counted.
            if cause != NO_ANSWER {
                address.asked.pop();
                app.store.replace_address(name, &address, false).await?;
            }
            Err(StoreError::Unavailable("SES".into()))
        }
    }
}
