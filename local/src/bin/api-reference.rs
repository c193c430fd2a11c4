//! `/docs` of the local stack: the page that `make docs` renders of `openapi.yaml`.

use std::convert::Infallible;

use lambda_http::http::header::{CONTENT_TYPE, HeaderValue};
use lambda_http::http::{Response, StatusCode};
use lambda_http::{Request, service_fn};

/// Where `make docs` leaves the page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/api-reference/index.html");

const NOT_RENDERED: &str = "The API reference is not rendered yet; `make docs` does that.\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    lambda_http::run(service_fn(async |_: Request| Ok::<_, Infallible>(page()))).await
}

fn page() -> Response<String> {
    let (status, media_type, body) = match std::fs::read_to_string(PAGE) {
        Ok(page) => (StatusCode::OK, "text/html; charset=utf-8", page),
        Err(_) => (StatusCode::NOT_FOUND, "text/plain; charset=utf-8", NOT_RENDERED.to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
