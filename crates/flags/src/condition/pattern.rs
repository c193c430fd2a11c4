//! Regular expressions of conditions.

use std::error::Error;
use std::mem::size_of;

use regex_automata::nfa::thompson::backtrack::BoundedBacktracker;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{BuildError, Compiler, Config, WhichCaptures};

use shared::json::{FieldError, ViolationCode};

/// Maximum size of a regular expression in bytes.
const MAX_PATTERN_BYTES: usize = 512;
/// Maximum size of a compiled regular expression in bytes.
const MAX_COMPILED_PATTERN_BYTES: usize = 64 * 1024;
/// Maximum size of a text for backtracking in bytes. Backtracking is faster, but does not stop
/// early.
const MAX_BACKTRACKED_BYTES: usize = 128;
/// Maximum allocator overhead of an automaton state with its own memory, in bytes.
const BYTES_PER_ALLOCATION: usize = 24;

/// A compiled regular expression in the syntax of the crate `regex`. Searches take linear time,
/// without look-around and back-references. Each search allocates its working memory and frees it
/// afterwards, so that a pattern's size is the size of its automaton.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    backtracker: BoundedBacktracker,
    simulation: PikeVM,
}

impl CompiledPattern {
    /// Compiles a pattern. The size limit bounds repetitions such as `{1000}` and Unicode classes.
    pub(crate) fn new(pattern: &str) -> Result<Self, FieldError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            let message = format_args!("must have at most {MAX_PATTERN_BYTES} bytes");
            return Err(FieldError::new(ViolationCode::TooLong, message));
        }
        let config = Config::new()
            .nfa_size_limit(Some(MAX_COMPILED_PATTERN_BYTES))
            // Searches need only the existence of a match.
            .which_captures(WhichCaptures::Implicit);
        let fault = |error: BuildError| fault_of(&error);
        let nfa = Compiler::new().configure(config).build(pattern).map_err(fault)?;
        let backtracker = BoundedBacktracker::new_from_nfa(nfa.clone()).map_err(fault)?;
        Ok(Self { backtracker, simulation: PikeVM::new_from_nfa(nfa).map_err(fault)? })
    }

    /// `true` if a text contains a match.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        if text.len() <= MAX_BACKTRACKED_BYTES {
            // Fails if the search would need too much memory.
            let found = self.backtracker.try_is_match(&mut self.backtracker.create_cache(), text);
            if let Ok(found) = found {
                return found;
            }
        }
        self.simulation.is_match(&mut self.simulation.create_cache(), text)
    }

    /// Returns the number of states of the automaton.
    pub(crate) fn states(&self) -> usize {
        self.simulation.get_nfa().states().len()
    }

    /// Returns the maximum size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let nfa = self.simulation.get_nfa();
        size_of::<Self>() + nfa.memory_usage() + nfa.states().len() * BYTES_PER_ALLOCATION
    }
}

fn fault_of(error: &BuildError) -> FieldError {
    if let Some(limit) = error.size_limit() {
        let message = format_args!(
            "the pattern is too complex: it compiles to more than {limit} bytes; shorten it"
        );
        return FieldError::new(ViolationCode::TooLong, message);
    }
    // The library draws the position over several lines; the last one has the reason.
    let drawn = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = drawn.lines().last().unwrap_or_default();
    let reason = reason.trim_start_matches("error: ");
    FieldError::new(
        ViolationCode::InvalidFormat,
        format_args!("must be a regular expression: {reason}"),
    )
}
