//! Clicked elements: stable selectors and readable labels.
//!
//! The SDK describes an element by a `message`, a selector of up to five steps, and by a `node` with
//! some attributes. It masks texts with asterisks, and build tools generate class names.

use serde_json::Value;

use super::route::{has_digit_inside, is_changing};
use super::{clean, text_at};

/// Most characters of a label.
const MAX_LABEL: usize = 80;
/// Most characters of a selector.
const MAX_SELECTOR: usize = 200;
/// Most characters of a message that are read.
const MAX_MESSAGE: usize = 1_000;
/// Most steps of a selector. More ancestors change more often.
const MAX_STEPS: usize = 3;
/// Prefixes of class names that tools generate, each followed by a hash.
const GENERATED: [&str; 8] = ["css-", "sc-", "jss", "jsx-", "svelte-", "emotion-", "ng-", "_ng"];
/// Class names of states, which a click can change.
const STATES: [&str; 12] = [
    "active",
    "hover",
    "focus",
    "focus-visible",
    "disabled",
    "loading",
    "open",
    "closed",
    "selected",
    "pressed",
    "visited",
    "busy",
];

/// A clicked element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// The tag, in lower case.
    pub(super) tag: String,
    /// The label.
    pub(super) label: String,
    /// The normalized selector.
    pub(super) selector: String,
}

impl Element {
    /// Reads the element of a breadcrumb.
    pub(super) fn read(message: &str, node: &Value) -> Self {
        let mut steps = selector_steps(message);
        let mut last = steps.pop().unwrap_or_default();
        let readable = |pointer: &str| text_at(node, pointer).filter(|it| is_readable(it));
        let attribute = |name| readable(&format!("/attributes/{name}"));
        let tag = text_at(node, "/tagName").unwrap_or(&last.tag).to_lowercase();
        let component = attribute("data-sentry-component").map(str::to_owned);
        let component = component.or_else(|| last.component());
        if let Some(id) = attribute("id") {
            last.id = Some(id.to_owned());
        }
        if let Some(class) = attribute("class") {
            last.classes = class.split_ascii_whitespace().map(str::to_owned).collect();
        }
        let label = component
            .as_deref()
            .or_else(|| attribute("aria-label"))
            .or_else(|| attribute("title"))
            .or(last.id.as_deref())
            .or_else(|| attribute("role"))
            .or_else(|| readable("/textContent"))
            .unwrap_or(if tag.is_empty() { "element" } else { &tag });
        let label = clean(label, MAX_LABEL);
        last.tag = component.unwrap_or_else(|| tag.clone());
        let mut name = last.name();
        for attribute_name in ["testId", "name", "alt", "role"] {
            if let (false, Some(value)) = (name.is_unique, attribute(attribute_name)) {
                let value = clean(value, MAX_LABEL);
                name.text = format!("{}[{attribute_name}={value}]", name.text);
                name.is_unique = attribute_name == "testId";
            }
        }
        for step in steps.iter().rev().take(MAX_STEPS - 1) {
            if name.is_unique || matches!(step.tag.as_str(), "body" | "html") {
                break;
            }
            let StepName { text, is_unique } = step.name();
            name = StepName { text: format!("{text} > {}", name.text), is_unique };
        }
        let selector = clean(&name.text, MAX_SELECTOR);
        Self { tag: clean(&tag, MAX_LABEL), label, selector }
    }
}

/// `true` if a text is neither empty nor masked.
fn is_readable(text: &str) -> bool {
    text.chars().any(|it| it != '*' && !it.is_whitespace() && !it.is_control())
}

/// A step of the SDK's selector.
#[derive(Debug, Clone, Default)]
struct SelectorStep {
    /// The tag, or the name of a component.
    tag: String,
    id: Option<String>,
    classes: Vec<String>,
}

/// The stable part of a step.
struct StepName {
    text: String,
    /// `true` if it most likely occurs once on a page.
    is_unique: bool,
}

