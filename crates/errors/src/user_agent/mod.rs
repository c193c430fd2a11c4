//! Which browser, operating system and device a User-Agent header names (RFC 9110 §10.1.5), by the
//! rules of ua-parser (`crates/errors/src/user_agent/data/README.md`), which Sentry's own servers follow, too.

mod rules;

use rules::{Matched, Rules};

/// How much of a User-Agent is looked at, in bytes: browsers and robots send up to 400.
const MAX_BYTES: usize = 512;
/// How many parts a version has at most.
const VERSION_PARTS: usize = 4;
/// The name of what is known to be none of the known ones.
const OTHER: &str = "Other";
/// What ua-parser calls the device of a robot.
const ROBOT: &str = "Spider";
/// What else robots say that they are, in lower case. A phone may be a `CUBOT`, without a version of its own.
const ROBOTS: [&str; 7] = [
    "bot/",
    "spider",
    "crawler",
    "chrome-lighthouse",
    "google-inspectiontool",
    "datadogsynthetics",
    "+http",
];

/// What a User-Agent tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserAgent {
    /// The browser, or another program: `Mobile Safari`.
    pub browser: Option<Versioned>,
    /// The operating system: `Mac OS X`.
    pub os: Option<Versioned>,
    /// The device.
    pub device: Option<Device>,
    /// Whether it says that it is a robot.
    pub is_robot: bool,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Its name.
    pub name: String,
    /// Its version, as far as it is told: `17.6`.
    pub version: Option<String>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What it is called: `iPhone`, `Samsung SM-S921B`; `Spider` for robots.
    pub family: String,
    /// Who made it.
    pub brand: Option<String>,
    /// Its model.
    pub model: Option<String>,
}

impl UserAgent {
    /// Reads a User-Agent. However long it is, no more than its first 512 bytes count.
    pub fn read(user_agent: &str) -> Self {
        let text = user_agent.get(..user_agent.floor_char_boundary(MAX_BYTES)).unwrap_or_default();
        let [browser, os, device] = Rules::known().first_matches(text);
        let device = device.and_then(|it| {
            Some(Device {
                family: known(it.text(0, Some(1)))?,
                brand: it.text(1, None),
                model: it.text(2, Some(1)),
            })
        });
        let lower = text.to_ascii_lowercase();
        let is_robot = device.as_ref().is_some_and(|device| device.family == ROBOT)
            || ROBOTS.iter().any(|robot| lower.contains(robot));
        Self {
            browser: browser.as_ref().and_then(versioned),
            os: os.as_ref().and_then(versioned),
            device,
            is_robot,
        }
    }
}

fn versioned(matched: &Matched<'_>) -> Option<Versioned> {
    let version = (1..=VERSION_PARTS).map_while(|part| matched.text(part, Some(part + 1)));
    let version = version.collect::<Vec<_>>().join(".");
    Some(Versioned {
        name: known(matched.text(0, Some(1)))?,
        version: (!version.is_empty()).then_some(version),
    })
}

fn known(name: Option<String>) -> Option<String> {
    name.filter(|name| name != OTHER)
}

#[cfg(test)]
mod tests;
