//! What replay insights add to requests and problems.

use shared::http::{ApiRequest, Problem, ProblemCode, named_of};
use shared::json::Violations;

use super::replay_insight::read_id;
use super::{InsightId, MAX_PAIN_POINTS, PainPointId, Refusal};

/// The insight in the path, whose id has a form of its own (`docs/api-conventions.md`, "Identifiers"). Another form is
/// noted.
pub fn insight_id(incoming: &ApiRequest, violations: &mut Violations) -> Option<InsightId> {
    const NAME: &str = "insightId";
    let id = incoming.path_parameter(NAME).unwrap_or_default();
    read_id(InsightId::parse)(&id).map_err(|fault| violations.note_path(NAME, fault)).ok()
}

/// 404: the project has no such insight.
pub fn insight_not_found() -> Problem {
    let detail = "The project has no replay insight of this id.";
    Problem::new(ProblemCode::InsightNotFound, detail)
}

/// 409: the pain points belong to an insight already, and to only one they may.
pub fn pain_point_exists(ids: &[PainPointId]) -> Problem {
    let named = named_of(ids);
    let detail =
        format!("Another insight of the project has these pain points: {named}. Leave them out.");
    Problem::new(ProblemCode::PainPointExists, detail)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotMembers(violations) => violations.into(),
            Refusal::Merged => {
                let detail =
                    "The insight is merged into another one, and can no longer be changed.";
                Self::new(ProblemCode::InsightMerged, detail)
            }
            Refusal::Full => {
                let detail = format!(
                    "The insight would have more than {MAX_PAIN_POINTS} pain points. Split it first."
                );
                Self::new(ProblemCode::InsightFull, detail)
            }
            Refusal::WouldEmpty => {
                let detail = "The split would leave no pain point behind. Move fewer of them.";
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
    fn an_insight_has_an_id_of_a_form_of_its_own() {
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
