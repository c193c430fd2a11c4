//! Parses source maps.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sourcemap::{DecodedMap, SourceMap, SourceView, Token};

use crate::scopes::Functions;
use crate::{BUILD_AGAIN, BundleFault, MAX_MAPPINGS, SPLIT, check_limit, clean_path, invalid};

/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 200;
/// Maximum lines and columns. Larger ones come from negative numbers.
const MAX_POSITION: u32 = i32::MAX.unsigned_abs();
/// Maximum sources and names, each. An entry takes at least its place in memory.
const MAX_ENTRIES: u64 = 1_000_000;

/// A position of generated code, and the source that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<'m> {
    /// Line of the generated code, from 0.
    pub line: u32,
    /// Column of the generated code in UTF-16 units, from 0.
    pub column: u32,
    /// The source, if the code has one.
    pub source: Option<SourcePosition>,
    /// The name at the position, if any.
    pub name: Option<&'m str>,
    /// The name of the function that contains the position, if the map has scopes.
    pub function: Option<&'m str>,
}

/// A position in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    /// Index of the source.
    pub source: usize,
    /// Line, from 0.
    pub line: u32,
    /// Column in UTF-16 units, from 0.
    pub column: u32,
}

/// A parsed map. A map without sections has one, at the start.
#[derive(Debug, Default)]
pub struct ParsedMap {
    sections: Vec<Section>,
    mappings: usize,
    sources: usize,
    names: usize,
}

#[derive(Debug)]
struct Section {
    offset: Offset,
    map: SourceMap,
    /// The names of the map, without control characters.
    names: Vec<String>,
    functions: Functions,
    /// Number of sources of the preceding sections.
    first_source: usize,
}

/// The parts that limits concern.
#[derive(Deserialize)]
struct Outline<'a> {
    version: Option<u64>,
    #[serde(borrow)]
    mappings: Option<&'a RawValue>,
    #[serde(borrow)]
    sections: Option<Vec<SectionOutline<'a>>>,
    sources: Option<Vec<IgnoredAny>>,
    names: Option<Vec<IgnoredAny>>,
    #[serde(borrow)]
    scopes: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SectionOutline<'a> {
    offset: Offset,
    #[serde(borrow)]
    map: Option<&'a RawValue>,
}

/// The start of a section in the generated code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl ParsedMap {
    /// Parses a map of version 3. The fault lacks the name of the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, BundleFault> {
        let mut map = Self::default();
        map.add(Offset::default(), without_guard(bytes), false)?;
        Ok(map)
    }

    /// Adds a map without sections, or its sections, after checking the limits of the whole map.
    fn add(&mut self, offset: Offset, json: &[u8], is_section: bool) -> Result<(), BundleFault> {
        let mut outline = Outline::read(json)?;
        if let Some(mut sections) = outline.sections.take() {
            if is_section {
                return Err(invalid("a section of the map has sections itself", BUILD_AGAIN));
            }
            sections.sort_by_key(|section| section.offset);
            return sections.iter().try_for_each(|SectionOutline { offset, map }| {
                let problem = "a section of the map has no `map`";
                let map = map.ok_or_else(|| invalid(problem, "build it with embedded maps"))?;
                self.add(*offset, map.get().as_bytes(), true)
            });
        }
        let first_source = self.sources;
        let mappings = outline.mappings.map_or("", RawValue::get).bytes();
        // Including empty lines.
        self.mappings += mappings.filter(|byte| b",;".contains(byte)).count();
        self.sources += outline.sources.as_ref().map_or(0, Vec::len);
        self.names += outline.names.as_ref().map_or(0, Vec::len);
        let entries = self.sources.max(self.names);
        let subject = "the map has at least";
        check_limit(subject, self.mappings as u64, "mappings", MAX_MAPPINGS as u64, SPLIT)?;
        check_limit(subject, entries as u64, "sources or names", MAX_ENTRIES, SPLIT)?;
        let map = decode(json).map_err(|error| {
            invalid(format_args!("the map cannot be read: {error}"), BUILD_AGAIN)
        })?;
        if offset.line.max(offset.column) > MAX_POSITION || map.tokens().any(is_far) {
            let problem = "the map has a negative line or column in `mappings`";
            return Err(invalid(problem, BUILD_AGAIN));
        }
        let names = map.names().map(plain_name).collect();
        let functions = outline.functions();
        self.sections.push(Section { offset, map, names, functions, first_source });
        Ok(())
    }

    /// Returns the mappings, sorted by their generated position. The first of equal positions
    /// counts. A section ends where the next one starts.
    pub fn mappings(&self) -> impl Iterator<Item = Mapping<'_>> {
        let starts = self.sections.iter().skip(1).map(|section| section.offset);
        let ends = starts.chain([Offset { line: u32::MAX, column: u32::MAX }]);
        let mappings = self.sections.iter().zip(ends).flat_map(|(section, end)| {
            let mappings = section.map.tokens().map(|token| section.place(token));
            mappings.take_while(move |it| (it.line, it.column) < (end.line, end.column))
        });
        let mut last = None;
        mappings.filter(move |mapping| {
            let place = (mapping.line, mapping.column);
            last.replace(place) != Some(place)
        })
    }

    /// Returns the clean path of each source, with its text if the map has it.
    pub fn sources(&self) -> impl Iterator<Item = (String, Option<&SourceView>)> {
        self.sections.iter().flat_map(|Section { map, .. }| {
            let names = map.sources().map(clean_path);
            (0..).zip(names).map(|(index, name)| (name, map.get_source_view(index)))
        })
    }
}

