//! Runs of packed events: packed events are unpacked unchanged. Other bytes are rejected, or are a
//! valid run.

use errors::attribute::{Attribute, user_hash};
use errors::category::Attributes;
use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::{Run, RunId};
use errors::log::row::EventRow;
use errors::log::run::{Base, ColumnName, Columns, Decoder, ErrorHour, pack, unpack};
use shared::timestamp::Timestamp;

/// Bytes of any content belong to this day.
const NOON: i64 = 1_795_262_400_000;
/// Larger runs are skipped: a few bytes can claim millions of events, which takes long.
const MAX_EVENTS: usize = 5_000;

fn day() -> Day {
    Day::of(Timestamp::from_millis(NOON))
}

/// A run in a manifest, or consecutive columns, each after its length in two bytes.
pub(crate) fn columns(bytes: &[u8]) {
    let id = RunId::random();
    if let Ok(run) = Run::from_bytes(id, bytes) {
        assert_eq!(Run::from_bytes(id, &run.to_bytes()), Ok(run), "the run is not read back");
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
        Ok(base) if base.events() <= MAX_EVENTS => {
            assert!(base.fingerprints().is_sorted_by(|one, other| one < other));
            let counted: usize = base.error_hours().iter().map(ErrorHour::count).sum();
            assert_eq!(counted, base.events());
        }
        _ => return,
    }
    let unpacked = unpack(day(), &columns);
    assert_eq!(unpacked, unpack(day(), &columns), "unpacking is not deterministic");
    if let Ok(rows) = unpacked {
        check_round_trip(&rows);
    }
}

/// Rows of few bytes each, so that many share values.
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
        let attributes: Vec<Attribute> = Attribute::texts().collect();
        let attribute = attributes[usize::from(byte(3)) % attributes.len()];
        let text = ["", "a", "é", "a long value that is the same as another's"];
        let value = format!("{}{}", text[usize::from(byte(4)) % text.len()], byte(4) / 4);
        row.attributes.set(attribute, Some(value));
        if byte(5) > 0 {
            row.attributes.set(Attribute::User, user_hash(&byte(5).to_string()));
        }
        rows.push(row);
    }
    check_round_trip(&rows);
}

/// Checks that packed rows are unpacked, possibly in another order, and that the order of rows does
/// not affect the bytes.
fn check_round_trip(rows: &[EventRow]) {
    let packed = pack(day(), rows).expect("rows of one day can be packed");
    let unpacked = unpack(day(), &packed).expect("packed rows can be unpacked");
    let sorted = |rows: &[EventRow]| {
        let key = |row: &EventRow| (row.fingerprint, row.occurred_at, row.attributes.clone());
        let mut keys: Vec<_> = rows.iter().map(key).collect();
        keys.sort();
        keys
    };
    assert_eq!(sorted(&unpacked), sorted(rows));
    let mut reversed = unpacked;
    reversed.reverse();
    assert_eq!(pack(day(), &reversed).as_ref(), Ok(&packed), "the order of rows changes the bytes");
}
