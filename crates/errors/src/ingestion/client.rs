//! Browser, operating system and device from the User-Agent, for events that lack them
//! (`docs/semantics/error-tracking.md`, "User-Agents").

use shared::json::Json;

use super::member::{Members, get, get_mut, scalar_text, set};
use crate::user_agent::{UserAgent, Versioned};

const USER_AGENT: &str = "user-agent";
/// Name prefixes of SDKs for browsers.
const JAVASCRIPT_SDKS: [&str; 2] = ["sentry.javascript.", "raven-js"];
/// Rest of the names of JavaScript SDKs that do not run in browsers.
const NOT_IN_BROWSERS: [&str; 12] = [
    "aws-serverless",
    "bun",
    "cloudflare",
    "deno",
    "electron",
    "google-cloud-serverless",
    "hono",
    "nestjs",
    "node",
    "react-native",
    "serverless",
    "vercel-edge",
];

/// Adds the contexts `browser`, `os` and `device` that a canonical event lacks, from its
/// User-Agent. The User-Agent is that of the event's request. If there is none and a browser sent
/// the event, it is that of the sender. Returns `true` if it is a robot's.
pub(super) fn add_contexts(event: &mut Members<'_>, sent_with: Option<&str>) -> bool {
    let of_sender = || sent_with.filter(|_| is_sent_by_browser(event));
    let Some(user_agent) = user_agent_of_request(event).or_else(of_sender) else { return false };
    let user_agent = UserAgent::read(user_agent);
    let UserAgent { browser, os, device, is_robot } = user_agent;
    if !has_context(event, &["browser"])
        && let Some(browser) = browser
    {
        add_context(event, "browser", versioned(browser));
    }
    if !has_context(event, &["os", "client_os"])
        && let Some(os) = os
    {
        add_context(event, "os", versioned(os));
    }
    if !has_context(event, &["device"])
        && let Some(device) = device
    {
        let members =
            [("family", Some(device.family)), ("brand", device.brand), ("model", device.model)];
        add_context(event, "device", members);
    }
    is_robot
}

