//! Realistic errors of an application. Equal seeds give equal errors.
//!
//! Attributes correlate as in practice. An error determines its platform, level and routes. A
//! device determines the operating system and the possible browsers. A release replaces the
//! previous one within hours. Independent draws would give events far more variety than real ones
//! have.

use std::collections::BTreeSet;

use rand::distr::Distribution;
use rand::distr::weighted::{self, WeightedIndex};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use errors::attribute::{Attribute, user_hash};
use errors::category::Attributes;
use errors::grouping::Fingerprint;
use errors::log::day::{Day, MINUTES_PER_DAY};
use errors::log::row::EventRow;
use shared::timestamp::Timestamp;

const MILLIS_PER_MINUTE: i64 = 60_000;
/// The skew of frequencies, as the exponent of Zipf's law.
const SKEW: f64 = 1.1;
/// The number of users of a project's application, all equally active.
const USERS: u32 = 20_000;
/// The time between two releases, in minutes.
const RELEASE_INTERVAL: i64 = 2 * MINUTES_PER_DAY + 300;
/// The time that a release takes to reach the users, in minutes.
const ROLLOUT: i64 = 10 * 60;

/// Shares of events by hour of the day, in UTC: a quiet night, and two busy parts of the day.
const HOURLY_LOAD: [u32; 24] =
    [3, 2, 2, 2, 2, 3, 4, 6, 9, 11, 12, 11, 10, 11, 12, 13, 12, 11, 10, 10, 9, 7, 5, 4];

/// Shares of clients: device, operating system and browser.
const CLIENTS: [(u32, Option<&str>, &str, &str); 17] = [
    (2_584, None, "Windows", "Chrome"),
    (836, None, "Windows", "Edge"),
    (342, None, "Windows", "Firefox"),
    (38, None, "Windows", "Opera"),
    (935, Some("Mac"), "Mac OS X", "Chrome"),
    (612, Some("Mac"), "Mac OS X", "Safari"),
    (153, Some("Mac"), "Mac OS X", "Firefox"),
    (1_760, Some("iPhone"), "iOS", "Mobile Safari"),
    (240, Some("iPhone"), "iOS", "Chrome Mobile iOS"),
    (279, Some("iPad"), "iOS", "Mobile Safari"),
    (21, Some("iPad"), "iOS", "Chrome Mobile iOS"),
    (630, Some("Samsung Galaxy S24"), "Android", "Chrome Mobile"),
    (270, Some("Samsung Galaxy S24"), "Android", "Samsung Internet"),
    (644, Some("Pixel 9"), "Android", "Chrome Mobile"),
    (56, Some("Pixel 9"), "Android", "Firefox Mobile"),
    (165, None, "Linux", "Firefox"),
    (135, None, "Linux", "Chrome"),
];

/// Countries, in order of their frequency.
const COUNTRIES: [&str; 20] = [
    "US", "DE", "GB", "FR", "IN", "BR", "CA", "NL", "ES", "IT", "AU", "PL", "JP", "SE", "CH", "AT",
    "MX", "KR", "PT", "BE",
];

const ROUTES: [&str; 24] = [
    "/",
    "/login",
    "/cart",
    "/checkout",
    "/checkout/payment",
    "/product/{id}",
    "/search",
    "/account",
    "/account/orders",
    "/account/orders/{id}",
    "/settings",
    "/settings/team",
    "/reports",
    "/reports/{id}",
    "/dashboard",
    "/dashboard/{id}",
    "/api/v1/orders",
    "/api/v1/users/{id}",
    "/api/v1/search",
    "/api/v1/webhooks",
    "tasks.send_email",
    "tasks.sync_inventory",
    "tasks.nightly_report",
    "tasks.cleanup",
];
/// The index of the first of [`ROUTES`] that runs on a server, not in a browser.
const FIRST_SERVER_ROUTE: usize = 16;

/// Error types.
const TYPES: [&str; 6] =
    ["TypeError", "ReferenceError", "ValueError", "TimeoutError", "ChunkLoadError", "KeyError"];

/// The attributes that all events of one error share.
struct LiveError {
    fingerprint: Fingerprint,
    platform: &'static str,
    level: &'static str,
    error_type: &'static str,
    handled: bool,
    routes: Vec<&'static str>,
}

/// A generator of the events of one project.
pub(super) struct ProjectGenerator {
    random: ChaCha8Rng,
    errors: Vec<LiveError>,
    error: WeightedIndex<f64>,
    hour: WeightedIndex<u32>,
    client: WeightedIndex<u32>,
    country: WeightedIndex<f64>,
}

