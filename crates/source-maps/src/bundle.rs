//! Bundles of Sentry's tools: a ZIP archive with `manifest.json`, after eight bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, Cursor, Read};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use zip::ZipArchive;

use crate::map::ParsedMap;
use crate::pieces::Pieces;
use crate::{
    BUILD_AGAIN, BundleFault, MAX_MAP_BYTES, MAX_MAPS, MAX_MAPS_BYTES, MapKey, SPLIT, UPDATE_TOOL,
    UPLOAD_AGAIN, UPLOAD_FEWER, check_limit, invalid, url_path,
};

/// The first bytes of a bundle: the format and its version.
const MAGIC: &[u8] = b"SYSB\x02\0\0\0";
/// Maximum bytes of the manifest.
const MAX_MANIFEST_BYTES: u64 = 8 << 20;
const MANIFEST: &str = "manifest.json";
const SCRIPT: &str = "minified_source";
const MAP: &str = "source_map";
/// Maximum characters of a shown name or URL.
const MAX_SHOWN_CHARS: usize = 1_000;

/// A SHA-1, by which Sentry's tools name chunks and bundles: 40 hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Checksum(String);

impl Checksum {
    /// Returns the checksum of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = Sha1::digest(bytes);
        Self(hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat())
    }

    /// Parses 40 hexadecimal digits in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let is_checksum = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_checksum.then(|| Self(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A bundle whose manifest is valid. Its maps are not yet parsed.
pub struct Bundle {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// The maps by their file in the archive.
    maps: BTreeMap<String, BundledMap>,
}

/// A map in a bundle, with the keys of its scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledMap {
    /// The URL of its script, else its own.
    pub url: String,
    /// The bytes before compression.
    pub bytes: u64,
    /// The keys by which frames find it.
    pub keys: BTreeSet<MapKey>,
}

/// A map whose pieces are ready to be stored.
#[derive(Debug)]
pub struct PreparedMap {
    /// The map in the bundle.
    pub map: BundledMap,
    /// The pieces of the map.
    pub pieces: Pieces,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    files: BTreeMap<String, ManifestFile>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ManifestFile {
    #[serde(rename = "type")]
    file_type: String,
    url: String,
    headers: HashMap<String, String>,
}

impl ManifestFile {
    /// Returns a header. Tools write its name in either letter case.
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(it, value)| it.eq_ignore_ascii_case(name).then_some(value.as_str()))
    }

    /// Returns the key of the debug ID.
    fn debug_id(&self, file: &str) -> Result<Option<MapKey>, BundleFault> {
        let Some(text) = self.header("debug-id") else { return Ok(None) };
        MapKey::of_debug_id(text).map(Some).ok_or_else(|| {
            let [file, text] = [file, text].map(shown);
            let subject = format!("{MANIFEST}: {file} has the debug ID `{text}`");
            invalid(format_args!("{subject}, which is not a UUID"), BUILD_AGAIN)
        })
    }

    /// Returns the URL of the script's map: relative to the script, or any URL.
    fn map_url(&self) -> Option<String> {
        let reference = self.header("sourcemap")?;
        url_path(reference).or_else(|| {
            let script = url_path(&self.url)?;
            let (folder, _) = script.rsplit_once('/')?;
            url_path(&format!("{folder}/{reference}"))
        })
    }
}

