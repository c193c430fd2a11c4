//! The programs that are measured. Their names stand here alone; `make bench` asks for them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::Result;

/// A program that is measured.
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
    /// All programs.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// The programs that are deployed, each from a package of its own name.
    pub(crate) fn functions() -> impl Iterator<Item = Self> {
        Self::all().filter(|program| !matches!(program, Self::Hello | Self::HelloDynamodb))
    }

    /// The name of the binary, and of a function's package: that of the variant, in kebab-case.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The binaries of all programs.
pub(crate) struct Programs {
    folder: PathBuf,
    /// Where their standard output and error go, if they are wanted.
    log: Option<PathBuf>,
}

impl Programs {
    /// The binaries in a folder. Fails if one is missing, before anything is measured.
    pub(crate) fn new(folder: PathBuf, log: Option<PathBuf>) -> Result<Self> {
        let programs = Self { folder, log };
        let is_missing = |program: &Program| !programs.binary(*program).is_file();
        let missing: Vec<String> = Program::all().filter(is_missing).map(Program::name).collect();
        if missing.is_empty() {
            return Ok(programs);
        }
        let folder = programs.folder.display();
        let missing = missing.join(", ");
        Err(format!("{folder} has no {missing}; `make bench` builds what is measured").into())
    }

    pub(crate) fn binary(&self, program: Program) -> PathBuf {
        self.folder.join(program.name())
    }

    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The bytes of a binary.
    pub(crate) fn size(&self, program: Program) -> Result<u64> {
        Ok(fs::metadata(self.binary(program))?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_measured_is_a_package() {
        let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
        for function in Program::functions() {
            let name = function.name();
            assert!(
                functions.join(&name).join("Cargo.toml").is_file(),
                "functions/{name} is not there"
            );
        }
    }

    #[test]
    fn programs_that_are_not_built_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for program in Program::all().filter(|program| *program != Program::SplitInsight) {
            fs::write(folder.path().join(program.name()), "").unwrap();
        }
        let Err(error) = Programs::new(folder.path().to_owned(), None) else {
            panic!("a missing program was not noticed");
        };
        assert!(error.to_string().contains(" has no split-insight; `make bench`"), "{error}");
        fs::write(folder.path().join("split-insight"), "").unwrap();
        assert!(Programs::new(folder.path().to_owned(), None).is_ok());
    }
}
