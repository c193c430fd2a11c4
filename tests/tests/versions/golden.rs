//! Items of all tables in files, in DynamoDB's JSON format.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_types::base64;
use serde_json::{Map, Value, json};

use errors::ErrorId;
use errors::log::manifest::CompactionLimits;
use errors::store::{ErrorStore, PackingLimits};
use local::demo;
use local::engine::Engine;
use local::environment::table_prefix;
use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use people::{OIDC_LIFETIME, OidcSignIn};
use shared::app::{App, Clock, Deadline};
use shared::dynamodb::client;
use shared::projects::erasure::{Erasure, Subject};
use shared::projects::limits::{Limit, Limits};
use shared::projects::role::Role;
use shared::projects::secret::Secret;
use tests::app::{PROJECT, START, TestApp, app_over, items, pass};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::filling::{TABLES, fill};
use tests::notifications::{SentMessages, give_address, user};
use tests::people::{add_member, signed_in};

use super::responses::{Responses, read_all};

pub(super) type Item = HashMap<String, AttributeValue>;

/// The recording.
pub(super) struct Golden {
    tables: Vec<(&'static str, Vec<Item>)>,
    /// The requests and responses.
    pub(super) responses: Responses,
    /// The API key of the requests.
    pub(super) key: String,
    /// The secret of a session.
    pub(super) session: String,
    now: u64,
}

fn file(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/versions/recorded");
    PathBuf::from(folder).join(name).with_extension("json")
}

fn read_file(name: &str) -> Value {
    let text = fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Writes one item per line, for readable diffs.
fn write_file(name: &str, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(file(name), format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}

impl Golden {
    pub(super) fn read() -> Self {
        let of = |table: &'static str| {
            let items = read_file(table);
            let items =
                items.as_array().unwrap().iter().map(|it| from_json(it.as_object().unwrap()));
            (table, items.collect())
        };
        let responses = read_file("answers");
        let [about, responses @ ..] = &responses.as_array().unwrap()[..] else {
            panic!("the recording is empty")
        };
        let pair = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it["answer"].clone());
        Self {
            tables: TABLES.into_iter().map(of).collect(),
            responses: responses.iter().map(pair).collect(),
            key: about["key"].as_str().unwrap().to_owned(),
            session: about["session"].as_str().unwrap().to_owned(),
            now: about["now"].as_u64().unwrap(),
        }
    }

    /// Returns an app with an engine that has all items, changed like a later release would.
    pub(super) async fn start(&self, change: impl Fn(&str, Item) -> Item) -> (App, Engine, Client) {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let engine = Engine::start(address, None, &tests::tables()).unwrap();
        let client = client::for_endpoint(&engine.endpoint()).unwrap();
        for (table, items) in &self.tables {
            for item in items {
                put(&client, table, change(table, item.clone())).await;
            }
        }
        (self.app(&engine), engine, client)
    }

    /// Returns an app for an engine, at the time of the recording.
    pub(super) fn app(&self, engine: &Engine) -> App {
        let (app, _) = app_over(&engine.endpoint());
        pass(&app, Duration::from_millis(self.now - START));
        app
    }

    /// Returns the last item of a kind.
    pub(super) fn last(&self, table: &str, kind: &str) -> Item {
        let mut items = self.tables.iter().filter(|(name, _)| *name == table).flat_map(|it| &it.1);
        // Without the tests' own key, no request succeeds.
        let is_own = |item: &Item| {
            let id = item.get("keyId").and_then(|id| id.as_s().ok());
            table == "api-keys" && id.is_some_and(|id| self.key.contains(id))
        };
        items.rfind(|item| kind_of(table, item) == kind && !is_own(item)).unwrap().clone()
    }

    pub(super) fn kinds(&self) -> BTreeSet<(&'static str, String)> {
        let kinds = |(table, items): &(&'static str, Vec<Item>)| -> Vec<_> {
            items.iter().map(|item| (*table, kind_of(table, item))).collect()
        };
        self.tables.iter().flat_map(kinds).collect()
    }

    /// Returns the keys of a table's items.
    pub(super) fn keys(&self, table: &str) -> BTreeSet<String> {
        let items = self.tables.iter().filter(|(name, _)| *name == table).flat_map(|it| &it.1);
        items.map(key_of).collect()
    }
}

/// Returns the key of an item of any table.
pub(super) fn key_of(item: &Item) -> String {
    const NAMES: [&str; 9] =
        ["pk", "sk", "idOrSlug", "keyId", "projectId", "key", "userId", "window", "scope"];
    let mut parts: Vec<String> = Vec::new();
    if item.contains_key("flagId") {
        parts.push(format!("{:?} {:?}", item["flagId"], item["version"]));
    }
    parts.extend(NAMES.iter().filter_map(|it| Some(format!("{:?}", item.get(*it)?))));
    parts.join(" ")
}

/// Returns the kind of an item: the beginning of its key.
pub(super) fn kind_of(table: &str, item: &Item) -> String {
    let text = |name: &str| item.get(name).and_then(|it| it.as_s().ok()).map_or("", String::as_str);
    let until_hash = |text: &str| text.find('#').map_or(String::new(), |at| text[..=at].to_owned());
    match table {
        "projects" => until_hash(text("idOrSlug")),
        "quotas" => until_hash(text("window")),
        "feature-flags" => {
            let key = text("key");
            let first = key.get(..1).unwrap_or_default();
            if ["!", "#", "/"].contains(&first) { first.to_owned() } else { String::new() }
        }
        "errors" | "event-markers" | "notifications" | "people" | "replay-insights"
        | "source-maps" => {
            let (pk, sk) = (text("pk"), text("sk"));
            let kind = if pk.contains('#') { until_hash(pk) } else { pk.to_owned() };
            match kind.as_str() {
                "event#" => format!("event# {sk}"),
                "user#" if sk.contains('#') => format!("user# {}", until_hash(sk)),
                "user#" => format!("user# {sk}"),
                "shard#" if sk.starts_with("feed#") => {
                    let part = sk.splitn(3, '#').nth(2).unwrap_or_default();
                    format!("shard# feed# #{}", part.split('#').next().unwrap_or_default())
                }
                "shard#" => format!("shard# {}", until_hash(sk)),
                _ => kind,
            }
        }
        _ => String::new(),
    }
}

pub(super) async fn put(client: &Client, table: &str, item: Item) {
    let table = format!("{}{table}", table_prefix());
    client.put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
}

/// Writes items of every kind with this release, and records them with the responses.
pub(super) async fn record() {
    let test = TestApp::start().await;
    let shop = project(&test.app.store, test.project_id).await;
    // Request and event counters, too.
    let (app, _) = app_over(&test.engine.endpoint());
    let limits = [Limit::EventsPerMinute, Limit::RequestsPerMinute];
    let limits = limits.into_iter();
    let limits = limits.fold(Limits::default(), |all, limit| all.with(limit, Some(10_000)));
    let app = app.with_limits(limits).recording_uses();
    let mira = test.key_of("mira").await;
    let preferences = json!({"preferences": [{"type": "billing", "emailEnabled": false}]});
    let put = Call::of(&update_email_preferences::OPERATION).key(&mira).json(&preferences);
    assert_eq!(put.send(&test.app).await.status, 200);
    give_address(&test.app, &user("mira"), "mira@example.com").await;
    let post = SentMessages::open();
    fill(&test, &shop, 0).await;
    fill_log(&test, &app).await;
    let call = |operation| test.call(operation);
    let old = json!({"key": "old", "name": "Old", "type": "boolean"});
    assert_eq!(call(&create_feature_flag::OPERATION).json(&old).send(&test.app).await.status, 201);
    let archive = call(&update_feature_flag::OPERATION).parameter("key", "old");
    let archived = archive.json(&json!({"archived": true})).send(&test.app).await;
    assert_eq!(archived.status, 200);
    let delete = call(&delete_feature_flag::OPERATION).parameter("key", "old");
    assert_eq!(delete.send(&test.app).await.status, 204);
    post.run(&test.app).await;
    tests::notifications::announce_trends(&test.app).await;
    test.pass(Duration::from_mins(10));

    // Pending work: a collection to purge, a user and a project to erase, and a confirmation.
    let gone = tests::markers::filled(&test.app.store, shop.id, 3).await;
    let delete = call(&delete_event_marker_collection::OPERATION).parameter("collectionId", gone);
    assert_eq!(delete.send(&test.app).await.status, 204);
    let erased = demo::ensure_project(&test.app.store, "gone", "Gone").await.unwrap();
    let erased = project(&test.app.store, erased).await;
    assert!(test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    let name = user("left");
    let subject = Subject::User(name.organization.clone(), name.user.clone());
    let erasure =
        Erasure::new(subject, name.organization.clone(), "left".to_owned(), test.app.clock.now());
    assert!(test.app.store.erase_user(&erasure, vec![]).await.unwrap());
    let set = Call::of(&set_email_address::OPERATION).key(&test.key);
    let set = set.json(&json!({"email": "new@example.com"})).send(&test.app).await;
    assert!(set.status < 300, "{}", set.text);
    let change = json!({"name": "Checkout, again"});
    let change = call(&update_feature_flag::OPERATION).parameter("key", "checkout").json(&change);
    assert_eq!(change.send(&test.app).await.status, 200);
    // Accepted notifications that cannot be sent, and pending ones.
    let unreachable = tests::notifications::senders("http://127.0.0.1:9", "http://127.0.0.1:9");
    let deadline = Deadline::after(Duration::from_mins(1));
    assert!(
        send_notifications::run(&test.app, &unreachable, Duration::ZERO, deadline).await.is_err()
    );
    let change = json!({"name": "Checkout, at last"});
    let change = call(&update_feature_flag::OPERATION).parameter("key", "checkout").json(&change);
    assert_eq!(change.send(&test.app).await.status, 200);

    let session = fill_people(&test).await;
    let unlimited = [(Limit::ReplaysPerMinute, Some(0))].into();
    test.app.store.set_stack_limits(&unlimited).await.unwrap();

    for table in TABLES {
        let mut lines: Vec<(String, Value)> = items(&test.client, table)
            .await
            .iter()
            .map(|item| (key_of(item), to_json(item)))
            .collect();
        lines.sort_by(|one, other| one.0.cmp(&other.0));
        let lines: Vec<Value> = lines.into_iter().map(|(_, item)| item).collect();
        write_file(table, &lines);
    }
    let Clock::Fixed(now) = &test.app.clock else { unreachable!("a test's clock is fixed") };
    let now = now.load(std::sync::atomic::Ordering::Relaxed);
    let (fresh, _) = app_over(&test.engine.endpoint());
    pass(&fresh, Duration::from_millis(now - START));
    let mut lines = vec![json!({"key": mira, "session": session, "now": now})];
    let responses = read_all(&fresh, &mira, &session).await;
    lines.extend(responses.iter().map(|(name, it)| json!({"name": name, "answer": it})));
    write_file("answers", &lines);
}

/// Creates members, sessions, invitations, and links and emails that wait. Returns the secret of a
/// session.
async fn fill_people(test: &TestApp) -> String {
    let (_, session) = signed_in(test, "owner@example.com", Role::Owner).await;
    let (_, ended) = signed_in(test, "former@example.com", Role::Viewer).await;
    let everywhere = json!({"everywhere": true});
    let sign_out = Call::of(&sign_out::OPERATION).session(&ended).json(&everywhere);
    assert_eq!(sign_out.send(&test.app).await.status, 204);
    let former = add_member(test, "removed@example.com", "default", Role::Member, None).await;
    let remove = Call::of(&remove_member::OPERATION).parameter("memberId", former.id);
    assert_eq!(remove.key(&test.key).send(&test.app).await.status, 204);
    let invitation =
        json!({"email": "invited@example.com", "role": "viewer", "projects": [PROJECT]});
    let invite = Call::of(&create_invitation::OPERATION).key(&test.key).json(&invitation);
    assert_eq!(invite.send(&test.app).await.status, 201);
    let request = Call::of(&request_sign_in::OPERATION).from_console();
    let request = request.json(&json!({"email": "owner@example.com"}));
    assert_eq!(request.send(&test.app).await.status, 202);
    let (people, now) = (PeopleStore::new(&test.app.store), test.app.clock.now());
    let (owner, browser) = (user("owner@example.com").user, Secret::generate().unwrap().digest());
    let (pending, ..) = PendingSignIn::by_email(owner, browser.clone(), now).unwrap();
    people.put_sign_in(&pending).await.unwrap();
    let started = OidcSignIn {
        state: Secret::generate().unwrap().digest(),
        browser,
        nonce: "nonce".to_owned(),
        verifier: "verifier".to_owned(),
        expires_at: now.plus(OIDC_LIFETIME),
    };
    people.put_oidc_sign_in(&started).await.unwrap();
    session
}

/// Creates events with a run that has its own columns, and unpacked events.
async fn fill_log(test: &TestApp, app: &App) {
    let shop = project(&test.app.store, test.project_id).await;
    let Clock::Fixed(now) = &test.app.clock else { unreachable!("a test's clock is fixed") };
    let passed = now.load(std::sync::atomic::Ordering::Relaxed) - START;
    pass(app, Duration::from_millis(passed));
    for number in 0..90_u64 {
        let mut state = number + 1;
        let mut digits = || {
            (0..24).fold(String::new(), |text, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1234_5677);
                format!("{text}{:08x}", state >> 32)
            })
        };
        let event = SentEvent::new(500 + number, app.clock.now(), "KeyError", "x")
            .with("release", &digits())
            .with("transaction", &digits())
            .with("browser", ["Chrome", "Firefox"][usize::try_from(number % 2).unwrap()])
            .with("tags.tenant", ["acme", "umbrella"][usize::try_from(number % 2).unwrap()])
            .with("user", &number.to_string());
        let call = Call::of(&ingest_error_events::OPERATION).parameter("ingestId", shop.ingest_id);
        let call = call.query("sentry_key", shop.public_key).bytes(event.envelope());
        assert_eq!(call.send(app).await.status, 200);
        if number == 60 {
            test.pass(Duration::from_hours(25));
            pass(app, Duration::from_hours(25));
        }
        if number == 63 {
            test.pass(Duration::from_mins(5));
            pass(app, Duration::from_mins(5));
            let compaction = CompactionLimits::default();
            let all = PackingLimits { rows: 20_000, bytes: 4_000_000, waits: false, compaction };
            for _ in 0..3 {
                let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
                ErrorStore::new(&app.store)
                    .pack_step(shop.id, &all, &new_id, app.clock.now())
                    .await
                    .unwrap();
            }
        }
    }
    let call = Call::of(&get_caller::OPERATION).key(&test.key);
    for _ in 0..12 {
        assert_eq!(call.clone().send(app).await.status, 200);
    }
}

