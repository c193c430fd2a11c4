//! Path parameters and problems of event markers.

use shared::http::{ApiRequest, Problem, ProblemCode};

use super::CollectionId;

/// The collection in the path. A malformed id names no collection, so it is a 404 as well.
pub fn collection_id(incoming: &ApiRequest) -> Result<CollectionId, Problem> {
    let id = incoming.path_parameter("collectionId");
    id.as_deref().and_then(CollectionId::parse).ok_or_else(collection_not_found)
}

/// 404: the project has no such event marker collection, or not any more.
pub fn collection_not_found() -> Problem {
    let detail = "The project has no event marker collection of this id.";
    Problem::new(ProblemCode::CollectionNotFound, detail)
}