impl SelectorStep {
    /// Reads a step without attributes: the tag, then the ID, then classes.
    fn read(step: &str) -> Self {
        let mut names = step.trim().split('.');
        let head = names.next().unwrap_or_default();
        let (tag, id) = head.split_once('#').map_or((head, None), |(tag, id)| (tag, Some(id)));
        let without_state = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        Self {
            tag: without_state(tag),
            id: id.map(str::to_owned),
            classes: names.map(without_state).collect(),
        }
    }

    /// Returns the component, which replaces the tag. Tags are in lower case.
    fn component(&self) -> Option<String> {
        self.tag.starts_with(|it: char| it.is_ascii_uppercase()).then(|| self.tag.clone())
    }

    fn name(&self) -> StepName {
        let mut text = self.tag.clone();
        if let Some(id) = self.id.as_deref().and_then(stable_id) {
            return StepName { text: format!("{text}#{id}"), is_unique: true };
        }
        let mut classes = stable_classes(&self.classes);
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            text.push('.');
            text.push_str(class);
        }
        StepName { text, is_unique: self.component().is_some() }
    }
}

/// Splits a selector such as `body > a#terms.app-nxbznx.btn[title="a > b"]` into its steps.
fn selector_steps(message: &str) -> Vec<SelectorStep> {
    let (mut is_attribute, mut is_quoted) = (false, false);
    let plain = |character: &char| {
        let was_attribute = is_attribute;
        is_quoted ^= is_attribute && *character == '"';
        is_attribute = match character {
            '[' => true,
            ']' => is_attribute && is_quoted,
            _ => is_attribute,
        };
        !was_attribute && !is_attribute
    };
    let plain: String = message.chars().take(MAX_MESSAGE).filter(plain).collect();
    plain.split('>').map(SelectorStep::read).collect()
}

/// Returns an ID without changing parts. Returns `None` if nothing else is left.
fn stable_id(id: &str) -> Option<String> {
    // React generates `:r1:`.
    if id.contains(':') {
        return None;
    }
    let separators = ['-', '_', '.'];
    let parts: Vec<&str> = id.split(separators).collect();
    if parts.iter().all(|part| part.is_empty() || is_generated(part)) {
        return None;
    }
    let parts: Vec<&str> =
        parts.into_iter().map(|part| if is_generated(part) { "*" } else { part }).collect();
    Some(parts.join("-"))
}

/// Returns the class names that people wrote.
fn stable_classes(classes: &[String]) -> Vec<&str> {
    let has_target = classes.iter().any(|class| is_target(class));
    let is_left_out = |class: &str| {
        class.is_empty()
            || STATES.contains(&class)
            || GENERATED.iter().any(|prefix| class.starts_with(prefix))
            || class.split(['-', '_']).any(|part| is_generated(part) && !is_size(part))
            || (has_target && has_hash_length(class))
    };
    classes.iter().map(String::as_str).filter(|class| !is_left_out(class)).collect()
}

/// `true` for Emotion's names of components, such as `e1md5v962`. A class with a hash then
/// accompanies it, whose letters can look like a word.
fn is_target(class: &str) -> bool {
    class.len() >= 7
        && class.starts_with('e')
        && class.ends_with(|it: char| it.is_ascii_digit())
        && has_digit_inside(class)
        && class.bytes().all(|it| it.is_ascii_alphanumeric())
}

/// `true` for a prefix and up to seven letters and digits, as in `app-bawkde`.
fn has_hash_length(class: &str) -> bool {
    let hash = class.rsplit_once('-').map(|(_, hash)| hash).unwrap_or_default();
    matches!(hash.len(), 5..=7)
        && hash.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
}

/// `true` for the short number in names such as `col-md-6`.
fn is_size(part: &str) -> bool {
    part.len() <= 4 && part.bytes().all(|it| it.is_ascii_digit())
}

