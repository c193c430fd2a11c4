//! The examples of the rules, and queries that involve several rules, over one set of categories.
//! Filters are written as `category operator value`, separated by semicolons.

use interpreter::{
    Category, Filter, Interpretation, Kind, Operator, Request, interpret, rule_names,
};

/// id, label, kind, values.
const CATEGORIES: &[(&str, &str, Kind, &[&str])] = &[
    ("browser", "Browser", Kind::Text, &["Chrome", "Chrome Mobile", "Firefox", "Safari", "Edge"]),
    (
        "os",
        "Operating system",
        Kind::Text,
        &["Windows 10", "Windows 11", "macOS", "iOS", "Android"],
    ),
    ("env", "Environment", Kind::Text, &["production", "staging", "dev-east", "dev-west"]),
    ("release", "Release", Kind::Text, &["app@2.4.1", "app@2.4.0", "app@3.0.0-beta"]),
    ("level", "Level", Kind::Text, &["fatal", "error", "warning"]),
    ("country", "Country", Kind::Text, &["Germany", "United Kingdom", "Norway", "US"]),
    ("owner", "Assignee", Kind::Text, &["alice.wu", "bob.ng", "carla.wu"]),
    ("code", "Status code", Kind::Text, &["200", "404", "429", "500", "503", "1206"]),
    ("method", "Method", Kind::Text, &["GET", "POST", "PUT"]),
    (
        "area",
        "Practice area",
        Kind::Text,
        &["Intellectual property", "Tax", "Mergers and Acquisitions"],
    ),
    ("handled", "Handled", Kind::Boolean, &[]),
    ("licence", "Licence expired", Kind::Boolean, &[]),
    ("updates", "Automatic updates disabled", Kind::Boolean, &[]),
    ("users", "Users affected", Kind::Numeric, &[]),
    ("latency", "Latency (ms)", Kind::Numeric, &[]),
    ("speed", "Wind speed (km/h)", Kind::Numeric, &[]),
    ("tags", "Tags", Kind::Array, &["checkout", "third-party"]),
    ("message", "Message", Kind::Text, &[]),
    ("ticket", "Ticket id", Kind::Text, &[]),
    ("build", "Build", Kind::Text, &["beta-412", "beta-413"]),
    ("kind", "Object kind", Kind::Text, &["HorizontalPodAutoscaler", "PersistentVolumeClaim"]),
    ("model", "Robot model", Kind::Text, &["Atlas One", "Atlas One Plus"]),
    ("state", "Review state", Kind::Text, &["acknowledged", "contained", "not started"]),
    ("pay", "Payment method", Kind::Text, &["Credit card", "Debit card", "PayPal"]),
    ("page", "Page", Kind::Text, &["search results", "cart"]),
    ("channel", "Channel", Kind::Text, &["Mobile site", "Web"]),
    ("trigger", "Trigger", Kind::Text, &["pull request", "schedule"]),
    ("power", "Power source", Kind::Text, &["battery", "mains"]),
    ("ten", "Tenant", Kind::Text, &["Acme", "Globex"]),
    ("battery", "Battery (%)", Kind::Numeric, &[]),
    ("year", "Model year", Kind::Numeric, &[]),
    ("camera", "Camera allowed", Kind::Boolean, &[]),
    ("kids", "Kids mode", Kind::Boolean, &[]),
    ("consent", "Consent signed", Kind::Boolean, &[]),
    ("organic", "Organic certified", Kind::Boolean, &[]),
    ("warranty", "Under warranty", Kind::Boolean, &[]),
    ("algo", "Algo order", Kind::Boolean, &[]),
    ("auto", "Steered by itself", Kind::Boolean, &[]),
    ("phase", "Trial phase", Kind::Text, &["Phase I", "Phase II", "Phase III"]),
    ("data", "Dataset", Kind::Text, &["squad-v1", "squad-v2"]),
    ("languages", "Languages spoken", Kind::Array, &["English", "Polish"]),
    ("paper", "Document type", Kind::Text, &["NDA", "FOI", "RFP"]),
    ("term", "Term", Kind::Text, &["Autumn", "Spring"]),
    ("native", "Native crash", Kind::Boolean, &[]),
    ("framework", "React Native version", Kind::Text, &["0.76.3", "0.75.4"]),
    ("isolation", "Isolation required", Kind::Boolean, &[]),
    ("material", "Material", Kind::Text, &["book", "audiobook"]),
    ("energy", "Energy class", Kind::Text, &["A+", "A", "B"]),
    ("floor", "Floor", Kind::Text, &["ground", "1st", "2nd"]),
    ("area_m2", "Living area (m²)", Kind::Numeric, &[]),
    ("q10", "Courier score", Kind::Numeric, &[]),
    ("renewals", "Renewals", Kind::Numeric, &[]),
    ("age", "Patient age", Kind::Numeric, &[]),
    ("draw", "Power draw (W)", Kind::Numeric, &[]),
    ("renewable", "Renewal allowed", Kind::Boolean, &[]),
    ("boosters", "Active boosters", Kind::Array, &["double-xp", "shield"]),
    ("report", "Player report", Kind::Text, &[]),
    ("response", "Response", Kind::Numeric, &[]),
    ("link", "URL", Kind::Text, &[]),
    ("mail", "E-mail", Kind::Text, &[]),
    ("seen", "Last seen (days ago)", Kind::Numeric, &[]),
    ("port", "Departure", Kind::Text, &["LHR", "LGW", "MUC"]),
    ("money", "Currency", Kind::Text, &["EUR", "NOK", "PLN"]),
    ("refund", "Refund", Kind::Text, &["none", "other", "voucher"]),
    ("lab", "Bench", Kind::Text, &["lab-a", "lab-b", "field"]),
];

