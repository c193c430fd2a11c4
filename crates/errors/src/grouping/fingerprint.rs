//! Fingerprints, version 1, which assign events to errors (`docs/semantics/error-tracking.md`,
//! "Fingerprints").
//!
//! A fingerprint is the first 16 bytes of SHA-256 over
//!
//! ```text
//! version (1 byte: 1)
//! basis   (1 byte: 1 client, 2 stack, 3 type and value, 4 message, 5 browser extension, 6 nothing,
//!          7 stack of built code)
//! parts   (each: 1 byte tag, length as 4 bytes big-endian, then the bytes)
//! ```
//!
//! The parts follow in this order. An absent text is an empty part.
//!
//! - client: each string that the application set (tag 0). `{{ default }}` is replaced by the 16
//!   bytes of the fingerprint that the event would have without it (tag 1). `{{ default }}` alone
//!   is that fingerprint itself.
//! - stack: per exception, outermost last, its type (tag 2), then per frame place (tag 3), function
//!   (tag 4) and context line (tag 5).
//! - type and value: type (tag 2) and the value's template (tag 6).
//! - message: the template that was logged, else the message's template (tag 6).
//! - browser extension, nothing: no parts.
//! - stack of built code: per exception its type (tag 2), then per frame with a stable function
//!   place (tag 3) and function (tag 4). If the nearest frame is not stable: the stable template of
//!   the value (tag 6). Else, if the value contains one: the name that an engine misses (tag 8). If
//!   no frame is stable: the route (tag 7).
//!
//! Frames of the application count. If the chain has none, the five frames nearest to the throw of
//! each exception count. A run of equal frames counts once, so the depth of a recursion does not
//! matter. Frames of browser extensions are left out. If one of them threw, or no other frame is
//! left, the event belongs to the single group of browser extensions.

use std::fmt;

use sha2::{Digest, Sha256};

use super::built_code;
use super::frame_identity::{FrameIdentity, is_browser_extension};
use super::message_template::message_template;
use super::occurrence::{Exception, Frame, LogMessage, Occurrence};

/// The identity of an error: a 128-bit hash of the parts that its events share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Version of the rules. It is the first hashed byte, so fingerprints of two versions differ.
const FINGERPRINT_VERSION: u8 = 1;
/// Number of frames that count in a stack without frames of the application.
const LIBRARY_FRAMES: usize = 5;

#[derive(Debug, Clone, Copy)]
enum GroupingBasis {
    Client = 1,
    Stack = 2,
    TypeAndValue = 3,
    Message = 4,
    BrowserExtension = 5,
    Nothing = 6,
    BuiltStack = 7,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Literal = 0,
    Default = 1,
    Type = 2,
    Place = 3,
    Function = 4,
    ContextLine = 5,
    Template = 6,
    Route = 7,
    MissingName = 8,
}

/// Returns the fingerprint of an event's content.
pub fn fingerprint(occurrence: &Occurrence<'_>) -> Fingerprint {
    match occurrence.client_fingerprint.as_slice() {
        [] => default_fingerprint(occurrence),
        [only] if is_default(only) => default_fingerprint(occurrence),
        parts => {
            let mut hash = PartHash::new(GroupingBasis::Client);
            for part in parts {
                if is_default(part) {
                    hash.part(Part::Default, &default_fingerprint(occurrence).0);
                } else {
                    hash.part(Part::Literal, part.as_bytes());
                }
            }
            hash.finish()
        }
    }
}

fn is_default(part: &str) -> bool {
    let inner = part.trim().strip_prefix("{{").and_then(|part| part.strip_suffix("}}"));
    inner.is_some_and(|name| name.trim() == "default")
}

