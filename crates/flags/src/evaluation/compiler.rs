//! The compiler for flags that are read together.

use std::collections::HashMap;
use std::sync::Arc;

use crate::condition::Operator;

use super::condition::Test;
use super::patterns::ProjectPatterns;

/// Compiles flags that are read together. A project's flags often compare with equal lists of
/// plans, countries or versions, so equal tests are shared.
#[derive(Debug, Default)]
pub struct Compiler {
    patterns: Arc<ProjectPatterns>,
    /// By operator and values.
    tests: HashMap<Operator, HashMap<Vec<String>, Arc<Test>>>,
}

impl Compiler {
    /// Returns a compiler for flags of a project with these patterns.
    pub fn new(patterns: Arc<ProjectPatterns>) -> Self {
        Self { patterns, tests: HashMap::new() }
    }

    /// Returns the project's patterns.
    pub(super) fn patterns(&self) -> &Arc<ProjectPatterns> {
        &self.patterns
    }

    /// Returns the test of an operator. The error names the value that the operator cannot use.
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
