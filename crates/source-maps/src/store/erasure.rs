//! Erases a project's items in the table `source-maps`.

use shared::dynamodb::item::{ItemReader, key};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;

use super::bundles::{bundles_pk, failures_pk, queue_key, read};
use super::{SourceMapStore, TABLE, lookup_key, maps_pk};
use crate::bundle::Checksum;

/// Items of a list that are removed per step.
const ITEMS_AT_ONCE: i32 = 25;

impl SourceMapStore<'_> {
    /// Ends the assembly of a project's bundles: removes them with their chunks. An invocation that
    /// assembles one cannot publish its maps any more. None are left if it removes nothing.
    pub async fn erase_bundles(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let query = self.db.partition(TABLE, bundles_pk(project)).limit(ITEMS_AT_ONCE);
        let items = query.send().await?.items.unwrap_or_default();
        let mut keys = Vec::new();
        for item in &items {
            let checksum = ItemReader { table: TABLE, item }.text("sk")?;
            keys.push(key(&bundles_pk(project), checksum));
            keys.extend(Checksum::parse(checksum).map(|it| queue_key(project, &it)));
            // An unreadable bundle must not stop the erasure; its chunks expire within a day.
            if let Ok(bundle) = read(item) {
                self.delete_chunks(&bundle.upload).await?;
            }
        }
        self.db.sweep_away(TABLE, keys, None).await
    }

    /// Removes some of a project's maps with their pieces, then failures. None are
    /// left if it removes nothing.
    pub async fn erase_maps(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let due = self.list_due_of(project).await?;
        let mut removed = u64::try_from(due.len()).unwrap_or(u64::MAX);
        for entry in &due {
            self.db.delete_all(TABLE, vec![lookup_key(project, &entry.map_key)]).await?;
            self.remove_pieces(entry).await?;
        }
        for pk in [maps_pk(project), failures_pk(project)] {
            let query = self.db.partition(TABLE, pk).projection_expression("pk, sk");
            let keys = query.limit(ITEMS_AT_ONCE).send().await?.items.unwrap_or_default();
            removed += self.db.sweep_away(TABLE, keys, None).await?.removed;
        }
        Ok(Sweep { removed, after: None })
    }
}
