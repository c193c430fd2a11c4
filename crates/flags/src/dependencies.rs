//! The graph of prerequisites among a project's flags, and the checks of a new edge.

use std::collections::{HashMap, HashSet};

use super::{FlagKey, MAX_PREREQUISITE_DEPTH, Prerequisite, VariantKey};

/// The prerequisites of all unarchived flags of a project. An archived flag depends on nothing.
#[derive(Debug, Default)]
pub struct Dependencies {
    prerequisites: HashMap<FlagKey, Vec<Prerequisite>>,
}

/// The reason why a prerequisite is not allowed, with the flags that prove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidPrerequisite {
    /// The path from the flag through the prerequisite back to the flag.
    Cycle(Vec<FlagKey>),
    /// A chain with too many flags, in order.
    TooLong(Vec<FlagKey>),
}

impl Dependencies {
    /// Returns the graph of flags with these prerequisites.
    pub fn new(flags: impl IntoIterator<Item = (FlagKey, Vec<Prerequisite>)>) -> Self {
        Self { prerequisites: flags.into_iter().collect() }
    }

    /// Returns the flags that require `key` in a variant for which `is_lost` is true, sorted by
    /// key.
    pub fn dependents_of(
        &self,
        key: &FlagKey,
        is_lost: impl Fn(&VariantKey) -> bool,
    ) -> Vec<FlagKey> {
        let needs = |prerequisites: &Vec<Prerequisite>| {
            prerequisites.iter().any(|it| it.flag_key == *key && is_lost(&it.variant))
        };
        let dependents = self.prerequisites.iter().filter(|(_, those)| needs(those));
        let mut dependents: Vec<FlagKey> = dependents.map(|(key, _)| key.clone()).collect();
        dependents.sort();
        dependents
    }

    /// Checks the chains that would arise if `flag` got this prerequisite. The flag's other
    /// prerequisites do not matter.
    pub fn check(&self, flag: &FlagKey, prerequisite: &FlagKey) -> Option<InvalidPrerequisite> {
        if let Some(path) = self.path(prerequisite, flag) {
            let path = std::iter::once(flag).chain(path).cloned();
            return Some(InvalidPrerequisite::Cycle(path.collect()));
        }
        let mut dependents: HashMap<&FlagKey, Vec<&FlagKey>> = HashMap::new();
        for (dependent, prerequisites) in &self.prerequisites {
            for prerequisite in prerequisites {
                dependents.entry(&prerequisite.flag_key).or_default().push(dependent);
            }
        }
        let mut above = longest_chain(flag, |key| {
            dependents.get(key).map_or(&[][..], Vec::as_slice).iter().copied()
        });
        let below = longest_chain(prerequisite, |key| self.next(key));
        if above.len() + below.len() <= MAX_PREREQUISITE_DEPTH {
            return None;
        }
        above.reverse();
        Some(InvalidPrerequisite::TooLong(above.into_iter().chain(below).cloned().collect()))
    }

    fn next(&self, key: &FlagKey) -> impl Iterator<Item = &FlagKey> {
        let prerequisites = self.prerequisites.get(key).map_or(&[][..], Vec::as_slice);
        prerequisites.iter().map(|prerequisite| &prerequisite.flag_key)
    }

    /// Returns the flags on a path between two flags, both included.
    fn path<'s>(&'s self, from: &'s FlagKey, to: &FlagKey) -> Option<Vec<&'s FlagKey>> {
        let mut paths = vec![vec![from]];
        let mut seen = HashSet::from([from]);
        while let Some(path) = paths.pop() {
            let end = *path.last()?;
            if end == to {
                return Some(path);
            }
            for next in self.next(end) {
                if seen.insert(next) {
                    paths.push([path.as_slice(), &[next]].concat());
                }
            }
        }
        None
    }
}