impl Bundle {
    /// Opens a bundle, and checks its manifest. `release` and `dist` are those of the upload.
    pub fn open(
        bytes: Vec<u8>,
        release: Option<&str>,
        dist: Option<&str>,
    ) -> Result<Self, BundleFault> {
        if !bytes.starts_with(MAGIC) {
            return Err(invalid("the upload is not an artifact bundle of version 2", UPDATE_TOOL));
        }
        // Some tools count offsets from the start of the file, others from that of the archive. The
        // reader accepts both, if it sees the whole file.
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| {
            invalid(format_args!("the bundle's archive cannot be read: {error}"), UPLOAD_AGAIN)
        })?;
        let manifest = read_file(&mut archive, MANIFEST, MAX_MANIFEST_BYTES)?;
        let manifest: Manifest = serde_json::from_slice(&manifest).map_err(|error| {
            invalid(format_args!("{MANIFEST} is not valid: {error}"), UPDATE_TOOL)
        })?;
        let maps = maps_of(&manifest, &mut archive, release, dist)?;
        Ok(Self { archive, maps })
    }

    /// Returns the keys of all maps.
    pub fn map_keys(&self) -> BTreeSet<MapKey> {
        self.maps.values().flat_map(|map| &map.keys).cloned().collect()
    }

    /// Returns the bytes of all maps before compression.
    pub fn maps_bytes(&self) -> u64 {
        self.maps.values().map(|map| map.bytes).sum()
    }

    /// Parses all maps and prepares their pieces.
    pub fn prepare(self) -> Result<Vec<PreparedMap>, BundleFault> {
        let Self { mut archive, maps } = self;
        let prepare = |(file, map): (String, BundledMap)| {
            let bytes = read_file(&mut archive, &file, MAX_MAP_BYTES)?;
            let parsed = ParsedMap::parse(&bytes).map_err(|fault| fault.of_file(&map.url))?;
            let pieces = Pieces::of(&parsed).map_err(|error| {
                let problem = format_args!("{}: the map cannot be prepared: {error}", map.url);
                invalid(problem, BUILD_AGAIN)
            })?;
            Ok(PreparedMap { map, pieces })
        };
        maps.into_iter().map(prepare).collect()
    }
}

/// Returns the maps that a manifest lists.
fn maps_of(
    manifest: &Manifest,
    archive: &mut ZipArchive<Cursor<Vec<u8>>>,
    release: Option<&str>,
    dist: Option<&str>,
) -> Result<BTreeMap<String, BundledMap>, BundleFault> {
    let mut files: Vec<(&String, &ManifestFile)> = manifest.files.iter().collect();
    // A map has precedence over another file with its URL.
    files.sort_by_key(|(_, entry)| entry.file_type == MAP);
    let mut by_url: HashMap<String, (&String, &ManifestFile)> = HashMap::new();
    let mut maps: BTreeMap<String, BundledMap> = BTreeMap::new();
    for &(file, entry) in &files {
        let inside = archive.by_name(file).ok().filter(|it| it.enclosed_name().is_some());
        let bytes = inside.map(|it| it.size()).ok_or_else(|| {
            let file = shown(file);
            let problem = format!("{MANIFEST} names `{file}`, which is not a file of the bundle");
            invalid(problem, UPDATE_TOOL)
        })?;
        by_url.extend(url_path(&entry.url).map(|url| (url, (file, entry))));
        if entry.file_type == MAP {
            let url = shown(&entry.url);
            check_limit(format_args!("{url}: the map has"), bytes, "bytes", MAX_MAP_BYTES, SPLIT)?;
            let keys = entry.debug_id(file)?.into_iter().collect();
            maps.insert(file.clone(), BundledMap { url, bytes, keys });
        }
    }
    check_limit("the bundle has", maps.len() as u64, "source maps", MAX_MAPS, UPLOAD_FEWER)?;
    let bytes = maps.values().map(|map| map.bytes).sum();
    check_limit("the bundle's source maps have", bytes, "bytes", MAX_MAPS_BYTES, UPLOAD_FEWER)?;
    let own_ids: BTreeSet<MapKey> = maps.values().flat_map(|map| &map.keys).cloned().collect();
    for (file, script) in files.into_iter().filter(|(_, entry)| entry.file_type == SCRIPT) {
        let id = script.debug_id(file)?;
        let named = script.map_url().and_then(|url| by_url.get(&url));
        let Some((map_file, other)) = named else { continue };
        // The tool uploads a map that it cannot read as a script.
        let map = maps.get_mut(*map_file).ok_or_else(|| {
            let problem = "the file is not a source map: it is truncated or not JSON";
            invalid(problem, BUILD_AGAIN).of_file(&shown(&other.url))
        })?;
        map.url = shown(&script.url);
        map.keys.extend(match id {
            Some(id) => (!own_ids.contains(&id)).then_some(id),
            None => release
                .zip(url_path(&script.url))
                .map(|(release, path)| MapKey::of_url(release, dist.unwrap_or_default(), &path)),
        });
    }
    maps.retain(|_, map| !map.keys.is_empty());
    if maps.is_empty() {
        let problem = "the bundle has no source map that belongs to a script";
        return Err(invalid(problem, "turn on source maps in the build"));
    }
    let mut owners: BTreeMap<&MapKey, &BundledMap> = BTreeMap::new();
    for (key, map) in maps.values().flat_map(|map| map.keys.iter().map(move |key| (key, map))) {
        if let Some(other) = owners.insert(key, map) {
            let common = key.debug_id().map_or("URL".to_owned(), |id| format!("debug ID {id}"));
            let maps = format_args!("the maps of {} and {}", other.url, map.url);
            return Err(invalid(format_args!("{maps} have the same {common}"), "build them again"));
        }
    }
    Ok(maps)
}