fn default_fingerprint(occurrence: &Occurrence<'_>) -> Fingerprint {
    let exceptions = &occurrence.exceptions;
    if is_thrown_by_extension(exceptions) {
        return PartHash::new(GroupingBasis::BrowserExtension).finish();
    }
    let has_frames = exceptions.iter().any(|exception| !exception.frames.is_empty());
    if has_frames && occurrence.is_built {
        return built_fingerprint(occurrence);
    }
    if has_frames {
        return stack_fingerprint(exceptions);
    }
    if let Some(exception) = occurrence.naming_exception() {
        let mut hash = PartHash::new(GroupingBasis::TypeAndValue);
        hash.part(Part::Type, exception.error_type.as_bytes());
        hash.part(Part::Template, message_template(exception.value).as_bytes());
        return hash.finish();
    }
    message_fingerprint(&occurrence.log)
}

/// `true` if the frame that threw last belongs to an extension, or all frames do.
fn is_thrown_by_extension(exceptions: &[Exception<'_>]) -> bool {
    let mut thrown_from = exceptions.iter().rev().filter_map(|exception| exception.frames.last());
    thrown_from.next().is_some_and(is_browser_extension)
        || (exceptions.iter().any(|exception| !exception.frames.is_empty())
            && exceptions.iter().flat_map(|exception| &exception.frames).all(is_browser_extension))
}

fn stack_fingerprint(exceptions: &[Exception<'_>]) -> Fingerprint {
    let is_own = |frame: &Frame<'_>| frame.in_app && !is_browser_extension(frame);
    let has_own = exceptions.iter().flat_map(|exception| &exception.frames).any(is_own);
    let mut hash = PartHash::new(GroupingBasis::Stack);
    for exception in exceptions {
        hash.part(Part::Type, exception.error_type.as_bytes());
        let mut frames = counted_frames(&exception.frames, has_own);
        frames.dedup();
        for frame in frames {
            hash.part(Part::Place, frame.place.as_bytes());
            hash.part(Part::Function, frame.function.as_bytes());
            hash.part(Part::ContextLine, frame.context_line.as_bytes());
        }
    }
    hash.finish()
}

/// Returns the fingerprint of built code, from parts that stay equal in its next build.
fn built_fingerprint(occurrence: &Occurrence<'_>) -> Fingerprint {
    let mut hash = PartHash::new(GroupingBasis::BuiltStack);
    let (mut any_lasts, mut nearest_lasts) = (false, false);
    for exception in &occurrence.exceptions {
        hash.part(Part::Type, exception.error_type.as_bytes());
        let is_known = |frame: &&Frame<'_>| {
            !is_browser_extension(frame) && !built_code::is_of_engine(frame.file)
        };
        let known = exception.frames.iter().filter(is_known);
        let has_own = known.clone().any(|frame| frame.in_app);
        let frames = known.filter(|frame| frame.in_app || !has_own);
        let frames = frames.map(|frame| Some((frame, built_code::lasting_name(frame.function)?)));
        let frames: Vec<Option<(&Frame<'_>, &str)>> = frames.collect();
        if let Some(nearest) = frames.last() {
            nearest_lasts = nearest.is_some();
        }
        let lasting = frames.into_iter().flatten();
        let mut lasting: Vec<(String, &str)> =
            lasting.map(|(frame, name)| (built_code::lasting_file(frame.file), name)).collect();
        lasting.dedup();
        for (file, name) in lasting {
            any_lasts = true;
            hash.part(Part::Place, file.as_bytes());
            hash.part(Part::Function, name.as_bytes());
        }
    }
    let value = occurrence.naming_exception().map_or("", |exception| exception.value);
    if !nearest_lasts {
        hash.part(Part::Template, built_code::lasting_template(value).as_bytes());
    } else if let Some(name) = built_code::missing_name(value) {
        hash.part(Part::MissingName, name.as_bytes());
    }
    if !any_lasts {
        hash.part(Part::Route, occurrence.route.as_bytes());
    }
    hash.finish()
}

fn counted_frames<'e>(frames: &[Frame<'e>], only_own: bool) -> Vec<FrameIdentity<'e>> {
    let candidates = frames.iter().filter(|frame| !is_browser_extension(frame));
    if only_own {
        return candidates.filter(|frame| frame.in_app).map(FrameIdentity::of).collect();
    }
    let nearest = candidates.rev().take(LIBRARY_FRAMES).map(FrameIdentity::of);
    let mut nearest: Vec<_> = nearest.collect();
    nearest.reverse();
    nearest
}

