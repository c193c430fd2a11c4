//! Deletions of event marker collections, and the purging of what they held.

use local::environment;
use markers::CollectionId;

use crate::Result;
use crate::job::JobWork;
use crate::measure::Bench;
use crate::program::Program;
use crate::report::progress;
use crate::statistics::Sorted;

/// How many collections of either size are deleted.
const COLLECTIONS: usize = 10;
/// How many events a large collection holds.
pub(crate) const EVENTS: usize = 20_000;
/// How many deletions are not measured.
const WARM_UPS: usize = 20;

/// Deletions of event marker collections.
pub(crate) struct EventMarkers {
    /// How long the deletion of an empty collection took, in milliseconds.
    pub(crate) empty: Sorted,
    /// How long the deletion of a large collection took, in milliseconds.
    pub(crate) large: Sorted,
    /// The most memory of delete-event-marker-collection.
    pub(crate) memory: u64,
    /// The purging of all large collections.
    pub(crate) purge: JobWork,
}

impl EventMarkers {
    /// How much longer the deletion of a large collection takes than that of an empty one.
    pub(crate) fn ratio(&self) -> f64 {
        self.large.median() / self.empty.median()
    }
}

impl Bench<'_> {
    /// Deletes empty and large collections in turns, and has what they held purged.
    pub(crate) async fn event_markers(&self) -> Result<EventMarkers> {
        progress(&format!("deletions: making {COLLECTIONS} collections of {EVENTS} events"));
        let stack = self.job_stack;
        let project = stack.project("deleted").await?;
        let empty = stack.collections(project, WARM_UPS + COLLECTIONS, 0).await?;
        let (one_half, other_half) = (COLLECTIONS / 2, COLLECTIONS - COLLECTIONS / 2);
        // The engine stores events of one half while requests are made of the other's.
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
            // Neither size always comes second.
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

    /// Has the events of deleted collections purged.
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
