use proptest::prelude::*;

use shared::timestamp::Timestamp;

use super::*;
use crate::attribute::user_hash;

fn day() -> Day {
    Day::of(Timestamp::parse_date_or_date_time("2028-02-29").unwrap())
}

fn row_strategy() -> impl Strategy<Value = EventRow> {
    let values =
        prop_oneof![3 => Just(None), 5 => "[a-c]".prop_map(Some), 1 => "\\PC{1,40}".prop_map(Some)];
    let attributes = proptest::collection::vec(values, Attribute::texts().count());
    let user = prop_oneof![Just(String::new()), "[a-c]", "[a-z]{9}"];
    let tags = proptest::collection::btree_map("(tenant|plan|zone)", "[a-c]", 0..3);
    let row = (0_i64..86_400_000, 0_u8..5, attributes, user, tags);
    row.prop_map(|(millis, fingerprint, values, user, tags)| {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::User, user_hash(&user));
        for (attribute, value) in Attribute::texts().zip(values) {
            attributes.set(attribute, value);
        }
        for (key, value) in tags {
            attributes.set_tag(TagKey::parse(&key).unwrap(), value);
        }
        EventRow {
            occurred_at: Timestamp::from_millis(day().start().as_millis() + millis),
            fingerprint: Fingerprint([fingerprint; 16]),
            attributes,
        }
    })
}

fn rows() -> impl Strategy<Value = Vec<EventRow>> {
    proptest::collection::vec(row_strategy(), 0..60)
}

/// Returns rows as a run keeps them: at the start of their minute, in a fixed order.
fn normalized(mut rows: Vec<EventRow>) -> Vec<EventRow> {
    for row in &mut rows {
        row.occurred_at = start_of_minute(minute_of(row.occurred_at));
    }
    rows.sort_by(|a, b| {
        let key = |row: &EventRow| (row.fingerprint, row.occurred_at, row.attributes.clone());
        key(a).cmp(&key(b))
    });
    rows
}

/// Returns `count` rows with distinct values of the attribute `transaction`.
fn rows_with_values(count: usize) -> Vec<EventRow> {
    let row = |index: usize| {
        let mut attributes = Attributes::default();
        attributes.set(Attribute::Transaction, Some(format!("/{index}")));
        EventRow { occurred_at: day().start(), fingerprint: Fingerprint([7; 16]), attributes }
    };
    (0..count).map(row).collect()
}

fn example() -> Columns {
    let mut rows = rows_with_values(300);
    for (index, row) in (0..=u8::MAX).cycle().zip(&mut rows) {
        row.occurred_at = start_of_minute(day().first_minute() + i64::from(index) * 5);
        row.fingerprint = Fingerprint([index % 7; 16]);
        row.attributes.set(Attribute::Os, Some(["a", "b", "c"][usize::from(index) % 3].to_owned()));
    }
    pack(day(), &rows).unwrap()
}

fn replaced(columns: &Columns, name: ColumnName, bytes: &[u8]) -> Columns {
    let mut columns = columns.clone();
    columns.0.insert(name, bytes.to_vec());
    columns
}

