//! Errors, insights and flags that emails mention and that may be gone.

use std::collections::HashSet;

use errors::store::ErrorStore;
use flags::store::FlagStore;
use insights::store::InsightStore;
use notifications::domain_event::{
    DELETED, DigestSubject, DomainEvent, DomainEventKind, Visibility,
};
use shared::dynamodb::StoreError;

use crate::JobContext;

/// Removes the lines of a project about errors, insights and flags that no longer exist; returns how many.
/// One round trip for all that this run has not looked up yet.
///
/// # Errors
/// [`StoreError`] if DynamoDB does not answer. No line is removed then.
pub(crate) async fn drop_gone(
    run: &mut JobContext<'_>,
    lines: &mut Vec<DomainEvent>,
) -> Result<u64, StoreError> {
    let Some(&Visibility::Project(project)) = lines.first().map(|line| &line.scene) else {
        return Ok(0);
    };
    let mut unknown: HashSet<DigestSubject> = lines.iter().filter_map(mentioned).collect();
    unknown.retain(|subject| !run.exists.contains_key(&(project, subject.clone())));
    let (mut errors, mut insights, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    for subject in &unknown {
        match subject.clone() {
            DigestSubject::Error(id) => errors.push(id),
            DigestSubject::Insight(id) => insights.push(id),
            DigestSubject::Flag(key) => flags.push(key),
            DigestSubject::Overview => {}
        }
    }
    let (store, now) = (&run.app.store, run.app.clock.now());
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
    run.exists.extend(looked_up.map(|(exists, it)| ((project, it), exists)));

    let before = lines.len();
    lines.retain(|line| {
        mentioned(line).is_none_or(|subject| run.exists.get(&(project, subject)) != Some(&false))
    });
    Ok(u64::try_from(before - lines.len()).unwrap_or_default())
}

/// The subject that a line rests on. `None` of a project, and of a deletion, which is the news.
fn mentioned(line: &DomainEvent) -> Option<DigestSubject> {
    let is_deletion = line.kind == DomainEventKind::FlagChanged && line.detail == DELETED;
    line.about().filter(|it| !is_deletion && *it != DigestSubject::Overview)
}
