//! HTML pages that people open from links in emails.

use lambda_http::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use lambda_http::http::{HeaderValue, StatusCode};

use crate::text::escape_html;

use super::{ApiRequest, ApiResponse, Problem, Protocol};

/// The headers of a page, which can only show itself and submit its own form. Its URL contains a
/// token, which must be neither cached nor sent as a referrer.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'",
    ),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
];

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1.25rem}\
h1{font-size:1.4rem;line-height:1.25}\
button{font:inherit;padding:.6rem 1.1rem;border:0;border-radius:.4rem;background:#1f4ed8;color:#fff;cursor:pointer}\
button:focus-visible{outline:3px solid #8fb0ff;outline-offset:2px}\
small{opacity:.75}";

impl ApiResponse {
    /// Returns a page with a title and an HTML body. Escapes only the title.
    pub fn page(status: StatusCode, title: &str, body: &str) -> Self {
        let title = escape_html(title);
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex\">\n<title>{title} · Waymark</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n\
             </body>\n</html>\n"
        );
        let mut response = Self::of_json_text(status, Some(page));
        for (name, value) in HEADERS {
            response = response.with_header(name, HeaderValue::from_static(value));
        }
        response
    }
}

impl Protocol {
    /// The protocol of browsers: problems are also pages.
    pub const PAGES: Self = Self { name: "pages", problem_response: page_of, request_headers: &[] };
}

fn page_of(problem: &Problem, incoming: &ApiRequest) -> ApiResponse {
    let (detail, id) = (escape_html(problem.detail()), escape_html(incoming.request_id()));
    let body = format!("<p>{detail}</p>\n<p><small>Request {id}</small></p>");
    problem.with_retry_after(ApiResponse::page(problem.status(), problem.code().title(), &body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Body;

    #[test]
    fn pages_escape_titles_and_forbid_scripts() {
        let response = ApiResponse::page(StatusCode::OK, "<b>&\"", "<p>x</p>").into_response("r-1");
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
        assert!(response.headers()["content-security-policy"].to_str().unwrap().contains("'none'"));
        let Body::Text(page) = response.into_body() else { panic!("the page is not text") };
        assert!(page.contains("<h1>&lt;b&gt;&amp;&quot;</h1>\n<p>x</p>"), "{page}");
    }
}
