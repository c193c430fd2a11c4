//! Serves the console: one document for all of its pages, and the scripts and styles that the document
//! names. They are built from `console/` by `make console`, compressed there, and part of this binary. Exchanges the
//! single-use code of a link to the console for its API key.

use rust_embed::{EmbeddedFile, RustEmbed};
use serde::Serialize;

use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResponse, Method, Problem, StatusCode};
use shared::projects::console_code::ConsoleCode;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/console",
    Access::Public(|app, incoming| Box::pin(handle(app, incoming))),
);

async fn handle(app: &App, incoming: &ApiRequest) -> Result<ApiResponse, Problem> {
    if incoming.method() == Method::POST {
        exchange(app, incoming).await
    } else {
        serve(&Request::read(incoming))
    }
}

/// The key of a link.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exchanged {
    api_key: String,
}

/// Answers exchange-console-code.
async fn exchange(app: &App, incoming: &ApiRequest) -> Result<ApiResponse, Problem> {
    let code = ConsoleCode::read(&incoming.json()?)?;
    let key = app.store.take_console_code(&code, app.clock.now()).await?;
    let key = key.ok_or_else(ConsoleCode::unusable)?;
    ApiResponse::ok(&Exchanged { api_key: key.reveal() })
}

/// What was built, each file beside its compressed forms: `NAME`, `NAME.br`, `NAME.gz`. Without the page
/// it is empty: everything else can be built where there is no Node.js.
#[derive(RustEmbed)]
#[folder = "built"]
struct Built;

const DOCUMENT: &str = "index.html";
const HTML: &str = "text/html; charset=utf-8";
const NOT_BUILT: &[u8] =
    b"<!doctype html><title>Console</title><p>This function was built without the \
console. <code>make console</code> builds it; then build the function again.";
const NO_SUCH_FILE: &[u8] = b"<!doctype html><title>Console</title><p>There is no such file. \
<a href=\"/console\">Open the console.</a>";

/// What the document may do: nothing but run these scripts and styles, and call the API that it came
/// from. Nobody may show it in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// What of a request decides.
#[derive(Debug, Default)]
struct Request {
    /// What is asked for below `/console`; `None` for that itself.
    file: Option<String>,
    takes_brotli: bool,
    takes_gzip: bool,
    /// The entity tags that the browser has.
    known: Vec<String>,
    is_https: bool,
}

impl Request {
    fn read(incoming: &ApiRequest) -> Self {
        let lists = |name| {
            let values = incoming.header_texts(name).into_iter();
            values.flat_map(|value| value.split(',')).map(|it| it.trim().to_owned())
        };
        let codings: Vec<String> = lists("accept-encoding").collect();
        let takes = |coding: &str| {
            codings.iter().any(|it| {
                let (name, quality) = it.split_once(';').unwrap_or((it, "q=1"));
                let refused = ["q=0", "q=0.0", "q=0.00", "q=0.000"].contains(&quality.trim());
                name.trim().eq_ignore_ascii_case(coding) && !refused
            })
        };
        Self {
            file: incoming.path_parameter("file"),
            takes_brotli: takes("br"),
            takes_gzip: takes("gzip"),
            known: lists("if-none-match").collect(),
            is_https: incoming.header_texts("x-forwarded-proto") == ["https"],
        }
    }
}

fn serve(request: &Request) -> Result<ApiResponse, Problem> {
    let answer = match request.file.as_deref().filter(|file| file.contains('.')) {
        None => serve_document(request),
        Some(name) => serve_file(name, request),
    };
    protected(answer?, request.is_https)
}

/// The document is asked for each time anew, so that a deployment shows at once.
fn serve_document(request: &Request) -> Result<ApiResponse, Problem> {
    let Some((body, coding)) = compressed(DOCUMENT, request) else {
        return Ok(ApiResponse::bytes(StatusCode::NOT_FOUND, HTML, NOT_BUILT.to_vec()));
    };
    let etag = entity_tag(&body);
    let answer = if request.known.iter().any(|known| known.trim_start_matches("W/") == etag) {
        ApiResponse::empty(StatusCode::NOT_MODIFIED)
    } else {
        encoded(ApiResponse::bytes(StatusCode::OK, HTML, body.data.into_owned()), coding)?
    };
    let answer = answer.with_text("cache-control", "no-cache")?.with_text("etag", &etag)?;
    answer.with_text("vary", "accept-encoding")
}