/// Reads a file of the archive. The archive can lie about its size.
fn read_file(
    archive: &mut ZipArchive<Cursor<Vec<u8>>>,
    name: &str,
    limit: u64,
) -> Result<Vec<u8>, BundleFault> {
    let mut bytes = Vec::new();
    let file = archive.by_name(name).map_err(io::Error::from);
    let read = file.and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    let subject = format!("the bundle's file {}", shown(name));
    read.map_err(|error| invalid(format_args!("{subject} cannot be read: {error}"), UPLOAD_AGAIN))?;
    check_limit(format_args!("{subject} has"), bytes.len() as u64, "bytes", limit, SPLIT)?;
    Ok(bytes)
}

/// Returns a name or URL of the bundle for people: without control characters, and not too long.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::{Value, json};
    use zip::write::SimpleFileOptions;

    use super::*;

    const ID: &str = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";
    const SOURCE_MAP: &str =
        r#"{"version":3,"sources":["a.js"],"sourcesContent":["x"],"names":[],"mappings":"AAAA"}"#;

    fn archive(manifest: &Value, files: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        let mut zip = zip::ZipWriter::new(&mut out);
        let manifest = manifest.to_string();
        for (name, content) in files.iter().chain([&(MANIFEST, manifest.as_str())]) {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        [MAGIC, &out.into_inner()].concat()
    }

    fn script(id: Option<&str>) -> Value {
        let headers = match id {
            Some(id) => json!({"Sourcemap": "app.js.map", "debug-id": id}),
            None => json!({"sourcemap": "app.js.map"}),
        };
        json!({"type": SCRIPT, "url": "~/app.js", "headers": headers})
    }

    fn map(id: Option<&str>) -> Value {
        let headers = id.map_or(json!({}), |id| json!({"debug-id": id}));
        json!({"type": MAP, "url": "~/app.js.map", "headers": headers})
    }

    fn fault(bytes: &[u8]) -> String {
        let prepared = Bundle::open(bytes.to_vec(), Some("1"), None).and_then(Bundle::prepare);
        prepared.err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn maps_have_the_keys_of_their_scripts() {
        let files = [("a", "x"), ("b", SOURCE_MAP)];
        let keys = |script: Value, map: Value, release| {
            let bytes = archive(&json!({"files": {"a": script, "b": map}}), &files);
            let bundle = Bundle::open(bytes, release, Some("7")).unwrap();
            let keys = bundle.map_keys();
            assert_eq!(bundle.prepare().unwrap().len(), 1);
            keys
        };
        let id = MapKey::of_debug_id(ID).unwrap();
        assert_eq!(keys(script(Some(ID)), map(Some(ID)), None), BTreeSet::from([id.clone()]));
        assert_eq!(keys(script(Some(ID)), map(None), None), BTreeSet::from([id]));
        let url = MapKey::of_url("shop@1", "7", "/app.js");
        assert_eq!(keys(script(None), map(None), Some("shop@1")), BTreeSet::from([url]));
    }

    #[test]
    fn broken_bundles_are_explained() {
        let files = [("a", "x"), ("b", SOURCE_MAP), ("c", SOURCE_MAP)];
        let of = |manifest: Value| archive(&json!({ "files": manifest }), &files);
        for (bytes, part) in [
            (b"PK".to_vec(), "not an artifact bundle"),
            (MAGIC.to_vec(), "archive cannot be read"),
            ([MAGIC, b"x"].concat(), "archive cannot be read"),
            (of(json!({"../b": map(Some(ID))})), "`../b`, which is not a file of the bundle"),
            (of(json!({"/etc/passwd": map(Some(ID))})), "not a file of the bundle"),
            (of(json!({"x": map(Some(ID))})), "not a file of the bundle"),
            (of(json!({"b": map(Some("x"))})), "`x`, which is not a UUID"),
            (of(json!({"b": map(Some(ID)), "c": map(Some(ID))})), "the same debug ID"),
            (of(json!({"a": script(Some(ID))})), "no source map that belongs to a script"),
            (of(json!({})), "no source map that belongs to a script"),
            (of(json!([])), "manifest.json is not valid"),
            (
                of(json!({"a": script(Some(ID)), "b": {"type": SCRIPT, "url": "~/app.js.map"}})),
                "~/app.js.map: the file is not a source map",
            ),
        ] {
            assert!(fault(&bytes).contains(part), "{part}: {}", fault(&bytes));
        }
        // The maps have no debug IDs of their own; the scripts name one ID, or one URL, for both.
        let files = [("a", "x"), ("b", SOURCE_MAP), ("c", SOURCE_MAP), ("d", "x")];
        let other_map = json!({"type": MAP, "url": "~/other.js.map"});
        for (id, part) in [(Some(ID), "the same debug ID"), (None, "the same URL")] {
            let mut other = script(id);
            other["url"] = json!("https://shop.example.com/app.js");
            other["headers"]["sourcemap"] = json!("/other.js.map");
            other["headers"]["Sourcemap"] = json!("/other.js.map");
            let scripts = json!({"a": script(id), "b": map(None), "c": other_map, "d": other});
            let detail = fault(&archive(&json!({ "files": scripts }), &files));
            assert!(detail.contains(part), "{part}: {detail}");
        }
        let broken = [("b", r#"{"version":3,"mapp"#)];
        let bytes = archive(&json!({"files": {"b": map(Some(ID))}}), &broken);
        assert!(
            fault(&bytes).starts_with("~/app.js.map: the map is not valid JSON"),
            "{}",
            fault(&bytes)
        );
        let mut cut = of(json!({"b": map(Some(ID))}));
        cut.truncate(cut.len() / 2);
        assert!(fault(&cut).contains("archive cannot be read"));
    }

    #[test]
    fn limits_are_named() {
        let many: serde_json::Map<String, Value> =
            (0..=MAX_MAPS).map(|number| (format!("f{number}"), map(None))).collect();
        let names: Vec<String> = many.keys().cloned().collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "{}")).collect();
        let bytes = archive(&json!({ "files": many }), &files);
        assert!(fault(&bytes).contains("201 source maps, but the limit is 200"));
        let large = " ".repeat(usize::try_from(MAX_MAP_BYTES).unwrap() + 1);
        let bytes = archive(&json!({"files": {"b": map(Some(ID))}}), &[("b", &large)]);
        assert!(fault(&bytes).contains("67108865 bytes, but the limit is 67108864"));
    }
}
