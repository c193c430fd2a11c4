//! The protocols of operations.

use super::{ApiRequest, ApiResponse, Problem};

/// The differences between operations for Waymark's own clients and operations for the SDKs of
/// others.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// The protocol's name.
    pub name: &'static str,
    /// Returns the response to a request that ends in a problem.
    pub problem_response: fn(&Problem, &ApiRequest) -> ApiResponse,
    /// The request headers that pages can send, in addition to those of every operation.
    pub request_headers: &'static [&'static str],
}

impl Protocol {
    /// Waymark's own protocol: problems in the form of RFC 9457.
    pub const WAYMARK: Self = Self {
        name: "Waymark",
        problem_response: |problem, incoming| problem.to_response(incoming.request_id()),
        request_headers: &[],
    };
}
