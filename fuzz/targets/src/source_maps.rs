//! Source maps: any map is rejected or prepared, and its pieces find the mapping that counts.

use source_maps::bundle::Bundle;
use source_maps::map::{Mapping, ParsedMap};
use source_maps::pieces::{Index, Pieces, Table};

/// Mappings that are looked up. The fuzzer finds all others with other bytes.
const LOOKED_UP: usize = 50;

pub(crate) fn source_maps(bytes: &[u8]) {
    let _ = Bundle::open(bytes.to_vec(), Some("1"), None).and_then(Bundle::prepare);
    let _ = Table::read(bytes).map(|table| table.look_up(1, 1));
    // Scopes are read or ignored.
    let scopes: String = bytes.iter().map(|byte| char::from(b'+' + byte % 80)).collect();
    let scopes = scopes.replace('\\', ",");
    let map = format!(
        r#"{{"version":3,"sources":["a"],"names":["f"],"mappings":"AAAA","scopes":"{scopes}"}}"#
    );
    let map = ParsedMap::parse(map.as_bytes()).expect("malformed scopes are ignored");
    Pieces::of(&map).expect("a parsed map can be prepared");
    let Ok(map) = ParsedMap::parse(bytes) else { return };
    let pieces = Pieces::of(&map).expect("a parsed map can be prepared");
    let index = pieces.index.to_bytes().expect("an index can be written");
    assert_eq!(Index::from_bytes(&index).as_ref(), Some(&pieces.index));
    let mappings: Vec<Mapping<'_>> = map.mappings().collect();
    assert!(mappings.is_sorted_by_key(|it| (it.line, it.column)), "mappings are not sorted");
    for (number, mapping) in mappings.iter().enumerate().take(LOOKED_UP) {
        let next = mappings.get(number + 1);
        let before_next = next.filter(|it| it.line == mapping.line).map(|it| it.column - 1);
        for column in [mapping.column, before_next.unwrap_or(mapping.column)] {
            let (table, line) = pieces.index.find(mapping.line, column).expect("a table has it");
            let table = Table::read(&pieces.tables[table]).expect("tables can be read");
            let found = table.look_up(line, column);
            let expected = mapping.source.map(|it| (it.line, it.column));
            assert_eq!(found.map(|it| (it.line, it.column)), expected);
        }
    }
}