/// The rule that reads a query, the query, current filters, expected filters.
const EXAMPLES: &[(&str, &str, &str, &str)] = &[
    (
        "labelled-text",
        "message contains timeout on firefox",
        "",
        "message contains timeout; browser is Firefox",
    ),
    ("labelled-text", "message is \"Script error.\"", "", "message is Script error."),
    ("labelled-text", "ticket id AB-12", "", "ticket is AB-12"),
    ("labelled-text", "ticket id r-12 or r-13", "", "ticket is r-12; ticket is r-13"),
    ("labelled-text", "ticket id is M. Oliver", "", "ticket is M. Oliver"),
    ("labelled-text", "ticket id is no-reply@acme.io", "", "ticket is no-reply@acme.io"),
    ("labelled-text", "message doesn't contain timeout", "", "message not_contains timeout"),
    ("labelled-text", "without messages containing timeout", "", "message not_contains timeout"),
    (
        "labelled-text",
        "message contains neither \"a\" nor \"b\"",
        "",
        "message not_contains a; message not_contains b",
    ),
    (
        "labelled-text",
        "message does not contain \"a\" or \"b\"",
        "",
        "message not_contains a; message not_contains b",
    ),
    (
        "labelled-text",
        "link is not /a, /b or /c",
        "",
        "link is_not /a; link is_not /b; link is_not /c",
    ),
    ("labelled-text", "link is not /a, firefox", "", "link is_not /a; browser is Firefox"),
    (
        "labelled-text",
        "message contains timeout but not refused",
        "",
        "message contains timeout; message not_contains refused",
    ),
    ("labelled-text", "timeout in the message", "", "message contains timeout"),
    ("labelled-text", "with invoice in the message", "", "message contains invoice"),
    ("message", "errors mentioning out of memory", "", "message contains out of memory"),
    ("message", "hide errors mentioning timeout", "", "message not_contains timeout"),
    (
        "address",
        "/checkout/cart on firefox",
        "",
        "link contains /checkout/cart; browser is Firefox",
    ),
    ("address", "not jo@acme.io", "", "mail not_contains jo@acme.io"),
    ("address", "not on /a or /b", "", "link not_contains /a; link not_contains /b"),
    (
        "address",
        "neither /account nor /cart",
        "",
        "link not_contains /account; link not_contains /cart",
    ),
    ("address", "hide traffic to /admin", "", "link not_contains /admin"),
    ("address", "not the form /admin", "", "link not_contains /admin"),
    ("address", "/admin excluded", "", "link not_contains /admin"),
    ("address", "/a and /b are out", "", "link not_contains /a; link not_contains /b"),
    ("address", "drop /admin", "", "link not_contains /admin"),
    ("address", "drop /admin", "link contains /admin; link contains /a", "link contains /a"),
    (
        "message",
        "\"out of memory\" on firefox",
        "",
        "message contains out of memory; browser is Firefox",
    ),
    ("message", "not \"out of memory\"", "", "message not_contains out of memory"),
    (
        "message",
        "not firefox or \"timeout\"",
        "",
        "browser is_not Firefox; message not_contains timeout",
    ),
    ("message", "no errors with \"timeout\"", "", "message not_contains timeout"),
    ("number", "users > 100", "", "users gt 100"),
    ("number", "10 or more users", "", "users gte 10"),
    ("number", "between 5 and 10 users", "", "users gte 5; users lte 10"),
    ("number", "between a dozen and a hundred users", "", "users gte 12; users lte 100"),
    ("number", "users 5-10", "", "users gte 5; users lte 10"),
    ("number", "between 3 and 4 thousand users", "", "users gte 3000; users lte 4000"),
    (
        "number",
        "between 5 and 9 users other than 7",
        "",
        "users gte 5; users lte 9; users is_not 7",
    ),
    ("number", "users other than 3, 5 and 7", "", "users is_not 3; users is_not 5; users is_not 7"),
    ("number", "over 5 but under 10 users", "", "users gt 5; users lt 10"),
    ("number", "1.5k+ users", "", "users gte 1500"),
    ("number", "2, 3 or 4 users", "", "users is 2; users is 3; users is 4"),
    ("number", "latency over 2 seconds", "", "latency gt 2000"),
    ("number", "slower than 300 ms", "", "latency gt 300"),
    ("number", "wind faster than 50", "", "speed gt 50"),
    ("number", "wind no faster than 50", "", "speed lte 50"),
    ("number", "older than 2015", "", "year lt 2015"),
    ("number", "wind stronger than 50", "", "speed gt 50"),
    ("number", "latency below minus five", "", "latency lt -5"),
    ("number", "power draw over 2 kW", "", "draw gt 2000"),
    ("number", "at least once renewed", "", "renewals gte 1"),
    ("number", "battery, battery (%) below 15", "", "power is battery; battery lt 15"),
    ("number", "users not 3", "", "users is_not 3"),
    ("number", "exclude more than 10 users", "", "users lte 10"),
    ("number", "hide what has over 10 users", "", "users lte 10"),
    ("number", "firefox, but not with more than 10 users", "", "browser is Firefox; users lte 10"),
    ("number", "not firefox and over 10 users", "", "browser is_not Firefox; users gt 10"),
    ("number", "hide firefox and over 10 users", "", "browser is_not Firefox; users lte 10"),
    (
        "number",
        "everything except 3 users and firefox",
        "",
        "users is_not 3; browser is_not Firefox",
    ),
    ("number", "users not over 10", "", "users lte 10"),
    ("number", "hide users not over 10", "", "users gt 10"),
    (
        "number",
        "everything except response 404 and 500",
        "",
        "response is_not 404; response is_not 500",
    ),
    ("number", "more than 10 users excluded", "", "users lte 10"),
    ("number", "drop more than 10 users", "", "users lte 10"),
    ("number", "drop users over 10", "users gt 10", ""),
    ("number", "not older than 3 days", "", "age lte 3"),
    ("number", "make it 500", "latency gt 200", "latency gt 500"),
    ("number", "raise it to 500", "latency gt 200", "latency gt 500"),
    ("number", "change it to 500", "latency gt 200", "latency gt 500"),
    ("number", "make it 700", "users gt 100", "users gt 700"),
    ("ordinal", "third renewal", "", "renewals is 3"),
    ("ordinal", "2nd renewal or later", "", "renewals gte 2"),
    ("http-class", "response 5xx", "", "response gte 500; response lte 599"),
    ("reset", "start over with firefox", "os is iOS; users gt 5", "browser is Firefox"),
    ("reset", "start over pls. windows 11", "users gt 5", "os is Windows 11"),
    ("reset", "clear everything but the os", "os is iOS; users gt 5", "os is iOS"),
    ("reset", "reset", "os is iOS; users gt 5", ""),
    ("any", "any browser", "browser is Chrome; os is iOS", "os is iOS"),
    ("any", "regardless of browser or os", "browser is Chrome; os is iOS", ""),
    ("correction", "staging no sorry production", "", "env is production"),
    ("correction", "GET, sorry, put", "", "method is PUT"),
    ("correction", "under 5 users, actually make that 3", "", "users lt 3"),
    (
        "replacement",
        "replace chrome with edge",
        "browser is Chrome; browser is Safari",
        "browser is Safari; browser is Edge",
    ),
    ("reset", "keep the os, lose the rest", "os is iOS; users gt 5", "os is iOS"),
    ("flip", "flip it", "browser is Chrome", "browser is_not Chrome"),
    ("any", "browser doesn't matter", "browser is Chrome; os is iOS", "os is iOS"),
    ("edited", "drop the browser filter", "browser is Chrome; os is iOS", "os is iOS"),
    ("edited", "no browser filter", "browser is Chrome; os is iOS", "os is iOS"),
    ("edited", "don't drop the os, drop the browser", "browser is Chrome; os is iOS", "os is iOS"),
    ("edited", "ignore the environment", "env is staging; os is iOS", "os is iOS"),
    ("edited", "drop chrome", "browser is Chrome; browser is Edge", "browser is Edge"),
    (
        "edited",
        "forget the chrome exclusion",
        "browser is_not Chrome; browser is_not Edge",
        "browser is_not Edge",
    ),
    ("edited", "take chrome out", "browser is Chrome; browser is Edge", "browser is Edge"),
    ("edited", "keep chrome, drop edge", "browser is Chrome; browser is Edge", "browser is Chrome"),
    ("edited", "edge instead of chrome", "browser is Chrome", "browser is Edge"),
    (
        "edited",
        "don't drop chrome, drop edge",
        "browser is Chrome; browser is Edge",
        "browser is Chrome",
    ),
    (
        "edited",
        "remove chrome but not edge",
        "browser is Chrome; browser is Edge",
        "browser is Edge",
    ),
    ("edited", "chrome can be removed", "browser is Chrome; os is iOS", "os is iOS"),
    ("edited", "stop hiding chrome", "browser is_not Chrome; os is iOS", "os is iOS"),
    ("boolean", "handled", "", "handled is true"),
    ("boolean", "unhandled", "", "handled is false"),
    ("boolean", "licence not expired", "", "licence is false"),
    ("boolean", "camera not allowed", "", "camera is false"),
    ("boolean", "camera is not permitted", "", "camera is false"),
    ("boolean", "not organic", "", "organic is false"),
    ("boolean", "renewal not allowed", "", "renewable is false"),
    ("boolean", "out of warranty", "", "warranty is false"),
    ("boolean", "firefox in kids mode", "", "browser is Firefox; kids is true"),
    ("boolean", "automatic updates on", "", "updates is false"),
    ("boolean", "handled or not", "handled is true", ""),
    ("boolean", "handled:no", "", "handled is false"),
    ("presence", "no release", "", "release is_not_set "),
    ("presence", "firefox but no assignee", "", "browser is Firefox; owner is_not_set "),
    ("presence", "no users", "", "users is 0"),
    ("presence", "unassigned", "", "owner is_not_set "),
    ("presence", "not unassigned", "", "owner is_set "),
    ("presence", "with an assignee", "", "owner is_set "),
    ("presence", "has:assignee", "", "owner is_set "),
    ("presence", "ticket id missing on firefox", "", "ticket is_not_set ; browser is Firefox"),
    ("value", "firefox", "", "browser is Firefox"),
    ("value", "third party", "", "tags contains third-party"),
    ("value", "not chrome or firefox", "", "browser is_not Chrome; browser is_not Firefox"),
];

