//! Interprets a query in natural language as error filters. Interpretation is deterministic, runs
//! in process and uses no model.
//!
//! Modules cite the rules of `docs/semantics/error-filters.md` by number. The pipeline has one
//! module per stage:
//!
//! 1. `token`: split the query into tokens with their positions
//! 2. `number`, `time`: find written and spoken numbers, and time expressions
//! 3. `catalog`, `spelling`, `link`: find spans that name values and labels of the request
//! 4. `element`: find cue phrases; choose the best sequence of readings without overlap
//! 5. `context`: assign a role to each mention from its neighbors
//! 6. `polarity`: find the cue that governs each mention
//! 7. `rules`: read texts, numbers (`quantity`) and the rest, in rounds
//! 8. `assemble`, `validate`: edit the current filters and drop invalid ones
//!
//! `lexicon` reads world knowledge from `data/en/`.

#[macro_use]
mod cue;

mod assemble;
mod catalog;
mod condition;
mod context;
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

pub use lexicon::ablate;
pub use model::{
    Category, Filter, Interpretation, Kind, MAX_VALUE_CHARACTERS, Operator, Request, Understood,
};
pub use rules::rule_names;
pub use validate::valid_filters;

use catalog::Catalog;
use context::ParseContext;
use link::Words;
use word::Word;

/// Interprets the query of a request as an edit of its current filters.
pub fn interpret(request: &Request) -> Interpretation {
    let mut tokens = token::tokenize(&request.query);
    let catalog = Catalog::new(request, tokens.lexicon);
    let numbers = tokens.numbers();
    let spelled = tokens.spelled(&numbers);
    let words = Words::new(&tokens, &catalog, &spelled);
    let ages = catalog.age_category().is_some();
    let elements = element::elements(&words, words.links(), numbers, ages);
    tokens.correct(words.corrected);
    let mut context = ParseContext::new(&tokens, &catalog, elements);
    let findings = rules::read(&mut context);
    let unexplained = unexplained(&context);
    let (understood, ignored) = explanation::explain(&context, &findings);
    let text = |fired: &rules::RuleMatch| context.query_text(fired.elements.clone()).to_owned();
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

/// Returns the content words that no stage understood.
fn unexplained(context: &ParseContext<'_>) -> Vec<String> {
    let unread = context.elements.iter().enumerate().filter(|(at, element)| {
        let word = context.word(*at);
        !element.used
            && context.is_other(*at)
            && element.is_word()
            && word.len() > 2
            && ![Word::Article, Word::Common].iter().any(|&class| context.says(*at, class))
            && !context.lexicon.is_verb(word)
    });
    unread.map(|(_, element)| context.text(element.tokens.clone()).to_owned()).collect()
}
