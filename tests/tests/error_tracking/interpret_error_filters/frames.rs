//! Whatever value stands in a frame, its polarity is that of the frame.

use ::interpret_error_filters::interpretation::{
    Category, Filter, Kind, Operator, Request, interpret,
};

/// Frames that exclude: `-` is a value that is not to be seen, `+` one that is.
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

/// Frames for numbers, `+` wanted and `-` denied.
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

/// Values of all kinds, those among them that look like cues.
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

/// The frame with values of a category in it, and what it means.
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

/// What is read otherwise than the frames say.
fn misread(frames: &[&str], values: &[(&str, &[&str])]) -> Vec<String> {
    let mut wrong = Vec::new();
    for frame in frames {
        for &(id, values) in values {
            for first in 0..values.len() {
                let (query, expected) = filled(frame, id, values, first);
                let answer = interpret(&request(query.clone())).filters;
                if answer.len() != expected.len()
                    || !answer.iter().all(|filter| expected.contains(filter))
                {
                    let answer: Vec<String> =
                        answer.iter().map(|it| format!("{} {}", it.operator, it.value)).collect();
                    wrong.push(format!("{query}: {answer:?}"));
                }
            }
        }
    }
    wrong
}

#[test]
fn what_is_excluded_is_denied() {
    let wrong = misread(EXCLUDING, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn what_is_included_is_not_denied() {
    let wrong = misread(INCLUDING, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn a_list_of_numbers_is_denied_as_a_whole() {
    let wrong = misread(NUMBERS, &[(NUMERIC, &["3", "503", "1200", "17"])]);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

/// Frames in which a cue stands behind a list, denies an edit, or stands within another denial.
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

/// Frames with a value `?` of which nobody can tell whether it is denied: it is left out.
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
fn what_a_far_or_denied_cue_means_is_told() {
    let wrong = misread(FAR, &VALUES);
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

#[test]
fn what_nobody_can_tell_is_left_out() {
    let (id, values) = VALUES[0];
    for frame in UNCLEAR {
        let (query, expected) = filled(&frame.replace('?', "Safari"), id, values, 0);
        assert_eq!(interpret(&request(query.clone())).filters, expected, "{query}");
    }
}
