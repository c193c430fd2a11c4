//! The texts that name an error.

use crate::ErrorDescription;
use crate::grouping::Fingerprint;
use crate::grouping::occurrence::{Exception, Frame, Occurrence};

const TITLE_CHARS: usize = 250;
const TYPE_CHARS: usize = 200;
const CULPRIT_CHARS: usize = 200;
const UNLABELED: &str = "<unlabeled event>";

impl ErrorDescription {
    /// Creates the description of a new error. Type and message are those of the naming exception,
    /// else `""` and the logged message. The title is `Type: value`, the message's first line, or
    /// `<unlabeled event>`. The culprit is the transaction, else `module in function` of what threw.
    pub(super) fn of(
        occurrence: &Occurrence<'_>,
        transaction: &str,
        fingerprint: Fingerprint,
    ) -> Self {
        let named = occurrence.naming_exception();
        let error_type = named.map_or("", |exception| exception.error_type);
        let message = named.map_or_else(|| logged(occurrence), |exception| exception.value);
        let title = match (error_type, first_line(message)) {
            ("", "") => UNLABELED.to_owned(),
            ("", line) => one_line(line, TITLE_CHARS),
            (error_type, "") => one_line(error_type, TITLE_CHARS),
            (error_type, line) => one_line(&format!("{error_type}: {line}"), TITLE_CHARS),
        };
        let culprit = match transaction {
            "" => one_line(&place_of_throw(occurrence), CULPRIT_CHARS),
            transaction => one_line(transaction, CULPRIT_CHARS),
        };
        let description = Self {
            fingerprint,
            title,
            error_type: one_line(error_type, TYPE_CHARS),
            message: message.to_owned(),
            culprit,
        };
        description.cut()
    }
}

fn logged<'e>(occurrence: &Occurrence<'e>) -> &'e str {
    if occurrence.log.text.is_empty() { occurrence.log.template } else { occurrence.log.text }
}

/// Returns the first non-empty line.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn one_line(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}

/// Returns `module in function` of the nearest frame of the application, else of the nearest frame.
/// The frames are those of the exception that was thrown last.
fn place_of_throw(occurrence: &Occurrence<'_>) -> String {
    let has_frames = |exception: &&Exception<'_>| !exception.frames.is_empty();
    let frames = occurrence.exceptions.iter().rev().find(has_frames);
    let frames = frames.map_or(&[][..], |exception| &exception.frames);
    let own = frames.iter().rev().find(|frame| frame.in_app);
    own.or_else(|| frames.last()).map(place).unwrap_or_default()
}

fn place(frame: &Frame<'_>) -> String {
    let module = if frame.module.is_empty() { frame.file } else { frame.module };
    match (module, frame.function) {
        (module, "") => module.to_owned(),
        ("", function) => function.to_owned(),
        (module, function) => format!("{module} in {function}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINGERPRINT: Fingerprint = Fingerprint([7; 16]);

    fn describe(occurrence: &Occurrence<'_>, transaction: &str) -> ErrorDescription {
        ErrorDescription::of(occurrence, transaction, FINGERPRINT)
    }
    use crate::grouping::occurrence::LogMessage;

    fn thrown<'e>(error_type: &'e str, value: &'e str, frames: Vec<Frame<'e>>) -> Occurrence<'e> {
        let exceptions = vec![Exception { error_type, value, frames }];
        Occurrence { exceptions, ..Occurrence::default() }
    }

    #[test]
    fn titles_an_error_by_type_and_first_line() {
        let long = "x".repeat(300);
        for (error_type, value, title) in [
            ("ValueError", "bad\nmore", "ValueError: bad".to_owned()),
            ("ValueError", "\n \n bad\t\u{7}one", "ValueError: badone".to_owned()),
            ("ValueError", "", "ValueError".to_owned()),
            ("", "bad", "bad".to_owned()),
            ("", "", UNLABELED.to_owned()),
            ("E", &long, format!("E: {}", "x".repeat(247))),
        ] {
            assert_eq!(describe(&thrown(error_type, value, vec![]), "").title, title);
        }
    }

    #[test]
    fn titles_a_log_by_its_message() {
        let log = LogMessage { template: "took %d ms", text: "took 5 ms\nslow" };
        let label = describe(&Occurrence { log, ..Occurrence::default() }, "");
        assert_eq!((label.title.as_str(), label.error_type.as_str()), ("took 5 ms", ""));
        assert_eq!(label.message, "took 5 ms\nslow");
        let log = LogMessage { template: "took %d ms", text: "" };
        assert_eq!(describe(&Occurrence { log, ..Occurrence::default() }, "").title, "took %d ms");
    }

    #[test]
    fn culprit_is_transaction_or_nearest_own_frame() {
        let own = Frame { module: "shop", function: "add", in_app: true, ..Frame::default() };
        let library = Frame { file: "lib/http.js", function: "send", ..Frame::default() };
        let occurrence = |frames| thrown("E", "", frames);
        let culprit = |frames, transaction| describe(&occurrence(frames), transaction).culprit;
        assert_eq!(culprit(vec![own, library], "GET /cart"), "GET /cart");
        assert_eq!(culprit(vec![own, library], ""), "shop in add");
        assert_eq!(culprit(vec![library], ""), "lib/http.js in send");
        assert_eq!(culprit(vec![], ""), "");
    }
}
