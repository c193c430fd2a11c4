//! The measured programs. `make bench` gets their names from here, with `bench --list`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::Result;

/// A measured program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Program {
    Hello,
    HelloDynamodb,
    PackErrorLog,
    BreakdownErrors,
    CreateFeatureFlag,
    DeleteEventMarkerCollection,
    EvaluateFeatureFlag,
    EvaluateFeatureFlags,
    GetError,
    IngestErrorEvents,
    InterpretErrorFilters,
    ListErrors,
    PurgeEventMarkers,
    QueryErrorTimeseries,
    QueryErrors,
    SplitInsight,
    UpdateEmailPreferences,
    UpdateError,
}

impl Program {
    /// Returns all programs.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// Returns the deployed programs, each from the package with its name.
    pub(crate) fn functions() -> impl Iterator<Item = Self> {
        Self::all().filter(|program| !matches!(program, Self::Hello | Self::HelloDynamodb))
    }

    /// Returns the name of the binary, and of a function's package: the variant's name in
    /// kebab-case.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The binaries of all programs.
pub(crate) struct Programs {
    folder: PathBuf,
    /// The file for their standard output and error, if any.
    log: Option<PathBuf>,
}

impl Programs {
    /// Returns the binaries in a folder. Fails if one is missing.
    pub(crate) fn new(folder: PathBuf, log: Option<PathBuf>) -> Result<Self> {
        let programs = Self { folder, log };
        let is_missing = |program: &Program| !programs.binary(*program).is_file();
        let missing: Vec<String> = Program::all().filter(is_missing).map(Program::name).collect();
        if missing.is_empty() {
            return Ok(programs);
        }
        let folder = programs.folder.display();
        let missing = missing.join(", ");
        Err(format!("{folder} has no {missing}; `make bench` builds the programs").into())
    }

    pub(crate) fn binary(&self, program: Program) -> PathBuf {
        self.folder.join(program.name())
    }

    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Returns the size of a binary, in bytes.
    pub(crate) fn size(&self, program: Program) -> Result<u64> {
        Ok(fs::metadata(self.binary(program))?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_function_is_a_package() {
        let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
        for function in Program::functions() {
            let name = function.name();
            assert!(
                functions.join(&name).join("Cargo.toml").is_file(),
                "functions/{name} is missing"
            );
        }
    }

    #[test]
    fn error_names_missing_programs() {
        let folder = tempfile::tempdir().unwrap();
        for program in Program::all().filter(|program| *program != Program::SplitInsight) {
            fs::write(folder.path().join(program.name()), "").unwrap();
        }
        let Err(error) = Programs::new(folder.path().to_owned(), None) else {
            panic!("a missing program was accepted");
        };
        assert!(error.to_string().contains(" has no split-insight; `make bench`"), "{error}");
        fs::write(folder.path().join("split-insight"), "").unwrap();
        assert!(Programs::new(folder.path().to_owned(), None).is_ok());
    }
}
