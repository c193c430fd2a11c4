//! Frames of queries: every value in a frame has the frame's polarity.

use interpreter::{Category, Filter, Kind, Operator, Request, interpret};

/// Frames that exclude: `-` is an excluded value, `+` a wanted one.
const EXCLUDING: &[&str] = &[
    "not -",
    "no -",
    "without -",
    "except -",
    "excluding -",
    "exlcuding -",
    "everything but -",
    "all but -, - and -",
    "anything other than -",
    "everything other than - or -",
    "apart from -",
    "apart from those that are - or -",
    "apart from what is - or -",
    "aside from - and -",
    "aside from - or -",
    "all of it minus -",
    "outside of -",
    "bar -",
    "sans -",
    "hide -",
    "hide - and -",
    "skip -, - and -",
    "ignore -",
    "drop -",
    "drop - and -",
    "forget - or -",
    "leave out -",
    "leave - out",
    "leave - and - out",
    "filter out - and -",
    "get rid of -",
    "isn't -",
    "those that aren't - or -",
    "never -",
    "never - or -",
    "- excluded",
    "- is out",
    "- are out, and so are -",
    "- doesn't count",
    "- and - don't count",
    "neither - nor -",
    "neither -, - nor -",
    "neither - or -",
    "not - or -",
    "not -, - or -",
    "not - nor -",
    "no - and no -",
    "no - or -",
    "not -, not -",
    "exclude -, -",
    "excluding both - and -",
    "exclude - as well as -",
    "don't show me -",
    "i don't want to see - or -",
    "rule out - and -",
    "with the exception of - and -",
    "save for -",
    "- should be excluded",
    "anything that is not - or -",
    "+ but not -",
    "+, + but not - or -",
    "+ and + but no -",
    "i am not interested in - or -",
    "everything except for - and also -",
    "+, except -",
    "must not be - or -",
];

const INCLUDING: &[&str] = &[
    "+",
    "only +",
    "just +",
    "nothing but +",
    "nothing but + and +",
    "nobody but +",
    "won't look at anything but +",
    "no one except +",
    "no one except + or +",
    "not just +",
    "not only + but also +",
    "+, no exceptions",
    "show me +",
    "errors that are +",
    "+ or +",
    "+ and +",
    "+, + and +",
    "either + or +",
    "both + and +",
    "+ as well as +",
    "limited to +",
    "nothing except +",
    "nothing other than + and +",
    "don't show me anything but +",
    "i want nothing else than +",
    "no idea why, +",
    "why does + not work",
    "no, +",
    "whatever happens, +",
    "include +",
    "no wait, +",
    "never mind, +",
    "+ and nothing else",
    "+ only",
    "+ only, please",
    "not -, only +",
    "not - but +",
    "no -, just +",
    "exclude -, show +",
    "hide - and show +",
    "drop -, keep +",
    "without -, but with +",
    "ignore -. only +",
    "+ matters, - doesn't",
];

/// Frames for numbers: `+` is a wanted number, `-` an excluded one.
const NUMBERS: &[&str] = &[
    "users other than -",
    "users other than - and -",
    "users other than -, - and -",
    "users not - or -",
    "users is not -, - or -",
    "not - users",
    "users except -, -",
    "users excluding - and -",
    "users apart from -, - or -",
    "everything but - and - users",
    "neither - nor - users",
    "users are not - and not -",
    "+ users",
    "+ or + users",
    "users is +, + or +",
    "users + and +",
];

/// Frames that exclude a text or a number, `*`.
const EXCLUDING_STATEMENTS: &[&str] = &[
    "exclude *",
    "excluding *",
    "hide *",
    "hide what has *",
    "hide everything with *",
    "skip *",
    "ignore *",
    "leave out *",
    "leave * out",
    "filter out *",
    "drop *",
    "without *",
    "except *",
    "everything but *",
    "everything except *",
    "anything other than *",
    "apart from *",
    "aside from *",
    "nothing with *",
    "no errors with *",
    "don't show me *",
    "don't show me anything with *",
    "i don't want to see *",
    "i am not interested in *",
    "* excluded",
    "* is out",
    "* doesn't count",
    "* should be excluded",
];

