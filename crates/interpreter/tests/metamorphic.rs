//! Changes of a query or a request with a known effect on the filters, at random over the schemas
//! of all test queries. `INTERPRETER_CASES=10000` runs the full count of each test.
#![allow(clippy::unwrap_used)]

mod queries;

use std::collections::HashSet;
use std::env;

use interpreter::{Category, Filter, Kind, Operator, Request, interpret};
use queries::requests;

/// A sequence of random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap() % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns an invented word, which resembles no word of the schemas.
    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 8] =
            ["zquv", "wumbj", "xilq", "vrozz", "jipf", "kwux", "quzg", "fjav"];
        (0..3).map(|_| *self.of(&SYLLABLES)).collect()
    }
}

fn schemas() -> Vec<Vec<Category>> {
    let mut known: Vec<Vec<Category>> = Vec::new();
    for request in requests() {
        if !known.contains(&request.categories) {
            known.push(request.categories);
        }
    }
    known
}

fn filters(categories: &[Category], query: &str, current: &[Filter]) -> HashSet<Filter> {
    let categories = categories.to_vec();
    let request = Request { query: query.into(), categories, current_filters: current.to_vec() };
    interpret(&request).filters.into_iter().collect()
}

/// Runs a test for many random numbers. Prints the first violations.
fn check(test: impl Fn(&mut Random) -> Result<(), String>) {
    let cases = env::var("INTERPRETER_CASES").map_or(200, |count| count.parse().unwrap());
    let mut violations = Vec::new();
    for seed in 0..cases {
        if let Err(violation) = test(&mut Random(seed)) {
            violations.push(format!("{seed}: {violation}"));
        }
    }
    let shown = &violations[..violations.len().min(40)];
    assert!(violations.is_empty(), "{} violations: {shown:#?}", violations.len());
}

/// A clause that states one or two values of one category.
#[derive(Clone)]
struct Clause {
    id: String,
    label: String,
    values: Vec<String>,
    array: bool,
    form: usize,
    denied: bool,
}

impl Clause {
    fn query(&self) -> String {
        let values = self.values.join(" or ");
        let label = &self.label;
        match (self.form, self.denied) {
            (0, false) => values,
            (0, true) => format!("not {values}"),
            (1, false) => format!("{label} {values}"),
            (1, true) => format!("{label} not {values}"),
            (_, false) => format!("{label} is {values}"),
            (_, true) => format!("{label} is not {values}"),
        }
    }

    fn filters(&self) -> impl Iterator<Item = Filter> {
        let operator = if self.array { Operator::Contains } else { Operator::Is };
        let operator = if self.denied { operator.negated() } else { operator };
        let filter = move |value: &String| Filter {
            category_id: self.id.clone(),
            operator,
            value: value.clone(),
        };
        self.values.iter().map(filter)
    }
}

fn query(clauses: &[Clause]) -> String {
    clauses.iter().map(Clause::query).collect::<Vec<_>>().join(", ")
}

fn expected(clauses: &[Clause]) -> HashSet<Filter> {
    clauses.iter().flat_map(Clause::filters).collect()
}

/// Returns clauses of different categories. Each is read as stated when it is alone.
fn clauses(random: &mut Random, categories: &[Category]) -> Vec<Clause> {
    let closed: Vec<&Category> = categories.iter().filter(|it| !it.values.is_empty()).collect();
    let mut found: Vec<Clause> = Vec::new();
    for _ in 0..8 {
        if closed.is_empty() || found.len() == 3 {
            break;
        }
        let category = *random.of(&closed);
        let mut values = vec![random.of(&category.values).clone()];
        let second = random.of(&category.values).clone();
        if random.below(3) == 0 && second != values[0] {
            values.push(second);
        }
        let clause = Clause {
            id: category.id.clone(),
            label: category.label.to_lowercase(),
            values,
            array: category.kind == Kind::Array,
            form: random.below(3),
            denied: false,
        };
        // A value of several categories belongs to the one whose label is named.
        let owners =
            |value: &String| categories.iter().filter(|it| it.values.contains(value)).count();
        if clause.form == 0 && clause.values.iter().any(|value| owners(value) > 1) {
            continue;
        }
        let denied = Clause { denied: true, ..clause.clone() };
        let fits = |it: &Clause| {
            filters(categories, &it.query(), &[]) == expected(std::slice::from_ref(it))
        };
        if found.iter().all(|it| it.id != clause.id) && fits(&clause) && fits(&denied) {
            found.push(clause);
        }
    }
    found
}