/// Returns the longest chain from `start` (included) along `next`. Stops at a length that is too
/// long anyway, so that it also ends for a stored cycle, which no write creates.
fn longest_chain<'k, I: Iterator<Item = &'k FlagKey>>(
    start: &'k FlagKey,
    next: impl Fn(&'k FlagKey) -> I,
) -> Vec<&'k FlagKey> {
    let mut chains: Vec<(Vec<&FlagKey>, &FlagKey)> = vec![(Vec::new(), start)];
    let mut longest = Vec::new();
    let mut best_depth_of: HashMap<&FlagKey, usize> = HashMap::new();
    while let Some((mut chain, flag)) = chains.pop() {
        chain.push(flag);
        // A chain of at least this length already led to this flag.
        let best = best_depth_of.entry(flag).or_default();
        if *best >= chain.len() {
            continue;
        }
        *best = chain.len();
        if chain.len() > longest.len() {
            longest.clone_from(&chain);
        }
        if chain.len() < MAX_PREREQUISITE_DEPTH {
            chains.extend(next(flag).map(|next| (chain.clone(), next)));
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flag_key(text: &str) -> FlagKey {
        FlagKey::parse(text).unwrap()
    }

    fn dependencies(flags: &[(&str, &[&str])]) -> Dependencies {
        let variant = VariantKey::parse("on").unwrap();
        let on = |key: &&str| Prerequisite { flag_key: flag_key(key), variant: variant.clone() };
        let of = |keys: &[&str]| keys.iter().map(on).collect();
        Dependencies::new(flags.iter().map(|(key, keys)| (flag_key(key), of(keys))))
    }

    fn chain(start: &str, flags: &[(&str, &[&str])]) -> String {
        let (start, dependencies) = (flag_key(start), dependencies(flags));
        joined(longest_chain(&start, |key| dependencies.next(key)))
    }

    fn joined<'k>(keys: impl IntoIterator<Item = &'k FlagKey>) -> String {
        keys.into_iter().map(FlagKey::as_str).collect::<Vec<_>>().join(" ")
    }

    fn check(dependencies: &Dependencies, flag: &str, prerequisite: &str) -> String {
        match dependencies.check(&flag_key(flag), &flag_key(prerequisite)) {
            None => String::new(),
            Some(InvalidPrerequisite::Cycle(path)) => format!("cycle {}", joined(&path)),
            Some(InvalidPrerequisite::TooLong(chain)) => format!("too long {}", joined(&chain)),
        }
    }

    #[test]
    fn finds_the_longest_of_several_chains() {
        let diamond: &[(&str, &[&str])] =
            &[("a", &["b", "c"]), ("b", &["d"]), ("c", &["e"]), ("e", &["d"]), ("d", &[])];
        assert_eq!(chain("a", diamond), "a c e d");
        let mirrored: &[(&str, &[&str])] =
            &[("a", &["c", "b"]), ("b", &["d"]), ("c", &["e"]), ("e", &["d"]), ("d", &["f"])];
        assert_eq!(chain("a", mirrored), "a c e d f");
    }

    #[test]
    fn search_ends_for_cycles_and_dense_graphs() {
        assert_eq!(chain("a", &[("a", &["b"]), ("b", &["a"])]).split(' ').count(), 10);
        let keys: Vec<String> = (0..40).map(|index| format!("f{index}")).collect();
        let all: Vec<&str> = keys.iter().map(String::as_str).collect();
        let dense: Vec<(&str, &[&str])> =
            (0..40).map(|i| (all[i], &all[(i + 1).min(40)..])).collect();
        assert_eq!(chain("f0", &dense).split(' ').count(), MAX_PREREQUISITE_DEPTH);
    }

    #[test]
    fn cycles_start_and_end_at_the_flag() {
        let chain = dependencies(&[("a", &["b", "x"]), ("b", &["c"]), ("d", &["a"])]);
        assert_eq!(check(&chain, "c", "a"), "cycle c a b c");
        assert_eq!(check(&chain, "a", "d"), "cycle a d a");
        assert_eq!(check(&chain, "x", "a"), "cycle x a x");
        for (flag, prerequisite) in [("a", "c"), ("x", "c"), ("new", "d"), ("d", "x")] {
            assert_eq!(check(&chain, flag, prerequisite), "", "{flag} {prerequisite}");
        }
    }

    #[test]
    fn chain_length_counts_dependents_and_prerequisites() {
        // f9 depends on f8, and so on: nine flags.
        let keys: Vec<String> = (1..=9).map(|index| format!("f{index}")).collect();
        let next: Vec<[&str; 1]> = keys.iter().map(|key| [key.as_str()]).collect();
        let mut flags: Vec<(&str, &[&str])> =
            (1..9).map(|index| (keys[index].as_str(), &next[index - 1][..])).collect();
        flags.push(("p", &["q"]));
        let flags = dependencies(&flags);
        assert_eq!(check(&flags, "new", "f9"), "");
        assert_eq!(check(&flags, "f1", "q"), "");
        assert_eq!(check(&flags, "f1", "p"), "too long f9 f8 f7 f6 f5 f4 f3 f2 f1 p q");
        assert_eq!(check(&flags, "f2", "p"), "");
        assert_eq!(check(&flags, "q", "f9"), "too long p q f9 f8 f7 f6 f5 f4 f3 f2 f1");
    }

    #[test]
    fn dependents_require_a_lost_variant() {
        let flags = dependencies(&[("b", &["base"]), ("a", &["other", "base"]), ("c", &["a"])]);
        let dependents =
            |variant: &str| flags.dependents_of(&flag_key("base"), |key| key.as_str() == variant);
        assert_eq!(joined(&dependents("on")), "a b");
        assert_eq!(dependents("off"), []);
        assert_eq!(flags.dependents_of(&flag_key("c"), |_| true), []);
    }
}
