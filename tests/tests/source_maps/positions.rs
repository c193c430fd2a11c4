//! Positions of real maps, compared with `@jridgewell/trace-mapping`, which browsers' tools use.

use std::collections::HashMap;
use std::process::Command;

use serde_json::Value;

use source_maps::clean_path;
use source_maps::map::ParsedMap;
use source_maps::pieces::{Pieces, Table};

/// Positions of each of the five maps. `POSITIONS=20000` compares 100,000.
const POSITIONS: usize = 1_000;

#[test]
fn positions_equal_those_of_trace_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::env::var("POSITIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(POSITIONS);
    let seed = tests::seed() % 1_000_000_007;
    println!("SEED={seed}");
    let mut node = Command::new("node");
    let node =
        node.current_dir(tests::workspace().join("tests/sdks/bundlers")).arg("positions.mjs");
    let output =
        node.arg(folder.path()).args([count.to_string(), seed.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut compared, mut with_source) = (0, 0);
    for name in ["react-dom", "three", "lodash-es", "sentry", "acorn"] {
        let read = |end: &str| {
            std::fs::read_to_string(folder.path().join(format!("{name}{end}"))).unwrap()
        };
        let pieces = Pieces::of(&ParsedMap::parse(read(".js.map").as_bytes()).unwrap()).unwrap();
        let mut tables: HashMap<usize, Table> = HashMap::new();
        for row in read(".jsonl").lines() {
            let row: Vec<Value> = serde_json::from_str(row).unwrap();
            let number = |index: usize| row[index].as_u64().and_then(|it| u32::try_from(it).ok());
            let (line, column) = (number(0).unwrap(), number(1).unwrap());
            let expected = row[2]
                .as_str()
                .map(|source| (clean_path(source), number(3).unwrap(), number(4).unwrap()));
            let found = pieces.index.find(line, column).and_then(|(table, line)| {
                let table = tables
                    .entry(table)
                    .or_insert_with(|| Table::read(&pieces.tables[table]).unwrap());
                table.look_up(line, column)
            });
            let found = found.map(|it| (it.path, it.line, it.column));
            assert_eq!(found, expected, "{name} {line}:{column}");
            compared += 1;
            with_source += usize::from(expected.is_some());
        }
    }
    assert_eq!(compared, 5 * count);
    assert!(with_source * 10 > compared * 9, "{with_source} of {compared} have a source");
}
