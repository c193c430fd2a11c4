//! The prepared form of a map: compressed pieces, each of about 16 kB before compression.
//!
//! - A *text* has lines of sources.
//! - A *table* is a source map of a range of generated code, whose lines count from the start of the
//!   range. Its sources name the texts with their lines.
//!
//! The *index* has the first generated position of each table. Texts have the first numbers.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use sourcemap::{SourceMap, SourceMapBuilder};

use crate::BundleFault;
use crate::map::{Mapping, ParsedMap};

/// Maximum bytes of a piece before compression, to within one mapping or line.
const PIECE_BYTES: usize = 16_000;
/// Maximum bytes of a decompressed piece.
const MAX_PIECE_BYTES: usize = 16 << 20;
/// Maximum bytes of a stored line. Longer lines are built code themselves.
const MAX_LINE_BYTES: usize = 1_000;
/// zstd's default level.
const COMPRESSION_LEVEL: i32 = 3;
/// Bytes that a mapping counts for the size of its table: twice as many as most take, so that a
/// table is parsed within tenths of a millisecond.
const MAPPING_BYTES: usize = 10;
/// Maximum bytes of a source that count for the size of its table. A source of 50 MB has 3,000 runs:
/// it must not take a table for each mapping.
const MAX_SOURCE_BYTES: usize = 200;
/// Separates a name from the name of its function, and a path from its runs. Names and paths have
/// no control characters.
const END: char = '\n';
/// Lines of context before and after a line.
pub const CONTEXT_LINES: u32 = 5;

/// The prepared form of a map.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The first position of each table.
    pub index: Index,
    /// The compressed texts, then the compressed tables.
    pub pieces: Vec<Vec<u8>>,
}

impl Pieces {
    /// Prepares a map.
    pub fn of(map: &ParsedMap) -> Result<Self, BundleFault> {
        let mut texts = TextWriter::default();
        let mut sources = Vec::new();
        for (path, text) in map.sources() {
            let runs = text.map_or(Ok(Vec::new()), |text| texts.add(text))?;
            let runs = serde_json::to_string(&runs).map_err(|error| unprepared(&error))?;
            sources.push(format!("{path}{END}{runs}"));
        }
        let mut pieces = texts.finish()?;
        let mut index = Index { texts: pieces.len(), starts: Vec::new() };
        let mut table: Option<TableWriter> = None;
        for mapping in map.mappings() {
            if let Some(full) = table.take_if(|table| table.is_full_before(mapping.line)) {
                pieces.push(full.finish()?);
            }
            let table = table.get_or_insert_with(|| {
                index.starts.push((mapping.line, mapping.column));
                TableWriter::starting_at(mapping.line)
            });
            table.add(&mapping, &sources);
        }
        if let Some(table) = table {
            pieces.push(table.finish()?);
        }
        Ok(Self { index, pieces })
    }

    /// Returns the bytes of all pieces.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// The first generated position of each table, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Number of texts.
    texts: usize,
    starts: Vec<(u32, u32)>,
}

impl Index {
    /// Returns the number of the table that can contain a position, and the position's line in it.
    /// Lines and columns count from 0.
    pub fn find(&self, line: u32, column: u32) -> Option<(usize, u32)> {
        let table = self.starts.partition_point(|start| *start <= (line, column)).checked_sub(1)?;
        let (first_line, _) = self.starts.get(table)?;
        Some((self.texts + table, line - first_line))
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.texts + self.starts.len()
    }

    /// Returns the stored form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleFault> {
        compress(&serde_json::to_vec(self).map_err(|error| unprepared(&error))?)
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(&decompress(bytes)?).ok()
    }
}

/// Consecutive lines of a source within one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Number of lines.
    pub lines: u32,
    /// Number of the text.
    pub text: usize,
    /// Byte at which the first line starts.
    pub offset: usize,
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
    /// The source's lines, in order. Empty if the map lacks the text.
    pub runs: Vec<Run>,
}

/// Source lines around a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The lines before, at most [`CONTEXT_LINES`].
    pub before: Vec<String>,
    /// The line.
    pub line: String,
    /// The lines after, at most [`CONTEXT_LINES`].
    pub after: Vec<String>,
}

impl Found {
    /// Returns the numbers of the texts with the context of the position.
    pub fn texts(&self) -> impl Iterator<Item = usize> {
        self.runs_in_context().map(|(_, run)| run.text)
    }

    /// Returns the runs with lines of the context, each with its first line.
    fn runs_in_context(&self) -> impl Iterator<Item = (u32, Run)> {
        let first = self.line.saturating_sub(CONTEXT_LINES);
        let last = self.line.saturating_add(CONTEXT_LINES);
        let mut start = 0_u32;
        let placed = self.runs.iter().map(move |run| {
            let from = start;
            start = start.saturating_add(run.lines);
            (from, *run)
        });
        placed.filter(move |(from, run)| *from <= last && from.saturating_add(run.lines) > first)
    }

