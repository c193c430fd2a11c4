//! The evidence of a derived pain point, its title and its signature.

use serde::{Deserialize, Serialize};

/// The kind of a derived pain point. A greater kind wins if several concern one click.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PainKind {
    /// An error within a second after a click.
    ErrorClick,
    /// A click without a reaction.
    DeadClick,
    /// Five or more clicks on one element.
    RageClick,
    /// A user's message.
    Feedback,
}

impl PainKind {
    /// Returns the kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ErrorClick => "error_click",
            Self::DeadClick => "dead_click",
            Self::RageClick => "rage_click",
            Self::Feedback => "feedback",
        }
    }
}

/// The origin of a derived pain point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The kind.
    pub kind: PainKind,
    /// The route of the page, if known.
    pub route: Option<String>,
    /// The normalized selector of the element; `None` for feedback.
    pub selector: Option<String>,
    /// The label of the element; `None` for feedback.
    pub element: Option<String>,
    /// The browser and its version.
    pub browser: Option<String>,
    /// The release of the page.
    pub release: Option<String>,
    /// The error within a second after the click.
    pub error_id: Option<String>,
}

impl Evidence {
    /// Returns the title of the pain point, and of a new insight with this signature.
    pub fn title(&self) -> String {
        let subject = match self.kind {
            PainKind::ErrorClick => "Errors after clicks on",
            PainKind::DeadClick => "Dead clicks on",
            PainKind::RageClick => "Rage clicks on",
            PainKind::Feedback => "Feedback",
        };
        let mut title = subject.to_owned();
        if let Some(element) = &self.element {
            title.push_str(" \u{201c}");
            title.push_str(element);
            title.push('\u{201d}');
        }
        if let Some(route) = &self.route {
            title.push_str(" at ");
            title.push_str(route);
        }
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(kind: PainKind) -> Evidence {
        Evidence {
            kind,
            route: Some("/checkout".to_owned()),
            selector: Some("button#pay".to_owned()),
            element: Some("Pay now".to_owned()),
            browser: None,
            release: Some("1".to_owned()),
            error_id: None,
        }
    }

    #[test]
    fn titles_name_kind_element_and_route() {
        let titles = [PainKind::RageClick, PainKind::DeadClick, PainKind::ErrorClick];
        assert_eq!(
            titles.map(|kind| evidence(kind).title()),
            [
                "Rage clicks on “Pay now” at /checkout",
                "Dead clicks on “Pay now” at /checkout",
                "Errors after clicks on “Pay now” at /checkout"
            ]
        );
        let none = Evidence { element: None, route: None, ..evidence(PainKind::Feedback) };
        assert_eq!(none.title(), "Feedback");
    }

    #[test]
    fn signatures_depend_on_kind_selector_and_route() {
        let one = evidence(PainKind::RageClick);
        let other = Evidence {
            release: None,
            element: None,
            error_id: Some("e".to_owned()),
            ..one.clone()
        };
        assert_eq!(one.signature(), other.signature());
        for differing in [
            evidence(PainKind::DeadClick),
            Evidence { route: None, ..one.clone() },
            Evidence { selector: Some("a".to_owned()), ..one.clone() },
        ] {
            assert_ne!(one.signature(), differing.signature());
        }
    }
}
