//! Interprets a query in natural language as error filters: deterministic, in process, without a
//! model. The rules that modules cite by number are those of `docs/semantics/error-filters.md`.
//! A pipeline, one module per stage, in this order:
//!
//! 1. `token`: cut the query into tokens with their places
//! 2. `number`, `time`: written and spoken numbers; time expressions
//! 3. `catalog`, `spelling`, `link`: spans that name values and labels of the request
//! 4. `element`: steering phrases; the best row of readings that do not overlap
//! 5. `context`: what each mention stands for beside its neighbours
//! 6. `polarity`: which cue governs which mention
//! 7. `rules`: readings of texts, numbers (`quantity`) and the rest, in rounds
//! 8. `assemble`, `validate`: edit the current filters; let only valid ones pass
//!
//! World knowledge stands in `data/en/`, read by `lexicon`.

mod assemble;
mod catalog;
mod condition;
mod context;
mod cue;
mod decimal;
mod element;
mod explanation;
mod fold;
mod lexicon;
mod link;
mod model;
mod number;
mod polarity;
mod quantity;
mod rules;
mod spelling;
mod time;
mod token;
mod validate;
mod weights;
mod word;

pub use model::{
    Category, Filter, Interpretation, Kind, MAX_VALUE_CHARACTERS, Operator, Request, Understood,
};
pub use rules::{Example, examples};
pub use validate::valid_filters;

use catalog::Catalog;
use context::ParseContext;
use link::Words;
use word::Word;

/// Interprets the query of a request as an edit of its current filters.
pub fn interpret(request: &Request) -> Interpretation {
    let mut tokens = token::tokenise(&request.query);
    let catalog = Catalog::new(request, tokens.lexicon);
    let numbers = tokens.numbers();
    let spelt = tokens.spelt(&numbers);
    let words = Words::new(&tokens, &catalog, &spelt);
    let ages = catalog.age_category().is_some();
    let elements = element::elements(&words, words.links(), numbers, ages);
    tokens.correct(words.corrected);
    let mut scene = ParseContext::new(&tokens, &catalog, elements);
    let findings = rules::read(&mut scene);
    let unexplained = unexplained(&scene);
    let (understood, ignored) = explanation::explain(&scene, &findings);
    let text = |fired: &rules::RuleMatch| scene.query_text(fired.elements.clone()).to_owned();
    let trace = findings.trace.iter().map(|fired| (fired.rule, text(fired))).collect();
    let filters = assemble::assemble(request, findings);
    Interpretation {
        filters: validate::valid_filters(request, filters),
        unexplained,
        understood,
        ignored,
        trace,
    }
}

/// The content words that no stage gave a meaning.
fn unexplained(scene: &ParseContext<'_>) -> Vec<String> {
    let unread = scene.elements.iter().enumerate().filter(|(at, element)| {
        let word = scene.word(*at);
        !element.used
            && scene.is_other(*at)
            && element.is_word()
            && word.len() > 2
            && ![Word::Article, Word::Common].iter().any(|&class| scene.says(*at, class))
            && !scene.lexicon.is_verb(word)
    });
    unread.map(|(_, element)| scene.text(element.tokens.clone()).to_owned()).collect()
}
