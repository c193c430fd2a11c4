//! Path parameters and problems of replay insights.

use shared::http::{ApiRequest, Problem, ProblemCode, named_of};
use shared::json::Violations;

use super::replay_insight::read_id;
use super::{InsightId, MAX_PAIN_POINTS, PainPointId, Rejection};

/// Returns the insight ID in the path (`docs/api-conventions.md`, "Identifiers"). Notes a violation
/// if it is not valid.
pub fn insight_id(incoming: &ApiRequest, violations: &mut Violations) -> Option<InsightId> {
    const NAME: &str = "insightId";
    let id = incoming.path_parameter(NAME).unwrap_or_default();
    read_id(InsightId::parse)(&id).map_err(|fault| violations.note_path(NAME, fault)).ok()
}

/// 404: the project has no such insight.
pub fn insight_not_found() -> Problem {
    let detail = "The project has no replay insight with this ID. Check the ID.";
    Problem::new(ProblemCode::InsightNotFound, detail)
}

/// 409: the pain points already belong to another insight.
pub fn pain_point_exists(ids: &[PainPointId]) -> Problem {
    let named = named_of(ids);
    let detail = format!(
        "These pain points belong to another insight: {named}. Remove them from the request."
    );
    Problem::new(ProblemCode::PainPointExists, detail)
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::NotMembers(violations) => violations.into(),
            Rejection::Merged => {
                let detail = "The insight was merged and can no longer be changed. Use the insight \
                              in its `mergedInto`.";
                Self::new(ProblemCode::InsightMerged, detail)
            }
            Rejection::Full => {
                let detail = format!(
                    "The insight would exceed the limit of {MAX_PAIN_POINTS} pain points. Split it \
                     first."
                );
                Self::new(ProblemCode::InsightFull, detail)
            }
            Rejection::WouldEmpty => {
                let detail = "The split would move all pain points. Leave at least one in the \
                              insight.";
                Self::new(ProblemCode::SplitWouldEmptyInsight, detail)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::{Body, RequestExt, http};

    #[test]
    fn insight_ids_are_hyphenated_uuids() {
        use std::collections::HashMap;
        let read = |id: &str| {
            let request = http::Request::new(Body::Empty);
            let parameters = HashMap::from([("insightId".to_owned(), vec![id.to_owned()])]);
            let incoming =
                ApiRequest::new("an-operation", request.with_path_parameters(parameters));
            let mut violations = Violations::default();
            let id = insight_id(&incoming, &mut violations);
            violations.into_result(id.map(|id| id.to_string())).map_err(|violations| {
                violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect::<Vec<_>>()
            })
        };
        let id = "0b24dd5a-0000-4000-8000-00000000000a";
        for sent in [id, &id.to_uppercase(), &id.replace('-', "%2D")] {
            assert_eq!(read(sent).as_deref(), Ok(id), "{sent}");
        }
        for other in ["", "a", &format!("{{{id}}}"), &id.replace('-', ""), "%FF"] {
            let fault = ("path:insightId".to_owned(), shared::json::ViolationCode::InvalidFormat);
            assert_eq!(read(other), Err(vec![fault]), "{other}");
        }
    }
}
