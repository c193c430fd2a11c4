//! What errors can be filtered by (`docs/semantics/error-tracking.md`, "Categories").

/// An attribute of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Where it happened: `production`.
    Environment,
    /// The version of the application.
    Release,
    /// `fatal`, `error`, `warning`, `info` or `debug`.
    Level,
    /// Whether the application caught it: `true` or `false`.
    Handled,
    /// The browser's name, without its version.
    Browser,
    /// The operating system's name, without its version.
    Os,
    /// The device's family or model.
    Device,
    /// The user's country, ISO 3166-1 alpha-2.
    Country,
    /// What the SDK runs on: `python`, `node`, `javascript`.
    Platform,
    /// The route, page or task.
    Transaction,
}

impl Attribute {
    /// All attributes, in the order of their values in [`Attributes`].
    pub const ALL: [Self; 10] = [
        Self::Environment,
        Self::Release,
        Self::Level,
        Self::Handled,
        Self::Browser,
        Self::Os,
        Self::Device,
        Self::Country,
        Self::Platform,
        Self::Transaction,
    ];

    /// Its name in filters and searches.
    pub fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Release => "release",
            Self::Level => "level",
            Self::Handled => "handled",
            Self::Browser => "browser",
            Self::Os => "os",
            Self::Device => "device",
            Self::Country => "country",
            Self::Platform => "platform",
            Self::Transaction => "transaction",
        }
    }

    /// The attribute of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

/// The attributes of one event. What an event does not tell is absent, never `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes([Option<String>; Attribute::ALL.len()]);

impl Attributes {
    /// The value of an attribute.
    pub fn get(&self, attribute: Attribute) -> Option<&str> {
        self.0[attribute as usize].as_deref()
    }

    /// Sets an attribute; an empty value means that it is absent.
    pub fn set(&mut self, attribute: Attribute, value: Option<String>) {
        self.0[attribute as usize] = value.filter(|value| !value.is_empty());
    }
}
