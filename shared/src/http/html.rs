//! Pages for people, who come by a link in a mail.

use lambda_http::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use lambda_http::http::{HeaderValue, StatusCode};

use crate::text::escape_html;

use super::{ApiRequest, ApiResponse, Problem, Protocol};

/// What a page may do: nothing but show itself, and send its own form. Its address has a token, which
/// nobody is told and nobody keeps.
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
    /// A page of a title and a body, which is HTML.
    pub fn page(status: StatusCode, title: &str, body: &str) -> Self {
        let title = escape_html(title);
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex\">\n<title>{title} · Waymark</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n\
             </body>\n</html>\n"
        );
        let mut answer = Self::of_json_text(status, Some(page));
        for (name, value) in HEADERS {
            answer = answer.with_header(name, HeaderValue::from_static(value));
        }
        answer
    }
}

impl Protocol {
    /// That of browsers, whose readers are people: problems are pages, too.
    pub const PAGES: Self = Self { name: "pages", answer_problem: page_of, request_headers: &[] };
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
    fn a_page_shows_texts_as_they_are_and_runs_nothing() {
        let answer = ApiResponse::page(StatusCode::OK, "<b>&\"", "<p>x</p>").into_response("r-1");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
        assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("'none'"));
        let Body::Text(page) = answer.into_body() else { panic!("a page is text") };
        assert!(page.contains("<h1>&lt;b&gt;&amp;&quot;</h1>\n<p>x</p>"), "{page}");
    }
}
