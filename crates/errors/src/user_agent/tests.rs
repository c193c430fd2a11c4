use serde::Deserialize;

use super::*;

/// Cases of ua-parser's own tests.
#[derive(Deserialize)]
struct Published {
    test_cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    user_agent_string: String,
    family: String,
    major: Option<String>,
    minor: Option<String>,
    patch: Option<String>,
    patch_minor: Option<String>,
    brand: Option<String>,
    model: Option<String>,
}

impl Case {
    fn versioned(&self) -> Option<Versioned> {
        let parts = [&self.major, &self.minor, &self.patch, &self.patch_minor];
        let parts = parts.into_iter().map_while(|part| part.as_deref().filter(|it| !it.is_empty()));
        let version = parts.collect::<Vec<_>>().join(".");
        let version = (!version.is_empty()).then_some(version);
        (self.family != OTHER).then(|| Versioned { name: self.family.clone(), version })
    }

    fn device(&self) -> Option<Device> {
        let (brand, model) = (self.brand.clone(), self.model.clone());
        (self.family != OTHER).then(|| Device { family: self.family.clone(), brand, model })
    }
}

fn cases(text: &str) -> Vec<Case> {
    let published: Published = yaml_serde::from_str(text).unwrap();
    published.test_cases
}

#[test]
fn browsers_match_the_published_tests() {
    let cases = cases(include_str!("data/test_ua.yaml"));
    assert!(cases.len() > 1_400);
    for case in cases {
        let text = &case.user_agent_string;
        assert_eq!(UserAgent::read(text).browser, case.versioned(), "{text}");
    }
}

#[test]
fn operating_systems_match_the_published_tests() {
    let cases = cases(include_str!("data/test_os.yaml"));
    assert!(cases.len() > 450);
    for case in cases {
        let text = &case.user_agent_string;
        assert_eq!(UserAgent::read(text).os, case.versioned(), "{text}");
    }
}

#[test]
fn devices_match_the_published_tests() {
    let cases = cases(include_str!("data/test_device.yaml"));
    assert!(cases.len() > 1_600);
    for case in cases {
        let text = &case.user_agent_string;
        assert_eq!(UserAgent::read(text).device, case.device(), "{text}");
    }
}

fn names(user_agent: &str) -> [String; 3] {
    let UserAgent { browser, os, device, .. } = UserAgent::read(user_agent);
    let name = |it: Option<Versioned>| it.map(|it| it.name).unwrap_or_default();
    [name(browser), name(os), device.map(|device| device.family).unwrap_or_default()]
}

#[test]
fn reads_common_user_agents() {
    for (user_agent, expected) in [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/142.0.0.0 Safari/537.36",
            ["Chrome", "Windows", ""],
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
            ["Edge", "Windows", ""],
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/142.0.0.0 Mobile Safari/537.36",
            ["Chrome Mobile", "Android", "K"],
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, \
             like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
            ["Mobile Safari", "iOS", "iPhone"],
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like \
             Gecko) Version/26.0 Safari/605.1.15",
            ["Safari", "Mac OS X", "Mac"],
        ),
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
            ["Firefox", "Linux", ""],
        ),
        (
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            ["Googlebot", "", "Spider"],
        ),
        ("", ["", "", ""]),
    ] {
        assert_eq!(names(user_agent), expected, "{user_agent}");
        assert_eq!(UserAgent::read(user_agent).is_robot, expected[2] == ROBOT, "{user_agent}");
    }
}

#[test]
fn only_the_first_512_bytes_count() {
    let robot = "Googlebot/2.1";
    let long = format!("{}{robot}", "x; ".repeat(4_000));
    assert!(!UserAgent::read(&long).is_robot);
    assert!(UserAgent::read(&format!("{robot} {long}")).is_robot);
    // Cut between characters.
    assert_eq!(UserAgent::read(&"é".repeat(10_000)), UserAgent::default());
    assert_eq!(UserAgent::read(&format!("x{}", "é".repeat(300))), UserAgent::default());
}

#[test]
fn robots_are_found_by_several_texts() {
    const SAFARI: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 \
        (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15";
    const CHROME: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 \
        (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36";
    for robot in [
        &format!("{SAFARI} (Applebot/0.1; +http://www.apple.com/go/applebot)"),
        &format!("{SAFARI} (Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)"),
        &format!("{CHROME}; compatible; OAI-SearchBot/1.0; +https://openai.com/searchbot"),
        &format!("{CHROME} Chrome-Lighthouse"),
        &format!("{CHROME} DatadogSynthetics"),
        "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)",
        "Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 \
         (compatible; Bytespider; spider-feedback@bytedance.com)",
    ] {
        assert!(UserAgent::read(robot).is_robot, "{robot}");
    }
    for person in [
        SAFARI,
        CHROME,
        "Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/120.0.0.0 Mobile Safari/537.36",
    ] {
        assert!(!UserAgent::read(person).is_robot, "{person}");
    }
}
