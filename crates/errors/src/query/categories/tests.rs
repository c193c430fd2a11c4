use super::*;

#[test]
fn longest_lists_are_cut_until_all_fit() {
    let lists = |lengths: &[usize], bytes| -> Vec<Vec<usize>> {
        lengths.iter().map(|length| vec![bytes; *length]).collect()
    };
    assert_eq!(most_of_each(&lists(&[200; 10], 3)), 200);
    assert_eq!(most_of_each(&lists(&[200; 13], 3)), 153);
    let nearly = [200, 200, 200, 200, 200, 200, 200, 200, 200, 199, 2];
    assert_eq!(most_of_each(&lists(&nearly, 3)), 199);
    assert_eq!(most_of_each(&[]), MAX_VALUES);
    assert_eq!(most_of_each(&lists(&[200; 10], 1_024)), 20, "200 kB");
}

#[test]
fn json_bytes_cover_every_escape() {
    for text in ["", "a b", "\"\\", "\u{1}\n", "prod-é", "\u{1f600}"] {
        let escaped: String = text
            .encode_utf16()
            .map(|unit| match u8::try_from(unit).map(char::from) {
                Ok(c @ ('"' | '\\')) => format!("\\{c}"),
                Ok(c @ ' '..='~') => c.to_string(),
                _ => format!("\\u{unit:04x}"),
            })
            .collect();
        assert_eq!(serde_json::from_str::<String>(&format!("\"{escaped}\"")).unwrap(), text);
        assert_eq!(json_bytes(text), escaped.len() + r#""","#.len(), "{text}");
    }
}

#[test]
fn most_frequent_values_are_kept() {
    let mut counts = ValueCounts::new(&[]);
    for counts in &mut counts.counts {
        for number in 0..300_u64 {
            counts.add(&format!("{number:03}"), number / 2);
        }
    }
    let categories = counts.into_categories();
    assert_eq!(categories.len(), Attribute::texts().count());
    let together: usize = categories.iter().map(|category| category.values.len()).sum();
    assert!((MAX_VALUES_TOGETHER - Attribute::ALL.len()..=MAX_VALUES_TOGETHER).contains(&together));
    for category in categories {
        let expected: &[&str] = if category.id == "url" { &[] } else { &["298", "299", "296"] };
        assert_eq!(category.values.get(..3).unwrap_or_default(), expected);
        assert_eq!(category.is_boolean, matches!(category.id.as_ref(), "handled" | "bot"));
    }
}

#[test]
fn invented_values_do_not_displace_frequent_ones() {
    let mut frequencies = Frequencies::default();
    for number in 0..5 * MAX_COUNTED {
        frequencies.add(&number.to_string(), 1);
        frequencies.add("frequent", 1);
        assert!(frequencies.0.len() <= MAX_COUNTED);
    }
    let first = most_frequent(frequencies.0).next();
    assert_eq!(first, Some(("frequent".into(), 5 * MAX_COUNTED as u64)));
}