/// Decodes a map without sections.
fn decode(json: &[u8]) -> sourcemap::Result<SourceMap> {
    match sourcemap::decode_slice(json)? {
        DecodedMap::Regular(map) => Ok(map),
        DecodedMap::Hermes(map) => Ok((*map).clone()),
        DecodedMap::Index(_) => Err(sourcemap::Error::IncompatibleSourceMap),
    }
}

fn is_far(token: Token<'_>) -> bool {
    let raw = token.get_raw_token();
    let source = if token.has_source() { raw.src_line.max(raw.src_col) } else { 0 };
    raw.dst_line.max(raw.dst_col).max(source) > MAX_POSITION
}

impl<'a> Outline<'a> {
    fn read(json: &'a [u8]) -> Result<Self, BundleFault> {
        let outline: Self = serde_json::from_slice(json).map_err(|error| {
            invalid(format_args!("the map is not valid JSON: {error}"), BUILD_AGAIN)
        })?;
        match outline.version {
            Some(3) if outline.mappings.is_none() && outline.sections.is_none() => {
                Err(invalid("the map has neither `mappings` nor `sections`", BUILD_AGAIN))
            }
            Some(3) => Ok(outline),
            Some(other) => {
                let problem =
                    format!("the map has version {other}, but only version 3 is supported");
                Err(invalid(problem, "use a newer build tool"))
            }
            None => Err(invalid("the map has no `version`", "only version 3 is supported")),
        }
    }

    /// Returns the functions. Malformed scopes do not make a map useless.
    fn functions(&self) -> Functions {
        let scopes = self.scopes.and_then(|it| serde_json::from_str::<String>(it.get()).ok());
        scopes.and_then(|text| Functions::read(&text)).unwrap_or_default()
    }
}

impl Section {
    fn name(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize).map(String::as_str).filter(|name| !name.trim().is_empty())
    }

    /// Returns a mapping at its place in the whole map.
    fn place<'m>(&'m self, token: Token<'m>) -> Mapping<'m> {
        let raw = token.get_raw_token();
        let source = token.has_source().then(|| SourcePosition {
            source: self.first_source + raw.src_id as usize,
            line: raw.src_line,
            column: raw.src_col,
        });
        let function = self.functions.at(raw.src_id, raw.src_line, raw.src_col);
        let column = if raw.dst_line == 0 { self.offset.column } else { 0 };
        Mapping {
            line: raw.dst_line.saturating_add(self.offset.line),
            column: raw.dst_col.saturating_add(column),
            source,
            name: self.name(raw.name_id),
            function: function.and_then(|name| self.name(name)),
        }
    }
}

/// Returns a name without control characters.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}

