//! What a project that is erased leaves in table `replay-insights`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shared::dynamodb::item::{Item, ItemReader, key, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::InsightStore;
use super::insights::{TABLE, chunk_key, insight_key, project_pk, read_head};
use super::pain_points::{BatchId, batch_key};
use crate::InsightId;

/// Before when no request is running that could still meet an abandoned batch.
const LONG_AGO: Duration = Duration::from_hours(1);
/// How many insights are removed at a time, each with up to 91 chunks.
const INSIGHTS_AT_ONCE: i32 = 25;

impl InsightStore<'_> {
    /// Removes a project's pain points, the commit records of their batches, and the records of its
    /// splits from the next page of the table. To be carried out before its insights are removed, which
    /// tell whose a split is. Nothing tells whose an abandoned batch was that has no pain points, so all
    /// of an hour before go: who meets a claim of one abandons it once more.
    pub async fn sweep_pain_points(
        self,
        project: ProjectId,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let (items, after) =
            self.db.scan_page(TABLE, &["pk", "sk", "batch", "made", "committed"], after).await?;
        let prefix = format!("pain-point#{project}#");
        // A batch goes before its pain points: should this be cut short, they still lead to it.
        let (mut batches, mut found, mut splits) = (HashSet::new(), Vec::new(), HashMap::new());
        for item in &items {
            let reader = ItemReader { table: TABLE, item };
            let pk = reader.text("pk")?;
            if pk.starts_with(&prefix) {
                batches.extend(reader.optional_parsed("batch", BatchId::parse)?);
                found.push(key(pk, reader.text("sk")?));
            } else if let Some(batch) = pk.strip_prefix("batch#").and_then(BatchId::parse) {
                let is_committed = reader.optional_boolean("committed")?.unwrap_or_default();
                if !is_committed && !batch.may_be_running(now.minus(LONG_AGO)) {
                    found.push(batch_key(batch));
                }
            } else if pk.starts_with("split#") {
                let made = reader.parsed("made", InsightId::parse)?;
                splits.entry(made).or_insert_with(Vec::new).push(key(pk, reader.text("sk")?));
            }
        }
        let heads = splits.keys().map(|made| insight_key(project, *made)).collect();
        for head in self.db.get_all(TABLE, heads).await? {
            let sk = ItemReader { table: TABLE, item: &head }.text("sk")?;
            let made = sk.strip_prefix("insight#").and_then(InsightId::parse);
            found.extend(made.and_then(|made| splits.remove(&made)).into_iter().flatten());
        }
        // One request must not name an item twice.
        let batches = batches.into_iter().map(batch_key);
        let batches: Vec<Item> = batches.filter(|batch| !found.contains(batch)).collect();
        let of_batches = self.db.sweep_away(TABLE, batches, None).await?;
        let swept = self.db.sweep_away(TABLE, found, after).await?;
        Ok(Sweep { removed: swept.removed + of_batches.removed, ..swept })
    }

    /// Removes some of a project's insights, with their chunks. Nothing is left where it removed nothing.
    pub async fn erase_insights(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(project_pk(project)))
            .limit(INSIGHTS_AT_ONCE)
            .send()
            .await?;
        // Chunks first: the insight alone leads to them.
        let (mut chunks, mut heads) = (HashSet::new(), Vec::new());
        for item in answer.items.unwrap_or_default() {
            let head = self.db.unless_damaged(&item, read_head(project, &item))?;
            chunks.extend(head.into_iter().flat_map(|head| head.chunks).map(|chunk| chunk.id));
            let reader = ItemReader { table: TABLE, item: &item };
            heads.push(key(reader.text("pk")?, reader.text("sk")?));
        }
        let chunks: Vec<Item> = chunks.into_iter().map(chunk_key).collect();
        let of_chunks = self.db.sweep_away(TABLE, chunks, None).await?;
        let swept = self.db.sweep_away(TABLE, heads, None).await?;
        Ok(Sweep { removed: swept.removed + of_chunks.removed, ..swept })
    }
}