/// Frames that include a text or a number, `*`.
const INCLUDING_STATEMENTS: &[&str] = &[
    "*",
    "only *",
    "just *",
    "show me *",
    "errors with *",
    "nothing but *",
    "no one except *",
    "not just *",
    "don't show me anything but *",
    "whatever happens, *",
    "no, *",
    "no wait, *",
    "* only",
    "*, no exceptions",
    "* and nothing else",
    "hide Chrome, show *",
];

/// Texts and numbers, their filters if they are wanted, and their filters if they are excluded.
/// Empty if no filter can express that.
const STATEMENTS: &[(&str, &str, &str)] = &[
    ("over 10 users", "users gt 10", "users lte 10"),
    ("users over 10", "users gt 10", "users lte 10"),
    ("at least 10 users", "users gte 10", "users lt 10"),
    ("fewer than 10 users", "users lt 10", "users gte 10"),
    ("up to 10 users", "users lte 10", "users gt 10"),
    ("between 5 and 10 users", "users gte 5; users lte 10", ""),
    ("5-10 users", "users gte 5; users lte 10", ""),
    ("http status 5xx", "http gte 500; http lte 599", ""),
    ("http status 404 or 500", "http is 404; http is 500", "http is_not 404; http is_not 500"),
    ("/cart", "url contains /cart", "url not_contains /cart"),
    ("/a or /b", "url contains /a; url contains /b", "url not_contains /a; url not_contains /b"),
    ("jo@example.com", "mail contains jo@example.com", "mail not_contains jo@example.com"),
    (
        "jo@example.com and al@example.com",
        "mail contains jo@example.com; mail contains al@example.com",
        "mail not_contains jo@example.com; mail not_contains al@example.com",
    ),
    ("\"timed out\"", "message contains timed out", "message not_contains timed out"),
    (
        "\"timed out\" or \"refused\"",
        "message contains timed out; message contains refused",
        "message not_contains timed out; message not_contains refused",
    ),
];

/// Values of several kinds. Some look like cues.
const VALUES: [(&str, &[&str]); 5] = [
    ("browser", &["Chrome", "Firefox", "Safari", "Edge"]),
    ("region", &["eu-west-1", "ap-south-1", "us-east-1", "sa-east-1"]),
    ("state", &["paused", "in maintenance", "muted", "snoozed"]),
    ("severity", &["non-fatal", "not_applicable", "unresolved", "ignored"]),
    ("owner", &["Priya Nair", "Tom Reed", "Ana Lopez", "Wei Zhang"]),
];

const NUMERIC: &str = "users";

fn request(query: String) -> Request {
    let numeric = Category {
        id: NUMERIC.to_owned(),
        label: "Users".to_owned(),
        values: Vec::new(),
        kind: Kind::Numeric,
    };
    let category = |&(id, values): &(&str, &[&str])| Category {
        id: id.to_owned(),
        label: id.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        kind: Kind::Text,
    };
    let categories = VALUES.iter().map(category).chain([numeric]).collect();
    Request { query, categories, current_filters: Vec::new() }
}

/// Returns a frame filled with values of a category, and the expected filters.
fn filled(frame: &str, id: &str, values: &[&str], first: usize) -> (String, Vec<Filter>) {
    let mut expected = Vec::new();
    let mut query = String::new();
    for character in frame.chars() {
        let operator = match character {
            '+' => Operator::Is,
            '-' => Operator::IsNot,
            other => {
                query.push(other);
                continue;
            }
        };
        let value = values[(first + expected.len()) % values.len()].to_owned();
        query.push_str(&value);
        expected.push(Filter { category_id: id.to_owned(), operator, value });
    }
    (query, expected)
}

/// Returns the queries that are not read as their frames say.
fn misread(frames: &[&str], values: &[(&str, &[&str])]) -> Vec<String> {
    let mut wrong = Vec::new();
    for frame in frames {
        for &(id, values) in values {
            for first in 0..values.len() {
                let (query, expected) = filled(frame, id, values, first);
                let filters = interpret(&request(query.clone())).filters;
                if filters.len() != expected.len()
                    || !filters.iter().all(|filter| expected.contains(filter))
                {
                    let filters: Vec<String> =
                        filters.iter().map(|it| format!("{} {}", it.operator, it.value)).collect();
                    wrong.push(format!("{query}: {filters:?}"));
                }
            }
        }
    }
    wrong
}

