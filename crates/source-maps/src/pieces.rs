//! The prepared form of a map: compressed tables, each of about 32 kB before compression.
//!
//! A *table* is a source map of a range of generated code, whose lines count from the start of the
//! range. Its sources are *blocks*: some lines of a source, with the context of those lines. So a
//! frame needs one table. The *index* has the first generated position of each table.

use std::borrow::Cow;
use std::io;

use serde::{Deserialize, Serialize};
use sourcemap::{SourceMap, SourceMapBuilder, SourceView};

use crate::map::{Mapping, ParsedMap, SourcePosition};

/// Maximum bytes of a table before compression, to within one mapping and its block.
const TABLE_BYTES: usize = 32_000;
/// Maximum bytes of a decompressed table or index.
const MAX_DECOMPRESSED_BYTES: usize = 16 << 20;
/// Maximum bytes of a stored line. Longer lines are built code themselves.
const MAX_LINE_BYTES: usize = 1_000;
/// zstd's default level.
const COMPRESSION_LEVEL: i32 = 3;
/// Bytes that a mapping counts for the size of its table: twice as many as most take, so that a
/// table is parsed within tenths of a millisecond.
const MAPPING_BYTES: usize = 10;
/// Lines of a block without its context. Tables repeat blocks at their boundaries.
const BLOCK_LINES: u32 = 10;
/// Maximum bytes of all blocks per byte of the sources. Maps of real code need about two. The
/// mappings of a hostile map could repeat any block.
const MAX_REPETITION: usize = 3;
/// Separates a name from the name of its function, and a path from the place of its block. Names
/// and paths have no control characters.
const END: char = '\n';
/// Lines of context before and after a line.
const CONTEXT_LINES: u32 = 5;

/// The prepared form of a map.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The first position of each table.
    pub index: Index,
    /// The compressed tables.
    pub tables: Vec<Vec<u8>>,
}

impl Pieces {
    /// Prepares a map.
    pub fn of(map: &ParsedMap) -> io::Result<Self> {
        let mut sources = Sources::of(map);
        let mut pieces = Self::default();
        let mut table: Option<TableWriter> = None;
        for mapping in map.mappings() {
            if let Some(full) = table.take_if(|table| table.bytes_at(mapping.line) >= TABLE_BYTES) {
                pieces.tables.push(full.finish()?);
            }
            let table = table.get_or_insert_with(|| {
                pieces.index.0.push((mapping.line, mapping.column));
                TableWriter::starting_at(mapping.line)
            });
            table.add(&mapping, &mut sources);
        }
        if let Some(table) = table {
            pieces.tables.push(table.finish()?);
        }
        Ok(pieces)
    }

    /// Returns the bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.len() as u64).sum()
    }
}

/// The first generated position of each table, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index(Vec<(u32, u32)>);

impl Index {
    /// Returns the number of the table that can contain a position, and the position's line in it.
    /// Lines and columns count from 0.
    pub fn find(&self, line: u32, column: u32) -> Option<(usize, u32)> {
        let table = self.0.partition_point(|start| *start <= (line, column)).checked_sub(1)?;
        let (first_line, _) = self.0.get(table)?;
        Some((table, line - first_line))
    }

    /// Returns the number of tables.
    pub fn tables(&self) -> usize {
        self.0.len()
    }

    /// Returns the stored form.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        compress(&serde_json::to_vec(self)?)
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(&decompress(bytes)?).ok()
    }
}

/// The source of a generated position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Clean path of the source.
    pub path: String,
    /// Line, from 0.
    pub line: u32,
    /// Column in UTF-16 units, from 0.
    pub column: u32,
    /// The name that the map has for the position.
    pub name: Option<String>,
    /// The name of the function that contains the position, if the map has scopes.
    pub function: Option<String>,
    /// The source lines, if the map has them.
    pub context: Option<Context>,
}

/// Source lines around a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The lines before, at most five.
    pub before: Vec<String>,
    /// The line.
    pub line: String,
    /// The lines after, at most five.
    pub after: Vec<String>,
}

impl Context {
    /// Returns the lines around a line of a block.
    fn of(block: &str, line: u32) -> Option<Self> {
        let first = line.saturating_sub(CONTEXT_LINES);
        let mut lines = block.split('\n').map(str::to_owned).skip(first as usize);
        let before = lines.by_ref().take((line - first) as usize).collect();
        let after = CONTEXT_LINES as usize;
        Some(Self { before, line: lines.next()?, after: lines.take(after).collect() })
    }
}

