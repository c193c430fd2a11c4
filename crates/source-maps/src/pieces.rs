//! The prepared form of a map: compressed pieces, each of at most 16 kB before compression.
//!
//! - A *table* has the mappings of a range of generated code, with the names and paths that they
//!   use. It is a self-contained piece: numbers are LEB128, and positions are differences.
//! - A *text* has lines of sources.
//!
//! The *index* has the first generated position of each table.

use std::collections::HashMap;

use crate::BundleFault;
use crate::map::{ParsedMap, SourcePosition};

/// Maximum bytes of a piece before compression, to within one mapping or line.
const PIECE_BYTES: usize = 16_000;
/// Maximum bytes of a decompressed piece.
const MAX_PIECE_BYTES: usize = 16 << 20;
/// Maximum bytes of a stored line. Longer lines are built code themselves.
const MAX_LINE_BYTES: usize = 1_000;
/// zstd's default level.
const COMPRESSION_LEVEL: i32 = 3;
/// Maximum bytes of a source that count for the size of its table. A source of 50 MB has 3,000 runs:
/// it must not take a table for each mapping.
const MAX_SOURCE_BYTES: usize = 200;
/// Separates a name from the name of its function. Names have no control characters.
const NAME_END: char = '\n';
/// Lines of context before and after a line.
pub const CONTEXT_LINES: u32 = 5;

/// The prepared form of a map.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The first position of each table.
    pub index: Index,
    /// The compressed tables.
    pub tables: Vec<Vec<u8>>,
    /// The compressed texts.
    pub texts: Vec<Vec<u8>>,
}

impl Pieces {
    /// Prepares a map.
    pub fn of(map: &ParsedMap) -> Result<Self, BundleFault> {
        let mut texts = TextWriter::default();
        let mut sources = Vec::new();
        for (path, text) in map.sources() {
            let runs = text.map_or(Ok(Vec::new()), |text| texts.add(text))?;
            sources.push((path, runs));
        }
        let texts = texts.finish()?;
        let mut pieces = Self { index: Index::default(), tables: Vec::new(), texts };
        let mut table = TableWriter::default();
        for mapping in map.mappings() {
            if table.bytes() >= PIECE_BYTES {
                pieces.tables.push(std::mem::take(&mut table).finish()?);
            }
            if table.is_empty() {
                pieces.index.0.push((mapping.line, mapping.column));
            }
            table.add(mapping.line, mapping.column, mapping.source, map, &sources);
        }
        if !table.is_empty() {
            pieces.tables.push(table.finish()?);
        }
        Ok(pieces)
    }

    /// Returns the bytes of all pieces.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().chain(&self.texts).map(|piece| piece.len() as u64).sum()
    }
}

/// The first generated position of each table, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(Vec<(u32, u32)>);

impl Index {
    /// Returns the number of the table that can contain a position, both from 0.
    pub fn table_of(&self, line: u32, column: u32) -> Option<usize> {
        self.0.partition_point(|start| *start <= (line, column)).checked_sub(1)
    }

    /// Returns the stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * 4);
        let (mut line, mut column) = (0, 0);
        for (next_line, next_column) in &self.0 {
            write_number(&mut bytes, u64::from(next_line - line));
            write_signed(&mut bytes, i64::from(*next_column) - i64::from(column));
            (line, column) = (*next_line, *next_column);
        }
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (mut line, mut column) = (0_u32, 0_u32);
        let mut starts = Vec::new();
        while !reader.0.is_empty() {
            line = line.checked_add(reader.small()?)?;
            column = reader.moved(column)?;
            starts.push((line, column));
        }
        Some(Self(starts))
    }
}