/// Name, query, current filters, expected filters.
const QUERIES: &[(&str, &str, &str, &str)] = &[
    ("function-word-after-a-denial", "refund not other", "", "refund is_not other"),
    (
        "function-words-in-a-list",
        "except other and none",
        "",
        "refund is_not other; refund is_not none",
    ),
    ("function-word-after-its-label", "refund is not none", "", "refund is_not none"),
    ("function-word-is-no-value", "not other browsers", "", ""),
    ("id-is-a-family", "lab benches", "", "lab is lab-a; lab is lab-b"),
    ("denied-id-is-a-family", "not in lab", "", "lab is_not lab-a; lab is_not lab-b"),
    ("us-is-a-pronoun", "tell us about firefox", "", "browser is Firefox"),
    // Negations of texts and numbers. No filter can express the outside of a range.
    ("denied-verb-before-a-text", "does not load /cart", "", "link contains /cart"),
    ("denied-range", "users not between 5 and 10", "", ""),
    ("denied-range-before-label", "not users between 10 and 20", "", ""),
    ("outside-of-a-range", "latency outside 100-200", "", ""),
    ("outside-of-a-range-of-codes", "latency outside 200-500", "", ""),
    ("excluded-range", "hide between 5 and 10 users", "", ""),
    ("denied-http-class", "response is not 5xx", "", ""),
    ("denial-of-a-denial", "hide messages that do not contain timeout", "", ""),
    (
        "number-before-a-denied-value",
        "over 10 users and chrome excluded",
        "",
        "browser is_not Chrome",
    ),
    (
        "comparison-after-a-denied-label",
        "no code and slower than 2 seconds",
        "",
        "code is_not_set ; latency gt 2000",
    ),
    ("address-that-begins-with-an-article", "not a@b.com", "", "mail not_contains a@b.com"),
    ("but-after-all", "all traffic but /cart", "", "link not_contains /cart"),
    (
        "quote-and-address",
        "\"timeout\" and /cart",
        "",
        "message contains timeout; link contains /cart",
    ),
    ("no-telling-who-is-lacking", "no one can open /cart", "", ""),
    ("no-telling-what-is-lacked", "no answer in over 5 users", "", ""),
    ("comma-list-and-denial", "/a, /b excluded", "", "link not_contains /b"),
    (
        "only-after-a-denial",
        "not chrome, firefox only",
        "",
        "browser is_not Chrome; browser is Firefox",
    ),
    (
        "denied-afterwards",
        "the chrome browser can go, firefox too",
        "",
        "browser is_not Chrome; browser is_not Firefox",
    ),
    ("instead-of-a-number", "over 50 users instead of over 10 users", "", "users gt 50"),
    ("verb-that-edits-nothing", "we lost over 10 users", "", "users gt 10"),
    ("comparison-in-a-list", "firefox and over 10 users", "", "browser is Firefox; users gt 10"),
    (
        "edit-of-a-value",
        "make it 500",
        "latency gt 200; code is 200",
        "latency gt 200; code is 500",
    ),
    // Linking.
    ("longest-match", "chrome mobile", "", "browser is Chrome Mobile"),
    ("plural", "warnings", "", "level is warning"),
    ("synonym", "live environment", "", "env is production"),
    ("demonym", "brits", "", "country is United Kingdom"),
    ("own-name", "deutschland", "", "country is Germany"),
    ("airport-of-a-city", "from munich", "", "port is MUC"),
    ("airports-of-a-city", "from london", "", "port is LHR; port is LGW"),
    ("name-of-an-airport", "heathrow", "", "port is LHR"),
    ("name-of-a-currency", "polish zloty", "", "money is PLN"),
    ("code-in-capitals", "from the US", "", "country is US"),
    (
        "function-word-is-no-code",
        "neither edge nor safari",
        "",
        "browser is_not Edge; browser is_not Safari",
    ),
    ("unique-part", "bob", "", "owner is bob.ng"),
    ("shared-part-names-none", "wu", "", ""),
    ("shared-part-beats-synonym", "paid by card", "", ""),
    ("name-of-a-source", "from the site", "", "channel is Mobile site"),
    (
        "name-continued",
        "atlas one but not atlas one plus",
        "",
        "model is Atlas One; model is_not Atlas One Plus",
    ),
    ("shared-part-with-both", "both dev environments", "", "env is dev-east; env is dev-west"),
    ("initials", "ip", "", "area is Intellectual property"),
    (
        "initials-of-humps",
        "hpa or pvc",
        "",
        "kind is HorizontalPodAutoscaler; kind is PersistentVolumeClaim",
    ),
    ("initials-of-weighty-words", "m&a", "", "area is Mergers and Acquisitions"),
    ("maker-beside-label", "apple's browser", "", "browser is Safari"),
    ("maker-alone", "apple", "", ""),
    ("typo", "firefx", "", "browser is Firefox"),
    ("typo-at-the-end", "chrom", "", "browser is Chrome"),
    ("typo-in-plural", "pull requsts", "", "trigger is pull request"),
    ("name-in-two-words", "audio books", "", "material is audiobook"),
    ("abbreviated-participle", "acked", "", "state is acknowledged"),
    ("plural-of-ordinary-word-is-no-typo", "firefox in cars", "", "browser is Firefox"),
    ("id-has-no-synonyms", "automobile, firefox", "", "browser is Firefox"),
    ("version", "v2.4.1", "", "release is app@2.4.1"),
    ("version-part", "version 3", "", "release is app@3.0.0-beta"),
    ("http-phrase", "too many requests", "", "code is 429"),
    ("digit-family", "5xx", "", "code is 500; code is 503"),
    ("plural-of-number", "500s", "", "code is 500"),
    ("spoken-digits", "twelve oh six", "", "code is 1206"),
    ("plural-of-spoken-digits", "five oh threes", "", "code is 503"),
    ("round-number-and-digits", "five hundred and five oh three", "", "code is 500; code is 503"),
    ("spelt-name", "beta four thirteen", "", "build is beta-413"),
    ("spelt-version", "app two point four point one", "", "release is app@2.4.1"),
    ("spelt-version-without-dots", "app two four one", "", "release is app@2.4.1"),
    ("number-is-no-id", "users exactly ten", "", "users is 10"),
    ("number-is-no-part-of-id", "users 10+", "", "users gte 10"),
    ("roman-numeral", "phase 3 or phase two", "", "phase is Phase II; phase is Phase III"),
    ("ordinal", "second floor", "", "floor is 2nd"),
    ("sign-after-letter", "energy class a plus or B", "", "energy is A+; energy is B"),
    ("letter-without-sign", "not A", "", "energy is_not A"),
    ("version-letter-unsaid", "squad two", "", "data is squad-v2"),
    ("spoken-number-in-name", "windows eleven", "", "os is Windows 11"),
    ("ordinary-verb", "put staging in there", "", "env is staging"),
    ("verb-as-value", "PUT on staging", "", "method is PUT; env is staging"),
    ("one-word-in-capitals", "POST 503", "", "method is POST; code is 503"),
    ("search-verb", "i am searching firefox", "", "browser is Firefox"),
    ("country-at-the-start", "us firefox", "", "country is US; browser is Firefox"),
    ("thing-searched", "errors on firefox", "", "browser is Firefox"),
    ("thing-searched-as-value", "error level", "", "level is error"),
    ("most-severe", "crashes", "", "level is fatal"),
    ("time-of-day", "firefox between 6 and 9 pm", "", "browser is Firefox"),
    // Booleans and presence.
    ("boolean-beside-place", "orders on the web", "", "channel is Web"),
    (
        "absence-of-label",
        "have a ticket id but are missing an assignee",
        "",
        "ticket is_set ; owner is_not_set ",
    ),
    // Numbers.
    // Texts.
    ("identifier-after-is", "ticket id is A-12", "", "ticket is A-12"),
    ("value-of-bearers", "tickets that are not on firefox", "", "browser is_not Firefox"),
    ("value-is-no-text", "players with double xp", "", "boosters contains double-xp"),
    // Acronyms and parts of labels.
    ("acronym-in-full", "non disclosure agreements", "", "paper is NDA"),
    ("acronym-with-joining-words", "freedom of information", "", "paper is FOI"),
    ("acronym-of-no-values", "firefox or iOS", "", "browser is Firefox; os is iOS"),
    ("season", "fall term", "", "term is Autumn"),
    ("label-part-outweighs-label", "react native 0.76.3", "", "framework is 0.76.3"),
    ("opposite-has-no-initials", "dr watson", "", ""),
    // Negation.
    ("negation-is-narrow", "not chrome on android", "", "browser is_not Chrome; os is Android"),
    (
        "exclusion-is-wide",
        "ignore chrome and staging",
        "",
        "browser is_not Chrome; env is_not staging",
    ),
    ("exclusion-of-place", "anywhere but norway", "", "country is_not Norway"),
    ("denied-after", "chrome excluded", "", "browser is_not Chrome"),
    ("denied-verb", "not loading on firefox", "", "browser is Firefox"),
    ("denied-verb-and-object", "who dont speak english", "", "languages not_contains English"),
    (
        "denied-verb-and-list",
        "people who don't speak any english or polish",
        "",
        "languages not_contains English; languages not_contains Polish",
    ),
    ("denied-agent", "not fixed by alice", "", "owner is_not alice.wu"),
    ("inability", "can't pay on firefox", "", "browser is Firefox"),
    ("leading-hyphen", "-chrome", "", "browser is_not Chrome"),
    (
        "denied-after-a-modal",
        "chrome and edge can be excluded",
        "",
        "browser is_not Chrome; browser is_not Edge",
    ),
    ("denied-within", "exclude errors without a checkout tag", "", "tags contains checkout"),
    ("denied-within-of-boolean", "hide what isn't handled", "", "handled is true"),
    ("only", "nothing but chrome", "", "browser is Chrome"),
    ("postposed-after-a-noun", "staging machines are out", "", "env is_not staging"),
    ("pronoun", "warnings? hide them", "", "level is_not warning"),
    ("pronoun-of-a-removal", "chrome? drop it", "browser is Chrome; os is iOS", "os is iOS"),
    (
        "approved-after-a-denial",
        "no chrome, edge is fine",
        "",
        "browser is_not Chrome; browser is Edge",
    ),
    (
        "inclusion-after-an-exclusion",
        "hide chrome, include edge",
        "",
        "browser is_not Chrome; browser is Edge",
    ),
    (
        "exclusion-with-too",
        "ignore chrome. staging too",
        "",
        "browser is_not Chrome; env is_not staging",
    ),
    (
        "neither-of-two-verbs",
        "neither acknowledged nor contained",
        "",
        "state is_not acknowledged; state is_not contained",
    ),
    ("denied-label-after-its-value", "bob hasn't been assigned", "", "owner is_not bob.ng"),
    ("subject-of-a-denied-verb", "everything bob doesn't own", "", ""),
    ("denied-verb-of-people", "people who don't shop in norway", "", "country is_not Norway"),
    ("no-matter-which-value", "i don't care about chrome", "", ""),
    ("no-sites-with-a-tag", "no ticket id with a checkout", "", "tags not_contains checkout"),
    ("exclusion-of-everything", "get rid of everything on firefox", "", "browser is_not Firefox"),
    ("keep-only", "keep only the os", "os is iOS; users gt 5", "os is iOS"),
    (
        "mistaken-exclusion",
        "i didn't mean to hide chrome",
        "browser is_not Chrome; os is iOS",
        "os is iOS",
    ),
    (
        "clause-with-its-own-state",
        "not chrome and automatic updates on",
        "",
        "browser is_not Chrome; updates is false",
    ),
    // Edits.
    ("replaces", "firefox", "browser is Chrome; os is iOS", "os is iOS; browser is Firefox"),
    ("adds", "also firefox", "browser is Chrome", "browser is Chrome; browser is Firefox"),
    ("adds-after", "firefox too", "browser is Chrome", "browser is Chrome; browser is Firefox"),
    (
        "add-belongs-to-what-follows",
        "also firefox, staging",
        "browser is Chrome; env is production",
        "browser is Chrome; browser is Firefox; env is staging",
    ),
    (
        "denied-reset",
        "don't clear everything",
        "browser is Chrome; os is iOS",
        "browser is Chrome; os is iOS",
    ),
    ("denied-reset-with-noun", "no reset", "os is iOS", "os is iOS"),
    ("denied-replacement", "don't replace iOS with android", "os is iOS", "os is iOS"),
    ("denied-flip", "don't flip it", "os is iOS", "os is iOS"),
    ("any-except", "all browsers except safari", "browser is Chrome", "browser is_not Safari"),
    ("unknown-category-is-kept", "firefox", "gone gt x", "gone gt x; browser is Firefox"),
    ("nothing-usable", "lovely weather, isn't it", "os is iOS", "os is iOS"),
    // Categories.
    ("label-decides", "code 200", "", "code is 200"),
    ("key-value-list", "browser:chrome,edge", "", "browser is Chrome; browser is Edge"),
];