    /// Returns the lines around the position. `text_of` returns a decompressed text by its number.
    pub fn context<'t>(&self, text_of: impl Fn(usize) -> Option<&'t str>) -> Option<Context> {
        let mut context = Context::default();
        let mut has_line = false;
        for (from, run) in self.runs_in_context() {
            let text = text_of(run.text)?.get(run.offset..)?;
            for (number, line) in (from..from.saturating_add(run.lines)).zip(text.split('\n')) {
                let line = line.strip_suffix('\r').unwrap_or(line).to_owned();
                if number == self.line {
                    context.line = line;
                    has_line = true;
                } else if number < self.line && number + CONTEXT_LINES >= self.line {
                    context.before.push(line);
                } else if number > self.line && number <= self.line.saturating_add(CONTEXT_LINES) {
                    context.after.push(line);
                }
            }
        }
        has_line.then_some(context)
    }
}

fn decompress(piece: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(piece, MAX_PIECE_BYTES).ok()
}

/// Reads a text.
pub fn read_text(piece: &[u8]) -> Option<String> {
    String::from_utf8(decompress(piece)?).ok()
}

/// A table.
#[derive(Debug)]
pub struct Table(SourceMap);

impl Table {
    /// Reads a table.
    pub fn read(piece: &[u8]) -> Option<Self> {
        SourceMap::from_slice(&decompress(piece)?).ok().map(Self)
    }

    /// Returns the source of a position: that of the last mapping in the line at or before the
    /// column. `line` counts from the start of the table.
    pub fn look_up(&self, line: u32, column: u32) -> Option<Found> {
        let token = self.0.lookup_token(line, column).filter(|it| it.get_dst_line() == line)?;
        let (path, runs) = token.get_source()?.split_once(END)?;
        let entry = token.get_name().unwrap_or_default();
        let (name, function) = entry.split_once(END).unwrap_or((entry, ""));
        let [name, function] = [name, function].map(|it| (!it.is_empty()).then(|| it.to_owned()));
        let (line, column) = token.get_src();
        let runs = serde_json::from_str(runs).ok()?;
        Some(Found { path: path.to_owned(), line, column, name, function, runs })
    }
}

/// Writes a table.
struct TableWriter {
    table: SourceMapBuilder,
    first_line: u32,
    last_line: u32,
    /// The numbers of sources in the table, by their number in the map.
    sources: HashMap<usize, u32>,
    names: u32,
    /// The bytes that count for the size of the table.
    bytes: usize,
}

impl TableWriter {
    fn starting_at(line: u32) -> Self {
        Self {
            table: SourceMapBuilder::new(None),
            first_line: line,
            last_line: line,
            sources: HashMap::new(),
            names: 0,
            bytes: 0,
        }
    }

    /// `true` if the next mapping, which is in `line`, belongs to another table. An empty line takes
    /// a byte.
    fn is_full_before(&self, line: u32) -> bool {
        let lines = usize::try_from(line - self.last_line).unwrap_or(usize::MAX);
        self.bytes.saturating_add(lines) >= PIECE_BYTES
    }

    fn add(&mut self, mapping: &Mapping<'_>, sources: &[String]) {
        self.bytes += MAPPING_BYTES + (mapping.line - self.last_line) as usize;
        self.last_line = mapping.line;
        let source = mapping.source.and_then(|it| Some((it, sources.get(it.source)?)));
        let id = source.map(|(position, source)| {
            *self.sources.entry(position.source).or_insert_with(|| {
                self.bytes += source.len().min(MAX_SOURCE_BYTES);
                self.table.add_source(source)
            })
        });
        let entry = match (&mapping.name, &mapping.function) {
            (name, None) => name.clone(),
            (name, Some(function)) => {
                Some(format!("{}{END}{function}", name.as_deref().unwrap_or_default()).into())
            }
        };
        let name = entry.map(|entry| {
            let name = self.table.add_name(&entry);
            if name == self.names {
                self.names += 1;
                self.bytes += entry.len();
            }
            name
        });
        let (line, column) = source.map_or((0, 0), |(it, _)| (it.line, it.column));
        let at = mapping.line - self.first_line;
        self.table.add_raw(at, mapping.column, line, column, id, name, false);
    }

    fn finish(self) -> Result<Vec<u8>, BundleFault> {
        let mut table = Vec::new();
        let written = self.table.into_sourcemap().to_writer(&mut table);
        written.map_err(|error| unprepared(&error))?;
        compress(&table)
    }
}

