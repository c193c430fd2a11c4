//! Files that are read or written whole.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tempfile::NamedTempFile;

use crate::error::CliError;

/// A file to read, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    StandardInput,
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" { Self::StandardInput } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => formatter.write_str("standard input"),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

impl Source {
    pub(super) fn read(&self) -> Result<String, CliError> {
        let read = match self {
            Self::StandardInput => {
                let mut text = String::new();
                io::stdin().lock().read_to_string(&mut text).map(|_| text)
            }
            Self::File(path) => fs::read_to_string(path),
        };
        read.map_err(|source| CliError::Unreadable { place: self.to_string(), source })
    }
}

/// A file that is written atomically: readers see the old or the new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination(PathBuf);

impl FromStr for Destination {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}

impl Destination {
    pub(super) fn write(&self, text: &str) -> Result<(), CliError> {
        let Self(path) = self;
        write_whole(path, text)
            .map_err(|source| CliError::Unwritable { path: path.clone(), source })
    }
}

fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = begin(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(unix)]
fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;

    // The permissions of any new file; temporary files default to owner-only.
    let permissions = fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(permissions).tempfile_in(folder)
}

#[cfg(not(unix))]
fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_a_file_leaves_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flags.json");
        for text in ["first", "second, which is longer"] {
            Destination(path.clone()).write(text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn write_errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/flags.json");
        let failure = Destination(path.clone()).write("x").unwrap_err().to_string();
        assert!(failure.starts_with(&path.display().to_string()), "{failure}");
    }
}
