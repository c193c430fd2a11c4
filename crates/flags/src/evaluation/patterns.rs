//! Patterns of conditions, compiled, and how many bytes of them a function remembers.
//!
//! A pattern of 512 bytes may take 64 KiB compiled, so that the bytes of flags say little of what their
//! patterns take. Each pattern of a project is compiled once, however many conditions have it. Where there
//! is no room for it, it is compiled whenever it is asked for: that is slower, and finds the same.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use shared::json::FieldError;
use shared::projects::project::ProjectId;

use crate::condition::CompiledPattern;

/// The most bytes of compiled patterns that are remembered of a project.
const MAX_BYTES_OF_PROJECT: usize = 8_000_000;
/// The most of all projects.
const MAX_BYTES: usize = 16_000_000;
/// What a pattern takes that is remembered, besides itself and twice its text: its place in the map, and what
/// the allocator has with each of its parts.
const FRAME_BYTES: usize = 400;

/// What a function remembers of the patterns of all projects.
#[derive(Debug)]
pub(crate) struct PatternCache {
    projects: Mutex<HashMap<ProjectId, Weak<ProjectPatterns>>>,
    room: Arc<MemoryBudget>,
}

/// What is remembered of the patterns of a project, for as long as one of its flags has them.
#[derive(Debug)]
pub struct ProjectPatterns {
    remembered: Mutex<HashMap<Box<str>, Weak<RememberedPattern>>>,
    own_room: MemoryBudget,
    room: Arc<MemoryBudget>,
    /// Whether there was no room for one since this was last asked.
    lacked_room: AtomicBool,
}

/// How many bytes there is room for, and how many are taken.
#[derive(Debug)]
struct MemoryBudget {
    bytes: usize,
    taken: AtomicUsize,
}

/// A pattern that is remembered compiled. It gives its room back when the last condition that has it is
/// forgotten.
#[derive(Debug)]
struct RememberedPattern {
    text: Box<str>,
    compiled: CompiledPattern,
    bytes: usize,
    patterns: Arc<ProjectPatterns>,
}

/// About how many nanoseconds a search looks at a state of an automaton, at worst: at each byte of the text it
/// may look at all of them.
const WORK_OF_STATE: usize = 5;

/// A pattern of a condition.
#[derive(Debug)]
pub(super) struct Pattern {
    text: Box<str>,
    work_of_byte: usize,
    patterns: Arc<ProjectPatterns>,
    /// Empty while there is no room for it.
    remembered: OnceLock<Arc<RememberedPattern>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held cannot have left anything half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for PatternCache {
    fn default() -> Self {
        Self { projects: Mutex::default(), room: Arc::new(MemoryBudget::new(MAX_BYTES)) }
    }
}

impl PatternCache {
    /// What is remembered of the patterns of a project.
    pub(crate) fn of(&self, project: ProjectId) -> Arc<ProjectPatterns> {
        let mut projects = lock(&self.projects);
        if let Some(known) = projects.get(&project).and_then(Weak::upgrade) {
            return known;
        }
        projects.retain(|_, patterns| patterns.strong_count() > 0);
        let patterns =
            Arc::new(ProjectPatterns::within(MAX_BYTES_OF_PROJECT, Arc::clone(&self.room)));
        projects.insert(project, Arc::downgrade(&patterns));
        patterns
    }
}

impl Default for ProjectPatterns {
    fn default() -> Self {
        Self::within(MAX_BYTES_OF_PROJECT, Arc::new(MemoryBudget::new(MAX_BYTES)))
    }
}

impl ProjectPatterns {
    fn within(own_bytes: usize, room: Arc<MemoryBudget>) -> Self {
        Self {
            remembered: Mutex::default(),
            own_room: MemoryBudget::new(own_bytes),
            room,
            lacked_room: AtomicBool::new(false),
        }
    }

    /// How many bytes of compiled patterns are remembered.
    pub fn bytes(&self) -> usize {
        self.own_room.taken.load(Ordering::Relaxed)
    }

