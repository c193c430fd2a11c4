//! Automatic event markers of flag changes, added before their domain events leave the outbox.

use std::collections::BTreeMap;

use markers::store::MarkerStore;
use markers::{EventMarker, MarkerSource};
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use shared::app::App;
use shared::dynamodb::StoreError;

/// Adds the markers of domain events that can batch. Repetitions add nothing.
pub(crate) async fn add_markers(
    app: &App,
    domain_events: &[DomainEvent],
) -> Result<(), StoreError> {
    let Some(DomainEvent { kind: DomainEventKind::FlagChanged, visibility, .. }) =
        domain_events.first()
    else {
        return Ok(());
    };
    let Visibility::Project(project) = visibility else { return Ok(()) };
    let events: Vec<EventMarker> = domain_events.iter().map(marker).collect();
    let now = app.clock.now();
    MarkerStore::new(&app.store)
        .add_automatic_events(*project, MarkerSource::Flags, &events, now)
        .await
}

fn marker(domain_event: &DomainEvent) -> EventMarker {
    let DomainEvent { subject, title, detail, actor, at, .. } = domain_event;
    let mut attributes = BTreeMap::from([
        ("flag".to_owned(), subject.clone()),
        ("change".to_owned(), detail.clone()),
    ]);
    attributes.extend(actor.as_ref().map(|user| ("user".to_owned(), user.to_string())));
    let name = format!("{subject} {detail}");
    EventMarker::automatic(&domain_event.id(), &name, title, attributes, *at)
}
