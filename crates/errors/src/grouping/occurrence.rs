//! What an event reports, as far as errors are told apart and named by it.

use std::borrow::Cow;

/// What an event reports. A text that the event does not have is `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrence<'e> {
    /// The parts of the fingerprint that the application set; none if it set none.
    pub client_fingerprint: Vec<&'e str>,
    /// The chain of exceptions, the one that was thrown last at the end.
    pub exceptions: Vec<Exception<'e>>,
    /// What was logged.
    pub log: LogMessage<'e>,
    /// Whether its code was built, by what names functions and files anew in each build.
    pub is_built: bool,
    /// The transaction, else the path of the page; told of built code only.
    pub route: Cow<'e, str>,
}

/// One exception of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exception<'e> {
    /// Its class: `ValueError`.
    pub error_type: &'e str,
    /// Its message.
    pub value: &'e str,
    /// Its stack, the frame that threw it at the end.
    pub frames: Vec<Frame<'e>>,
}

/// One call of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame<'e> {
    /// The module or class: `shop.cart`.
    pub module: &'e str,
    /// The source file: a name, a path or a URL.
    pub file: &'e str,
    /// The function.
    pub function: &'e str,
    /// The line of source code.
    pub context_line: &'e str,
    /// Whether the code is the application's own, not a library's.
    pub in_app: bool,
}

/// A logged message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogMessage<'e> {
    /// The message before its parameters were filled in, if there are any.
    pub template: &'e str,
    /// The message.
    pub text: &'e str,
}

impl<'e> Occurrence<'e> {
    /// The exception that names the error: the last one that has a message, else the last one that
    /// has a type.
    pub fn naming_exception(&self) -> Option<&Exception<'e>> {
        let last = |has: fn(&&Exception<'e>) -> bool| self.exceptions.iter().rev().find(has);
        last(|exception| !exception.value.trim().is_empty())
            .or_else(|| last(|exception| !exception.error_type.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(exceptions: &[(&'static str, &'static str)]) -> Option<&'static str> {
        let exceptions = exceptions.iter().map(|(error_type, value)| Exception {
            error_type,
            value,
            frames: Vec::new(),
        });
        let failure = Occurrence { exceptions: exceptions.collect(), ..Occurrence::default() };
        failure.naming_exception().map(|exception| exception.error_type)
    }

    #[test]
    fn the_last_exception_with_a_message_names_the_error() {
        assert_eq!(named(&[("A", "a"), ("B", "b")]), Some("B"));
        assert_eq!(named(&[("A", "a"), ("B", " ")]), Some("A"));
        assert_eq!(named(&[("A", ""), ("B", ""), ("", "")]), Some("B"));
        assert_eq!(named(&[]), None);
    }
}
