//! Parses source maps.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use sourcemap::{DecodedMap, SourceMap};

use crate::scopes::Functions;
use crate::{BundleFault, MAX_MAP_BYTES, MAX_MAPPINGS, clean_path};

/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 200;
/// Maximum lines and columns. Larger ones come from negative numbers.
const MAX_POSITION: u32 = i32::MAX.unsigned_abs();
/// Maximum sources and names, each. An entry takes at least its place in memory.
const MAX_ENTRIES: usize = 1_000_000;

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
    pub name: Option<Cow<'m, str>>,
    /// The name of the function that contains the position, if the map has scopes.
    pub function: Option<Cow<'m, str>>,
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
    /// Numbers of sources and names in all sections.
    sources: usize,
    names: usize,
    mappings: usize,
}

#[derive(Debug)]
struct Section {
    offset: Offset,
    map: SourceMap,
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
    #[serde(default)]
    sources: Option<Vec<IgnoredAny>>,
    #[serde(default)]
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
        if bytes.len() as u64 > MAX_MAP_BYTES {
            return Err(BundleFault::too_large(format_args!(
                "the map has {} bytes, but the limit is {MAX_MAP_BYTES}; split the script",
                bytes.len()
            )));
        }
        let mut map = Self::default();
        let json = without_guard(bytes);
        let outline = Outline::read(json)?;
        let Some(sections) = &outline.sections else {
            map.add(json, &outline, Offset::default())?;
            return Ok(map);
        };
        for section in sections {
            let Some(json) = section.map else {
                return Err(BundleFault::invalid(
                    "a section of the map has no `map`; build it with embedded maps",
                ));
            };
            let json = json.get().as_bytes();
            let outline = Outline::read(json)?;
            if outline.sections.is_some() {
                return Err(BundleFault::invalid("a section of the map has sections itself"));
            }
            map.add(json, &outline, section.offset)?;
        }
        map.sections.sort_by_key(|section| section.offset);
        Ok(map)
    }

    /// Adds a map at an offset.
    fn add(
        &mut self,
        json: &[u8],
        outline: &Outline<'_>,
        offset: Offset,
    ) -> Result<(), BundleFault> {
        self.count(outline)?;
        let unreadable = |error: &dyn std::fmt::Display| {
            BundleFault::invalid(format_args!("the map cannot be read: {error}; build it again"))
        };
        let map = match sourcemap::decode_slice(json).map_err(|error| unreadable(&error))? {
            DecodedMap::Regular(map) => map,
            DecodedMap::Hermes(map) => (*map).clone(),
            DecodedMap::Index(_) => return Err(unreadable(&"it is an index")),
        };
        let is_far = |token: sourcemap::Token<'_>| {
            let raw = token.get_raw_token();
            let source = if token.has_source() { raw.src_line.max(raw.src_col) } else { 0 };
            raw.dst_line.max(raw.dst_col).max(source) > MAX_POSITION
        };
        if offset.line.max(offset.column) > MAX_POSITION || map.tokens().any(is_far) {
            return Err(BundleFault::invalid(
                "the map has a negative line or column in `mappings`; build it again",
            ));
        }
        // Malformed scopes do not make a map useless.
        let scopes =
            outline.scopes.and_then(|it| serde_json::from_str::<Cow<'_, str>>(it.get()).ok());
        let functions = scopes.and_then(|text| Functions::read(&text)).unwrap_or_default();
        let first_source = self.sources;
        self.sources += map.get_source_count() as usize;
        self.sections.push(Section { offset, map, functions, first_source });
        Ok(())
    }

    /// Counts the mappings, including empty lines, and the names of a map. Fails over a limit.
    fn count(&mut self, outline: &Outline<'_>) -> Result<(), BundleFault> {
        let Some(mappings) = outline.mappings else {
            return Err(BundleFault::invalid(
                "the map has neither `mappings` nor `sections`; build it again",
            ));
        };
        let is_separator = |byte: &u8| matches!(byte, b',' | b';');
        self.mappings += mappings.get().bytes().filter(|byte| is_separator(byte)).count();
        if self.mappings > MAX_MAPPINGS {
            return Err(BundleFault::too_large(format_args!(
                "the map has more than {MAX_MAPPINGS} mappings; split the script"
            )));
        }
        let sources = outline.sources.as_ref().map_or(0, Vec::len);
        self.names += outline.names.as_ref().map_or(0, Vec::len);
        if self.names.max(self.sources + sources) > MAX_ENTRIES {
            return Err(BundleFault::too_large(format_args!(
                "the map has more than {MAX_ENTRIES} sources or names; split the script"
            )));
        }
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
    pub fn sources(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        self.sections.iter().flat_map(|Section { map, .. }| {
            (0..map.get_source_count()).map(|index| {
                let name = map.get_source(index).unwrap_or_default();
                (clean_path(name), map.get_source_contents(index))
            })
        })
    }
}

impl<'a> Outline<'a> {
    fn read(json: &'a [u8]) -> Result<Self, BundleFault> {
        let outline: Self = serde_json::from_slice(json).map_err(|error| {
            let detail = format_args!("the map is not valid JSON: {error}; build it again");
            BundleFault::invalid(detail)
        })?;
        match outline.version {
            Some(3) => Ok(outline),
            Some(version) => Err(BundleFault::invalid(format_args!(
                "the map has version {version}, but only version 3 is supported; use a newer \
                 build tool"
            ))),
            None => {
                Err(BundleFault::invalid("the map has no `version`; only version 3 is supported"))
            }
        }
    }
}

impl Section {
    /// Returns a mapping at its place in the whole map.
    fn place<'m>(&'m self, token: sourcemap::Token<'m>) -> Mapping<'m> {
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
            name: token.get_name().and_then(plain_name),
            function: function.and_then(|name| plain_name(self.map.get_name(name)?)),
        }
    }
}

/// Returns a name without control characters, or `None` if it is empty.
fn plain_name(name: &str) -> Option<Cow<'_, str>> {
    let is_plain = name.len() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
    let name = if is_plain {
        Cow::Borrowed(name)
    } else {
        name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
    };
    (!name.trim().is_empty()).then_some(name)
}

/// Drops the first line if it is `)]}'`, which keeps browsers from running the map as a script.
fn without_guard(bytes: &[u8]) -> &[u8] {
    if !bytes.starts_with(b")]}") {
        return bytes;
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    bytes.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        ParsedMap::parse(text.as_bytes()).err().map(|it| it.detail).unwrap_or_default()
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
        ] {
            assert!(fault(text).contains(part), "{text}: {}", fault(text));
        }
        let many = format!(
            r#"{{"version":3,"sources":[],"names":[],"mappings":"{}"}}"#,
            "A,".repeat(MAX_MAPPINGS + 1)
        );
        assert!(fault(&many).contains("more than 4000000 mappings"));
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
        assert_eq!(names[0].as_deref(), Some("abc"));
        assert_eq!(names[1], None);
        assert_eq!(names[2].as_ref().map(|it| it.len()), Some(MAX_NAME_CHARS));
        assert_eq!(names[3], None);
    }
}
