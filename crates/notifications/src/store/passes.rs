//! How far whoever visits all projects has come.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `passes` | name | in which round a pass is, and after which project it goes on |

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, key, n, s};

use super::{NotificationStore, TABLE};

const PASSES: &str = "passes";

/// A pass over all projects, round after round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Which round it is; each is greater than those before.
    pub round: u64,
    /// After which project it goes on; `None` if the round is complete.
    pub after: Option<String>,
}

impl NotificationStore<'_> {
    /// How far a pass has come; none that never began, or that cannot be read: then it begins anew.
    pub async fn find_pass(self, name: &str) -> Result<Option<Pass>, StoreError> {
        let found = self.db.get(TABLE, key(PASSES, name)).await?;
        let Some(found) = found else { return Ok(None) };
        self.db.unless_damaged(&found, read_pass(&found))
    }

    /// Notes how far a pass has come. Of two that are at it at once, the later one decides: at worst,
    /// projects are visited once more.
    pub async fn save_pass(self, name: &str, pass: &Pass) -> Result<(), StoreError> {
        let round = n(i64::try_from(pass.round).unwrap_or(i64::MAX));
        let update = self
            .db
            .update(TABLE, key(PASSES, name))
            .expression_attribute_names("#round", "round")
            .expression_attribute_names("#after", "after")
            .expression_attribute_values(":round", round);
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
