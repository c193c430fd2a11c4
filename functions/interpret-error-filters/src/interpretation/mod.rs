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
use context::{Role, Scene};
use lexicon::Lexicon;
use link::Words;
use word::Word;

/// Interprets the query of a request as an edit of its current filters.
pub fn interpret(request: &Request) -> Interpretation {
    let lexicon = Lexicon::get();
    let mut tokens = token::tokenise(&request.query);
    let mut catalog = Catalog::new(request, lexicon);
    let numbers = number::numbers(&tokens, lexicon);
    let spelt = number::spelt(&tokens, &numbers, lexicon);
    let words = Words::new(&tokens, &mut catalog, &spelt, lexicon);
    let mut links = link::links(&words, &catalog, lexicon);
    links.extend(link::spelt_values(&spelt, &catalog));
    links.extend(link::digit_families(&tokens, &catalog));
    links.extend(link::initialisms(&tokens, &catalog, lexicon));
    let ages = catalog.age_category(lexicon).is_some();
    let elements = element::elements(&tokens, &words, links, numbers, lexicon, ages);
    let corrected = words.corrected;
    for (token, word) in tokens.iter_mut().zip(corrected) {
        if let Some(word) = word {
            token.folded = word;
        }
    }
    let mut scene = Scene::new(&request.query, &tokens, &catalog, lexicon, elements);
    let findings = rules::read(&mut scene);
    let unexplained = unexplained(&scene);
    let (understood, ignored) = explanation::explain(&scene, &findings);
    let text = |fired: &rules::Fired| scene.query_text(fired.elements.clone()).to_owned();
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
fn unexplained(scene: &Scene<'_>) -> Vec<String> {
    scene
        .elements
        .iter()
        .enumerate()
        .filter(|(at, element)| {
            let word = scene.word(*at);
            !element.used
                && matches!(scene.role(*at), Role::Other)
                && element.is_word()
                && word.len() > 2
                && !scene.says(*at, Word::Article)
                && !(scene.lexicon.is_verb(word) || scene.says(*at, Word::Common))
        })
        .map(|(_, element)| scene.text(element.tokens.clone()).to_owned())
        .collect()
}