/// `true` for a number, a hash, or letters without a vowel: a part that a tool generated.
fn is_generated(part: &str) -> bool {
    let is_word = |it: char| "aeiouyAEIOUY".contains(it) || !it.is_ascii_alphanumeric();
    is_changing(part) || (part.len() >= 5 && (has_digit_inside(part) || !part.contains(is_word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn selector(message: &str, node: &Value) -> String {
        Element::read(message, node).selector
    }

    #[test]
    fn selectors_have_no_generated_names() {
        let tag = json!({"tagName": "a"});
        for (message, expected) in [
            ("body > a#terms.app-nxbznx.e1md5v960.btn", "a#terms"),
            ("body > div.app-bawkde.e1md5v962 > a.btn.app-nxbznx.e1md5v960", "div > a.btn"),
            ("body > main.col-md-6 > a.css-1x2y3z.link", "main.col-md-6 > a.link"),
            ("div.a > div.b > div.c > a", "div.b > div.c > a"),
            ("ul#orders > li#order-4711 > a.active.open", "li#order-* > a"),
            ("a#radix-:r1:.close", "a.close"),
            ("nav > a.Button_primary__x7Gh2.wide[title=\"a > b.c\"]", "nav > a.wide"),
            ("body > a", "a"),
            ("", "a"),
        ] {
            assert_eq!(selector(message, &tag), expected, "{message}");
        }
    }

    #[test]
    fn selectors_are_equal_across_builds() {
        let node = |class: &str| json!({"tagName": "button", "attributes": {"class": class}});
        let of = |class: &str| selector("body > Payment > button", &node(class));
        assert_eq!(of("app-bawkde e1md5v962 wide pay"), of("pay wide app-zqjrtw e1md5v962"));
        assert_eq!(of("wide pay"), "Payment > button.pay.wide");
    }

    #[test]
    fn components_and_test_ids_name_elements() {
        let node = json!({"tagName": "BUTTON", "attributes": {"testId": "pay", "class": "x"}});
        assert_eq!(selector("body > form > button.x", &node), "button.x[testId=pay]");
        let node = json!({"tagName": "button", "attributes": {"data-sentry-component": "Pay"}});
        assert_eq!(selector("body > form > Pay.x", &node), "Pay.x");
        let read = Element::read("body > Payment", &json!({"tagName": "BUTTON"}));
        assert_eq!((read.selector.as_str(), read.label.as_str()), ("Payment", "Payment"));
        assert_eq!(read.tag, "button");
    }

    #[test]
    fn labels_are_the_first_that_is_not_masked() {
        let texts = ["Pay", "Pay now", "Payment", "pay", "link", "Buy"];
        let names = ["data-sentry-component", "aria-label", "title", "id", "role"];
        for masked in 0..texts.len() {
            let text_of = |at: usize| if at < masked { "*** ***" } else { texts[at] };
            let mut node = json!({"tagName": "A", "textContent": "Buy", "attributes": {}});
            for (number, name) in names.into_iter().enumerate() {
                node["attributes"][name] = json!(text_of(number));
            }
            assert_eq!(Element::read("body > a", &node).label, texts[masked]);
        }
        let masked = json!({"tagName": "A", "textContent": "****", "attributes": {"id": ""}});
        assert_eq!(Element::read("body > a#pay", &masked).label, "pay", "the selector has the ID");
        assert_eq!(Element::read("body > a", &masked).label, "a");
        assert_eq!(Element::read("body > Payment", &masked).label, "Payment");
        assert_eq!(Element::read("", &json!(null)).label, "element");
    }

    proptest! {
        #[test]
        fn any_element_has_a_short_selector_and_label(
            message in any::<String>(), id in any::<String>(), class in any::<String>(),
        ) {
            let node = json!({"attributes": {"id": id, "class": class, "title": message}});
            let element = Element::read(&message, &node);
            prop_assert!(element.selector.chars().count() <= MAX_SELECTOR);
            prop_assert!(element.label.chars().count() <= MAX_LABEL);
            prop_assert!(!element.selector.contains(char::is_control));
        }
    }
}
