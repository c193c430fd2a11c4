//! Compiled patterns of conditions, with limits on their memory.
//!
//! A pattern of 512 bytes can take 64 KiB when compiled, so a flag's size says little about its
//! patterns. Each pattern of a project is compiled once for all its conditions. If the cache has no
//! capacity for a pattern, each evaluation compiles it: slower, but with the same result.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use shared::json::FieldError;
use shared::projects::project::ProjectId;

use crate::condition::CompiledPattern;

/// Maximum size of a project's cached patterns in bytes.
const MAX_BYTES_PER_PROJECT: usize = 8_000_000;
/// Maximum size of all cached patterns in bytes.
const MAX_BYTES: usize = 16_000_000;
/// Size of a cached pattern without the compiled form and twice its text, in bytes: the map entry
/// and allocator overhead.
const FRAME_BYTES: usize = 400;

/// The cached patterns of all projects.
#[derive(Debug)]
pub(crate) struct PatternCache {
    projects: Mutex<HashMap<ProjectId, Weak<ProjectPatterns>>>,
    total_budget: Arc<MemoryBudget>,
}

/// The cached patterns of a project. Each is cached while one of the project's flags uses it.
#[derive(Debug)]
pub struct ProjectPatterns {
    cached: Mutex<HashMap<Box<str>, Weak<CachedPattern>>>,
    project_budget: MemoryBudget,
    total_budget: Arc<MemoryBudget>,
    /// `true` if a pattern did not fit since the last check.
    has_uncached: AtomicBool,
}

/// A capacity in bytes and the used part.
#[derive(Debug)]
struct MemoryBudget {
    bytes: usize,
    used: AtomicUsize,
}

/// A cached compiled pattern. It releases its memory when the last condition that uses it is
/// dropped.
#[derive(Debug)]
struct CachedPattern {
    text: Box<str>,
    compiled: CompiledPattern,
    bytes: usize,
    patterns: Arc<ProjectPatterns>,
}

/// Approximate worst-case time of a search per automaton state and byte of text, in nanoseconds. At
/// each byte, a search can visit all states.
const WORK_PER_STATE: usize = 5;

/// A condition's pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: Box<str>,
    work_per_byte: usize,
    patterns: Arc<ProjectPatterns>,
    /// Empty while the cache has no capacity for it.
    cached: OnceLock<Arc<CachedPattern>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while a lock was held cannot have left a partial change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for PatternCache {
    fn default() -> Self {
        Self { projects: Mutex::default(), total_budget: Arc::new(MemoryBudget::new(MAX_BYTES)) }
    }
}

impl PatternCache {
    /// Returns the patterns of a project.
    pub(crate) fn of(&self, project: ProjectId) -> Arc<ProjectPatterns> {
        let mut projects = lock(&self.projects);
        if let Some(known) = projects.get(&project).and_then(Weak::upgrade) {
            return known;
        }
        projects.retain(|_, patterns| patterns.strong_count() > 0);
        let patterns = Arc::new(ProjectPatterns::within(
            MAX_BYTES_PER_PROJECT,
            Arc::clone(&self.total_budget),
        ));
        projects.insert(project, Arc::downgrade(&patterns));
        patterns
    }
}

impl Default for ProjectPatterns {
    fn default() -> Self {
        Self::within(MAX_BYTES_PER_PROJECT, Arc::new(MemoryBudget::new(MAX_BYTES)))
    }
}

impl ProjectPatterns {
    fn within(own_bytes: usize, total_budget: Arc<MemoryBudget>) -> Self {
        Self {
            cached: Mutex::default(),
            project_budget: MemoryBudget::new(own_bytes),
            total_budget,
            has_uncached: AtomicBool::new(false),
        }
    }

    /// Returns the size of the cached patterns in bytes.
    pub fn bytes(&self) -> usize {
        self.project_budget.used.load(Ordering::Relaxed)
    }

