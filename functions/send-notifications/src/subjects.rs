//! Deleted errors, insights and flags in emails.

use std::collections::HashSet;

use errors::store::ErrorStore;
use flags::store::FlagStore;
use insights::store::InsightStore;
use notifications::domain_event::{
    DELETED, DigestSubject, DomainEvent, DomainEventKind, Visibility,
};
use shared::dynamodb::StoreError;

use crate::JobContext;

/// Removes a project's lines about errors, insights and flags that no longer exist, and returns
/// their number. Looks up all uncached subjects in one round trip.
///
/// # Errors
/// [`StoreError`] if DynamoDB fails. No line is removed then.
pub(crate) async fn drop_deleted(
    job: &mut JobContext<'_>,
    lines: &mut Vec<DomainEvent>,
) -> Result<u64, StoreError> {
    let Some(&Visibility::Project(project)) = lines.first().map(|line| &line.visibility) else {
        return Ok(0);
    };
    let mut unknown: HashSet<DigestSubject> = lines.iter().filter_map(required_subject).collect();
    unknown.retain(|subject| !job.exists.contains_key(&(project, subject.clone())));
    let (mut errors, mut insights, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    for subject in &unknown {
        match subject.clone() {
            DigestSubject::Error(id) => errors.push(id),
            DigestSubject::Insight(id) => insights.push(id),
            DigestSubject::Flag(key) => flags.push(key),
            DigestSubject::Overview => {}
        }
    }
    let (store, now) = (&job.app.store, job.app.clock.now());
    let (errors, insights, flags) = tokio::try_join!(
        ErrorStore::new(store).existing_errors(project, &errors, now),
        InsightStore::new(store).existing_insights(project, &insights),
        FlagStore::new(store).existing_flags(project, &flags),
    )?;
    let errors = errors.into_iter().map(DigestSubject::Error);
    let insights = insights.into_iter().map(DigestSubject::Insight);
    let flags = flags.into_iter().map(DigestSubject::Flag);
    let found: HashSet<DigestSubject> = errors.chain(insights).chain(flags).collect();
    let looked_up = unknown.into_iter().map(|it| (found.contains(&it), it));
    job.exists.extend(looked_up.map(|(exists, it)| ((project, it), exists)));

    let before = lines.len();
    lines.retain(|line| {
        required_subject(line)
            .is_none_or(|subject| job.exists.get(&(project, subject)) != Some(&false))
    });
    Ok(u64::try_from(before - lines.len()).unwrap_or_default())
}

/// Returns the subject that must exist. `None` for a whole project, and for a flag's deletion.
fn required_subject(line: &DomainEvent) -> Option<DigestSubject> {
    let is_deletion = line.kind == DomainEventKind::FlagChanged && line.detail == DELETED;
    line.typed_subject().filter(|it| !is_deletion && *it != DigestSubject::Overview)
}