fn message_fingerprint(log: &LogMessage<'_>) -> Fingerprint {
    let template = match (log.template, log.text) {
        ("", "") => return PartHash::new(GroupingBasis::Nothing).finish(),
        ("", text) => message_template(text),
        (template, _) => template.to_owned(),
    };
    let mut hash = PartHash::new(GroupingBasis::Message);
    hash.part(Part::Template, template.as_bytes());
    hash.finish()
}

struct PartHash(Sha256);

impl PartHash {
    fn new(basis: GroupingBasis) -> Self {
        Self(Sha256::new().chain_update([FINGERPRINT_VERSION, basis as u8]))
    }

    fn part(&mut self, part: Part, bytes: &[u8]) {
        // No text of a 1 MiB event reaches 4 GiB.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.update([part as u8]);
        self.0.update(length.to_be_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> Fingerprint {
        let mut first = [0; 16];
        for (target, byte) in first.iter_mut().zip(self.0.finalize()) {
            *target = byte;
        }
        Fingerprint(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame<'e>(module: &'e str, function: &'e str, in_app: bool) -> Frame<'e> {
        Frame { module, function, in_app, ..Frame::default() }
    }

    fn thrown<'e>(error_type: &'e str, value: &'e str, frames: &[Frame<'e>]) -> Occurrence<'e> {
        let exception = Exception { error_type, value, frames: frames.to_vec() };
        Occurrence { exceptions: vec![exception], ..Occurrence::default() }
    }

    fn logged<'e>(template: &'e str, text: &'e str) -> Occurrence<'e> {
        Occurrence { log: LogMessage { template, text }, ..Occurrence::default() }
    }

    fn hex(occurrence: &Occurrence<'_>) -> String {
        use std::fmt::Write;
        fingerprint(occurrence).0.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    const VECTORS: [&str; 6] = [
        "9901adc6fa369390ef8f5a1cef9f7cea",
        "3a890f2d28cbaa42db88e0ff06342216",
        "0d248eea4ec3150475973a549b62225a",
        "bf5a7b587e0a4bdd16aac0c8a6f87edd",
        "c77bd5c298411df6981a794ce2e15813",
        "44602a999abbebedf7de0ae1318e4f57",
    ];

    /// Vectors from an independent program that follows the layout above.
    #[test]
    fn keeps_its_byte_layout() {
        let stack = [frame("lib", "run", false), frame("shop.cart", "add", true)];
        let chained = Occurrence {
            client_fingerprint: vec!["{{ default }}", "tenant-a"],
            ..thrown("ValueError", "x", &stack)
        };
        for (occurrence, expected) in [
            (thrown("ValueError", "x", &stack), VECTORS[0]),
            (chained, VECTORS[1]),
            (thrown("KeyError", "no key 42", &[]), VECTORS[2]),
            (logged("payment %s failed", "payment 4711 failed"), VECTORS[3]),
            (logged("", "payment 4711 failed"), VECTORS[4]),
            (Occurrence::default(), VECTORS[5]),
        ] {
            assert_eq!(hex(&occurrence), expected, "{occurrence:?}");
        }
    }

    #[test]
    fn library_frames_do_not_count() {
        let own = frame("shop", "add", true);
        let one = thrown("E", "a", &[frame("lib", "x", false), own, frame("lib", "y", false)]);
        let other = thrown("E", "b", &[own, frame("lib2", "z", false)]);
        assert_eq!(fingerprint(&one), fingerprint(&other));
        let elsewhere = thrown("E", "a", &[frame("shop", "remove", true)]);
        assert_ne!(fingerprint(&one), fingerprint(&elsewhere));
        let other_type = thrown("F", "a", &[own]);
        assert_ne!(fingerprint(&one), fingerprint(&other_type));
    }

    #[test]
    fn five_library_frames_count_without_application_frames() {
        let names = ["a", "b", "c", "d", "e", "f", "g"].map(|name| frame(name, "run", false));
        let all = thrown("E", "", &names);
        assert_eq!(fingerprint(&all), fingerprint(&thrown("E", "", &names[2..])));
        assert_ne!(fingerprint(&all), fingerprint(&thrown("E", "", &names[3..])));
    }

    #[test]
    fn every_exception_of_the_chain_counts() {
        let own = [frame("shop", "add", true)];
        let mut chain = thrown("Inner", "", &own);
        chain.exceptions.extend(thrown("Outer", "", &own).exceptions);
        assert_ne!(fingerprint(&chain), fingerprint(&thrown("Outer", "", &own)));
        let mut reversed = chain.clone();
        reversed.exceptions.reverse();
        assert_ne!(fingerprint(&chain), fingerprint(&reversed));
    }

    #[test]
    fn recursion_depth_does_not_matter() {
        let frames = |depth| vec![frame("tree", "visit", true); depth];
        let shallow = thrown("E", "", &frames(2));
        assert_eq!(fingerprint(&shallow), fingerprint(&thrown("E", "", &frames(40))));
    }

    #[test]
    fn browser_extensions_are_one_group() {
        let page =
            Frame { file: "https://h/app.js", function: "go", in_app: true, ..Frame::default() };
        let extension = |file| Frame { file, function: "inject", in_app: true, ..Frame::default() };
        let one = thrown("TypeError", "x", &[extension("chrome-extension://abc/a.js")]);
        let other = thrown("Error", "y", &[page, extension("moz-extension://def/b.js")]);
        assert_eq!(fingerprint(&one), fingerprint(&other));
        let wrapped = thrown("Error", "y", &[extension("chrome-extension://abc/a.js"), page]);
        assert_eq!(fingerprint(&wrapped), fingerprint(&thrown("Error", "y", &[page])));
    }

    #[test]
    fn clients_can_replace_or_refine_the_fingerprint() {
        let with = |parts: &[&'static str], function| {
            let occurrence = thrown("E", "v", &[frame("m", function, true)]);
            hex(&Occurrence { client_fingerprint: parts.to_vec(), ..occurrence })
        };
        assert_eq!(with(&["a", "b"], "f"), with(&["a", "b"], "g"));
        assert_ne!(with(&["a", "b"], "ff"), with(&["ab"], "ff"));
        assert_eq!(with(&["{{ default }}"], "ff"), with(&[], "ff"));
        assert_eq!(with(&["{{default}}", "x"], "ff"), with(&["{{ default }}", "x"], "ff"));
        assert_ne!(with(&["{{ default }}", "x"], "ff"), with(&["{{ default }}", "x"], "gg"));
        assert_ne!(with(&["{{ default }}", "x"], "ff"), with(&["{{ default }}", "y"], "ff"));
    }

    #[test]
    fn value_templates_count_without_a_stack() {
        let one = thrown("KeyError", "no order 1", &[]);
        assert_eq!(fingerprint(&one), fingerprint(&thrown("KeyError", "no order 27", &[])));
        assert_ne!(fingerprint(&one), fingerprint(&thrown("KeyError", "no user 1", &[])));
    }

    #[test]
    fn logged_templates_count_unchanged() {
        let one = logged("took %d of 500 ms", "took 900 of 500 ms");
        assert_eq!(hex(&one), hex(&logged("took %d of 500 ms", "took 700 of 500 ms")));
        assert_ne!(hex(&one), hex(&logged("took %d of 900 ms", "took 950 of 900 ms")));
        assert_eq!(hex(&logged("", "took 9 ms")), hex(&logged("", "took 12 ms")));
    }

    proptest! {
        #[test]
        fn part_boundaries_change_the_fingerprint(a in "[a-c]{1,3}", b in "[a-c]{1,3}", c in "[a-c]{1,3}", d in "[a-c]{1,3}") {
            let print = |a, b| {
                fingerprint(&Occurrence { client_fingerprint: vec![a, b], ..Occurrence::default() })
            };
            prop_assert_eq!(print(&*a, &*b) == print(&*c, &*d), (&a, &b) == (&c, &d));
        }
    }
}
