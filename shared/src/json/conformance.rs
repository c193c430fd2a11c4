//! Documents from a public test suite for JSON parsers: `JSONTestSuite` (MIT). Its source is in
//! `tests/conformance/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Json, MAX_BODY_DEPTH};

/// Accepted documents that RFC 8259 leaves open: numbers of any size, which are kept as written.
const ACCEPTED: [&str; 10] = [
    "i_number_double_huge_neg_exp.json",
    "i_number_huge_exp.json",
    "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json",
    "i_number_real_neg_overflow.json",
    "i_number_real_pos_overflow.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
];

fn is_accepted(document: &[u8]) -> bool {
    let text = std::str::from_utf8(document).ok();
    text.is_some_and(|text| Json::parse(text, MAX_BODY_DEPTH).is_ok())
}

#[test]
fn only_json_is_accepted() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/json/test_parsing");
    let mut wrong = Vec::new();
    let (mut documents, mut open) = (0, BTreeSet::new());
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let accepted = is_accepted(&fs::read(entry.path()).unwrap());
        documents += 1;
        match name.split('_').next() {
            Some("y") if !accepted => wrong.push(name),
            Some("n") if accepted => wrong.push(name),
            Some("i") if accepted => {
                open.insert(name);
            }
            _ => {}
        }
    }
    assert_eq!((documents, wrong), (318, Vec::<String>::new()));
    assert_eq!(open.iter().map(String::as_str).collect::<Vec<_>>(), ACCEPTED);
}