/// A file's name has a hash of its content, so it never changes.
fn serve_file(name: &str, request: &Request) -> Result<ApiResponse, Problem> {
    let media_type = media_type(name).filter(|_| name != DOCUMENT);
    let found = media_type.and_then(|it| Some((it, compressed(name, request)?)));
    let Some((media_type, (body, coding))) = found else {
        return Ok(ApiResponse::bytes(StatusCode::NOT_FOUND, HTML, NO_SUCH_FILE.to_vec()));
    };
    let answer = ApiResponse::bytes(StatusCode::OK, media_type, body.data.into_owned());
    encoded(answer, coding)?
        .with_text("cache-control", "public, max-age=31536000, immutable")?
        .with_text("vary", "accept-encoding")
}

/// A file in the smallest form that the browser takes, and its content coding.
fn compressed(name: &str, request: &Request) -> Option<(EmbeddedFile, Option<&'static str>)> {
    let form = |ending: &str| Built::get(&format!("{name}{ending}"));
    let brotli = || request.takes_brotli.then(|| form(".br")).flatten().map(|it| (it, Some("br")));
    let gzip = || request.takes_gzip.then(|| form(".gz")).flatten().map(|it| (it, Some("gzip")));
    brotli().or_else(gzip).or_else(|| form("").map(|it| (it, None)))
}

fn encoded(answer: ApiResponse, coding: Option<&str>) -> Result<ApiResponse, Problem> {
    match coding {
        Some(coding) => answer.with_text("content-encoding", coding),
        None => Ok(answer),
    }
}

/// The headers that keep others out of whatever is shown. Over HTTPS, browsers then use only HTTPS for a year.
fn protected(answer: ApiResponse, is_https: bool) -> Result<ApiResponse, Problem> {
    let answer = if is_https {
        answer.with_text("strict-transport-security", "max-age=31536000")?
    } else {
        answer
    };
    answer
        .with_text("content-security-policy", POLICY)?
        .with_text("x-content-type-options", "nosniff")?
        .with_text("referrer-policy", "no-referrer")?
        .with_text("cross-origin-opener-policy", "same-origin")?
        .with_text("cross-origin-resource-policy", "same-origin")
}

/// The media type of a name; none of those that the document never names.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

/// A file's entity tag: the beginning of its hash.
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

    fn asked(file: &str) -> StatusCode {
        let request = Request { file: Some(file.to_owned()), ..Request::default() };
        serve(&request).unwrap().status()
    }

    #[test]
    fn what_the_browser_does_not_take_is_not_sent() {
        let takes = |text: &str| (request(text).takes_brotli, request(text).takes_gzip);
        assert_eq!(takes("gzip, deflate, br, zstd"), (true, true));
        assert_eq!(takes("gzip;q=0.5, BR;q=1"), (true, true));
        assert_eq!(takes("gzip;q=0, br; q=0.000"), (false, false));
        assert_eq!(takes("brotli"), (false, false));
    }

    #[test]
    fn every_page_is_the_document_and_no_file_is_found_that_it_does_not_name() {
        let document = serve(&Request::default()).unwrap().status();
        assert_eq!(document == StatusCode::OK, Built::get(DOCUMENT).is_some());
        assert_eq!(asked("errors"), document);
        for name in
            ["index.html", "index.html.br", ".gitignore", "../Cargo.toml", "x.js", "x.", "."]
        {
            assert_eq!(asked(name), StatusCode::NOT_FOUND, "{name}");
        }
        for name in Built::iter().filter(|name| media_type(name).is_some()) {
            assert_eq!(asked(&name), StatusCode::OK, "{name}");
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
    fn a_document_that_the_browser_has_is_not_sent_again() {
        let Some(document) = Built::get(DOCUMENT) else { return };
        let tag = entity_tag(&document);
        let known = |tag: String| Request { known: vec![tag], ..Request::default() };
        let status = |request| serve(&request).unwrap().status();
        assert_eq!(status(known(tag.clone())), StatusCode::NOT_MODIFIED);
        assert_eq!(status(known(format!("W/{tag}"))), StatusCode::NOT_MODIFIED);
        assert_eq!(status(known(tag.replace('"', ""))), StatusCode::OK);
    }
}
