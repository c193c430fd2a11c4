//! Values that are named by their digits: spelt with words (`twelve oh six`), or several at once
//! (`5xx`).

use super::assess::{SHARED_PENALTY, in_order};
use super::{Extent, Link, Mention, Tier, score};
use crate::interpretation::catalog::{self, Catalog, Likeness, Owner};
use crate::interpretation::fold::Key;
use crate::interpretation::number::Spelt;
use crate::interpretation::token::{Token, TokenKind};

/// `5xx`, `40x`: all values of three digits that begin so.
pub(crate) fn digit_families(tokens: &[Token], catalog: &Catalog<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(rest) = tokens
            .get(at + 1)
            .filter(|rest| rest.joint && rest.folded.bytes().all(|byte| byte == b'x'))
        else {
            continue;
        };
        if token.kind != TokenKind::Number
            || token.joint
            || token.folded.len() + rest.folded.len() != 3
        {
            continue;
        }
        let values =
            in_order(catalog.forms.iter().filter_map(|form| match (form.owner, &form.atoms[..]) {
                (Owner::Value { category, index }, [number])
                    if number.folded.len() == 3 && number.folded.starts_with(&token.folded) =>
                {
                    Some((category, index))
                }
                _ => None,
            }));
        if !values.is_empty() {
            let mention = Mention {
                values,
                parts: Vec::new(),
                extent: Extent::Family,
                begins: false,
                needs_label: false,
                value_tier: Tier::Exact,
                labels: Vec::new(),
            };
            links.push(Link { tokens: at..at + 2, mention, score: score(9.8, 2) });
        }
    }
    links
}

/// Spoken or written numbers that name a value by its digits: `twelve oh six` is `1206`.
pub(crate) fn spelt_values(spelt: &[Spelt], catalog: &Catalog<'_>) -> Vec<Link> {
    let mut links = Vec::new();
    for number in spelt.iter().filter(|spelt| !spelt.weak) {
        let mut values = Vec::new();
        let mut parts = Vec::new();
        let key = Key::of([number.digits.as_str()]);
        for key in [key, catalog::without_dots(key)] {
            for posting in catalog.lookup(key) {
                let Some(form) = catalog.form(posting.form) else { continue };
                let full = form.required & !posting.cover() == 0;
                if let Owner::Value { category, index } = form.owner
                    && posting.likeness == Likeness::Exact
                {
                    if full {
                        values.push((category, index));
                    } else {
                        parts.push((category, index));
                    }
                }
            }
        }
        // "terminal two" for T2: a part, which counts only beside its label.
        let whole = !values.is_empty();
        let (values, extent, worth) = if whole {
            (in_order(values.into_iter()), Extent::Whole, 9.8)
        } else {
            (in_order(parts.into_iter()), Extent::SharedPart, 9.8 - SHARED_PENALTY)
        };
        if !values.is_empty() {
            let mention = Mention {
                values,
                parts: Vec::new(),
                extent,
                begins: false,
                needs_label: !whole,
                value_tier: Tier::Exact,
                labels: Vec::new(),
            };
            links.push(Link {
                tokens: number.tokens.clone(),
                mention,
                score: score(worth, number.tokens.len()),
            });
        }
    }
    links
}
