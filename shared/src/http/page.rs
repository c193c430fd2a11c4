//! Lists, page by page (`contract.md` §1): `?limit` and `?cursor` in, `{items, nextCursor}` out.

use lambda_http::http::StatusCode;
use serde::Serialize;

use crate::app::App;
use crate::json::{Fault, ViolationCode, Violations};
use crate::models::page::{Page, PageRequest};

use super::{Answer, Incoming, Problem};

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 100;

/// Reads `limit` and `cursor` of a request for a page of `list`. What is wrong is noted.
pub fn read_page_request(
    app: &App,
    incoming: &Incoming,
    list: &str,
    violations: &mut Violations,
) -> Result<Option<PageRequest>, Problem> {
    let limit = incoming.query_parameter("limit", violations, |text| {
        let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        limit.ok_or_else(|| {
            let message = format_args!("must be a whole number from 1 to {MAX_LIMIT}");
            Fault::new(ViolationCode::OutOfRange, message)
        })
    });
    let key = app.cursor_key()?;
    let after = incoming.query_parameter("cursor", violations, |cursor| key.open(list, cursor));
    let page = limit.zip(after);
    Ok(page.map(|(limit, after)| PageRequest { limit: limit.unwrap_or(DEFAULT_LIMIT), after }))
}

/// The answer with a page of `list`.
pub fn page_answer(app: &App, list: &str, page: &Page<impl Serialize>) -> Result<Answer, Problem> {
    let key = app.cursor_key()?;
    let next_cursor = page.end.as_ref().map(|end| key.seal(list, end));
    Answer::json(StatusCode::OK, &PageBody { items: &page.items, next_cursor })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageBody<'p, T> {
    items: &'p [T],
    next_cursor: Option<String>,
}