fn versioned(it: Versioned) -> [(&'static str, Option<String>); 2] {
    [("name", Some(it.name)), ("version", it.version)]
}

fn has_context(event: &Members<'_>, names: &[&str]) -> bool {
    let contexts = get(event, "contexts");
    names.iter().any(|name| contexts.is_some_and(|contexts| contexts.member(name).is_some()))
}

fn add_context(
    event: &mut Members<'_>,
    name: &'static str,
    members: impl IntoIterator<Item = (&'static str, Option<String>)>,
) {
    let present = members.into_iter().filter_map(|(name, text)| Some((name, text?)));
    let members = present.map(|(name, text)| (name.into(), Json::String(text.into())));
    let context =
        Json::Object(members.chain([("type".into(), Json::String(name.into()))]).collect());
    match get_mut(event, "contexts") {
        Some(Json::Object(contexts)) => set(contexts, name, context),
        _ => set(event, "contexts", Json::Object(vec![(name.into(), context)])),
    }
}

/// Returns the header of the request that the event is about. Headers are an object or pairs.
fn user_agent_of_request<'e>(event: &'e Members<'_>) -> Option<&'e str> {
    let is_user_agent = |name: &str| name.eq_ignore_ascii_case(USER_AGENT);
    let value = match get(event, "request")?.member("headers")? {
        Json::Object(headers) => {
            headers.iter().find_map(|(name, value)| is_user_agent(name).then_some(value))
        }
        Json::Array(pairs) => pairs.iter().find_map(|pair| match pair {
            Json::Array(pair) => match pair.as_slice() {
                [Json::String(name), value] if is_user_agent(name) => Some(value),
                _ => None,
            },
            _ => None,
        }),
        _ => None,
    };
    let first = match value? {
        Json::Array(values) => values.first()?,
        value => value,
    };
    scalar_text(first).map(str::trim).filter(|text| !text.is_empty())
}

fn is_sent_by_browser(event: &Members<'_>) -> bool {
    let platform = get(event, "platform").and_then(scalar_text);
    let sdk = get(event, "sdk").and_then(|sdk| sdk.member_text("name")).unwrap_or_default();
    let mut names = JAVASCRIPT_SDKS.iter().filter_map(|prefix| sdk.strip_prefix(prefix));
    platform == Some("javascript") && names.next().is_some_and(|it| !NOT_IN_BROWSERS.contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingestion::json_text::to_string;

    const CHROME: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like \
        Gecko) Chrome/142.0.0.0 Safari/537.36";
    const GOOGLEBOT: &str =
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    const BROWSER: &str = r#""platform":"javascript","sdk":{"name":"sentry.javascript.react"}"#;

    fn contexts(event: &str, sent_with: Option<&str>) -> (String, bool) {
        let Ok(Json::Object(mut event)) = Json::parse(event, 16) else { panic!("{event}") };
        let is_robot = add_contexts(&mut event, sent_with);
        (get(&event, "contexts").map(to_string).unwrap_or_default(), is_robot)
    }

    #[test]
    fn browser_events_use_the_user_agent_of_the_sender() {
        let (contexts, is_robot) = contexts(&format!("{{{BROWSER}}}"), Some(CHROME));
        let expected = r#"{"browser":{"name":"Chrome","version":"142.0.0.0","type":"browser"},"os":{"name":"Windows","version":"10","type":"os"}}"#;
        assert_eq!((contexts.as_str(), is_robot), (expected, false));
    }

    #[test]
    fn other_events_ignore_the_user_agent_of_the_sender() {
        for event in [
            "{}".to_owned(),
            r#"{"platform":"python","sdk":{"name":"sentry.python"}}"#.to_owned(),
            r#"{"platform":"node","sdk":{"name":"sentry.javascript.browser"}}"#.to_owned(),
            r#"{"platform":"javascript"}"#.to_owned(),
            r#"{"platform":"javascript","sdk":{"name":"sentry.javascript.deno"}}"#.to_owned(),
            r#"{"platform":"javascript","sdk":{"name":"sentry.javascript.react-native"}}"#
                .to_owned(),
        ] {
            assert_eq!(contexts(&event, Some(GOOGLEBOT)), (String::new(), false), "{event}");
        }
        assert_eq!(contexts(&format!("{{{BROWSER}}}"), None), (String::new(), false));
    }

    #[test]
    fn user_agent_of_the_failed_request_wins() {
        for headers in [
            format!(r#"{{"Host":"h","user-Agent":"{GOOGLEBOT}"}}"#),
            format!(r#"{{"User-Agent":["{GOOGLEBOT}","x"]}}"#),
            format!(r#"[["Host","h"],["User-Agent","{GOOGLEBOT}"],["x"],1]"#),
        ] {
            let event = format!(r#"{{{BROWSER},"request":{{"headers":{headers}}}}}"#);
            let (contexts, is_robot) = contexts(&event, Some(CHROME));
            assert!(contexts.contains("Googlebot") && is_robot, "{contexts}");
            assert!(!contexts.contains("Chrome"), "{contexts}");
        }
        for headers in ["null", "[]", "{}", r#"{"User-Agent":""}"#, r#"{"User-Agent":{}}"#, "3"] {
            let event = format!(r#"{{{BROWSER},"request":{{"headers":{headers}}}}}"#);
            assert!(contexts(&event, Some(CHROME)).0.contains("Chrome"), "{headers}");
        }
    }

    #[test]
    fn existing_contexts_stay() {
        let sent = r#""contexts":{"browser":{"name":"Mine"},"client_os":{"name":"Own"},"app":{}}"#;
        let event = format!("{{{BROWSER},{sent}}}");
        let (contexts, _) = contexts(&event, Some(CHROME));
        assert_eq!(format!("\"contexts\":{contexts}"), sent);
    }
}