    /// Returns `true` if a pattern of newly read flags did not fit since the last call.
    pub(crate) fn take_uncached(&self) -> bool {
        self.has_uncached.swap(false, Ordering::Relaxed)
    }

    /// Returns a condition's pattern, compiled or from the cache. Fails if the text is not a valid
    /// pattern.
    pub(super) fn pattern(self: &Arc<Self>, text: &str) -> Result<Pattern, FieldError> {
        let (known, states) = if let Some(known) = self.known(text) {
            let states = known.compiled.states();
            (Some(known), states)
        } else {
            let compiled = CompiledPattern::new(text)?;
            let states = compiled.states();
            (self.insert(text, compiled), states)
        };
        if known.is_none() {
            self.has_uncached.store(true, Ordering::Relaxed);
        }
        let cached = known.map_or_else(OnceLock::new, OnceLock::from);
        let work_per_byte = states.saturating_mul(WORK_PER_STATE);
        Ok(Pattern { text: text.into(), work_per_byte, patterns: Arc::clone(self), cached })
    }

    fn known(&self, text: &str) -> Option<Arc<CachedPattern>> {
        lock(&self.cached).get(text)?.upgrade()
    }

    /// Caches a pattern if there is capacity.
    fn insert(
        self: &Arc<Self>,
        text: &str,
        compiled: CompiledPattern,
    ) -> Option<Arc<CachedPattern>> {
        let bytes = compiled.bytes() + 2 * text.len() + FRAME_BYTES;
        if !self.project_budget.reserve(bytes) {
            return None;
        }
        if !self.total_budget.reserve(bytes) {
            self.project_budget.release(bytes);
            return None;
        }
        let patterns = Arc::clone(self);
        let cached = Arc::new(CachedPattern { text: text.into(), compiled, bytes, patterns });
        lock(&self.cached).insert(text.into(), Arc::downgrade(&cached));
        Some(cached)
    }
}

impl MemoryBudget {
    fn new(bytes: usize) -> Self {
        Self { bytes, used: AtomicUsize::new(0) }
    }

    /// Reserves bytes and returns `true`, if there is capacity.
    fn reserve(&self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|it| *it <= self.bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for CachedPattern {
    fn drop(&mut self) {
        let mut cached = lock(&self.patterns.cached);
        // Another thread can have compiled and cached the same text.
        if cached.get(&self.text).is_some_and(|it| it.strong_count() == 0) {
            cached.remove(&self.text);
        }
        drop(cached);
        self.patterns.project_budget.release(self.bytes);
        self.patterns.total_budget.release(self.bytes);
    }
}

impl Pattern {
    /// Returns the approximate worst-case time to search a text, in nanoseconds.
    pub(super) fn work_in(&self, text: &str) -> usize {
        self.work_per_byte.saturating_mul(text.len().saturating_add(1))
    }

    /// `true` if a text contains a match.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.is_in_any(std::iter::once(text))
    }

    /// `true` if one of the texts contains a match. Compiles an uncached pattern once for all
    /// texts, since compiling it for each of a long list would take seconds.
    pub(super) fn is_in_any<'t>(&self, texts: impl Iterator<Item = &'t str>) -> bool {
        let mut texts = texts.peekable();
        if texts.peek().is_none() {
            return false;
        }
        if let Some(cached) = self.cached.get() {
            return texts.any(|text| cached.compiled.is_in(text));
        }
        if let Some(known) = self.patterns.known(&self.text) {
            let known = self.cached.get_or_init(|| known);
            return texts.any(|text| known.compiled.is_in(text));
        }
        // Compiling the flag also compiled this text.
        let Ok(compiled) = CompiledPattern::new(&self.text) else { return false };
        let is_in = texts.any(|text| compiled.is_in(text));
        // Evicted flags can have released capacity.
        if let Some(cached) = self.patterns.insert(&self.text, compiled) {
            self.cached.get_or_init(|| cached);
        }
        is_in
    }
}

#[cfg(test)]
mod tests;
