//! HTTP response with the flags of a project for flagd.

use lambda_http::http::StatusCode;
use lambda_http::http::header::ETAG;

use shared::http::{ApiResponse, Problem, ProblemCode, header_value};
use shared::json::bytes_within_json;

use super::FlagdConfiguration;
use crate::ofrep::MAX_RESPONSE_BYTES;

impl FlagdConfiguration {
    /// Returns the document, or 304 if `if_none_match` (the values of that header) names its ETag.
    pub fn to_response<'v>(
        &self,
        if_none_match: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<ApiResponse, Problem> {
        let Self { document, etag } = self;
        let bytes = bytes_within_json(document);
        if bytes > MAX_RESPONSE_BYTES {
            let detail = format!(
                "The configuration has {bytes} bytes, but the limit is {MAX_RESPONSE_BYTES}. \
                 Export it with `waymark flags export`, or archive unused flags."
            );
            return Err(Problem::new(ProblemCode::FlagdConfigurationTooLarge, detail));
        }
        let response = if etag.is_named_by(if_none_match) {
            ApiResponse::empty(StatusCode::NOT_MODIFIED)
        } else {
            ApiResponse::of_json_text(StatusCode::OK, Some(document.clone()))
        };
        Ok(response.with_header(ETAG, header_value(etag.as_str())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::entity_tag::EntityTag;

    #[test]
    fn oversized_configurations_are_rejected_with_a_remedy() {
        // A quote takes two bytes as JSON within JSON.
        let response = |quotes: usize| {
            let document = "\"".repeat(quotes);
            let etag = EntityTag::of(&document);
            FlagdConfiguration { document, etag }.to_response([])
        };
        assert_eq!(response(MAX_RESPONSE_BYTES / 2).unwrap().status(), StatusCode::OK);
        let problem = response(MAX_RESPONSE_BYTES / 2 + 1).unwrap_err();
        assert_eq!(problem.code(), ProblemCode::FlagdConfigurationTooLarge);
        assert!(problem.detail().contains("waymark flags export"), "{}", problem.detail());
    }
}
