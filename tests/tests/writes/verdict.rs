//! What is wrong with a history.

use std::collections::HashMap;
use std::fmt;

use super::network::{Event, History, Item};

/// Whether the item looks as an operation wants it.
pub(crate) type Wanted = Box<dyn Fn(Option<&Item>) -> bool>;

/// An operation that was answered.
pub(crate) struct Operation {
    /// Its number in the history.
    pub(crate) number: usize,
    /// Its status code.
    pub(crate) status: u16,
    /// Its answer.
    pub(crate) told: String,
    /// How the item looks when it is carried out.
    pub(crate) wanted: Wanted,
}

impl Operation {
    fn is_acknowledged(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn is_refused(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

/// What became of all operations.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// How many there were.
    pub(crate) writes: usize,
    acknowledged: usize,
    refused: usize,
    unavailable: usize,
    /// Those after whose change somebody else's came before they were answered.
    pub(crate) overtaken: usize,
    /// Changes that came after their operation was answered.
    late: usize,
    /// What must not be.
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, acknowledged, refused, unavailable, overtaken, late, faults } = self;
        write!(
            formatter,
            "{writes} writes, {acknowledged} acknowledged, {refused} refused, {unavailable} \
             unavailable; {overtaken} overtaken before their answer, {late} changes after it; {} faults",
            faults.len()
        )
    }
}

/// Where an operation stands in the history.
#[derive(Default)]
struct Span {
    began: usize,
    ended: usize,
    changes: Vec<usize>,
}

/// Holds what was answered against what happened.
pub(crate) fn judge(history: &History, operations: &[Operation]) -> Verdict {
    let mut spans: HashMap<usize, Span> = HashMap::new();
    // The item as it was after each event.
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
        let Operation { number, status, told, wanted } = operation;
        let span = &spans[number];
        let mut fault = |what: &str| {
            verdict.faults.push(format!("{number}, answered {status}, {what}: {told}"));
        };
        if *status == 500 {
            fault("failed");
        }
        if span.changes.len() > 1 {
            fault("was carried out twice");
        }
        if operation.is_refused() && !span.changes.is_empty() {
            fault("was carried out all the same");
        }
        if operation.is_acknowledged()
            && !states[span.began..=span.ended].iter().any(|it| wanted(*it))
        {
            fault("was not carried out");
        }
        for &change in span.changes.iter().filter(|change| **change > span.ended) {
            verdict.late += 1;
            // Whoever was not told what became of making something may find it made after another's deletion.
            let is_made = states[change - 1].is_none() && states[change].is_some();
            if *status == 503 && is_made {
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
        verdict.refused += usize::from(operation.is_refused());
        verdict.unavailable += usize::from(*status == 503);
        let overtakes = |(at, by): &(usize, usize)| {
            by != number && span.changes.first().is_some_and(|own| own < at) && *at < span.ended
        };
        verdict.overtaken += usize::from(changes.iter().any(overtakes));
    }
    verdict
}
