//! Table `people`: members and invitations of organizations.

mod change;
mod erasure;
mod invitations;
mod members;
mod sign_in;

pub use change::PeopleChange;
pub use invitations::MAX_INVITATIONS_PER_DAY;
pub use members::CallerMember;
pub use sign_in::Account;

use shared::dynamodb::Store;

/// Table `people`.
#[derive(Debug, Clone, Copy)]
pub struct PeopleStore<'a> {
    db: &'a Store,
}

impl<'a> PeopleStore<'a> {
    /// Returns a store for this table.
    pub fn new(db: &'a Store) -> Self {
        Self { db }
    }
}
