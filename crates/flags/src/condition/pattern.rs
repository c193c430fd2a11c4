//! Regular expressions of conditions.

use std::error::Error;
use std::mem::size_of;

use regex_automata::nfa::thompson::backtrack::BoundedBacktracker;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{BuildError, Compiler, Config, WhichCaptures};

use shared::json::{FieldError, ViolationCode};

/// The most bytes of a regular expression.
const MAX_PATTERN_BYTES: usize = 512;
/// The most memory, in bytes, that a compiled regular expression may take.
const MAX_COMPILED_PATTERN_BYTES: usize = 64 * 1024;
/// The most bytes of a text that is searched by backtracking: it is faster, but does not stop early.
const MAX_BACKTRACKED_BYTES: usize = 128;
/// What the allocator takes for a state of the automaton that has memory of its own, at most.
const BYTES_OF_ALLOCATION: usize = 24;

/// A compiled regular expression, in the syntax of the crate `regex`. It is searched in linear time, without
/// look-around and back-references. What a search needs is made for it and gone after it, so that the bytes of
/// a pattern are those of its automaton.
#[derive(Debug)]
pub(crate) struct CompiledPattern {
    backtracker: BoundedBacktracker,
    simulation: PikeVM,
}

impl CompiledPattern {
    /// Compiles a pattern. The limit of its size keeps what `{1000}` and Unicode classes multiply up to within
    /// bounds.
    pub(crate) fn new(pattern: &str) -> Result<Self, FieldError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            let message = format_args!("a pattern has at most {MAX_PATTERN_BYTES} bytes");
            return Err(FieldError::new(ViolationCode::TooLong, message));
        }
        let config = Config::new()
            .nfa_size_limit(Some(MAX_COMPILED_PATTERN_BYTES))
            // Whether it is found is all that is asked for.
            .which_captures(WhichCaptures::Implicit);
        let fault = |error: BuildError| fault_of(&error);
        let nfa = Compiler::new().configure(config).build(pattern).map_err(fault)?;
        let backtracker = BoundedBacktracker::new_from_nfa(nfa.clone()).map_err(fault)?;
        Ok(Self { backtracker, simulation: PikeVM::new_from_nfa(nfa).map_err(fault)? })
    }

    /// Whether it is found in a text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        if text.len() <= MAX_BACKTRACKED_BYTES {
            // Fails where that would need too much memory.
            let found = self.backtracker.try_is_match(&mut self.backtracker.create_cache(), text);
            if let Ok(found) = found {
                return found;
            }
        }
        self.simulation.is_match(&mut self.simulation.create_cache(), text)
    }

    /// How many states its automaton has.
    pub(crate) fn states(&self) -> usize {
        self.simulation.get_nfa().states().len()
    }

    /// How much memory it takes, in bytes, at most.
    pub(crate) fn bytes(&self) -> usize {
        let nfa = self.simulation.get_nfa();
        size_of::<Self>() + nfa.memory_usage() + nfa.states().len() * BYTES_OF_ALLOCATION
    }
}

fn fault_of(error: &BuildError) -> FieldError {
    if let Some(limit) = error.size_limit() {
        let message =
            format_args!("the compiled pattern would be larger than {limit} bytes; shorten it");
        return FieldError::new(ViolationCode::TooLong, message);
    }
    // The library draws the place of the fault over several lines; the last one names it.
    let drawn = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = drawn.lines().last().unwrap_or_default();
    let reason = reason.trim_start_matches("error: ");
    FieldError::new(
        ViolationCode::InvalidFormat,
        format_args!("not a regular expression: {reason}"),
    )
}
