//! What event markers add to requests and problems.

use crate::http::{Incoming, Problem, ProblemCode};

use super::CollectionId;

impl Incoming {
    /// The collection in the path. A malformed id names no collection, so it is a 404 as well.
    pub fn collection_id(&self) -> Result<CollectionId, Problem> {
        let id = self.path_parameter("collectionId");
        id.as_deref().and_then(CollectionId::parse).ok_or_else(Problem::collection_not_found)
    }
}

impl Problem {
    /// 404: the project has no such event marker collection, or not any more.
    pub fn collection_not_found() -> Self {
        let detail = "The project has no event marker collection of this id.";
        Self::new(ProblemCode::CollectionNotFound, detail)
    }
}
