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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Line of the generated code, from 0.
    pub line: u32,
    /// Column of the generated code in UTF-16 units, from 0.
    pub column: u32,
    /// The source, if the code has one.
    pub source: Option<SourcePosition>,
}

/// A position in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    /// Index of the source.
    pub source: u32,
    /// Line, from 0.
    pub line: u32,
    /// Column in UTF-16 units, from 0.
    pub column: u32,
    /// Index of the name, if any.
    pub name: Option<u32>,
    /// Index of the name of the function that contains the position, if the map has scopes.
    pub function: Option<u32>,
}

/// A parsed map. A map without sections has one, at the start.
#[derive(Debug)]
pub struct ParsedMap {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    line: u32,
    column: u32,
    map: SourceMap,
    functions: Functions,
    /// Number of sources of the preceding sections.
    sources: u32,
    /// Number of names of the preceding sections.
    names: u32,
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

#[derive(Deserialize)]
struct Offset {
    line: u32,
    column: u32,
}

impl Outline<'_> {
    /// Returns the number of mappings, including empty lines.
    fn mappings(&self) -> usize {
        let text = self.mappings.map(RawValue::get).unwrap_or_default();
        text.bytes().filter(|byte| matches!(byte, b',' | b';')).count()
    }

    /// Returns the number of sources or names, whichever is more.
    fn entries(&self) -> usize {
        let count = |list: &Option<Vec<IgnoredAny>>| list.as_ref().map_or(0, Vec::len);
        count(&self.sources).max(count(&self.names))
    }
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
        let mut map = Self { sections: Vec::new() };
        map.add(without_guard(bytes), &Offset { line: 0, column: 0 }, true)?;
        Ok(map)
    }

    /// Adds a map at an offset. A section has no sections of its own.
    fn add(&mut self, json: &[u8], at: &Offset, is_root: bool) -> Result<(), BundleFault> {
        let outline: Outline<'_> = serde_json::from_slice(json).map_err(|error| {
            let detail = format_args!("the map is not valid JSON: {error}; build it again");
            BundleFault::invalid(detail)
        })?;
        match outline.version {
            Some(3) => {}
            Some(version) => {
                return Err(BundleFault::invalid(format_args!(
                    "the map has version {version}, but only version 3 is supported; use a newer \
                     build tool"
                )));
            }
            None => {
                return Err(BundleFault::invalid(
                    "the map has no `version`; only version 3 is supported",
                ));
            }
        }
        if let Some(sections) = &outline.sections {
            if !is_root {
                return Err(BundleFault::invalid("a section of the map has sections itself"));
            }
            for section in sections {
                let Some(map) = section.map else {
                    return Err(BundleFault::invalid(
                        "a section of the map has no `map`; build it with embedded maps",
                    ));
                };
                let Offset { line, column } = section.offset;
                self.add(map.get().as_bytes(), &Offset { line, column }, false)?;
            }
            self.sections.sort_by_key(|section| (section.line, section.column));
            return Ok(());
        }
        if outline.mappings.is_none() {
            return Err(BundleFault::invalid(
                "the map has neither `mappings` nor `sections`; build it again",
            ));
        }
        let sections = &self.sections;
        let mappings: usize = sections.iter().map(|it| it.map.get_token_count() as usize).sum();
        if mappings + outline.mappings() > MAX_MAPPINGS {
            return Err(BundleFault::too_large(format_args!(
                "the map has more than {MAX_MAPPINGS} mappings; split the script"
            )));
        }
        let last = sections.last();
        let sources = last.map_or(0, |it| it.sources.saturating_add(it.map.get_source_count()));
        let names = last.map_or(0, |it| it.names.saturating_add(it.map.get_name_count()));
        if sources.max(names) as usize + outline.entries() > MAX_ENTRIES {
            return Err(BundleFault::too_large(format_args!(
                "the map has more than {MAX_ENTRIES} sources or names; split the script"
            )));
        }
        let decoded = sourcemap::decode_slice(json).map(|decoded| match decoded {
            DecodedMap::Regular(map) => Some(map),
            DecodedMap::Hermes(map) => Some((*map).clone()),
            DecodedMap::Index(_) => None,
        });
        let map = match decoded {
            Ok(Some(map)) => map,
            Ok(None) => return Err(BundleFault::invalid("the map cannot be read")),
            Err(error) => {
                return Err(BundleFault::invalid(format_args!(
                    "the map cannot be read: {error}; build it again"
                )));
            }
        };
        let is_far = |token: sourcemap::Token<'_>| {
            let raw = token.get_raw_token();
            let source = if raw.src_id == u32::MAX { 0 } else { raw.src_line.max(raw.src_col) };
            raw.dst_line.max(raw.dst_col).max(source) > MAX_POSITION
        };
        if at.line.max(at.column) > MAX_POSITION || map.tokens().any(is_far) {
            return Err(BundleFault::invalid(
                "the map has a negative line or column in `mappings`; build it again",
            ));
        }
        // Malformed scopes do not make a map useless.
        let scopes =
            outline.scopes.and_then(|it| serde_json::from_str::<Cow<'_, str>>(it.get()).ok());
        let functions = scopes.and_then(|text| Functions::read(&text)).unwrap_or_default();
        let Offset { line, column } = *at;
        self.sections.push(Section { line, column, map, functions, sources, names });
        Ok(())
    }

    /// Returns the mappings, sorted by their generated position. The first of equal positions
    /// counts. A section ends where the next one starts.
    pub fn mappings(&self) -> impl Iterator<Item = Mapping> {
        let starts = self.sections.iter().skip(1).map(|it| (it.line, it.column));
        let ends = starts.chain(std::iter::once((u32::MAX, u32::MAX)));
        let mappings = self.sections.iter().zip(ends).flat_map(|(section, end)| {
            let mappings = section.map.tokens().map(|token| section.place(token));
            mappings.take_while(move |mapping| (mapping.line, mapping.column) < end)
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

    /// Returns a name without control characters, or `None` if it is empty.
    pub fn name(&self, index: u32) -> Option<Cow<'_, str>> {
        let section = self.sections.iter().rev().find(|section| section.names <= index)?;
        let name = section.map.get_name(index - section.names)?;
        let is_plain = name.len() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
        let name = if is_plain {
            Cow::Borrowed(name)
        } else {
            name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
        };
        (!name.trim().is_empty()).then_some(name)
    }
}

impl Section {
    /// Returns a mapping at its place in the whole map.
    fn place(&self, token: sourcemap::Token<'_>) -> Mapping {
        let raw = token.get_raw_token();
        let function = self.functions.at(raw.src_id, raw.src_line, raw.src_col);
        let source = (raw.src_id != u32::MAX).then(|| SourcePosition {
            source: raw.src_id.saturating_add(self.sources),
            line: raw.src_line,
            column: raw.src_col,
            name: (raw.name_id != u32::MAX).then(|| raw.name_id.saturating_add(self.names)),
            function: function.map(|index| index.saturating_add(self.names)),
        });
        let column = if raw.dst_line == 0 { self.column } else { 0 };
        Mapping {
            line: raw.dst_line.saturating_add(self.line),
            column: raw.dst_col.saturating_add(column),
            source,
        }
    }
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
    type Position = (u32, u32, Option<(u32, u32)>);

    fn mappings(text: &str) -> Vec<Position> {
        let map = ParsedMap::parse(text.as_bytes()).unwrap();
        let of = |it: Mapping| (it.line, it.column, it.source.map(|it| (it.source, it.line)));
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
        let map = ParsedMap::parse(text.as_bytes()).unwrap();
        assert_eq!(map.name(0).as_deref(), Some("abc"));
        assert_eq!(map.name(1), None);
        assert_eq!(map.name(2).map(|it| it.len()), Some(MAX_NAME_CHARS));
        assert_eq!(map.name(3), None);
    }
}
