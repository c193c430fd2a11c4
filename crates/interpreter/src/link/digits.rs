//! Values that are named by their first digits: `5xx`.

use super::{
    Link, MatchConfidence, Mention, Owner, TokenKind, ValueCoverage, Words, in_order, score,
    weights,
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
}
