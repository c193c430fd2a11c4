use super::*;

#[test]
fn the_longest_lists_are_cut_until_all_fit_together() {
    assert_eq!(most_of_each(&[200; 10]), 200);
    assert_eq!(most_of_each(&[200; 13]), 153);
    assert_eq!(most_of_each(&[200, 200, 200, 200, 200, 200, 200, 200, 200, 199, 2]), 199);
    assert_eq!(most_of_each(&[]), MAX_VALUES);
}

#[test]
fn the_most_frequent_values_are_kept() {
    let mut counts = ValueCounts::default();
    for (_, counts) in counts.of_categories() {
        for number in 0..300_u64 {
            counts.add(&format!("{number:03}"), number / 2);
        }
    }
    let categories = counts.into_categories();
    assert_eq!(categories.len(), Attribute::ALL.len());
    let together: usize = categories.iter().map(|category| category.values.len()).sum();
    assert!((MAX_VALUES_TOGETHER - LISTED.len()..=MAX_VALUES_TOGETHER).contains(&together));
    for category in categories {
        let expected: &[&str] = if category.id == "url" { &[] } else { &["298", "299", "296"] };
        assert_eq!(category.values.get(..3).unwrap_or_default(), expected);
        assert_eq!(category.is_boolean, matches!(category.id, "handled" | "bot"));
    }
}

#[test]
fn values_that_are_made_up_do_not_push_out_those_that_are_frequent() {
    let mut frequencies = Frequencies::default();
    for number in 0..5 * MAX_COUNTED {
        frequencies.add(&number.to_string(), 1);
        frequencies.add("frequent", 1);
        assert!(frequencies.0.len() <= MAX_COUNTED);
    }
    let first = most_frequent(frequencies.0).next();
    assert_eq!(first, Some(("frequent".into(), 5 * MAX_COUNTED as u64)));
}