fn to_json(item: &Item) -> Value {
    let mut fields: Vec<_> = item.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
        .into_iter()
        .map(|(name, it)| (name.clone(), value_to_json(it)))
        .collect::<Map<_, _>>()
        .into()
}

fn value_to_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::B(bytes) => json!({"B": base64::encode(bytes)}),
        AttributeValue::Bool(value) => json!({ "BOOL": value }),
        AttributeValue::Null(_) => json!({"NULL": true}),
        AttributeValue::Ss(texts) => {
            let mut texts = texts.clone();
            texts.sort();
            json!({ "SS": texts })
        }
        AttributeValue::L(list) => json!({"L": list.iter().map(value_to_json).collect::<Vec<_>>()}),
        AttributeValue::M(fields) => json!({"M": to_json(fields)}),
        other => panic!("no item has {other:?}"),
    }
}

fn from_json(fields: &Map<String, Value>) -> Item {
    fields.iter().map(|(name, it)| (name.clone(), value_from_json(it))).collect()
}

fn value_from_json(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().and_then(|it| it.iter().next()).unwrap();
    let text = || value.as_str().unwrap().to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "B" => AttributeValue::B(Blob::new(base64::decode(text()).unwrap())),
        "BOOL" => AttributeValue::Bool(value.as_bool().unwrap()),
        "NULL" => AttributeValue::Null(true),
        "SS" => {
            let texts = value.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned());
            AttributeValue::Ss(texts.collect())
        }
        "L" => AttributeValue::L(value.as_array().unwrap().iter().map(value_from_json).collect()),
        "M" => AttributeValue::M(from_json(value.as_object().unwrap())),
        other => panic!("no item has {other}"),
    }
}
