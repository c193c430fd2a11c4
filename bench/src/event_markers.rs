//! Deletions of event marker collections, and the purge of their events.

use local::environment;
use markers::CollectionId;

use crate::Result;
use crate::job::JobWork;
use crate::measure::Bench;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;

/// The number of deleted collections of each size.
const COLLECTIONS: usize = 10;
/// The number of events of a large collection.
pub(crate) const EVENTS: usize = 20_000;
/// The number of deletions that are not measured.
const WARM_UPS: usize = 20;

/// The figures of deletions of event marker collections.
pub(crate) struct EventMarkers {
    /// The latency of the deletion of an empty collection, in milliseconds.
    pub(crate) empty: Sorted,
    /// The latency of the deletion of a large collection, in milliseconds.
    pub(crate) large: Sorted,
    /// The peak memory of delete-event-marker-collection, in bytes.
    pub(crate) memory: u64,
    /// The purge of all large collections.
    pub(crate) purge: JobWork,
}

impl EventMarkers {
    /// Returns the median deletion of a large collection as a multiple of that of an empty one.
    pub(crate) fn ratio(&self) -> f64 {
        self.large.median() / self.empty.median()
    }
}

impl Bench<'_> {
    /// Deletes empty and large collections alternately, then purges their events.
    pub(crate) async fn event_markers(&self) -> Result<EventMarkers> {
        progress(&format!("deletions: creating {COLLECTIONS} collections of {EVENTS} events"));
        let stack = self.job_stack;
        let project = stack.project("deleted").await?;
        let empty = stack.collections(project, WARM_UPS + COLLECTIONS, 0).await?;
        let (one_half, other_half) = (COLLECTIONS / 2, COLLECTIONS - COLLECTIONS / 2);
        // The engine stores events of one half while this program builds requests for the other
        // half.
        let (mut large, more) = tokio::try_join!(
            stack.collections(project, one_half, EVENTS),
            stack.collections(project, other_half, EVENTS)
        )?;
        large.extend(more);

        progress(&format!("deletions: {COLLECTIONS} each of an empty and a large collection"));
        let variables = environment::variables(&stack.endpoint());
        let mut delete = self.start(Program::DeleteEventMarkerCollection, &variables).await?;
        let mut deletion = async |collection: &CollectionId| {
            delete.expect(204, stack.delete_collection(project, *collection)).await
        };
        let (warm_ups, empty) = empty.split_at(WARM_UPS);
        for collection in warm_ups {
            deletion(collection).await?;
        }
        let (mut of_empty, mut of_large) = (Vec::new(), Vec::new());
        for (turn, (empty, large)) in empty.iter().zip(&large).enumerate() {
            // The order alternates, so that neither size has an advantage.
            if turn % 2 == 0 {
                of_empty.push(deletion(empty).await?.latency);
                of_large.push(deletion(large).await?.latency);
            } else {
                of_large.push(deletion(large).await?.latency);
                of_empty.push(deletion(empty).await?.latency);
            }
        }
        let memory = delete.peak_memory()?;
        delete.stop().await?;
        let purge = self.purge(&large, &variables).await?;
        Ok(EventMarkers {
            empty: Sorted::millis(of_empty),
            large: Sorted::millis(of_large),
            memory,
            purge,
        })
    }

    /// Purges the events of deleted collections.
    async fn purge(
        &self,
        collections: &[CollectionId],
        variables: &[(&str, String)],
    ) -> Result<JobWork> {
        let events = collections.len() * EVENTS;
        progress(&format!("purging {events} events"));
        let is_left = async || self.any_events(collections).await;
        let process = self.start(Program::PurgeEventMarkers, variables).await?;
        JobWork::measure(process, events, is_left).await
    }

    async fn any_events(&self, collections: &[CollectionId]) -> Result<bool> {
        for collection in collections {
            if self.job_stack.has_events(*collection).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