/// Returns invented categories with as many values as these.
fn renamed(random: &mut Random, categories: &[Category]) -> Vec<Category> {
    let mut known = HashSet::new();
    let mut word = || loop {
        let word = random.word();
        if known.insert(word.clone()) {
            return word;
        }
    };
    let rename = |category: &Category| Category {
        id: word(),
        label: word(),
        values: category.values.iter().map(|_| word()).collect(),
        kind: category.kind,
    };
    categories.iter().map(rename).collect()
}

#[test]
fn a_negator_flips_exactly_the_governed_conditions() {
    let schemas = schemas();
    check(|random| {
        let categories = random.of(&schemas);
        let mut said = clauses(random, categories);
        for denied in 0..said.len() {
            // Once with the negator, and once after it is removed.
            for negator in [true, false] {
                said[denied].denied = negator;
                let (query, expected) = (query(&said), expected(&said));
                let found = filters(categories, &query, &[]);
                if found != expected {
                    return Err(format!("{query:?}: {found:?}"));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn independent_clauses_can_be_permuted() {
    let schemas = schemas();
    check(|random| {
        let categories = random.of(&schemas);
        let mut said = clauses(random, categories);
        for clause in &mut said {
            clause.denied = random.below(2) == 0;
        }
        let first = filters(categories, &query(&said), &[]);
        let turns = random.below(said.len() + 1);
        said.rotate_left(turns);
        if random.below(2) == 0 {
            said.reverse();
        }
        let query = query(&said);
        let found = filters(categories, &query, &[]);
        (found == first).then_some(()).ok_or_else(|| format!("{query:?}: {found:?}"))
    });
}

#[test]
fn renamed_names_rename_the_filters() {
    let schemas = schemas();
    check(|random| {
        let categories = random.of(&schemas);
        let others = renamed(random, categories);
        let mut said = clauses(random, categories);
        for clause in &mut said {
            clause.denied = random.below(2) == 0;
        }
        for clause in &mut said {
            let at = categories.iter().position(|it| it.id == clause.id).unwrap();
            for value in &mut clause.values {
                let index = categories[at].values.iter().position(|it| it == value).unwrap();
                value.clone_from(&others[at].values[index]);
            }
            (clause.id, clause.label) = (others[at].id.clone(), others[at].label.clone());
        }
        let query = query(&said);
        let found = filters(&others, &query, &[]);
        (found == expected(&said)).then_some(()).ok_or_else(|| format!("{query:?}: {found:?}"))
    });
}

#[test]
fn an_unrelated_category_changes_nothing() {
    let requests = requests();
    check(|random| {
        let request = random.of(&requests);
        let before = interpret(request).filters;
        let mut other = request.clone();
        let like = random.of(&request.categories).clone();
        // A second number or text would make some queries ambiguous.
        let kind = if like.values.is_empty() { Kind::Text } else { like.kind };
        let values = (0..=like.values.len()).map(|_| random.word()).collect();
        let extra = Category { id: random.word(), label: random.word(), values, kind };
        let at = random.below(other.categories.len() + 1);
        other.categories.insert(at, extra);
        let after = interpret(&other).filters;
        (after == before).then_some(()).ok_or_else(|| format!("{:?}: {after:?}", request.query))
    });
}

#[test]
fn unknown_words_change_nothing() {
    const BETWEEN: [&str; 10] =
        ["the", "not", "and", "or", "with", "in", ",", "is", "except", "no"];
    let requests = requests();
    check(|random| {
        let request = random.of(&requests);
        let words = (0..=random.below(6)).map(|_| match random.below(3) {
            0 => format!("{} {}", random.of(&BETWEEN), random.word()),
            _ => random.word(),
        });
        let query = words.collect::<Vec<_>>().join(" ");
        let found = interpret(&Request { query: query.clone(), ..request.clone() }).filters;
        (found == request.current_filters)
            .then_some(())
            .ok_or_else(|| format!("{query:?}: {found:?}"))
    });
}