    /// Whether there was no room for a pattern of flags that were read since this was last asked.
    pub(crate) fn take_lack_of_room(&self) -> bool {
        self.lacked_room.swap(false, Ordering::Relaxed)
    }

    /// A pattern of a condition. Fails on what is none.
    pub(super) fn pattern(self: &Arc<Self>, text: &str) -> Result<Pattern, FieldError> {
        let (known, states) = if let Some(known) = self.known(text) {
            let states = known.compiled.states();
            (Some(known), states)
        } else {
            let compiled = CompiledPattern::new(text)?;
            let states = compiled.states();
            (self.remember(text, compiled), states)
        };
        if known.is_none() {
            self.lacked_room.store(true, Ordering::Relaxed);
        }
        let remembered = known.map_or_else(OnceLock::new, OnceLock::from);
        let work_of_byte = states.saturating_mul(WORK_OF_STATE);
        Ok(Pattern { text: text.into(), work_of_byte, patterns: Arc::clone(self), remembered })
    }

    fn known(&self, text: &str) -> Option<Arc<RememberedPattern>> {
        lock(&self.remembered).get(text)?.upgrade()
    }

    /// Remembers a pattern, if there is room for it.
    fn remember(
        self: &Arc<Self>,
        text: &str,
        compiled: CompiledPattern,
    ) -> Option<Arc<RememberedPattern>> {
        let bytes = compiled.bytes() + 2 * text.len() + FRAME_BYTES;
        if !self.own_room.take(bytes) {
            return None;
        }
        if !self.room.take(bytes) {
            self.own_room.give_back(bytes);
            return None;
        }
        let patterns = Arc::clone(self);
        let remembered =
            Arc::new(RememberedPattern { text: text.into(), compiled, bytes, patterns });
        lock(&self.remembered).insert(text.into(), Arc::downgrade(&remembered));
        Some(remembered)
    }
}

impl MemoryBudget {
    fn new(bytes: usize) -> Self {
        Self { bytes, taken: AtomicUsize::new(0) }
    }

    /// Takes so many bytes, if there is room for them.
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|it| *it <= self.bytes);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for RememberedPattern {
    fn drop(&mut self) {
        let mut remembered = lock(&self.patterns.remembered);
        // The same may have been compiled once more since.
        if remembered.get(&self.text).is_some_and(|it| it.strong_count() == 0) {
            remembered.remove(&self.text);
        }
        drop(remembered);
        self.patterns.own_room.give_back(self.bytes);
        self.patterns.room.give_back(self.bytes);
    }
}

impl Pattern {
    /// About how many nanoseconds it takes to look for it in a text, at worst.
    pub(super) fn work_in(&self, text: &str) -> usize {
        self.work_of_byte.saturating_mul(text.len().saturating_add(1))
    }

    /// Whether the pattern is found in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.is_in_any(std::iter::once(text))
    }

    /// Whether the pattern is found in one of some texts. Where there is no room for it, it is compiled once for
    /// all of them: for each of a long list, that would take seconds.
    pub(super) fn is_in_any<'t>(&self, texts: impl Iterator<Item = &'t str>) -> bool {
        let mut texts = texts.peekable();
        if texts.peek().is_none() {
            return false;
        }
        if let Some(remembered) = self.remembered.get() {
            return texts.any(|text| remembered.compiled.is_in(text));
        }
        if let Some(known) = self.patterns.known(&self.text) {
            let known = self.remembered.get_or_init(|| known);
            return texts.any(|text| known.compiled.is_in(text));
        }
        // It could be compiled when its flag was.
        let Ok(compiled) = CompiledPattern::new(&self.text) else { return false };
        let is_in = texts.any(|text| compiled.is_in(text));
        // There may be room by now, since other flags were forgotten.
        if let Some(remembered) = self.patterns.remember(&self.text, compiled) {
            self.remembered.get_or_init(|| remembered);
        }
        is_in
    }
}

#[cfg(test)]
mod tests;
