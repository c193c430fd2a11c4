//! The protocols that operations speak.

use super::{ApiRequest, ApiResponse, Problem};

/// What differs between operations whose clients are this API's own, and those whose clients are
/// others' SDKs: how a problem is answered, and which headers pages may send.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// What it is called.
    pub name: &'static str,
    /// Writes the answer to a request that ends in a problem.
    pub answer_problem: fn(&Problem, &ApiRequest) -> ApiResponse,
    /// The request headers that pages may send, beside those of every operation.
    pub request_headers: &'static [&'static str],
}

impl Protocol {
    /// This API's own: problems as RFC 9457 writes them.
    pub const WAYMARK: Self = Self {
        name: "Waymark",
        answer_problem: |problem, incoming| problem.to_answer(incoming.request_id()),
        request_headers: &[],
    };
}
