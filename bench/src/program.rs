//! The measured programs. `make bench` gets their names from here, with `bench --list`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::Result;
use crate::report::{Report, under};
use crate::statistics::megabytes;

/// A measured program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Program {
    Hello,
    HelloDynamodb,
    BreakdownErrors,
    CompleteOidcSignIn,
    CompleteSignIn,
    CreateFeatureFlag,
    DeleteEventMarkerCollection,
    EvaluateFeatureFlag,
    EvaluateFeatureFlags,
    GetError,
    IngestErrorEvents,
    InterpretErrorFilters,
    ListErrors,
    PackErrorLog,
    PurgeEventMarkers,
    QueryErrorTimeseries,
    QueryErrors,
    RequestSignIn,
    SplitInsight,
    UpdateEmailPreferences,
    UpdateError,
}

impl Program {
    /// Returns the deployed programs, each from the package with its name.
    pub(crate) fn functions() -> impl Iterator<Item = Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|program| !matches!(program, Self::Hello | Self::HelloDynamodb))
    }
}

/// Writes the name of the binary, and of a function's package: the variant's name in kebab-case.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

/// The binaries of all programs.
pub(crate) struct Programs {
    pub(crate) folder: PathBuf,
    /// The file for their standard output and error, if any.
    pub(crate) log: Option<PathBuf>,
}

impl Programs {
    pub(crate) fn binary(&self, program: Program) -> PathBuf {
        self.folder.join(program.to_string())
    }

    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Adds the sizes of all functions' binaries.
    pub(crate) fn add_sizes(&self, report: &mut Report) -> Result<()> {
        for program in Program::functions() {
            let size = fs::metadata(self.binary(program))
                .map_err(|error| format!("{program}: {error}; `make bench` builds the programs"))?;
            // Only ingestion decodes brotli and zstd, reads replays and names user agents.
            let limit = if program == Program::IngestErrorEvents { 8.5 } else { 8.0 };
            report.add(program, "release binary", megabytes(size.len()), "MB", under(limit));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_function_is_a_package() {
        let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
        for function in Program::functions() {
            let manifest = functions.join(function.to_string()).join("Cargo.toml");
            assert!(manifest.is_file(), "functions/{function} is missing");
        }
    }
}
