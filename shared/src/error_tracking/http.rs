//! What error tracking adds to requests and problems, and how Sentry's SDKs are answered.

use serde::Serialize;

use crate::http::{Answer, Incoming, Problem, ProblemCode, Protocol, StatusCode};

use super::ErrorId;
use super::ingestion::IngestionFault;

impl Incoming {
    /// The error in the path. A malformed id names no error, so it is a 404 as well.
    pub fn error_id(&self) -> Result<ErrorId, Problem> {
        let id = self.path_parameter("errorId");
        id.as_deref().and_then(ErrorId::parse).ok_or_else(Problem::error_not_found)
    }
}

impl Problem {
    /// 404: the project has no such error.
    pub fn error_not_found() -> Self {
        Self::new(ProblemCode::ErrorNotFound, "The project has no error of this id.")
    }

    /// 400: a Sentry endpoint that is not taken, such as `minidump`.
    pub fn unknown_endpoint() -> Self {
        let detail = "Send events to envelope/ or store/; other endpoints are not supported.";
        Self::new(ProblemCode::MalformedEnvelope, detail)
    }
}

impl From<IngestionFault> for Problem {
    fn from(fault: IngestionFault) -> Self {
        let code = match fault {
            IngestionFault::Malformed(_) => ProblemCode::MalformedEnvelope,
            IngestionFault::TooLarge(_) => ProblemCode::BodyTooLarge,
            IngestionFault::Unauthorized => ProblemCode::InvalidDsnKey,
        };
        Self::new(code, fault.to_string())
    }
}

/// Sentry's: what SDKs send and read.
pub const SENTRY: Protocol = Protocol {
    name: "Sentry",
    answer_problem: |problem, _| to_sentry_answer(problem),
    request_headers: &["x-sentry-auth", "content-encoding", "sentry-trace", "baggage"],
};

/// What SDKs expect: a `detail`, and no time after which to try again, which they would take for
/// a ban of all that they send.
fn to_sentry_answer(problem: &Problem) -> Answer {
    #[derive(Serialize)]
    struct Body<'p> {
        detail: &'p str,
    }
    let status = match problem.code() {
        // SDKs know of no conflict.
        ProblemCode::Conflict => StatusCode::SERVICE_UNAVAILABLE,
        code => code.status(),
    };
    Answer::json(status, &Body { detail: problem.detail() })
        .unwrap_or_else(|_| Answer::empty(status))
}
