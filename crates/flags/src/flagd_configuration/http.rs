//! The answer to whoever fetches the flags of a project for flagd.

use lambda_http::http::StatusCode;
use lambda_http::http::header::ETAG;

use shared::http::{ApiResponse, Problem, ProblemCode, header_value};
use shared::json::bytes_within_json;

use super::FlagdConfiguration;
use crate::ofrep::MAX_ANSWER_BYTES;

impl FlagdConfiguration {
    /// The answer to who has the documents that `if_none_match` (the values of that header) names: the
    /// document, unless it is one of those.
    pub fn to_answer<'v>(
        &self,
        if_none_match: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<ApiResponse, Problem> {
        let Self { document, etag } = self;
        let bytes = bytes_within_json(document);
        if bytes > MAX_ANSWER_BYTES {
            let detail = format!(
                "The project's flags make a configuration of {bytes} bytes as Lambda sends it, of which \
                 {MAX_ANSWER_BYTES} are allowed. Export them to a file with `waymark flags export`, or archive \
                 flags that are no longer needed."
            );
            return Err(Problem::new(ProblemCode::FlagdConfigurationTooLarge, detail));
        }
        let answer = if etag.is_named_by(if_none_match) {
            ApiResponse::empty(StatusCode::NOT_MODIFIED)
        } else {
            ApiResponse::of_json_text(StatusCode::OK, Some(document.clone()))
        };
        Ok(answer.with_header(ETAG, header_value(etag.as_str())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::entity_tag::EntityTag;

    #[test]
    fn a_configuration_that_fits_no_answer_is_refused_and_says_what_to_do() {
        // In JSON within JSON a quote takes two bytes.
        let answer = |quotes: usize| {
            let document = "\"".repeat(quotes);
            let etag = EntityTag::of(&document);
            FlagdConfiguration { document, etag }.to_answer([])
        };
        assert_eq!(answer(MAX_ANSWER_BYTES / 2).unwrap().status(), StatusCode::OK);
        let refused = answer(MAX_ANSWER_BYTES / 2 + 1).unwrap_err();
        assert_eq!(refused.code(), ProblemCode::FlagdConfigurationTooLarge);
        assert!(refused.detail().contains("waymark flags export"), "{}", refused.detail());
    }
}
