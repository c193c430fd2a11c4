//! Pages of the local stack that are not part of the API.

use std::path::{Path, PathBuf};

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode};

const NOT_RENDERED: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>API reference</title>
<p>The API reference is not rendered yet. Run <code>make docs</code>, then reload this page.
</html>
";

/// The page `/docs`, which `make docs` renders from `openapi.yaml`.
pub(super) struct ApiReference {
    file: PathBuf,
}

impl ApiReference {
    /// Returns the page of a workspace.
    pub(super) fn of(workspace: &Path) -> Self {
        Self { file: workspace.join("target/api-reference/index.html") }
    }

    /// Returns the page if the request is for it.
    pub(super) fn respond(&self, parts: &Parts) -> Option<Response<Bytes>> {
        if (&parts.method, parts.uri.path()) != (&Method::GET, "/docs") {
            return None;
        }
        // Read for each request, because it can be rendered again.
        let (status, page) = match std::fs::read(&self.file) {
            Ok(page) => (StatusCode::OK, Bytes::from(page)),
            Err(_) => (StatusCode::NOT_FOUND, Bytes::from_static(NOT_RENDERED.as_bytes())),
        };
        let mut response = Response::new(page);
        *response.status_mut() = status;
        let media_type = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        Some(response)
    }
}