/// Consecutive lines of a source within one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of lines.
    pub lines: u32,
    /// Number of the text.
    pub text: u32,
    /// Byte at which the first line starts.
    pub offset: u32,
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
    pub fn texts(&self) -> impl Iterator<Item = u32> {
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
    pub fn context<'t>(&self, text_of: impl Fn(u32) -> Option<&'t str>) -> Option<Context> {
        let mut context = Context::default();
        let mut has_line = false;
        for (from, run) in self.runs_in_context() {
            let text = text_of(run.text)?.get(usize::try_from(run.offset).ok()?..)?;
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

/// Decompresses a piece.
pub fn decompress(piece: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(piece, MAX_PIECE_BYTES).ok()
}

/// Decompresses a text.
pub fn decompress_text(piece: &[u8]) -> Option<String> {
    String::from_utf8(decompress(piece)?).ok()
}

/// Finds the source of a generated position in a decompressed table: that of the last mapping in
/// the line at or before the column. Returns `None` if the table is unreadable, and `Some(None)` if
/// the position has no source.
#[allow(clippy::option_option)]
pub fn look_up(table: &[u8], line: u32, column: u32) -> Option<Option<Found>> {
    let mut reader = Reader(table);
    let names = (0..reader.count()?).map(|_| reader.text()).collect::<Option<Vec<&str>>>()?;
    let mut sources = Vec::new();
    for _ in 0..reader.count()? {
        let path = reader.text()?;
        let mut runs = Vec::new();
        for _ in 0..reader.count()? {
            let (lines, text, offset) = (reader.small()?, reader.small()?, reader.small()?);
            runs.push(Run { lines, text, offset });
        }
        sources.push((path, runs));
    }
    let (mut at, mut origin) = (0_u32, (0_u32, 0_u32));
    let mut found: Option<(u32, u32, u32, u32)> = None;
    let mut is_there = false;
    'lines: while !reader.0.is_empty() {
        at = at.checked_add(reader.small()?)?;
        let mut generated = 0_u32;
        for _ in 0..reader.count()? {
            generated = generated.checked_add(reader.small()?)?;
            let source = reader.small()?;
            let mut mapping = None;
            if let Some(source) = source.checked_sub(1) {
                origin = (reader.moved(origin.0)?, reader.moved(origin.1)?);
                mapping = Some((source, origin.0, origin.1, reader.small()?));
            }
            if (at, generated) > (line, column) {
                break 'lines;
            }
            if at == line {
                (found, is_there) = (mapping, true);
            }
        }
    }
    let Some((source, line, column, name)) = found.filter(|_| is_there) else { return Some(None) };
    let (path, runs) = sources.into_iter().nth(usize::try_from(source).ok()?)?;
    let entry = match name.checked_sub(1) {
        Some(name) => names.get(usize::try_from(name).ok()?)?,
        None => "",
    };
    let (name, function) = entry.split_once(NAME_END).unwrap_or((entry, ""));
    let [name, function] = [name, function].map(|it| (!it.is_empty()).then(|| it.to_owned()));
    Some(Some(Found { path: path.to_owned(), line, column, name, function, runs }))
}

/// Writes a table.
#[derive(Default)]
struct TableWriter {
    names: Dictionary,
    sources: Dictionary,
    /// The bytes of the sources that count for the size of the table.
    source_bytes: usize,
    /// The finished lines.
    lines: Vec<u8>,
    last_line: u32,
    /// The mappings of the current line.
    line: Vec<u8>,
    mappings: u64,
    at: (u32, u32),
    origin: (u32, u32),
}

/// A source, or a name with the name of its function.
type EntryId = (Option<u32>, Option<u32>);

/// Entries of a table, numbered by their first use.
#[derive(Default)]
struct Dictionary {
    numbers: HashMap<EntryId, u64>,
    bytes: Vec<u8>,
}

impl Dictionary {
    /// Returns the number of an entry, from 1.
    fn number(&mut self, id: EntryId, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let bytes = &mut self.bytes;
        *self.numbers.entry(id).or_insert_with(|| {
            write(bytes);
            next
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_number(out, self.numbers.len() as u64);
        out.extend_from_slice(&self.bytes);
    }
}

impl TableWriter {
    fn is_empty(&self) -> bool {
        self.mappings == 0 && self.lines.is_empty()
    }

    fn bytes(&self) -> usize {
        self.names.bytes.len() + self.source_bytes + self.lines.len() + self.line.len()
    }

    fn add(
        &mut self,
        line: u32,
        column: u32,
        source: Option<SourcePosition>,
        map: &ParsedMap,
        sources: &[(String, Vec<Run>)],
    ) {
        if line != self.at.0 {
            self.end_line();
            self.at = (line, 0);
        }
        write_number(&mut self.line, u64::from(column - self.at.1));
        self.at.1 = column;
        self.mappings += 1;
        let known = source.and_then(|it| {
            let index = usize::try_from(it.source).ok()?;
            Some((it, sources.get(index)?))
        });
        let Some((source, (path, runs))) = known else {
            write_number(&mut self.line, 0);
            return;
        };
        let before = self.sources.bytes.len();
        let number = self.sources.number((Some(source.source), None), |out| {
            write_text(out, path);
            write_number(out, runs.len() as u64);
            for number in runs.iter().flat_map(|run| [run.lines, run.text, run.offset]) {
                write_number(out, u64::from(number));
            }
        });
        self.source_bytes += (self.sources.bytes.len() - before).min(MAX_SOURCE_BYTES);
        write_number(&mut self.line, number);
        write_signed(&mut self.line, i64::from(source.line) - i64::from(self.origin.0));
        write_signed(&mut self.line, i64::from(source.column) - i64::from(self.origin.1));
        self.origin = (source.line, source.column);
        let [name, function] = [source.name, source.function].map(|id| map.name(id?));
        let entry = match (name, function) {
            (name, None) => name,
            (name, Some(function)) => {
                Some(format!("{}{NAME_END}{function}", name.unwrap_or_default()).into())
            }
        };
        let number = entry.map_or(0, |entry| {
            self.names.number((source.name, source.function), |out| write_text(out, &entry))
        });
        write_number(&mut self.line, number);
    }

    fn end_line(&mut self) {
        if self.mappings > 0 {
            write_number(&mut self.lines, u64::from(self.at.0 - self.last_line));
            write_number(&mut self.lines, self.mappings);
            self.lines.append(&mut self.line);
            (self.last_line, self.mappings) = (self.at.0, 0);
        }
    }

    fn finish(mut self) -> Result<Vec<u8>, BundleFault> {
        self.end_line();
        let mut table = Vec::with_capacity(self.bytes() + 16);
        self.names.write(&mut table);
        self.sources.write(&mut table);
        table.append(&mut self.lines);
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
        let mut is_new = true;
        for line in source.split('\n') {
            if self.text.len() >= PIECE_BYTES {
                self.end_text()?;
                is_new = true;
            }
            if is_new {
                let text = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
                let offset = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
                runs.push(Run { lines: 0, text, offset });
                is_new = false;
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
    zstd::bulk::compress(piece, COMPRESSION_LEVEL).map_err(|error| {
        BundleFault::invalid(format_args!("the map cannot be compressed: {error}"))
    })
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Writes a number whose sign is the lowest bit.
fn write_signed(out: &mut Vec<u8>, number: i64) {
    write_number(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

struct Reader<'p>(&'p [u8]);

impl<'p> Reader<'p> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Reads a number of entries, each of which takes at least a byte.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    /// Reads a difference, and returns the number moved by it.
    fn moved(&mut self, number: u32) -> Option<u32> {
        let difference = self.number()?;
        let difference = (difference >> 1).cast_signed() ^ -(difference & 1).cast_signed();
        u32::try_from(i64::from(number).checked_add(difference)?).ok()
    }

    fn text(&mut self) -> Option<&'p str> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
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
        let table = pieces.tables.get(pieces.index.table_of(line, column)?)?;
        look_up(&decompress(table).unwrap(), line, column).unwrap()
    }

    fn context(pieces: &Pieces, found: &Found) -> Option<Context> {
        let texts: Vec<String> =
            pieces.texts.iter().map(|text| decompress_text(text).unwrap()).collect();
        found.context(|number| texts.get(number as usize).map(String::as_str))
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
        let index = pieces.index.to_bytes();
        assert_eq!(Index::from_bytes(&index).unwrap(), pieces.index);
    }

    #[test]
    fn context_spans_texts_and_ends_with_the_source() {
        let lines: Vec<String> = (0..2_000).map(|number| format!("{number:060}")).collect();
        let map = map_of(&[("a.js", &lines.join("\r\n"))], &[], "AAAA");
        let pieces = Pieces::of(&map).unwrap();
        assert!(pieces.texts.len() > 1);
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
    fn long_lines_are_cut_at_characters() {
        let text = format!("{}\nend", "é".repeat(2_500_000));
        let map = map_of(&[("a.js", &text)], &[], "AAAA");
        let pieces = Pieces::of(&map).unwrap();
        let found = find(&pieces, 0, 0).unwrap();
        let context = context(&pieces, &found).unwrap();
        assert_eq!(
            (context.line.len(), context.after),
            (1_000, vec!["end".to_owned(), String::new()].into_iter().take(1).collect())
        );
    }

    #[test]
    fn large_sources_do_not_fill_tables() {
        let map = map_of(&[("a.js", "x")], &[], "AAAA");
        let sources = [("a.js".to_owned(), vec![Run { lines: 9, text: 9, offset: 9 }; 10_000])];
        let mut table = TableWriter::default();
        for column in 0..100 {
            let source = SourcePosition { source: 0, line: 0, column, name: None, function: None };
            table.add(0, column, Some(source), &map, &sources);
        }
        assert!(table.bytes() < 1_000, "{}", table.bytes());
    }

    #[test]
    fn many_mappings_are_cut_into_pieces() {
        let mappings = vec!["AAAAA,CAACA,EACDA"; 30_000].join(";");
        let pieces = Pieces::of(&map_of(&[("a.js", "x")], &["n"], &mappings)).unwrap();
        assert!(pieces.tables.len() > 5);
        for table in &pieces.tables {
            assert!(decompress(table).unwrap().len() <= PIECE_BYTES + 100);
        }
        for line in (0..30_000).step_by(977) {
            assert_eq!(find(&pieces, line, 0).unwrap().line, line);
            assert_eq!(find(&pieces, line, 9).unwrap().line, line + 1);
        }
    }

    proptest! {
        #[test]
        fn unreadable_tables_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = look_up(&bytes, 1, 5);
            let _ = Index::from_bytes(&bytes);
        }

        #[test]
        fn numbers_survive_a_round_trip(from in any::<u32>(), to in any::<u32>()) {
            let mut bytes = Vec::new();
            write_signed(&mut bytes, i64::from(to) - i64::from(from));
            write_number(&mut bytes, u64::from(to));
            let mut reader = Reader(&bytes);
            prop_assert_eq!(reader.moved(from), Some(to));
            prop_assert_eq!(reader.small(), Some(to));
        }
    }
}
