//! Checks a history for faults.

use std::collections::HashMap;
use std::fmt;

use super::network::{Event, History, Item};

/// Returns whether the item is as expected after an operation.
pub(crate) type ExpectedItem = Box<dyn Fn(Option<&Item>) -> bool>;

/// An operation with its response.
pub(crate) struct Operation {
    /// The operation's number in the history.
    pub(crate) number: usize,
    /// The status code.
    pub(crate) status: u16,
    /// The body of the response.
    pub(crate) reply: String,
    /// The expected item after the operation.
    pub(crate) expected: ExpectedItem,
}

impl Operation {
    fn is_acknowledged(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn is_rejected(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

/// The outcomes of all operations.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Number of operations.
    pub(crate) writes: usize,
    acknowledged: usize,
    rejected: usize,
    unavailable: usize,
    /// Number of operations that another change overtook before their response.
    pub(crate) overtaken: usize,
    /// Number of changes that came after their operation's response.
    late: usize,
    /// Violations of the guarantees.
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, acknowledged, rejected, unavailable, overtaken, late, faults } = self;
        write!(
            formatter,
            "{writes} writes, {acknowledged} acknowledged, {rejected} rejected, {unavailable} \
             unavailable; {overtaken} overtaken before their response, {late} changes after it; {} faults",
            faults.len()
        )
    }
}

/// The events of an operation in the history.
#[derive(Default)]
struct Span {
    began: usize,
    ended: usize,
    changes: Vec<usize>,
}

/// Compares the responses with the history.
pub(crate) fn judge(history: &History, operations: &[Operation]) -> Verdict {
    let mut spans: HashMap<usize, Span> = HashMap::new();
    // The item after each event.
    let mut states = Vec::with_capacity(history.events.len());
    let mut changes = Vec::new();
    let mut state = history.first.as_ref();
    for (at, event) in history.events.iter().enumerate() {
        match event {
            Event::Began(number) => spans.entry(*number).or_default().began = at,
            Event::Ended(number) => spans.entry(*number).or_default().ended = at,
            Event::Changed(number, to) => {
                spans.entry(*number).or_default().changes.push(at);
                changes.push((at, *number));
                state = to.as_ref();
            }
        }
        states.push(state);
    }
    let mut verdict = Verdict { writes: operations.len(), ..Verdict::default() };
    for operation in operations {
        let Operation { number, status, reply, expected } = operation;
        let span = &spans[number];
        let mut fault = |what: &str| {
            verdict.faults.push(format!("{number}, status {status}, {what}: {reply}"));
        };
        if *status == 500 {
            fault("failed");
        }
        if span.changes.len() > 1 {
            fault("was executed twice");
        }
        if operation.is_rejected() && !span.changes.is_empty() {
            fault("was rejected but executed");
        }
        if operation.is_acknowledged()
            && !states[span.began..=span.ended].iter().any(|it| expected(*it))
        {
            fault("was not executed");
        }
        for &change in span.changes.iter().filter(|change| **change > span.ended) {
            verdict.late += 1;
            // A creation without a known outcome can take effect after another client's deletion.
            let is_creation = states[change - 1].is_none() && states[change].is_some();
            if *status == 503 && is_creation {
                continue;
            }
            let newer = operations.iter().find(|newer| {
                let it = &spans[&newer.number];
                newer.is_acknowledged()
                    && it.began > span.ended
                    && it.changes.first().is_some_and(|newer| *newer < change)
            });
            if let Some(newer) = newer {
                let number = newer.number;
                verdict
                    .faults
                    .push(format!("{} undid {number}, which came later", operation.number));
            }
        }
        verdict.acknowledged += usize::from(operation.is_acknowledged());
        verdict.rejected += usize::from(operation.is_rejected());
        verdict.unavailable += usize::from(*status == 503);
        let overtakes = |(at, by): &(usize, usize)| {
            by != number && span.changes.first().is_some_and(|own| own < at) && *at < span.ended
        };
        verdict.overtaken += usize::from(changes.iter().any(overtakes));
    }
    verdict
}
