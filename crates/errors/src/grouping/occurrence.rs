//! The content of an event that groups and names errors.

use std::borrow::Cow;

/// The content of an event. A text that the event lacks is `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occurrence<'e> {
    /// Fingerprint parts that the application set. Empty if it set none.
    pub client_fingerprint: Vec<&'e str>,
    /// The chain of exceptions. The one that was thrown last is at the end.
    pub exceptions: Vec<Exception<'e>>,
    /// The logged message.
    pub log: LogMessage<'e>,
    /// `true` if the code was built, so each build renames functions and files.
    pub is_built: bool,
    /// The transaction, else the path of the page. Only set for built code.
    pub route: Cow<'e, str>,
}

/// One exception of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exception<'e> {
    /// The class: `ValueError`.
    pub error_type: &'e str,
    /// The message.
    pub value: &'e str,
    /// The stack. The frame that threw is at the end.
    pub frames: Vec<Frame<'e>>,
}

/// A call in a stack.
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
    /// `true` if the code belongs to the application, not to a library.
    pub in_app: bool,
}

/// A logged message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogMessage<'e> {
    /// The message before its parameters were filled in, if it has any.
    pub template: &'e str,
    /// The message.
    pub text: &'e str,
}

impl<'e> Occurrence<'e> {
    /// Returns the exception that names the error: the last one with a message, else the last one
    /// with a type.
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
        let occurrence = Occurrence { exceptions: exceptions.collect(), ..Occurrence::default() };
        occurrence.naming_exception().map(|exception| exception.error_type)
    }

    #[test]
    fn last_exception_with_a_message_names_the_error() {
        assert_eq!(named(&[("A", "a"), ("B", "b")]), Some("B"));
        assert_eq!(named(&[("A", "a"), ("B", " ")]), Some("A"));
        assert_eq!(named(&[("A", ""), ("B", ""), ("", "")]), Some("B"));
        assert_eq!(named(&[]), None);
    }
}