impl ProjectGenerator {
    /// Returns a generator of events of `errors` errors.
    pub(super) fn new(seed: u64, errors: u16) -> Result<Self, weighted::Error> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let zipf =
            |count: u16| WeightedIndex::new((1..=count).map(|rank| f64::from(rank).powf(-SKEW)));
        Ok(Self {
            errors: (0..errors).map(|_| LiveError::new(&mut random)).collect(),
            random,
            error: zipf(errors)?,
            hour: WeightedIndex::new(HOURLY_LOAD)?,
            client: WeightedIndex::new(CLIENTS.map(|(share, ..)| share))?,
            country: zipf(20)?,
        })
    }

    /// Generates the events of a day, in no particular order.
    pub(super) fn day(&mut self, day: Day, events: usize) -> Vec<EventRow> {
        (0..events).filter_map(|_| self.event(day)).collect()
    }

    /// Returns the fingerprints of the project's errors.
    pub(super) fn fingerprints(&self) -> BTreeSet<Fingerprint> {
        self.errors.iter().map(|error| error.fingerprint).collect()
    }

    fn event(&mut self, day: Day) -> Option<EventRow> {
        let random = &mut self.random;
        let error = self.errors.get(self.error.sample(random))?;
        let hour = i64::try_from(self.hour.sample(random)).ok()?;
        let millis_of_hour = random.random_range(0..60 * MILLIS_PER_MINUTE);
        let minute = day.first_minute() + hour * 60 + millis_of_hour / MILLIS_PER_MINUTE;
        let mut attributes = Attributes::default();
        let mut set = |attribute, value: &str| attributes.set(attribute, Some(value.to_owned()));
        set(Attribute::Platform, error.platform);
        set(Attribute::Level, error.level);
        set(Attribute::Handled, if error.handled { "true" } else { "false" });
        // 90% of an error's events occur on its first route.
        let route =
            if random.random_bool(0.9) { 0 } else { random.random_range(0..error.routes.len()) };
        let route = error.routes.get(route)?;
        set(Attribute::Transaction, route);
        set(Attribute::Culprit, route);
        set(Attribute::Type, error.error_type);
        let is_staging = random.random_bool(0.04);
        set(Attribute::Environment, if is_staging { "staging" } else { "production" });
        set(Attribute::Release, &release_at(minute, is_staging, random));
        // Server tasks have no request. Half of the server requests have no user.
        let has_request = route.starts_with('/');
        if has_request {
            set(Attribute::Url, &route.replace("{id}", "<number>"));
        }
        let is_bot = has_request && random.random_bool(0.02);
        set(Attribute::Bot, if is_bot { "true" } else { "false" });
        let user = random.random_range(0..USERS).to_string();
        let is_known = has_request && !is_bot && random.random_bool(0.5);
        if error.platform == "javascript" {
            let (_, device, os, browser) = CLIENTS.get(self.client.sample(random))?;
            set(Attribute::Os, os);
            set(Attribute::Browser, browser);
            set(Attribute::Country, COUNTRIES.get(self.country.sample(random))?);
            if let Some(device) = device {
                set(Attribute::Device, device);
            }
        } else {
            set(Attribute::Os, "Linux");
        }
        if error.platform == "javascript" || is_known {
            attributes.set(Attribute::User, user_hash(&user));
        }
        let millis = minute * MILLIS_PER_MINUTE + millis_of_hour % MILLIS_PER_MINUTE;
        let occurred_at = Timestamp::from_millis(millis);
        Some(EventRow { occurred_at, fingerprint: error.fingerprint, attributes })
    }
}

impl LiveError {
    fn new(random: &mut ChaCha8Rng) -> Self {
        let in_browser = random.random_bool(0.7);
        let platform = match (in_browser, random.random_bool(0.6)) {
            (true, _) => "javascript",
            (false, true) => "python",
            (false, false) => "node",
        };
        let level = match random.random_range(0..100) {
            0..4 => "fatal",
            4..14 => "warning",
            14..17 => "info",
            _ => "error",
        };
        let (browser_routes, server_routes) = ROUTES.split_at(FIRST_SERVER_ROUTE);
        let possible = if in_browser { browser_routes } else { server_routes };
        let count = random.random_range(1..=4);
        let handled = level != "fatal" && random.random_bool(0.45);
        let route = |_| possible.get(random.random_range(0..possible.len())).copied();
        let routes = (0..count).filter_map(route).collect();
        let error_type = TYPES.get(random.random_range(0..TYPES.len())).copied();
        let error_type = error_type.unwrap_or_default();
        let fingerprint = Fingerprint(random.random());
        Self { fingerprint, platform, level, error_type, handled, routes }
    }
}

/// Returns the release that an event at `minute` reports. Staging already runs the next release.
/// After a release, some clients still run the previous one.
fn release_at(minute: i64, is_staging: bool, random: &mut ChaCha8Rng) -> String {
    let newest = minute.div_euclid(RELEASE_INTERVAL);
    let since = minute.rem_euclid(RELEASE_INTERVAL);
    let is_updated = since > random.random_range(0..ROLLOUT) && !random.random_bool(0.02);
    let release = newest + i64::from(is_staging) - i64::from(!is_staging && !is_updated);
    format!("shop@{}.{}.{}", release / 400, release / 20 % 20, release % 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use errors::log::run::{ColumnName, pack};

    #[test]
    #[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
    fn packed_events_take_few_bytes() {
        let mut generator = ProjectGenerator::new(1, 200).unwrap();
        let day = Day::of(Timestamp::from_millis(1_795_000_000_000));
        let rows = generator.day(day, 5_000);
        let columns = pack(day, &rows).unwrap();
        let bytes = |counts: fn(ColumnName) -> bool| {
            let columns = columns.iter().filter(|(name, _)| counts(*name));
            columns.map(|(_, bytes)| bytes.len()).sum::<usize>() as f64 / rows.len() as f64
        };
        let (without_user, all) =
            (bytes(|name| name != ColumnName::Category(Attribute::User.into())), bytes(|_| true));
        println!("{without_user:.2} bytes an event, {all:.2} with its user");
        for (name, bytes) in columns.iter() {
            println!("{:12} {:.2}", name.name(), bytes.len() as f64 / rows.len() as f64);
        }
        assert!(without_user <= 6.0, "{without_user}");
        assert!(all <= 14.0, "{all}");
    }
}