/// A table.
#[derive(Debug)]
pub struct Table(SourceMap);

impl Table {
    /// Reads a table.
    pub fn read(table: &[u8]) -> Option<Self> {
        SourceMap::from_slice(&decompress(table)?).ok().map(Self)
    }

    /// Returns the source of a position: that of the last mapping in the line at or before the
    /// column. `line` counts from the start of the table.
    pub fn look_up(&self, line: u32, column: u32) -> Option<Found> {
        let token = self.0.lookup_token(line, column).filter(|it| it.get_dst_line() == line)?;
        let mut block = token.get_source()?.split(END);
        let (path, first_line) = (block.next()?, block.next()?.parse::<u32>().ok()?);
        let entry = token.get_name().unwrap_or_default();
        let (name, function) = entry.split_once(END).unwrap_or((entry, ""));
        let [name, function] = [name, function].map(|it| (!it.is_empty()).then(|| it.to_owned()));
        let (line, column) = token.get_src();
        let text = self.0.get_source_contents(token.get_src_id());
        Some(Found {
            path: path.to_owned(),
            line: first_line.checked_add(line)?,
            column,
            name,
            function,
            context: text.and_then(|text| Context::of(text, line)),
        })
    }
}

/// The paths and texts of a map's sources.
struct Sources<'m> {
    sources: Vec<(String, Option<&'m SourceView>)>,
    /// The bytes that more blocks can take.
    bytes_left: usize,
}

impl<'m> Sources<'m> {
    fn of(map: &'m ParsedMap) -> Self {
        let sources: Vec<_> = map.sources().collect();
        let texts = sources.iter().filter_map(|(_, text)| *text);
        let bytes: usize = texts.map(|text| text.source().len()).sum();
        Self { sources, bytes_left: bytes.saturating_mul(MAX_REPETITION) }
    }

    /// Returns the lines of a block with their context, if the map has them.
    fn text_of(&mut self, source: usize, block: u32) -> Option<String> {
        let (_, text) = self.sources.get(source)?;
        let text = text.filter(|text| text.get_line(block * BLOCK_LINES).is_some())?;
        let first_line = first_line_of(block);
        let lines = first_line..first_line + BLOCK_LINES + 2 * CONTEXT_LINES;
        let cut = |line: &'m str| line.get(..line.floor_char_boundary(MAX_LINE_BYTES));
        let lines = lines.map_while(|line| text.get_line(line)).filter_map(cut);
        let text = lines.collect::<Vec<_>>().join("\n");
        self.bytes_left = self.bytes_left.checked_sub(text.len())?;
        Some(text)
    }
}

/// Returns the first line of a block, with its context.
fn first_line_of(block: u32) -> u32 {
    (block * BLOCK_LINES).saturating_sub(CONTEXT_LINES)
}

/// Writes a table.
struct TableWriter {
    table: SourceMapBuilder,
    first_line: u32,
    blocks: u32,
    names: u32,
    /// The bytes that count for the size of the table, without its lines.
    bytes: usize,
}

impl TableWriter {
    fn starting_at(line: u32) -> Self {
        Self { table: SourceMapBuilder::new(None), first_line: line, blocks: 0, names: 0, bytes: 0 }
    }

    /// Returns the bytes at the start of a line. Each line takes a byte.
    fn bytes_at(&self, line: u32) -> usize {
        self.bytes + (line - self.first_line) as usize
    }

    fn add(&mut self, mapping: &Mapping<'_>, sources: &mut Sources<'_>) {
        self.bytes += MAPPING_BYTES;
        let (block, line, column) = match mapping.source {
            Some(SourcePosition { source, line, column }) => {
                let (block, first_line) = self.add_block(source, line, sources);
                (Some(block), line - first_line, column)
            }
            None => (None, 0, 0),
        };
        let with_function =
            |function| Cow::from(format!("{}{END}{function}", mapping.name.unwrap_or_default()));
        let entry = mapping.function.map(with_function).or(mapping.name.map(Cow::from));
        let name = entry.map(|entry| {
            let name = self.table.add_name(&entry);
            if name == self.names {
                self.names += 1;
                self.bytes += entry.len();
            }
            name
        });
        let at = mapping.line - self.first_line;
        self.table.add_raw(at, mapping.column, line, column, block, name, false);
    }

