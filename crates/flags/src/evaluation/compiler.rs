//! What the flags of a reading are compiled by.

use std::collections::HashMap;
use std::sync::Arc;

use crate::condition::Operator;

use super::condition::Test;
use super::patterns::ProjectPatterns;

/// Compiles flags that are read together. Flags of a project are often about the same plans, countries or
/// versions: what several conditions compare with is kept once.
#[derive(Debug, Default)]
pub struct Compiler {
    patterns: Arc<ProjectPatterns>,
    /// By operator and values. Gone with the reading.
    tests: HashMap<Operator, HashMap<Vec<String>, Arc<Test>>>,
}

impl Compiler {
    /// One for flags of a project with these patterns.
    pub fn new(patterns: Arc<ProjectPatterns>) -> Self {
        Self { patterns, tests: HashMap::new() }
    }

    /// What is remembered of the project's patterns.
    pub(super) fn patterns(&self) -> &Arc<ProjectPatterns> {
        &self.patterns
    }

    /// What an operator compares an attribute with. The error says which value it cannot use.
    pub(super) fn test(
        &mut self,
        operator: Operator,
        values: &[String],
    ) -> Result<Arc<Test>, String> {
        let of_operator = self.tests.entry(operator).or_default();
        if let Some(known) = of_operator.get(values) {
            return Ok(Arc::clone(known));
        }
        let test = Arc::new(Test::new(operator, values, &self.patterns)?);
        of_operator.insert(values.to_vec(), Arc::clone(&test));
        Ok(test)
    }
}