proptest! {
    // Each case packs up to 60 rows.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_rows_unpack_unchanged(rows in rows()) {
        let columns = pack(day(), &rows).unwrap();
        prop_assert_eq!(normalized(unpack(day(), &columns).unwrap()), normalized(rows));
    }

    #[test]
    fn packed_bytes_do_not_depend_on_order(
        (rows, shuffled) in rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
    ) {
        let columns = pack(day(), &rows).unwrap();
        prop_assert_eq!(&columns, &pack(day(), &shuffled).unwrap());
        // Repacking unpacked rows gives equal bytes.
        let again = unpack(day(), &columns).unwrap();
        prop_assert_eq!(columns, pack(day(), &again).unwrap());
    }

    #[test]
    fn totals_count_events_and_fingerprints_by_hour(rows in rows()) {
        let columns = pack(day(), &rows).unwrap();
        let base = columns.get(ColumnName::Base).unwrap();
        let totals = Base::decode(&mut Decoder::new(), base).unwrap().totals();
        let total_where = |wanted: &dyn Fn(&EventRow) -> bool| {
            let rows: Vec<&EventRow> = rows.iter().filter(|row| wanted(row)).collect();
            let fingerprints: BTreeSet<Fingerprint> = rows.iter().map(|row| row.fingerprint).collect();
            Total {
                events: u32::try_from(rows.len()).unwrap(),
                fingerprints: u32::try_from(fingerprints.len()).unwrap(),
            }
        };
        for hour in 0..24_u8 {
            let in_hour = |row: &EventRow| {
                (minute_of(row.occurred_at) - day().first_minute()) / 60 == i64::from(hour)
            };
            prop_assert_eq!(totals.hour(hour), total_where(&in_hour));
        }
        prop_assert_eq!(totals.whole(), total_where(&|_| true));
        prop_assert_eq!(Totals::from_bytes(&totals.to_bytes()), Ok(totals));
    }

    #[test]
    fn hostile_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        column in 0_usize..12,
        has_version in any::<bool>(),
    ) {
        let bytes = if has_version { [&[1], bytes.as_slice()].concat() } else { bytes };
        let name = ColumnName::all().nth(column).unwrap();
        let _ = unpack(day(), &replaced(&example(), name, &bytes));
        if let Ok(totals) = Totals::from_bytes(&bytes) {
            prop_assert_eq!(Totals::from_bytes(&totals.to_bytes()), Ok(totals));
        }
    }

    #[test]
    fn changed_bytes_never_panic(column in 0_usize..12, place: prop::sample::Index, byte: u8) {
        let (example, name) = (example(), ColumnName::all().nth(column).unwrap());
        let mut bytes = example.get(name).unwrap().to_vec();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(rows) = unpack(day(), &replaced(&example, name, &bytes)) {
            prop_assert!(rows.iter().all(|row| Day::of(row.occurred_at) == day()));
        }
    }
}

#[test]
fn truncated_or_extended_columns_are_damaged() {
    let example = example();
    for (name, bytes) in example.iter() {
        for length in 0..bytes.len() {
            let columns = replaced(&example, name, &bytes[..length]);
            assert!(unpack(day(), &columns).is_err(), "{} {length}", name.name());
        }
        let longer = replaced(&example, name, &[bytes, &[0]].concat());
        assert!(unpack(day(), &longer).is_err(), "{}", name.name());
        let missing = example.iter().filter(|(other, _)| *other != name);
        let missing: Columns = missing.map(|(name, bytes)| (name, bytes.to_vec())).collect();
        assert_eq!(unpack(day(), &missing).is_ok(), name.is_tag(), "{}", name.name());
    }
}

#[test]
fn columns_of_another_run_are_damaged() {
    let (example, other) = (example(), pack(day(), &rows_with_values(2)).unwrap());
    for (name, bytes) in other.iter() {
        assert!(unpack(day(), &replaced(&example, name, bytes)).is_err(), "{}", name.name());
    }
}

#[test]
fn unknown_versions_are_damaged() {
    let example = example();
    for (name, bytes) in example.iter() {
        let mut bytes = bytes.to_vec();
        bytes[0] = 2;
        assert!(unpack(day(), &replaced(&example, name, &bytes)).is_err(), "{}", name.name());
    }
}

#[test]
fn any_number_of_values_unpacks_unchanged() {
    for count in [0, 1, 2, 255, 256, 257, 65_536, 65_537] {
        let rows = rows_with_values(count);
        let columns = pack(day(), &rows).unwrap();
        assert_eq!(normalized(unpack(day(), &columns).unwrap()), normalized(rows), "{count}");
    }
}

#[test]
fn events_of_another_day_are_rejected() {
    for minute in [day().first_minute() - 1, day().next().first_minute()] {
        let mut rows = rows_with_values(2);
        rows[1].occurred_at = start_of_minute(minute);
        assert_eq!(pack(day(), &rows), Err(PackError::OtherDay));
    }
}