fn filters(text: &str) -> Vec<Filter> {
    let filter = |text: &str| {
        let mut fields = text.splitn(3, ' ');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (category_id, operator, value) = (field(), field(), field());
        Filter { category_id, operator: Operator::parse(&operator).unwrap(), value }
    };
    text.split("; ").filter(|text| !text.is_empty()).map(filter).collect()
}

fn categories() -> Vec<Category> {
    let category = |&(id, label, kind, values): &(&str, &str, Kind, &[&str])| Category {
        id: id.to_owned(),
        label: label.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        kind,
    };
    CATEGORIES.iter().map(category).collect()
}

/// Returns the interpretation of a query, and `true` if its filters are the expected ones.
fn ask(query: &str, current: &str, expected: &str) -> (Interpretation, bool) {
    let request = Request {
        query: query.to_owned(),
        categories: categories(),
        current_filters: filters(current),
    };
    let interpretation = interpret(&request);
    let expected = filters(expected);
    let right = interpretation.filters.len() == expected.len()
        && interpretation.filters.iter().all(|filter| expected.contains(filter));
    (interpretation, right)
}

#[test]
fn each_example_matches_its_rule() {
    let mut wrong = Vec::new();
    for &(rule, query, current, expected) in EXAMPLES {
        let (interpretation, right) = ask(query, current, expected);
        if !right || !interpretation.trace.iter().any(|fired| fired.0 == rule) {
            wrong.push(format!("{rule}: {query:?} gave {interpretation:?}"));
        }
    }
    let has_example = |rule: &&str| EXAMPLES.iter().any(|example| example.0 == *rule);
    wrong.extend(rule_names().filter(|rule| !has_example(rule)).map(str::to_owned));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rule_names_are_unique() {
    let mut names: Vec<&str> = rule_names().collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn reads_queries_that_involve_several_rules() {
    let mut wrong = Vec::new();
    for &(tried, query, current, expected) in QUERIES {
        let (interpretation, right) = ask(query, current, expected);
        if !right {
            wrong.push(format!("{tried}: {query:?} gave {:?}", interpretation.filters));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn us_selects_all_us_zones() {
    let values = ["us-east-1", "us-west-2", "eu-west-1"];
    let zone = Category {
        id: "zone".to_owned(),
        label: "Zone".to_owned(),
        values: values.map(str::to_owned).into(),
        kind: Kind::Text,
    };
    let both = "zone is us-east-1; zone is us-west-2";
    for (query, expected) in [
        ("us", both),
        ("US", both),
        ("only us", both),
        ("all us zones", both),
        ("not in us", "zone is_not us-east-1; zone is_not us-west-2"),
        ("everything but us", "zone is_not us-east-1; zone is_not us-west-2"),
        ("us or eu", "zone is us-east-1; zone is us-west-2; zone is eu-west-1"),
        ("us but not us-west-2", "zone is us-east-1; zone is_not us-west-2"),
        ("show us eu", "zone is eu-west-1"),
        ("it bothers us in eu", "zone is eu-west-1"),
    ] {
        let (query, categories) = (query.to_owned(), vec![zone.clone()]);
        let interpretation = interpret(&Request { query, categories, current_filters: Vec::new() });
        assert_eq!(interpretation.filters, filters(expected), "{:?}", interpretation.trace);
    }
}

#[test]
fn current_filters_stay_first_and_in_order() {
    let request = Request {
        query: "staging".to_owned(),
        categories: categories(),
        current_filters: filters("os is iOS; browser is Chrome; env is production; users gt 5"),
    };
    assert_eq!(
        interpret(&request).filters,
        filters("os is iOS; browser is Chrome; users gt 5; env is staging")
    );
}

#[test]
fn unknown_words_are_reported() {
    let request = Request {
        query: "firefox frobnicating zorblax".to_owned(),
        categories: categories(),
        current_filters: Vec::new(),
    };
    assert_eq!(interpret(&request).unexplained, ["frobnicating", "zorblax"]);
    let explained = Request { query: "firefox on staging please".to_owned(), ..request };
    assert!(interpret(&explained).unexplained.is_empty());
}