/// Drops the first line if it is `)]}'`, which keeps browsers from running the map as a script.
fn without_guard(bytes: &[u8]) -> &[u8] {
    if !bytes.starts_with(b")]}") {
        return bytes;
    }
    bytes.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        ParsedMap::parse(text.as_bytes()).err().map(|it| it.to_string()).unwrap_or_default()
    }

    /// Line and column, and source and line of the source.
    type Position = (u32, u32, Option<(usize, u32)>);

    fn mappings(text: &str) -> Vec<Position> {
        let map = ParsedMap::parse(text.as_bytes()).unwrap();
        let of = |it: Mapping<'_>| (it.line, it.column, it.source.map(|it| (it.source, it.line)));
        map.mappings().map(of).collect()
    }

    #[test]
    fn broken_maps_are_explained() {
        for (text, part) in [
            ("", "not valid JSON: EOF"),
            (r#"{"version":3,"mapp"#, "not valid JSON: EOF"),
            ("[]", "not valid JSON"),
            (r#"{"version":2,"sources":[],"names":[],"mappings":""}"#, "version 2"),
            (r#"{"sources":[],"names":[],"mappings":""}"#, "no `version`"),
            (r#"{"version":3,"sources":[],"names":[]}"#, "neither `mappings` nor `sections`"),
            (r#"{"version":3,"sources":["a"],"names":[],"mappings":"A*A"}"#, "cannot be read"),
            (
                r#"{"version":3,"sources":["a"],"names":[],"mappings":"AACA,AEAA"}"#,
                "cannot be read",
            ),
            (r#"{"version":3,"sources":["a"],"names":[],"mappings":"AADA"}"#, "negative line"),
            (r#"{"version":3,"sources":["a"],"names":[],"mappings":"D"}"#, "negative line"),
            (
                r#"{"version":3,"sections":[{"offset":{"line":0,"column":0},"url":"x"}]}"#,
                "no `map`",
            ),
            (
                r#"{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":{"version":3,"sections":[]}}]}"#,
                "has sections itself",
            ),
            (
                r#"{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":{"version":2,"mappings":""}}]}"#,
                "version 2",
            ),
        ] {
            assert!(fault(text).contains(part), "{text}: {}", fault(text));
        }
    }

    #[test]
    fn ten_million_mappings_are_rejected() {
        let of = |sources: &str, mappings: &str| {
            format!(r#"{{"version":3,"sources":[{sources}],"names":[],"mappings":"{mappings}"}}"#)
        };
        for count in [MAX_MAPPINGS + 1, 10_000_000] {
            let detail = fault(&of("", &"A,".repeat(count)));
            let expected = format!("{count} mappings, but the limit is 4000000; split the script");
            assert!(detail.ends_with(&expected), "{detail}");
        }
        let sources = vec!["\"a\""; 1_000_001].join(",");
        let detail = fault(&of(&sources, ""));
        assert!(detail.contains("1000001 sources or names, but the limit is 1000000"), "{detail}");
    }

    #[test]
    fn sections_end_where_the_next_one_starts() {
        let section = |line: u32, column: u32, source: &str| {
            format!(
                r#"{{"offset":{{"line":{line},"column":{column}}},"map":{{"version":3,"sources":["{source}"],"names":[],"mappings":"AAAA,UAAA;AAAA"}}}}"#
            )
        };
        // The sections overlap, and the later one comes first.
        let sections = [section(0, 5, "b"), section(0, 0, "a")].join(",");
        let index = format!(r#"{{"version":3,"sections":[{sections}]}}"#);
        let (a, b) = (Some((0, 0)), Some((1, 0)));
        assert_eq!(mappings(&index), [(0, 0, a), (0, 5, b), (0, 15, b), (1, 0, b)]);
    }

    #[test]
    fn sections_are_flattened_and_guards_dropped() {
        let one = r#"{"version":3,"sources":["a"],"names":[],"mappings":"AAAA"}"#;
        let two = one.replace("\"a\"", "\"b\"");
        let index = format!(
            ")]}}'\n{{\"version\":3,\"sections\":[{{\"offset\":{{\"line\":0,\"column\":0}},\"map\":{one}}},\
             {{\"offset\":{{\"line\":2,\"column\":5}},\"map\":{two}}}]}}"
        );
        assert_eq!(mappings(&index), [(0, 0, Some((0, 0))), (2, 5, Some((1, 0)))]);
    }

    #[test]
    fn unsorted_and_repeated_positions_are_ordered() {
        let text = r#"{"version":3,"sources":["a"],"names":[],"mappings":"KAAA,LACA,AACA,AACA"}"#;
        assert_eq!(mappings(text), [(0, 0, Some((0, 1))), (0, 5, Some((0, 0)))]);
    }

    #[test]
    fn names_lose_control_characters() {
        let text = format!(
            r#"{{"version":3,"sources":["a"],"names":["a\u0000b\nc","","{}"],"mappings":"AAAA"}}"#,
            "x".repeat(1_000)
        );
        let text = text.replace("AAAA", "AAAAA,CAAAC,CAAAC,CAAA");
        let map = ParsedMap::parse(text.as_bytes()).unwrap();
        let names: Vec<_> = map.mappings().map(|it| it.name).collect();
        assert_eq!(names[0], Some("abc"));
        assert_eq!(names[1], None);
        assert_eq!(names[2].map(str::len), Some(MAX_NAME_CHARS));
        assert_eq!(names[3], None);
    }
}
