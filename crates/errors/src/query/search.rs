//! The search of event queries (`docs/semantics/error-tracking.md`, "Search"): terms that must all
//! hold.

use shared::json::{FieldError, ViolationCode};

use super::case_folding::folded;
use super::filter::{EventFilters, Filter, Operator};
use crate::ErrorDescription;
use crate::category::Category;
use crate::tag::TagKey;

/// Maximum characters of a search query.
const MAX_SEARCH_CHARACTERS: usize = 1_024;

/// A search query: words and phrases that an error must contain or lack, and filters on events.
/// Every text is valid: anything that is not another kind of term is a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    terms: Vec<TextTerm>,
    event_filters: EventFilters,
    /// The search, if it can name tags of the project: `tenant:acme`.
    with_tags: Option<String>,
}

/// A text that one of an error's texts must contain. If `negated`, none of them must contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextTerm {
    /// The text, folded.
    text: String,
    negated: bool,
}

impl SearchQuery {
    /// Parses a search query. Only the length can be invalid.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let length = text.chars().count();
        if length > MAX_SEARCH_CHARACTERS {
            let message = format_args!(
                "has {length} characters; at most {MAX_SEARCH_CHARACTERS} are allowed"
            );
            return Err(FieldError::new(ViolationCode::TooLong, message));
        }
        Ok(Self::read(text, &[]))
    }

    fn read(text: &str, tags: &[TagKey]) -> Self {
        let mut query = Self::default();
        let (mut rest, mut names_tags) = (text.trim_start(), false);
        while !rest.is_empty() {
            names_tags |= key_of(rest).is_some_and(|key| TagKey::parse(key).is_some());
            rest = query.take_term(rest, tags).trim_start();
        }
        query.with_tags = names_tags.then(|| text.to_owned());
        query
    }

    /// `true` if the search depends on the tags of the project.
    pub fn names_tags(&self) -> bool {
        self.with_tags.is_some()
    }

    /// Returns the search in a project with these tags, whose keys are also keys of terms.
    #[must_use]
    pub fn with_tags(self, tags: &[TagKey]) -> Self {
        match &self.with_tags {
            Some(text) => Self::read(text, tags),
            None => self,
        }
    }

    /// `true` if every error matches.
    pub fn matches_every_error(&self) -> bool {
        self.terms.is_empty()
    }

    /// `true` if an error matches all words and phrases.
    pub fn matches(&self, error: &ErrorDescription) -> bool {
        if self.matches_every_error() {
            return true;
        }
        let ErrorDescription { error_type, message, title, culprit, .. } = error;
        let texts = [error_type, message, title, culprit].map(|text| folded(text));
        self.terms.iter().all(|term| {
            let found = texts.iter().any(|text| text.contains(&term.text));
            found != term.negated
        })
    }

    /// Returns the filters on events.
    pub fn event_filters(&self) -> &EventFilters {
        &self.event_filters
    }

    /// Adds the term at the start of `rest`, and returns the rest after it.
    fn take_term<'t>(&mut self, rest: &'t str, tags: &[TagKey]) -> &'t str {
        if let Some((term, rest)) = CategoryTerm::parse(rest, tags) {
            term.add_to(&mut self.event_filters);
            return rest;
        }
        // `--x` is a command-line option, so a text and not a negated term.
        let negatable = rest.strip_prefix('-').filter(|text| !text.starts_with('-'));
        if let Some((phrase, after)) = parse_quoted(negatable.unwrap_or(rest)) {
            self.add_text(phrase, negatable.is_some());
            return after;
        }
        let (word, after) = split_word(rest);
        match word.strip_prefix('-').filter(|_| negatable.is_some() && word.len() > 1) {
            Some(excluded) => self.add_text(excluded, true),
            None => self.add_text(word, false),
        }
        after
    }

    fn add_text(&mut self, text: &str, negated: bool) {
        self.terms.push(TextTerm { text: folded(text), negated });
    }
}

/// A term `key:value`, `key:"value"` or `key:[a,b]`, or one of them after `!`.
#[derive(Debug)]
struct CategoryTerm<'t> {
    category: Category,
    values: Vec<&'t str>,
    negated: bool,
}

