//! Serves the console: one document for all pages, and the scripts and styles that it references.
//! `make console` builds them from `console/` and compresses them. They are part of this binary.
//!
//! Also exchanges the single-use code of a link to the console for its API key.

use rust_embed::{EmbeddedFile, RustEmbed};
use serde::Serialize;

use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::console_code::ConsoleCode;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/console",
    Access::Public(shared::handler!(handle without caller)),
);

async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    if incoming.method() == Method::POST {
        exchange(app, incoming).await
    } else {
        serve(&Request::read(incoming))
    }
}

/// The API key of a link.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExchangedKey {
    api_key: String,
}

/// Responds to exchange-console-code.
async fn exchange(app: &App, incoming: &ApiRequest) -> ApiResult {
    let code = ConsoleCode::read(&incoming.json()?)?;
    let key = app.store.take_console_code(&code, app.clock.now()).await?;
    let key = key.ok_or_else(ConsoleCode::unusable)?;
    ApiResponse::ok(&ExchangedKey { api_key: key.reveal() })
}

/// The built files, each with its compressed forms: `NAME`, `NAME.br`, `NAME.gz`. Empty if the
/// console was not built, so that everything else can be built without Node.js.
#[derive(RustEmbed)]
#[folder = "built"]
struct Built;

const DOCUMENT: &str = "index.html";
const HTML: &str = "text/html; charset=utf-8";
const NOT_BUILT: &[u8] =
    b"<!doctype html><title>Console</title><p>The console is not installed. Run <code>make \
      console</code>, then deploy again.";
const NO_SUCH_FILE: &[u8] = b"<!doctype html><title>Console</title><p>The page does not exist. <a \
                              href=\"/console\">Open the console</a>";

/// The document's content security policy. It can only run its own scripts and styles, and call the
/// API that served it. No page can show it in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The relevant parts of a request.
#[derive(Debug, Default)]
struct Request {
    /// The path below `/console`; `None` for `/console` itself.
    file: Option<String>,
    accepts_brotli: bool,
    accepts_gzip: bool,
    /// The entity tags of the browser's cached documents.
    known_tags: Vec<String>,
    is_https: bool,
}

impl Request {
    fn read(incoming: &ApiRequest) -> Self {
        let lists = |name| {
            let values = incoming.header_texts(name).into_iter();
            values.flat_map(|value| value.split(',')).map(|it| it.trim().to_owned())
        };
        let encodings: Vec<String> = lists("accept-encoding").collect();
        let accepts = |encoding: &str| {
            encodings.iter().any(|it| {
                let (name, quality) = it.split_once(';').unwrap_or((it, "q=1"));
                let rejected = ["q=0", "q=0.0", "q=0.00", "q=0.000"].contains(&quality.trim());
                name.trim().eq_ignore_ascii_case(encoding) && !rejected
            })
        };
        Self {
            file: incoming.path_parameter("file"),
            accepts_brotli: accepts("br"),
            accepts_gzip: accepts("gzip"),
            known_tags: lists("if-none-match").collect(),
            is_https: incoming.header_texts("x-forwarded-proto") == ["https"],
        }
    }
}

fn serve(request: &Request) -> ApiResult {
    let response = match request.file.as_deref().filter(|file| file.contains('.')) {
        None => serve_document(request),
        Some(name) => serve_file(name, request),
    };
    protected(response?, request.is_https)
}

/// Browsers revalidate the document on each use, so a deployment shows immediately.
fn serve_document(request: &Request) -> ApiResult {
    let Some((body, encoding)) = compressed(DOCUMENT, request) else {
        return Ok(ApiResponse::bytes(StatusCode::NOT_FOUND, HTML, NOT_BUILT.to_vec()));
    };
    let etag = entity_tag(&body);
    let response = if request.known_tags.iter().any(|tag| tag.trim_start_matches("W/") == etag) {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        encoded(ApiResponse::bytes(StatusCode::OK, HTML, body.data.into_owned()), encoding)?
    };
    let response = response.with_text("cache-control", "no-cache")?.with_text("etag", &etag)?;
    response.with_text("vary", "accept-encoding")
}

/// The name of a file contains a hash of its content, so the file never changes.
fn serve_file(name: &str, request: &Request) -> ApiResult {
    let media_type = media_type(name).filter(|_| name != DOCUMENT);
    let found = media_type.and_then(|it| Some((it, compressed(name, request)?)));
    let Some((media_type, (body, encoding))) = found else {
        return Ok(ApiResponse::bytes(StatusCode::NOT_FOUND, HTML, NO_SUCH_FILE.to_vec()));
    };
    let response = ApiResponse::bytes(StatusCode::OK, media_type, body.data.into_owned());
    encoded(response, encoding)?
        .with_text("cache-control", "public, max-age=31536000, immutable")?
        .with_text("vary", "accept-encoding")
}

