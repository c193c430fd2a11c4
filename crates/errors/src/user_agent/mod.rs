//! Finds the browser, operating system and device in a User-Agent header (RFC 9110 §10.1.5). The
//! rules are those of ua-parser (`crates/errors/src/user_agent/data/README.md`), which Sentry's own
//! servers use, too.

mod rules;

use rules::{Matched, Rules};

/// Maximum bytes of a User-Agent that are read. Browsers and robots send up to 400.
const MAX_BYTES: usize = 512;
/// Maximum parts of a version.
const VERSION_PARTS: usize = 4;
/// ua-parser's name for an unknown value.
const OTHER: &str = "Other";
/// ua-parser's device name for a robot.
const ROBOT: &str = "Spider";
/// More texts that identify robots, in lower case. `bot` alone is none: a phone can be a `CUBOT`,
/// without a version.
const ROBOTS: [&str; 7] = [
    "bot/",
    "spider",
    "crawler",
    "chrome-lighthouse",
    "google-inspectiontool",
    "datadogsynthetics",
    "+http",
];

/// The content of a User-Agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserAgent {
    /// The browser, or another program: `Mobile Safari`.
    pub browser: Option<Versioned>,
    /// The operating system: `Mac OS X`.
    pub os: Option<Versioned>,
    /// The device.
    pub device: Option<Device>,
    /// `true` if it identifies itself as a robot.
    pub is_robot: bool,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The name.
    pub name: String,
    /// The known part of the version: `17.6`.
    pub version: Option<String>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The name: `iPhone`, `Samsung SM-S921B`; `Spider` for robots.
    pub family: String,
    /// The maker.
    pub brand: Option<String>,
    /// The model.
    pub model: Option<String>,
}

impl UserAgent {
    /// Reads a User-Agent. Only its first 512 bytes count.
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