/// Writes texts.
#[derive(Default)]
struct TextWriter {
    text: Vec<u8>,
    texts: Vec<Vec<u8>>,
}

impl TextWriter {
    /// Adds the lines of a source, and returns where they are.
    fn add(&mut self, source: &str) -> Result<Vec<Run>, BundleFault> {
        let mut runs: Vec<Run> = Vec::new();
        for line in source.split('\n') {
            if self.text.len() >= PIECE_BYTES {
                self.end_text()?;
            }
            let (text, offset) = (self.texts.len(), self.text.len());
            if runs.last().is_none_or(|run| run.text != text) {
                runs.push(Run { lines: 0, text, offset });
            }
            let end = line.floor_char_boundary(MAX_LINE_BYTES);
            self.text.extend_from_slice(line.as_bytes().get(..end).unwrap_or_default());
            self.text.push(b'\n');
            if let Some(run) = runs.last_mut() {
                run.lines = run.lines.saturating_add(1);
            }
        }
        Ok(runs)
    }

    fn end_text(&mut self) -> Result<(), BundleFault> {
        self.texts.push(compress(&self.text)?);
        self.text.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Vec<u8>>, BundleFault> {
        if !self.text.is_empty() {
            self.end_text()?;
        }
        Ok(self.texts)
    }
}

fn compress(piece: &[u8]) -> Result<Vec<u8>, BundleFault> {
    zstd::bulk::compress(piece, COMPRESSION_LEVEL).map_err(|error| unprepared(&error))
}

fn unprepared(error: &dyn std::fmt::Display) -> BundleFault {
    BundleFault::invalid(format_args!("the map cannot be prepared: {error}"))
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
        Table::read(&pieces.pieces[table]).unwrap().look_up(line, column)
    }

    fn context(pieces: &Pieces, found: &Found) -> Option<Context> {
        let texts = pieces.pieces.iter().take(pieces.index.texts);
        let texts: Vec<String> = texts.map(|text| read_text(text).unwrap()).collect();
        found.context(|number| texts.get(number).map(String::as_str))
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
    fn context_spans_texts_and_ends_with_the_source() {
        let lines: Vec<String> = (0..2_000).map(|number| format!("{number:060}")).collect();
        let map = map_of(&[("a.js", &lines.join("\r\n"))], &[], "AAAA");
        let pieces = Pieces::of(&map).unwrap();
        assert!(pieces.index.texts > 1);
        let mut found = find(&pieces, 0, 0).unwrap();
        for line in [0, 3, 1_024, 1_028, 1_031, 1_999] {
            found.line = line;
            let context = context(&pieces, &found).unwrap();
            let number = line as usize;
            assert_eq!(context.line, lines[number]);
            assert_eq!(context.before, lines[number.saturating_sub(5)..number]);
            assert_eq!(context.after, lines[number + 1..(number + 6).min(2_000)]);
        }
        found.line = 2_000;
        assert_eq!(context(&pieces, &found), None);
    }

    #[test]
    fn sources_with_one_name_keep_their_texts() {
        let map = map_of(&[("a.js", "one"), ("./a.js", "two")], &[], "AAAA,CCAA");
        let pieces = Pieces::of(&map).unwrap();
        let line = |column| context(&pieces, &find(&pieces, 0, column).unwrap()).unwrap().line;
        assert_eq!([line(0), line(1)], ["one", "two"]);
    }

    #[test]
    fn long_lines_are_cut_at_characters() {
        let text = format!("{}\nend", "é".repeat(2_500_000));
        let map = map_of(&[("a.js", &text)], &[], "AAAA");
        let pieces = Pieces::of(&map).unwrap();
        let found = find(&pieces, 0, 0).unwrap();
        let context = context(&pieces, &found).unwrap();
        assert_eq!((context.line.len(), context.after), (1_000, vec!["end".to_owned()]));
    }

    #[test]
    fn large_sources_do_not_fill_tables() {
        let text = "x".repeat(999) + "\n";
        let mappings = "AAAA".to_owned() + &",CAAA".repeat(399);
        let map = map_of(&[("a.js", &text.repeat(20_000))], &[], &mappings);
        let pieces = Pieces::of(&map).unwrap();
        assert!(pieces.index.texts > 1_000);
        assert_eq!(pieces.index.starts.len(), 1);
    }

    #[test]
    fn many_mappings_are_cut_into_pieces() {
        let mappings = vec!["AAAAA,CAACA,EACDA"; 30_000].join(";");
        let pieces = Pieces::of(&map_of(&[("a.js", "x")], &["n"], &mappings)).unwrap();
        assert!(pieces.index.starts.len() > 5);
        for table in &pieces.pieces {
            assert!(decompress(table).unwrap().len() <= PIECE_BYTES);
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
        assert_eq!(pieces.index.starts.len(), 2);
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
