//! Path parameters and problems of event markers.

use shared::http::{ApiRequest, Problem, ProblemCode};

use super::CollectionId;

/// Returns the collection ID in the path. A malformed ID names no collection, so the response is
/// 404.
pub fn collection_id(incoming: &ApiRequest) -> Result<CollectionId, Problem> {
    let id = incoming.path_parameter("collectionId");
    id.as_deref().and_then(CollectionId::parse).ok_or_else(collection_not_found)
}

/// 404: the project has no such collection, or it was deleted.
pub fn collection_not_found() -> Problem {
    let detail = "The project has no event marker collection with this ID. Check the ID.";
    Problem::new(ProblemCode::CollectionNotFound, detail)
}