/// Returns the queries of frames, filled with each text and number, that are not read as expected.
fn misread_statements(frames: &[&str], denied: bool) -> Vec<String> {
    let category = |&(id, label, kind): &(&str, &str, Kind)| {
        let values = if id == "browser" { vec!["Chrome".to_owned()] } else { Vec::new() };
        Category { id: id.to_owned(), label: label.to_owned(), values, kind }
    };
    let categories: Vec<Category> = [
        ("browser", "Browser", Kind::Text),
        ("users", "Users", Kind::Numeric),
        ("http", "HTTP status", Kind::Numeric),
        ("url", "URL", Kind::Text),
        ("mail", "E-mail", Kind::Text),
        ("message", "Message", Kind::Text),
    ]
    .iter()
    .map(category)
    .collect();
    let mut wrong = Vec::new();
    for frame in frames {
        for &(said, wanted, unwanted) in STATEMENTS {
            let query = frame.replace('*', said);
            let (categories, current_filters) = (categories.clone(), Vec::new());
            let interpretation =
                interpret(&Request { query: query.clone(), categories, current_filters });
            let text = |it: &Filter| format!("{} {} {}", it.category_id, it.operator, it.value);
            let mut read: Vec<String> = interpretation.filters.iter().map(text).collect();
            read.retain(|filter| filter != "browser is_not Chrome");
            let expected = if denied { unwanted } else { wanted };
            if read.join("; ") != expected {
                wrong.push(format!("{query}: {read:?}"));
            }
            if read.is_empty() && interpretation.ignored.is_empty() {
                wrong.push(format!("{query}: no ignored words"));
            }
        }
    }
    wrong
}

#[test]
fn excluded_texts_and_numbers_are_negated() {
    let wrong = misread_statements(EXCLUDING_STATEMENTS, true);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn included_texts_and_numbers_are_not_negated() {
    let wrong = misread_statements(INCLUDING_STATEMENTS, false);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn excluded_values_are_negated() {
    let wrong = misread(EXCLUDING, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn included_values_are_not_negated() {
    let wrong = misread(INCLUDING, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn number_lists_are_negated_as_a_whole() {
    let wrong = misread(NUMBERS, &[(NUMERIC, &["3", "503", "1200", "17"])]);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

/// Frames in which a cue follows a list, negates an edit, or is within another negation.
const FAR: &[&str] = &[
    "-, - and - are excluded",
    "-, - and - are out",
    "-, -, and - excluded",
    "-, - or - don't count",
    "+ and +, - excluded",
    "don't forget +",
    "please do not drop +",
    "never remove +",
    "don't take + out",
    "don't start over, just add +",
    "- can be excluded",
    "- may be skipped",
    "- must be hidden",
    "- to be left out",
    "- skipped",
    "- should not appear",
    "- and - must not be included",
    "- isn't what i need",
    "- i don't want",
    "- are not interesting, neither are -",
    "- excepted",
    "-? no thanks",
    "is it -? no",
    "- shouldn't be shown",
    "- and - aren't relevant",
    "people who don't use -",
    "exclude non +",
    "hide everything but +",
    "exclude everything except + and +",
    "filter out everything that isn't +",
    "don't show non +",
    "not without +",
    "hide what isn't + or +",
    "nothing that is not +",
    "exclude devices without +",
    "no not -",
    "i do not want + and + excluded",
    "not -, + instead",
    "not -; + instead",
    "no -, + and + instead",
    "without -, rather +",
    "- is out, as is -",
    "- is excluded, as are - and -",
    "- is out, same with -",
];

/// Frames with an ambiguous value `?`, which is left out.
const UNCLEAR: &[&str] = &[
    "?, - excluded",
    "?, - don't count",
    "not -; ?",
    "exclude - but not ?",
    "hide not ?",
    "? is nothing i want, not -",
    "not -, don't switch to ?",
];

#[test]
fn distant_and_nested_cues_are_read() {
    let wrong = misread(FAR, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn ambiguous_values_are_left_out() {
    let (id, values) = VALUES[0];
    for frame in UNCLEAR {
        let (query, expected) = filled(&frame.replace('?', "Safari"), id, values, 0);
        assert_eq!(interpret(&request(query.clone())).filters, expected, "{query}");
    }
}
