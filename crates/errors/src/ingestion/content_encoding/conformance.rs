//! Conformance tests of the makers of Brotli and Zstandard (MIT and BSD).
//! `tests/conformance/README.md` states the sources.

use std::fs;
use std::path::{Path, PathBuf};

use super::{IngestionFault, inflate};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance").join(name)
}

/// Returns the files of a folder with their names, sorted.
fn files(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|it| (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// An empty text in 65,536 blocks, more than any body can have.
const TOO_MANY_BLOCKS: &str = "empty.compressed.18";

#[test]
fn brotli_streams_are_decompressed() {
    let files = files("brotli/testdata");
    let mut compressed = 0;
    for (name, body) in &files {
        let Some((plain, _)) = name.split_once(".compressed") else { continue };
        let (_, plain) = files.iter().find(|(name, _)| name == plain).unwrap();
        match inflate(body, "br") {
            Err(fault) => {
                assert!(matches!(fault, IngestionFault::TooLarge(_)), "{name}");
                assert_eq!(name, TOO_MANY_BLOCKS);
            }
            Ok(inflated) => assert!(inflated == *plain, "{name}"),
        }
        compressed += 1;
    }
    assert_eq!(compressed, 38);
}

#[test]
fn zstandard_frames_are_decompressed() {
    let sizes: Vec<_> = files("zstd/golden-decompression")
        .into_iter()
        .map(|(name, body)| (name, inflate(&body, "zstd").map(|inflated| inflated.len())))
        .collect();
    let expected = [
        ("block-128k.zst", 131_068),
        ("empty-block.zst", 0),
        ("rle-first-block.zst", 1_048_576),
        ("zeroSeq_2B.zst", 13),
    ];
    assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), Ok(size))));
}

#[test]
fn corrupt_zstandard_frames_are_rejected() {
    let corrupt = files("zstd/golden-decompression-errors");
    assert_eq!(corrupt.len(), 3);
    for (name, body) in corrupt {
        assert!(inflate(&body, "zstd").is_err(), "{name}");
    }
}