    /// Adds the block of a source's line, if the table lacks it. Returns its number and first line.
    fn add_block(&mut self, source: usize, line: u32, sources: &mut Sources<'_>) -> (u32, u32) {
        let block = line / BLOCK_LINES;
        let first_line = first_line_of(block);
        let path = sources.sources.get(source).map_or("", |(path, _)| path);
        let place = format!("{path}{END}{first_line}{END}{source}");
        let number = self.table.add_source(&place);
        if number == self.blocks {
            self.blocks += 1;
            let text = sources.text_of(source, block);
            self.bytes += place.len() + text.as_ref().map_or(0, String::len);
            self.table.set_source_contents(number, text.as_deref());
        }
        (number, first_line)
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        let mut table = Vec::new();
        self.table.into_sourcemap().to_writer(&mut table).map_err(io::Error::other)?;
        compress(&table)
    }
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, COMPRESSION_LEVEL)
}

fn decompress(bytes: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(bytes, MAX_DECOMPRESSED_BYTES).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map_of(sources: &[(&str, &str)], names: &[&str], mappings: &str) -> ParsedMap {
        let (paths, texts): (Vec<&str>, Vec<&str>) = sources.iter().copied().unzip();
        let json = serde_json::json!({
            "version": 3, "sources": paths, "sourcesContent": texts, "names": names, "mappings": mappings,
        });
        ParsedMap::parse(json.to_string().as_bytes()).unwrap()
    }

    fn find(pieces: &Pieces, line: u32, column: u32) -> Option<Found> {
        let (table, line) = pieces.index.find(line, column)?;
        Table::read(&pieces.tables[table]).unwrap().look_up(line, column)
    }

    #[test]
    fn last_mapping_at_or_before_the_column_counts() {
        let map = map_of(&[("a.js", "1\n2\n3"), ("b.js", "x")], &["f"], "AAAA,KACIA,U;;IACA,CCDA");
        let pieces = Pieces::of(&map).unwrap();
        let at = |line, column| {
            find(&pieces, line, column).map(|it| (it.path, it.line, it.column, it.name))
        };
        let a = |line, column, name: Option<&str>| {
            Some(("a.js".to_owned(), line, column, name.map(str::to_owned)))
        };
        assert_eq!(at(0, 0), a(0, 0, None));
        assert_eq!(at(0, 4), a(0, 0, None));
        assert_eq!(at(0, 5), a(1, 4, Some("f")));
        assert_eq!(at(0, 14), a(1, 4, Some("f")));
        assert_eq!(at(0, 15), None, "code without a source");
        assert_eq!(at(1, 0), None, "a line without mappings");
        assert_eq!(at(2, 3), None, "before the first mapping of the line");
        assert_eq!(at(2, 4), a(2, 4, None));
        assert_eq!(at(2, 900).unwrap().0, "b.js");
        assert_eq!(at(3, 0), None);
        let index = pieces.index.to_bytes().unwrap();
        assert_eq!(Index::from_bytes(&index).unwrap(), pieces.index);
    }

    #[test]
    fn context_spans_blocks_and_ends_with_the_source() {
        let lines: Vec<String> = (0..2_000).map(|number| format!("{number:060}")).collect();
        let mappings = "AAAA".to_owned() + &",CACA".repeat(2_000);
        let map = map_of(&[("a.js", &lines.join("\r\n"))], &[], &mappings);
        let pieces = Pieces::of(&map).unwrap();
        assert!(pieces.index.tables() > 1);
        for line in [0, 3, 24, 25, 29, 30, 1_024, 1_028, 1_031, 1_999] {
            let found = find(&pieces, 0, line).unwrap();
            assert_eq!(found.line, line);
            let (context, number) = (found.context.unwrap(), line as usize);
            assert_eq!(context.line, lines[number]);
            assert_eq!(context.before, lines[number.saturating_sub(5)..number]);
            assert_eq!(context.after, lines[number + 1..(number + 6).min(2_000)]);
        }
        let beyond = find(&pieces, 0, 2_000).unwrap();
        assert_eq!((beyond.line, beyond.context), (2_000, None));
    }

    #[test]
    fn sources_with_one_name_keep_their_texts() {
        let map = map_of(&[("a.js", "one"), ("./a.js", "two")], &[], "AAAA,CCAA");
        let pieces = Pieces::of(&map).unwrap();
        let line = |column| find(&pieces, 0, column).unwrap().context.unwrap().line;
        assert_eq!([line(0), line(1)], ["one", "two"]);
    }

    #[test]
    fn long_lines_are_cut_at_characters() {
        let text = format!("{}\nend", "é".repeat(2_500_000));
        let map = map_of(&[("a.js", &text)], &[], "AAAA");
        let pieces = Pieces::of(&map).unwrap();
        let context = find(&pieces, 0, 0).unwrap().context.unwrap();
        assert_eq!((context.line.len(), context.after), (1_000, vec!["end".to_owned()]));
    }

    #[test]
    fn positions_in_generated_lines_of_5_mb_are_found() {
        let section = |column: u32, name: &str| {
            format!(
                r#"{{"offset":{{"line":0,"column":{column}}},"map":{{"version":3,"sources":["{name}"],"names":[],"mappings":"AAAA"}}}}"#
            )
        };
        let sections = [section(0, "a.js"), section(5_000_000, "b.js")].join(",");
        let map = format!(r#"{{"version":3,"sections":[{sections}]}}"#);
        let pieces = Pieces::of(&ParsedMap::parse(map.as_bytes()).unwrap()).unwrap();
        let path = |column| find(&pieces, 0, column).map(|it| it.path);
        assert_eq!(path(4_999_999).as_deref(), Some("a.js"));
        assert_eq!(path(5_000_000).as_deref(), Some("b.js"));
        assert_eq!(path(u32::MAX).as_deref(), Some("b.js"));
    }

    #[test]
    fn scattered_mappings_do_not_repeat_sources() {
        let text = ("x".repeat(999) + "\n").repeat(2_000);
        // Every mapping is in another block than the previous one.
        let mappings = "AAAA".to_owned() + &",CA0/BA,CA1/BA".repeat(10_000);
        let pieces = Pieces::of(&map_of(&[("a.js", &text)], &[], &mappings)).unwrap();
        let bytes = pieces.tables.iter().map(|table| decompress(table).unwrap().len());
        assert!(bytes.sum::<usize>() < 5 * text.len());
        assert_eq!(find(&pieces, 0, 20_000).unwrap().context, None);
    }

    #[test]
    fn many_mappings_are_cut_into_pieces() {
        let mappings = vec!["AAAAA,CAACA,EACDA"; 30_000].join(";");
        let pieces = Pieces::of(&map_of(&[("a.js", "x")], &["n"], &mappings)).unwrap();
        assert!(pieces.index.tables() > 5);
        for table in &pieces.tables {
            assert!(decompress(table).unwrap().len() <= TABLE_BYTES);
        }
        for line in (0..30_000).step_by(977) {
            assert_eq!(find(&pieces, line, 0).unwrap().line, line);
            assert_eq!(find(&pieces, line, 9).unwrap().line, line + 1);
        }
    }

    #[test]
    fn distant_lines_take_no_memory() {
        let section = |line: u32| {
            let offset = serde_json::json!({"line": line, "column": 0});
            let map = r#"{"version":3,"sources":["a.js"],"names":[],"mappings":"AAAA"}"#;
            format!(r#"{{"offset":{offset},"map":{map}}}"#)
        };
        let sections = [section(0), section(i32::MAX.unsigned_abs())].join(",");
        let map = format!(r#"{{"version":3,"sections":[{sections}]}}"#);
        let pieces = Pieces::of(&ParsedMap::parse(map.as_bytes()).unwrap()).unwrap();
        assert_eq!(pieces.index.tables(), 2);
        assert_eq!(find(&pieces, i32::MAX.unsigned_abs(), 4).unwrap().path, "a.js");
    }

    proptest! {
        #[test]
        fn unreadable_tables_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let compressed = compress(&bytes).unwrap();
            for piece in [&bytes, &compressed] {
                let _ = Table::read(piece).map(|table| table.look_up(1, 5));
                let _ = Index::from_bytes(piece);
            }
        }
    }
}
