//! Progress of passes over all projects.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `passes` | name | round and last completed project of a pass |

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, count, key, s};

use super::{NotificationStore, TABLE};

const PASSES: &str = "passes";

/// The progress of a pass over all projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The round, greater than those of earlier rounds.
    pub round: u64,
    /// The last completed project. `None` if the round is complete.
    pub after: Option<String>,
}

impl NotificationStore<'_> {
    /// Returns the progress of a pass. `None` if it is new or unreadable: then the pass starts
    /// again.
    pub async fn find_pass(self, name: &str) -> Result<Option<Pass>, StoreError> {
        let found = self.db.get(TABLE, key(PASSES, name)).await?;
        let Some(found) = found else { return Ok(None) };
        self.db.unless_damaged(&found, read_pass(&found))
    }

    /// Stores the progress of a pass. Concurrent invocations overwrite it: at worst, projects are
    /// checked again.
    pub async fn save_pass(self, name: &str, pass: &Pass) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, key(PASSES, name))
            .expression_attribute_names("#round", "round")
            .expression_attribute_names("#after", "after")
            .expression_attribute_values(":round", count(pass.round));
        self.db
            .write_if(match &pass.after {
                Some(after) => update
                    .update_expression("SET #round = :round, #after = :after")
                    .expression_attribute_values(":after", s(after)),
                None => update.update_expression("SET #round = :round REMOVE #after"),
            })
            .await
            .map(drop)
    }
}

fn read_pass(item: &Item) -> Result<Pass, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(Pass {
        round: reader.count("round")?,
        after: reader.optional_text("after")?.map(str::to_owned),
    })
}