#[test]
fn columns_report_the_bytes_of_their_values() {
    let columns = pack(day(), &rows_with_values(300)).unwrap();
    let mut expected = 0;
    let mut decoder = Decoder::new();
    let base = Base::decode(&mut decoder, columns.get(ColumnName::Base).unwrap()).unwrap();
    for attribute in Attribute::texts() {
        let column = columns.values(attribute.into(), &mut decoder, &base).unwrap();
        // Every value is so short that its length takes one byte.
        expected += column.values().flatten().map(|value| value.len() as u64 + 1).sum::<u64>();
    }
    assert!(expected > 300);
    assert_eq!(columns.values_bytes().unwrap(), expected);
}

#[test]
fn column_names_are_unique() {
    let names: BTreeSet<_> = ColumnName::all().map(|column| column.name()).collect();
    assert_eq!(names.len(), 2 + Attribute::ALL.len());
}

const USERS: ColumnName = ColumnName::Category(Category::Attribute(Attribute::User));

#[test]
fn user_column_takes_at_most_eight_bytes_each() {
    let users = |count: usize| {
        let mut rows = rows_with_values(3_000);
        for (index, row) in rows.iter_mut().enumerate() {
            row.attributes.set(Attribute::User, user_hash(&(index % count).to_string()));
        }
        pack(day(), &rows).unwrap().get(USERS).unwrap().len()
    };
    assert!(users(3_000) <= 8 * 3_000 + 16, "{}", users(3_000));
    assert!(users(100) <= 100 * 8 + 3_000 + 16, "{}", users(100));
    assert!(users(1) <= 40, "{}", users(1));
}

#[test]
fn damaged_users_are_rejected() {
    let mut rows = rows_with_values(4);
    for (index, row) in rows.iter_mut().enumerate() {
        row.attributes.set(Attribute::User, user_hash(["a", "b"][index % 2]));
    }
    let columns = pack(day(), &rows).unwrap();
    let users = columns.get(USERS).unwrap();
    for index in 0..users.len() {
        let cut = replaced(&columns, USERS, &users[..index]);
        assert!(unpack(day(), &cut).is_err(), "{index}");
    }
    for (index, byte) in [(1, 5), (2, 4), (3, 0xff), (users.len() - 1, 3)] {
        let mut damaged = users.to_vec();
        damaged[index] = byte;
        let damaged = replaced(&columns, USERS, &damaged);
        assert!(unpack(day(), &damaged).is_err(), "{index}");
    }
}

/// Returns the bytes that a tag adds per event of a run, with `distinct` values of `length` bytes.
fn bytes_per_tag(events: usize, distinct: usize, length: usize) -> f64 {
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut rows = vec![rows_with_values(1).remove(0); events];
    let stored = |rows: &[EventRow]| {
        let columns = pack(day(), rows).unwrap();
        columns.iter().map(|(name, bytes)| name.name().len() + bytes.len()).sum::<usize>()
    };
    let without = stored(&rows);
    let values: Vec<String> = (0..distinct)
        .map(|_| format!("{:016x}{:016x}{:016x}", random(), random(), random()))
        .collect();
    let tags = ["tenant", "plan", "zone", "shard"].map(|key| TagKey::parse(key).unwrap());
    for row in &mut rows {
        for tag in tags {
            let value = &values[usize::try_from(random()).unwrap() % distinct];
            row.attributes.set_tag(tag, value[48 - length..].to_owned());
        }
    }
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    let [with, without, count] = [stored(&rows), without, events * tags.len()].map(|it| it as f64);
    (with - without) / count
}

#[test]
fn a_tag_takes_at_most_8_bytes_of_an_event() {
    for (events, distinct, length) in
        [(1_000, 3, 8), (1_000, 100, 16), (1_000, 500, 8), (20_000, 500, 32), (20_000, 5_000, 16)]
    {
        let bytes = bytes_per_tag(events, distinct, length);
        println!("{events} events, {distinct} random values of {length} digits: {bytes:.2} bytes");
        assert!(bytes <= 8.0, "{events} {distinct} {length}: {bytes}");
    }
}
