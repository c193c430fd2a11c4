//! Runs of packed events: what was packed is unpacked, and bytes that nobody packed are refused, or are a run
//! like any other.

use errors::attribute::{Attribute, Attributes, UserHash};
use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::{Run, RunId};
use errors::log::row::EventRow;
use errors::log::run::{Base, ColumnName, Columns, Decoder, ErrorHour, pack, unpack};
use shared::timestamp::Timestamp;

/// Whatever the bytes are, they are of this day.
const NOON: i64 = 1_795_262_400_000;
/// Runs of more events are left: a few bytes claim millions of them, which takes its time.
const MOST_EVENTS: usize = 5_000;

fn day() -> Day {
    Day::of(Timestamp::from_millis(NOON))
}

/// A run in a manifest, or the columns one after the other, each after its length in two bytes.
pub(crate) fn columns(bytes: &[u8]) {
    let id = RunId::random();
    if let Ok(run) = Run::from_bytes(id, bytes) {
        assert_eq!(Run::from_bytes(id, &run.to_bytes()), Ok(run), "what is written is read");
    }
    let mut rest = bytes;
    let mut columns = Vec::new();
    for name in ColumnName::all() {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (column, after) = after.split_at(length);
        columns.push((name, column.to_vec()));
        rest = after;
    }
    let columns = Columns::from_iter(columns);
    let Ok(base) = columns.get(ColumnName::Base) else { return };
    match Base::decode(&mut Decoder::new(), base) {
        Ok(base) if base.events() <= MOST_EVENTS => {
            assert!(base.fingerprints().is_sorted_by(|one, other| one < other));
            let counted: usize = base.error_hours().iter().map(ErrorHour::count).sum();
            assert_eq!(counted, base.events());
        }
        _ => return,
    }
    let unpacked = unpack(day(), &columns);
    assert_eq!(unpacked, unpack(day(), &columns), "the same each time");
    if let Ok(rows) = unpacked {
        check_round_trip(&rows);
    }
}

/// Rows of few bytes each, so that many have something in common.
pub(crate) fn rows(bytes: &[u8]) {
    let mut rows = Vec::new();
    for chunk in bytes.chunks(6).take(1_000) {
        let byte = |at: usize| chunk.get(at).copied().unwrap_or_default();
        let minute = i64::from(u16::from_le_bytes([byte(0), byte(1)]) % 1_440);
        let mut row = EventRow {
            occurred_at: Timestamp::from_millis((day().first_minute() + minute) * 60_000),
            fingerprint: Fingerprint([byte(2); 16]),
            attributes: Attributes::default(),
        };
        let attribute = Attribute::ALL[usize::from(byte(3)) % Attribute::ALL.len()];
        let text = ["", "a", "é", "a long value that is the same as another's"];
        let value = format!("{}{}", text[usize::from(byte(4)) % text.len()], byte(4) / 4);
        row.attributes.set(attribute, Some(value));
        if byte(5) > 0 {
            row.attributes.set_user(UserHash::of(&byte(5).to_string()));
        }
        rows.push(row);
    }
    check_round_trip(&rows);
}

/// What was packed is unpacked, in another order; and the same rows give the same bytes in any order.
fn check_round_trip(rows: &[EventRow]) {
    let packed = pack(day(), rows).expect("they are of one day, and few");
    let unpacked = unpack(day(), &packed).expect("what was packed can be unpacked");
    let sorted = |rows: &[EventRow]| {
        let key = |row: &EventRow| (row.fingerprint, row.occurred_at, row.attributes.clone());
        let mut keys: Vec<_> = rows.iter().map(key).collect();
        keys.sort();
        keys
    };
    assert_eq!(sorted(&unpacked), sorted(rows));
    let mut reversed = unpacked;
    reversed.reverse();
    assert_eq!(pack(day(), &reversed).as_ref(), Ok(&packed), "the same bytes in any order");
}
