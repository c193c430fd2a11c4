//! Lambda events, as an API Gateway HTTP API and EventBridge Scheduler send them.

use std::fmt::Display;

use axum::body::Bytes;
use serde_json::{Value as Json, json};

/// The routes of the measured operations, as in `template.yaml`.
pub(crate) const CREATE_FLAG: &str = "POST /v0/project/{idOrSlug}/feature-flags";
pub(crate) const DELETE_COLLECTION: &str =
    "DELETE /v0/projects/{idOrSlug}/event-marker-collections/{collectionId}";
pub(crate) const SPLIT_INSIGHT: &str =
    "POST /v0/projects/{idOrSlug}/replay-insights/{insightId}/split";
pub(crate) const EVALUATE_FLAG: &str = "POST /v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}";
pub(crate) const EVALUATE_FLAGS: &str = "POST /v0/project/{idOrSlug}/ofrep/v1/evaluate/flags";
pub(crate) const INTERPRET_FILTERS: &str = "POST /v0/errors/filters/interpret";
pub(crate) const LIST_ERRORS: &str = "GET /v0/projects/{idOrSlug}/errors";
pub(crate) const GET_ERROR: &str = "GET /v0/projects/{idOrSlug}/errors/{errorId}";
pub(crate) const UPDATE_ERROR: &str = "PATCH /v0/projects/{idOrSlug}/errors/{errorId}";
pub(crate) const QUERY_ERRORS: &str = "POST /v0/projects/{idOrSlug}/errors/query";
pub(crate) const BREAK_DOWN_ERRORS: &str = "POST /v0/errors/breakdown/query";
pub(crate) const QUERY_TIMESERIES: &str = "POST /v0/errors/timeseries/query";
pub(crate) const SEND_ENVELOPE: &str = "POST /api/{ingestId}/envelope/";
pub(crate) const REQUEST_SIGN_IN: &str = "POST /v0/sign-in";
pub(crate) const COMPLETE_SIGN_IN: &str = "POST /v0/sign-in/complete";
pub(crate) const START_OIDC_SIGN_IN: &str = "GET /v0/sign-in/oidc";
pub(crate) const UPDATE_PREFERENCES: &str = "PUT /v0/notifications/email-preferences";

/// A request to a route.
pub(crate) struct Request(Json);

impl Request {
    /// Returns a request without a body. `parameters` are the values of the path parameters.
    pub(crate) fn new(route: &str, parameters: &[&dyn Display]) -> Self {
        let mut event = read(include_str!("../data/request.json"));
        let (method, path) = route.split_once(' ').unwrap_or(("GET", route));
        let mut path = path.to_owned();
        for value in parameters {
            let name = path.split(['{', '}']).nth(1).unwrap_or_default().to_owned();
            path = path.replace(&format!("{{{name}}}"), &value.to_string());
            // API Gateway omits the field if a route has no parameters.
            event["pathParameters"][name] = json!(value.to_string());
        }
        event["routeKey"] = json!(route);
        event["requestContext"]["routeKey"] = json!(route);
        event["requestContext"]["http"]["method"] = json!(method);
        event["requestContext"]["http"]["path"] = json!(path);
        event["rawPath"] = json!(path);
        Self(event)
    }

    pub(crate) fn header(mut self, name: &str, value: impl Display) -> Self {
        self.0["headers"][name] = json!(value.to_string());
        self
    }

    pub(crate) fn json(self, body: &Json) -> Self {
        let body = body.to_string();
        self.header("content-type", "application/json").body(body.len(), &body, false)
    }

    /// Returns the request with a body of `length` bytes, in base64 if `is_base64`.
    pub(crate) fn body(self, length: usize, text: &str, is_base64: bool) -> Self {
        let mut request = self.header("content-length", length);
        request.0["body"] = json!(text);
        request.0["isBase64Encoded"] = json!(is_base64);
        request
    }

    /// Returns the request as a Lambda event.
    pub(crate) fn event(&self) -> Bytes {
        self.0.to_string().into()
    }
}

/// Returns the event of a schedule without an input.
pub(crate) fn schedule() -> Bytes {
    Bytes::from_static(include_bytes!("../data/schedule.json"))
}

/// Reads a JSON file of this crate. Tests read each of them.
pub(crate) fn read(file: &str) -> Json {
    serde_json::from_str(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_their_route_and_parameters() {
        let event = Request::new(GET_ERROR, &[&"shop", &7]).0;
        assert_eq!(event["rawPath"], "/v0/projects/shop/errors/7");
        assert_eq!(event["pathParameters"], json!({"idOrSlug": "shop", "errorId": "7"}));
        assert_eq!(event["requestContext"]["http"]["method"], "GET");
        assert_eq!(Request::new(QUERY_TIMESERIES, &[]).0.get("pathParameters"), None);
        assert!(read(include_str!("../data/schedule.json")).is_object());
    }
}
