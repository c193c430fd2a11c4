//! Values that are named by their digits: spelled out (`twelve oh six`), or several at once
//! (`5xx`).

use super::{
    Key, Link, MatchConfidence, MatchKind, Mention, Owner, TokenKind, ValueCoverage, Words,
    catalog, in_order, score, weights,
};

impl Words<'_> {
    /// Returns families of values with three digits: `5xx`, `40x`.
    pub(super) fn digit_families(&self) -> Vec<Link> {
        let pairs = self.tokens.iter().zip(self.tokens.iter().skip(1)).enumerate();
        let families = pairs.filter_map(|(at, (number, rest))| {
            let signs = rest.joint && rest.folded.bytes().all(|byte| byte == b'x');
            let digits = number.kind == TokenKind::Number && !number.joint;
            let whole = number.folded.len() + rest.folded.len() == 3;
            let named = self.catalog.forms.iter().filter_map(|form| {
                let (Owner::Value { category, index }, [atom]) = (form.owner, &form.atoms[..])
                else {
                    return None;
                };
                let own = atom.folded.len() == 3 && atom.folded.starts_with(&number.folded);
                own.then_some((category, index))
            });
            let named = (signs && digits && whole).then(|| in_order(named))?;
            let mention = Mention::of(named, ValueCoverage::Family, MatchConfidence::Exact);
            Some(Link { tokens: at..at + 2, mention, score: score(weights::DIGITS, 2) })
        });
        families.filter(|link| !link.mention.values.is_empty()).collect()
    }

    /// Returns the spelled-out numbers whose digits name a value: `twelve oh six` for `1206`.
    pub(super) fn spelled_values(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for number in self.spelled.iter().filter(|spelled| !spelled.weak) {
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            let key = Key::of([number.digits.as_str()]);
            for posting in [key, catalog::without_dots(key)]
                .into_iter()
                .flat_map(|key| self.catalog.lookup(key))
            {
                let Some(form) = self.catalog.form(posting.form) else { continue };
                if let Owner::Value { category, index } = form.owner
                    && posting.likeness == MatchKind::Exact
                {
                    let full = form.required & !posting.cover() == 0;
                    if full { &mut whole } else { &mut parts }.push((category, index));
                }
            }
            // "terminal two" for T2: a part, which counts only next to its label.
            let needs_label = whole.is_empty();
            let (values, extent, penalty) = if needs_label {
                (parts, ValueCoverage::SharedPart, weights::SHARED_PENALTY)
            } else {
                (whole, ValueCoverage::Whole, 0.0)
            };
            if !values.is_empty() {
                let mention = Mention::of(in_order(values), extent, MatchConfidence::Exact);
                let mention = Mention { needs_label, ..mention };
                let score = score(weights::DIGITS - penalty, number.tokens.len());
                links.push(Link { tokens: number.tokens.clone(), mention, score });
            }
        }
        links
    }
}