impl<'t> CategoryTerm<'t> {
    /// Parses a term at the start of `text`, and also returns the rest after it. `None` if the key
    /// is unknown, or if nothing follows the colon.
    fn parse(text: &'t str, tags: &[TagKey]) -> Option<(Self, &'t str)> {
        let unnegated = text.strip_prefix('!');
        let (key, after_colon) = unnegated.unwrap_or(text).split_once(':')?;
        let tag = || TagKey::parse(key).filter(|key| tags.contains(key)).map(Category::Tag);
        let category = Category::parse(key).filter(Category::has_texts).or_else(tag)?;
        let (values, rest) = parse_list(after_colon)
            .or_else(|| parse_quoted(after_colon).map(|(value, rest)| (vec![value], rest)))
            .or_else(|| parse_empty_quotes(after_colon).map(|rest| (vec![""], rest)))
            // A list or quote that is unclosed or followed by other text is a plain value.
            .filter(|(_, rest)| rest.is_empty() || rest.starts_with(char::is_whitespace))
            .unwrap_or_else(|| {
                let (value, rest) = split_word(after_colon);
                (vec![value], rest)
            });
        let is_plain_and_empty =
            after_colon.is_empty() || after_colon.starts_with(char::is_whitespace);
        (!is_plain_and_empty)
            .then_some((Self { category, values, negated: unnegated.is_some() }, rest))
    }

    fn add_to(&self, filters: &mut EventFilters) {
        let filters_of_values = self.values.iter().map(|value| self.filter(value));
        if self.negated {
            for filter in filters_of_values {
                filters.require_one_of(self.category, vec![filter]);
            }
        } else {
            filters.require_one_of(self.category, filters_of_values.collect());
        }
    }

    /// Returns the filter of `key:value`. `key:""` matches events without a value, since no event
    /// has an empty value.
    fn filter(&self, value: &str) -> Filter {
        let operator = match (value.is_empty(), self.negated) {
            (true, false) => Operator::IsNotSet,
            (true, true) => Operator::IsSet,
            (false, false) => Operator::Is,
            (false, true) => Operator::IsNot,
        };
        Filter::new(self.category, operator, value)
    }
}

/// Returns the text before the colon of a term, without `!`.
fn key_of(term: &str) -> Option<&str> {
    let (key, _) = split_word(term).0.split_once(':')?;
    Some(key.strip_prefix('!').unwrap_or(key))
}

/// Returns the text up to the next white space, and the rest.
fn split_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Returns the text between quotes, and the rest. `None` for a single quote or empty quotes, which
/// are ordinary text.
fn parse_quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"').filter(|(quoted, _)| !quoted.is_empty())
}

fn parse_empty_quotes(text: &str) -> Option<&str> {
    text.strip_prefix("\"\"")
}