/// Returns a file in the smallest form that the browser accepts, with its content encoding.
fn compressed(name: &str, request: &Request) -> Option<(EmbeddedFile, Option<&'static str>)> {
    let form = |ending: &str| Built::get(&format!("{name}{ending}"));
    let brotli =
        || request.accepts_brotli.then(|| form(".br")).flatten().map(|it| (it, Some("br")));
    let gzip = || request.accepts_gzip.then(|| form(".gz")).flatten().map(|it| (it, Some("gzip")));
    brotli().or_else(gzip).or_else(|| form("").map(|it| (it, None)))
}

fn encoded(response: ApiResponse, encoding: Option<&str>) -> ApiResult {
    match encoding {
        Some(encoding) => response.with_text("content-encoding", encoding),
        None => Ok(response),
    }
}

/// Adds the security headers. Over HTTPS, browsers then use only HTTPS for a year.
fn protected(response: ApiResponse, is_https: bool) -> ApiResult {
    let response = if is_https {
        response.with_text("strict-transport-security", "max-age=31536000")?
    } else {
        response
    };
    response
        .with_text("content-security-policy", POLICY)?
        .with_text("x-content-type-options", "nosniff")?
        .with_text("referrer-policy", "no-referrer")?
        .with_text("cross-origin-opener-policy", "same-origin")?
        .with_text("cross-origin-resource-policy", "same-origin")
}

/// Returns the media type of a file, or `None` for types that the document never references.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

/// Returns a file's entity tag: the start of its hash.
fn entity_tag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    let beginning = hash.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes));
    format!("\"{beginning:032x}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(accept_encoding: &str) -> Request {
        let request = lambda_http::http::Request::builder();
        let request = request.header("accept-encoding", accept_encoding);
        let request = request.body(lambda_http::Body::Empty).unwrap();
        Request::read(&ApiRequest::new("serve-console", request))
    }

    fn status_of(file: &str) -> StatusCode {
        let request = Request { file: Some(file.to_owned()), ..Request::default() };
        serve(&request).unwrap().status()
    }

    #[test]
    fn only_accepted_encodings_are_sent() {
        let accepts = |text: &str| (request(text).accepts_brotli, request(text).accepts_gzip);
        assert_eq!(accepts("gzip, deflate, br, zstd"), (true, true));
        assert_eq!(accepts("gzip;q=0.5, BR;q=1"), (true, true));
        assert_eq!(accepts("gzip;q=0, br; q=0.000"), (false, false));
        assert_eq!(accepts("brotli"), (false, false));
    }

    #[test]
    fn pages_return_the_document_and_unknown_files_404() {
        let document = serve(&Request::default()).unwrap().status();
        assert_eq!(document == StatusCode::OK, Built::get(DOCUMENT).is_some());
        assert_eq!(status_of("errors"), document);
        for name in
            ["index.html", "index.html.br", ".gitignore", "../Cargo.toml", "x.js", "x.", "."]
        {
            assert_eq!(status_of(name), StatusCode::NOT_FOUND, "{name}");
        }
        for name in Built::iter().filter(|name| media_type(name).is_some()) {
            assert_eq!(status_of(&name), StatusCode::OK, "{name}");
        }
    }

    #[test]
    fn https_responses_require_https() {
        for (is_https, expected) in [(true, Some("max-age=31536000")), (false, None)] {
            for file in [None, Some("x.js".to_owned())] {
                let request = Request { file, is_https, ..Request::default() };
                let headers = serve(&request).unwrap().to_stored().headers;
                let sent = headers.iter().find(|(name, _)| name == "strict-transport-security");
                assert_eq!(sent.map(|(_, value)| value.as_str()), expected);
            }
        }
    }

    #[test]
    fn cached_documents_are_not_sent_again() {
        let Some(document) = Built::get(DOCUMENT) else { return };
        let tag = entity_tag(&document);
        let known = |tag: String| Request { known_tags: vec![tag], ..Request::default() };
        let status = |request| serve(&request).unwrap().status();
        assert_eq!(status(known(tag.clone())), StatusCode::NOT_MODIFIED);
        assert_eq!(status(known(format!("W/{tag}"))), StatusCode::NOT_MODIFIED);
        assert_eq!(status(known(tag.replace('"', ""))), StatusCode::OK);
    }
}