/// Returns the values of `[a,"b, c"]`, and the rest. Spaces around values are ignored.
fn parse_list(text: &str) -> Option<(Vec<&str>, &str)> {
    let mut rest = text.strip_prefix('[')?;
    let mut values = Vec::new();
    loop {
        rest = rest.trim_start();
        let (value, after) = match parse_quoted(rest) {
            Some(quoted) => quoted,
            None => rest.split_at(rest.find([',', ']'])?),
        };
        values.push(value.trim_end());
        let after = after.trim_start();
        if let Some(next) = after.strip_prefix(',') {
            rest = next;
        } else {
            let complete = !values.iter().any(|value| value.is_empty());
            return after.strip_prefix(']').filter(|_| complete).map(|rest| (values, rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attribute;
    use crate::category::Attributes;
    use crate::grouping::Fingerprint;
    use proptest::prelude::*;

    /// Returns the description with a type, message, title and culprit.
    fn described(texts: [&str; 4]) -> ErrorDescription {
        let [error_type, message, title, culprit] = texts.map(str::to_owned);
        let fingerprint = Fingerprint([1; 16]);
        ErrorDescription { fingerprint, title, error_type, message, culprit }
    }

    fn example() -> ErrorDescription {
        described([
            "TypeError",
            "Cannot read property \"name\" of undefined (reading 'x')",
            "TypeError: Cannot read property",
            "Rack::Timeout in app/cart.js --retry",
        ])
    }

    fn query(text: &str) -> SearchQuery {
        SearchQuery::parse(text).unwrap()
    }

    fn event(values: &[(&str, &str)]) -> Attributes {
        let mut attributes = Attributes::default();
        for (name, value) in values {
            attributes.set(Attribute::named(name).unwrap(), Some((*value).to_owned()));
        }
        attributes
    }

    /// `true` if a search matches [`example`] and an event with these attributes.
    fn finds(text: &str, values: &[(&str, &str)]) -> bool {
        let query = query(text);
        query.matches(&example()) && query.event_filters().matches(&event(values))
    }

    #[test]
    fn keys_of_the_projects_tags_are_keys_of_terms() {
        let tenant = TagKey::parse("tenant").unwrap();
        let of_tenant = |text: &str, tags: &[TagKey], tenant_of_event: &str| {
            let query = query(text).with_tags(tags);
            let mut attributes = event(&[("browser", "Chrome")]);
            attributes.set_tag(tenant, tenant_of_event.to_owned());
            query.matches(&example()) && query.event_filters().matches(&attributes)
        };
        for (text, found, found_otherwise) in [
            ("tenant:acme", true, false),
            ("tenant:\"acme\" typeerror browser:Chrome", true, false),
            ("!tenant:acme", false, true),
            ("tags.tenant:[acme,b]", true, false),
            ("tenant:\"\"", false, false),
        ] {
            assert_eq!(of_tenant(text, &[tenant], "acme"), found, "{text}");
            assert_eq!(of_tenant(text, &[tenant], "umbrella"), found_otherwise, "{text}");
        }
        assert!(of_tenant("tenant:\"\"", &[tenant], ""));
        // Without such a tag, the term is a word.
        assert!(!of_tenant("tenant:acme", &[], "acme") && of_tenant("-tenant:acme", &[], "acme"));
        assert!(query("x tenant:acme").names_tags());
        for text in ["tenant", "browser:Chrome", "\"a tenant:acme\"", "TypeError : x"] {
            assert!(!query(text).names_tags(), "{text}");
        }
    }

    #[test]
    fn all_words_must_be_in_the_error() {
        for (text, found) in [
            ("", true),
            (" \t\n ", true),
            ("typeerror", true),
            ("TYPEerr", true),
            ("cart.js undefined", true),
            ("cart.js defined-not", false),
            ("missing", false),
            ("property cart.js timeout", true),
        ] {
            assert_eq!(finds(text, &[]), found, "{text:?}");
        }
    }

    #[test]
    fn words_match_type_message_title_and_culprit() {
        let needle = query("needle");
        assert!(!needle.matches(&described([""; 4])));
        for place in 0..4 {
            let mut texts = [""; 4];
            texts[place] = "aNeedleb";
            assert!(needle.matches(&described(texts)), "{texts:?}");
        }
        // A word must be within one text.
        assert!(!needle.matches(&described(["nee", "dle", "", ""])));
    }

    #[test]
    fn phrases_match_as_a_whole() {
        assert!(finds("\"read property\"", &[]));
        assert!(!finds("\"property read\"", &[]));
        assert!(finds("\"cannot READ\" undefined", &[]));
        assert!(query("\"browser:Chrome\"").event_filters().is_empty());
        assert!(finds("\"typeerror: \"cannot", &[]));
    }

    #[test]
    fn unbalanced_quotes_are_literal() {
        assert!(finds("\"name", &[]));
        assert!(finds("property \"name", &[]));
        assert!(!finds("\"cannot read", &[]));
        assert!(finds("\"", &[]));
        assert!(!finds("\"\"", &[]));
        // A minus still negates the word.
        assert!(!finds("-\"name", &[]));
        assert!(finds("-\"missing", &[]));
    }

    #[test]
    fn minus_excludes_errors_with_the_word() {
        for (text, found) in [
            ("-missing", true),
            ("-TypeError", false),
            ("typeerror -cart.js", false),
            ("-\"property read\"", true),
            ("-\"read property\"", false),
            ("-", true),
            ("--retry", true),
            ("--missing", false),
            ("-browser:Chrome", true),
        ] {
            assert_eq!(finds(text, &[("browser", "Firefox")]), found, "{text:?}");
        }
        assert!(query("-browser:Chrome").event_filters().is_empty());
    }

    #[test]
    fn known_keys_filter_events() {
        let chrome = [("browser", "Chrome"), ("release", "app@2.0")];
        for (text, found) in [
            ("browser:Chrome", true),
            ("browser:chrome", false),
            ("browser:Firefox", false),
            ("!browser:Chrome", false),
            ("!browser:Firefox", true),
            ("!os:Windows", true),
            ("os:Windows", false),
            ("browser:[Firefox,Chrome]", true),
            ("browser:[ Firefox , Chrome ] typeerror", true),
            ("browser:[Firefox,Safari]", false),
            ("!browser:[Firefox,Chrome]", false),
            ("!browser:[Firefox,Safari]", true),
            ("browser:\"Chrome\"", true),
            ("browser:[\"Chrome\"]", true),
            ("release:app@2.0 browser:Chrome property", true),
            ("release:app@2.0 browser:Chrome missing", false),
            ("os:\"\"", true),
            ("!os:\"\"", false),
            ("browser:\"\"", false),
            ("!browser:\"\"", true),
        ] {
            assert_eq!(finds(text, &chrome), found, "{text:?}");
        }
    }

    #[test]
    fn quoted_values_can_contain_spaces_commas_and_brackets() {
        let mobile = [("browser", "Chrome Mobile"), ("transaction", "a, b]")];
        assert!(finds("browser:\"Chrome Mobile\"", &mobile));
        assert!(!finds("browser:Chrome Mobile", &mobile));
        assert!(finds("transaction:[x, \"a, b]\"]", &mobile));
        assert!(finds("browser:[Chrome Mobile,Edge]", &mobile));
    }

    #[test]
    fn terms_with_one_key_must_all_hold() {
        let chrome = [("browser", "Chrome")];
        assert!(!finds("browser:Chrome browser:Firefox", &chrome));
        assert!(finds("browser:Chrome !browser:Firefox", &chrome));
    }

    #[test]
    fn other_terms_with_a_colon_are_text() {
        for text in [
            "TypeError: Cannot read property \"name\" of undefined (reading 'x')",
            "Rack::Timeout",
            "unknown:value",
            "browser: Chrome",
            "browser:",
            "!browser:",
            "Browser:Chrome",
            "is:open",
            "http://example.org/a:b",
            ":x",
            "!word",
            "user:42",
            "uri:\"x y\"",
        ] {
            assert!(query(text).event_filters().is_empty(), "{text:?}");
            assert!(!query(text).matches_every_error(), "{text:?}");
        }
        assert!(finds("TypeError: Cannot read property \"name\" of undefined (reading 'x')", &[]));
        assert!(finds("rack::timeout", &[]));
        assert!(!finds("is:open", &[]));
    }

    #[test]
    fn unclosed_lists_and_quotes_are_plain_values() {
        assert!(finds("transaction:[id]/edit", &[("transaction", "[id]/edit")]));
        assert!(finds("transaction:[a", &[("transaction", "[a")]));
        assert!(finds("transaction:\"a", &[("transaction", "\"a")]));
        assert!(finds("transaction:\"a\"b", &[("transaction", "\"a\"b")]));
        assert!(finds("transaction:[]", &[("transaction", "[]")]));
        assert!(finds("transaction:[a,]", &[("transaction", "[a,]")]));
    }

    #[test]
    fn searches_have_at_most_1024_characters() {
        assert!(SearchQuery::parse(&"é".repeat(MAX_SEARCH_CHARACTERS)).is_ok());
        let fault = SearchQuery::parse(&"é".repeat(MAX_SEARCH_CHARACTERS + 1)).unwrap_err();
        assert_eq!(fault.code, ViolationCode::TooLong);
    }

    proptest! {
        #[test]
        fn every_text_is_valid(text in "([-!\":,\\[\\] a]|browser|os|é|\\PC){0,60}") {
            prop_assert!(SearchQuery::parse(&text).is_ok());
        }

        #[test]
        fn plain_words_are_searched_separately(words in proptest::collection::vec("[a-z.]{1,6}", 0..6)) {
            let (text, error) = (words.join(" "), example());
            let all_there = words.iter().all(|word| {
                [&error.error_type, &error.message, &error.title, &error.culprit]
                    .iter()
                    .any(|text| text.to_lowercase().contains(word))
            });
            prop_assert_eq!(query(&text).matches(&example()), all_there);
        }
    }
}
