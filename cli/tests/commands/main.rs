//! Runs the `waymark` command against a real DynamoDB engine.

#![allow(clippy::unwrap_used)] // Failures fail the test.

mod flags;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use local::engine::Engine;
use local::{demo, environment, template};
use serde_json::{Value as Json, json};
use shared::dynamodb::{Store, client};
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope};
use shared::projects::limits::Limit;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use tempfile::TempDir;
use tokio::process::Command;

/// A local stack without functions, in its own folder.
struct Stack {
    engine: Engine,
    folder: TempDir,
}

impl Stack {
    fn start() -> Self {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let tables = template::read_tables(&template).unwrap();
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let engine = Engine::start(anywhere, None, &tables).unwrap();
        let folder = folder_of_stack(&engine.endpoint());
        Self { engine, folder }
    }

    fn store(&self) -> Store {
        let client = client::for_endpoint(&self.engine.endpoint()).unwrap();
        Store::new(client, environment::table_prefix())
    }

    /// Runs `waymark --local`.
    async fn run(&self, arguments: &[&str]) -> Run {
        run_local(self.folder.path(), arguments).await
    }

    /// Runs a command that must succeed, and returns its JSON output.
    async fn json(&self, arguments: &[&str]) -> Json {
        let run = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    }

    async fn create_project(&self, slug: &str, organization: &str) -> String {
        let arguments = ["project", "create", "--name", slug, "--slug", slug];
        let project = self.json(&[&arguments[..], &["--org", organization]].concat()).await;
        project["id"].as_str().unwrap().to_owned()
    }
}

/// Address of the stack's API, which is not running.
const HOST: &str = "127.0.0.1:9000";

/// Returns a folder that looks like one of a running local stack.
fn folder_of_stack(endpoint: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(".local");
    std::fs::create_dir(&data).unwrap();
    let mut variables = environment::variables(endpoint);
    variables.push((environment::BASE_URL_VARIABLE, format!("http://{HOST}")));
    environment::write(&data.join(environment::FILE), &variables).unwrap();
    folder
}

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn run_local(folder: &Path, arguments: &[&str]) -> Run {
    run(command(folder).arg("--local").args(arguments)).await
}

/// Returns the command without the environment of the test runner.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waymark"));
    command.current_dir(folder).env_clear().env("HOME", folder).kill_on_drop(true);
    command.env("AWS_EC2_METADATA_DISABLED", "true").stdin(Stdio::null());
    command
}

async fn run(command: &mut Command) -> Run {
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn field_names(value: &Json) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

const KEY_FIELDS: [&str; 9] = [
    "createdAt",
    "expiresAt",
    "keyId",
    "name",
    "organization",
    "projects",
    "revokedAt",
    "scopes",
    "user",
];

#[tokio::test(flavor = "multi_thread")]
async fn creates_and_lists_projects() {
    let stack = Stack::start();
    let none = stack.run(&["project", "list"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("`waymark project create` creates one"), "{}", none.stderr);
    assert_eq!(stack.json(&["project", "list"]).await, json!([]));

    let arguments = ["project", "create", "--name", " My shop ", "--slug", "my-shop"];
    let shop = stack.json(&arguments).await;
    let all = [
        "createdAt",
        "dsn",
        "errorsPerProject",
        "eventsPerMinute",
        "id",
        "ingestId",
        "name",
        "newErrorsPerHour",
        "organization",
        "production",
        "publicKey",
        "replaysPerMinute",
        "requestsPerMinute",
        "slug",
    ];
    assert_eq!(field_names(&shop), all);
    let (public_key, ingest_id) = (shop["publicKey"].as_str().unwrap(), &shop["ingestId"]);
    assert_eq!(shop["dsn"], format!("http://{public_key}@{HOST}/{ingest_id}"));
    assert_eq!(shop["name"], "My shop");
    assert_eq!(shop["slug"], "my-shop");
    assert_eq!(shop["organization"], "default");
    assert!(ProjectId::parse(shop["id"].as_str().unwrap()).is_some());
    assert!(Timestamp::parse_rfc3339(shop["createdAt"].as_str().unwrap()).is_ok());

    let blog = ["project", "create", "--name", "Blog", "--slug", "blog", "--org", "acme"];
    let blog = stack.run(&blog).await;
    assert_eq!((blog.code, blog.stderr.as_str()), (Some(0), ""));
    assert!(blog.stdout.contains("slug          blog\n"), "{}", blog.stdout);
    assert!(blog.stdout.contains("organization  acme\n"), "{}", blog.stdout);
    assert!(blog.stdout.contains(&format!("@{HOST}/")), "{}", blog.stdout);

    let listed = stack.json(&["project", "list"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[0], shop);
    assert_eq!(listed[1]["slug"], "blog");
    let listed = stack.run(&["project", "list"]).await;
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("SLUG     NAME     ORGANIZATION  ID "), "{}", listed.stdout);
    assert!(lines[1].starts_with("my-shop  My shop  default "), "{}", listed.stdout);
    assert!(lines[2].starts_with("blog     Blog     acme "), "{}", listed.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_texts_cannot_control_the_terminal() {
    let stack = Stack::start();
    let name = "Shop \u{202e}gnp.exe";
    let project = ["project", "create", "--slug", "shop", "--name", name];
    let created = stack.run(&project).await;
    assert!(created.stdout.contains(r"Shop \u202egnp.exe"), "{:?}", created.stdout);
    let listed = stack.run(&["project", "list", "--json"]).await;
    assert!(listed.stdout.contains(r#""name": "Shop \u202egnp.exe""#), "{:?}", listed.stdout);
    let read: Json = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(read[0]["name"], name);

    let file = stack.folder.path().join("flags.json");
    let hostile =
        json!({"format": "waymark-flags", "version": 1, "\u{1b}]0;a\u{7}\u{9b}2J\n  /b": 1});
    std::fs::write(&file, hostile.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let rejected = stack.run(&["flags", "import", "--project", "shop", file]).await;
    assert_eq!(rejected.code, Some(1), "{:?}", rejected.stdout);
    let shown = r"/\u001b]0;a\u0007\u009b2J\n  ~1b: ";
    assert!(rejected.stderr.contains(shown), "{:?}", rejected.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn unencrypted_base_urls_cause_a_warning() {
    let stack = Stack::start();
    for (url, warns) in [("http://api.example", true), ("https://api.example", false)] {
        let run = stack.run(&["--base-url", url, "project", "list", "--json"]).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "[]\n"));
        let warning = format!("Warning: {url} is not encrypted");
        assert_eq!(run.stderr.starts_with(&warning), warns, "{}", run.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_a_dsn_key() {
    let stack = Stack::start();
    let before = stack.json(&["project", "create", "--name", "Shop", "--slug", "my-shop"]).await;
    let after = stack.json(&["project", "rotate-dsn-key", "my-shop"]).await;
    assert_ne!(after["publicKey"], before["publicKey"]);
    let public_key = after["publicKey"].as_str().unwrap();
    assert_eq!(after["dsn"], format!("http://{public_key}@{HOST}/{}", before["ingestId"]));
    assert_eq!(stack.json(&["project", "list"]).await, json!([after]));
    let id = before["id"].as_str().unwrap();
    let rotated = stack.run(&["project", "rotate-dsn-key", id]).await;
    assert!(rotated.stdout.contains(&format!("@{HOST}/")), "{}", rotated.stdout);
    assert!(rotated.stderr.contains("within 60 seconds"), "{}", rotated.stderr);
    let unknown = stack.run(&["project", "rotate-dsn-key", "other"]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("there is no project `other`"), "{}", unknown.stderr);
    let audit = stack.json(&["audit", "list"]).await;
    let actions: Vec<_> = audit.as_array().unwrap().iter().map(|it| it["action"].clone()).collect();
    assert_eq!(actions, ["project_updated", "project_updated", "project_created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_a_project() {
    let stack = Stack::start();
    let id = stack.create_project("my-shop", "default").await;
    let shown = stack.json(&["project", "rename", "my-shop", "--name", "Our shop"]).await;
    assert_eq!((&shown["id"], &shown["name"]), (&json!(id), &json!("Our shop")));
    assert_eq!(stack.json(&["project", "list"]).await[0]["name"], "Our shop");
    let audit = stack.json(&["audit", "list"]).await;
    assert_eq!(audit[0]["action"], "project_updated");
    for (project, name, code) in [("other", "Other", Some(1)), ("my-shop", "", Some(2))] {
        let run = stack.run(&["project", "rename", project, "--name", name]).await;
        assert_eq!(run.code, code, "{project} {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slugs_are_unique_across_organizations() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    for organization in ["default", "acme"] {
        let arguments = ["project", "create", "--name", "Other", "--slug", "my-shop", "--org"];
        let run = stack.run(&[&arguments[..], &[organization, "--json"]].concat()).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert_eq!(run.stderr, "error: the slug `my-shop` is taken; choose another\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_a_project_limit() {
    let stack = Stack::start();
    let id = stack.create_project("my-shop", "default").await;
    let store = stack.store();
    let project = store.read_project(ProjectId::parse(&id).unwrap()).await.unwrap().unwrap();
    for (given, shown, stored) in
        [("50", json!(50), Some(50)), ("0", json!(0), Some(0)), ("default", json!(null), None)]
    {
        let arguments = ["project", "set-limit", "my-shop", "--events-per-minute", given];
        let set = stack.json(&arguments).await;
        assert_eq!(set["eventsPerMinute"], shown);
        assert_eq!(stack.json(&["settings", "show", "--project", &id]).await, set);
        let (access, _) = store.find_ingest_access(project.ingest_id, false).await.unwrap();
        assert_eq!(access.unwrap().limits.get(Limit::EventsPerMinute), stored);
    }
    let requests = ["project", "set-limit", "my-shop", "--requests-per-minute", "9"];
    assert_eq!(stack.json(&requests).await["requestsPerMinute"], 9);
    for (arguments, code) in [
        (["project", "set-limit", "other", "--events-per-minute", "5"], Some(1)),
        (["project", "set-limit", "my-shop", "--events-per-minute", "-1"], Some(2)),
        (["project", "set-limit", "my-shop", "--events-per-minute", "4294967296"], Some(2)),
    ] {
        assert_eq!(stack.run(&arguments).await.code, code, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_project_are_shown_and_set() {
    let stack = Stack::start();
    let id = stack.create_project("my-shop", "default").await;
    let of = |command, settings: &[&'static str]| {
        [&["settings", command, "--project", "my-shop"], settings].concat()
    };
    let shown = json!({
        "eventsPerMinute": 5, "requestsPerMinute": null, "replaysPerMinute": 0,
        "errorsPerProject": 100_000, "newErrorsPerHour": null, "production": true,
    });
    let given = ["eventsPerMinute=5", "replaysPerMinute=7", "replaysPerMinute=0"];
    let given =
        [&given[..], &["errorsPerProject=100000", "newErrorsPerHour=default", "production=true"]];
    assert_eq!(stack.json(&of("set", &given.concat())).await, shown);
    assert_eq!(stack.json(&of("show", &[])).await, shown);
    assert_eq!(stack.json(&["settings", "show", "--project", &id]).await, shown);
    let reset = ["errorsPerProject=default", "eventsPerMinute=default", "production=false"];
    let reset = stack.json(&of("set", &reset)).await;
    assert_eq!((&reset["errorsPerProject"], &reset["replaysPerMinute"]), (&json!(null), &json!(0)));
    assert_eq!(stack.json(&["project", "list"]).await[0]["production"], false);
    // One entry per command, with all of its changes.
    let audit = stack.json(&["audit", "list"]).await;
    let actions: Vec<_> = audit.as_array().unwrap().iter().map(|it| it["action"].clone()).collect();
    assert_eq!(actions, ["project_updated", "project_updated", "project_created"]);
    for setting in [
        "eventsPerHour=1",
        "eventsPerMinute",
        "eventsPerMinute=4294967296",
        "errorsPerProject=0",
        "errorsPerProject=100001",
        "replaysPerMinute=-1",
        "production=on",
    ] {
        assert_eq!(stack.run(&of("set", &[setting])).await.code, Some(2), "{setting}");
    }
    assert_eq!(stack.run(&["settings", "show", "--project", "other"]).await.code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_all_projects_are_shown_and_set() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    let unset = json!({
        "eventsPerMinute": null, "requestsPerMinute": null, "replaysPerMinute": null,
        "errorsPerProject": null, "newErrorsPerHour": null,
    });
    let all = |command, settings: &[&'static str]| {
        [&["settings", command, "--all-projects"], settings].concat()
    };
    assert_eq!(stack.json(&all("show", &[])).await, unset);
    let set = stack.json(&all("set", &["eventsPerMinute=5", "errorsPerProject=7"])).await;
    assert_eq!((&set["eventsPerMinute"], &set["errorsPerProject"]), (&json!(5), &json!(7)));
    assert_eq!(stack.json(&all("show", &[])).await, set);
    let reset = ["eventsPerMinute=default", "errorsPerProject=default"];
    assert_eq!(stack.json(&all("set", &reset)).await, unset);
    let of_project = stack.json(&["settings", "show", "--project", "my-shop"]).await;
    assert_eq!(of_project["eventsPerMinute"], json!(null));
    let rejected = stack.run(&all("set", &["production=true"])).await;
    assert_eq!(rejected.code, Some(1));
    assert!(rejected.stderr.contains("pass --project"), "{}", rejected.stderr);
    for target in [&[][..], &["--all-projects", "--project", "my-shop"]] {
        let run = stack.run(&[&["settings", "show"], target].concat()).await;
        assert_eq!(run.code, Some(2), "{target:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_get_a_new_link_each_time() {
    let stack = Stack::start();
    let add = ["member", "add", "Mira@Example.com", "--role", "owner", "--org", "acme"];
    let [first, second] = [stack.json(&add).await, stack.json(&add).await];
    assert_eq!(first["member"]["email"], "mira@example.com");
    assert_eq!(first["member"]["id"], second["member"]["id"]);
    assert_ne!(first["signIn"], second["signIn"]);
    let link = first["signIn"].as_str().unwrap();
    assert!(link.contains("/console/sign-in#token="), "{link}");

    let remove = ["member", "remove", "mira@example.com", "--org", "acme"];
    let run = stack.run(&remove).await;
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("is the last owner"), "{}", run.stderr);
    let juno = ["member", "add", "juno@example.com", "--role", "owner", "--org", "acme"];
    stack.json(&juno).await;
    let update = ["member", "update", "juno@example.com", "--role", "viewer", "--org", "acme"];
    assert_eq!(stack.json(&update).await["role"], "viewer");
    let members = stack.json(&["member", "list", "--org", "acme"]).await;
    let roles: Vec<_> = members.as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["viewer", "owner"]);

    let invite = ["invitation", "create", "ann@example.com", "--role", "admin", "--org", "acme"];
    let id = stack.json(&invite).await["id"].as_str().unwrap().to_owned();
    assert_eq!(stack.json(&["invitation", "list", "--org", "acme"]).await[0]["id"], id);
    stack.json(&["invitation", "revoke", &id]).await;
    assert_eq!(stack.json(&["invitation", "list", "--org", "acme"]).await, json!([]));
    let audit = stack.json(&["audit", "list", "--org", "acme", "--limit", "4"]).await;
    let actions: Vec<_> = audit.as_array().unwrap().iter().map(|it| it["action"].clone()).collect();
    let expected = ["invitation_revoked", "invitation_created", "member_updated", "member_added"];
    assert_eq!(actions, expected);
    assert_eq!(audit[0]["actor"]["type"], "command");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_items_are_skipped_and_reported() {
    let stack = Stack::start();
    let [bad, good] = [
        stack.create_project("bad", "default").await,
        stack.create_project("good", "default").await,
    ];
    let [bad_key, good_key] = [
        stack.json(&["key", "create", "--scopes", "all"]).await,
        stack.json(&["key", "create", "--scopes", "all"]).await,
    ];
    let bad_key = bad_key["keyId"].as_str().unwrap();
    let client = client::for_endpoint(&stack.engine.endpoint()).unwrap();
    for (table, name, value, attribute) in
        [("projects", "idOrSlug", &*bad, "publicKey"), ("api-keys", "keyId", bad_key, "createdAt")]
    {
        let update =
            client.update_item().table_name(format!("{}{table}", environment::table_prefix()));
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let update = update.key(name, text(value)).update_expression("SET #a = :bad");
        let update = update.expression_attribute_names("#a", attribute);
        update.expression_attribute_values(":bad", text("bad")).send().await.unwrap();
    }
    let note = |table: &str, key: &str, attribute: &str| {
        format!("Skipped: an item of table {table} is damaged: attribute {attribute} of {key}.\n")
    };
    let listed = stack.run(&["project", "list", "--json"]).await;
    let projects: Json = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&projects[0]["id"], projects.as_array().unwrap().len()), (&json!(good), 1));
    assert_eq!(listed.stderr, note("projects", &format!("idOrSlug {bad}"), "publicKey"));
    let listed = stack.run(&["key", "list", "--json"]).await;
    let keys: Json = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&keys[0]["keyId"], keys.as_array().unwrap().len()), (&good_key["keyId"], 1));
    assert_eq!(listed.stderr, note("api-keys", &format!("keyId {bad_key}"), "createdAt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_values_are_usage_errors() {
    let stack = Stack::start();
    let cases: [(&[&str], &str); 9] = [
        (&["project", "create", "--name", "X", "--slug", "My_Shop"], "a slug has 1 to 63"),
        (&["project", "create", "--name", " ", "--slug", "x"], "a project name has 1 to 200"),
        (&["project", "create", "--name", "X", "--slug", "x", "--org", "a b"], "an organization"),
        (&["project", "create", "--name", "X"], "--slug"),
        (&["key", "create", "--scopes", "flags:read,flags:admin"], "flags:read, flags:write, "),
        (&["key", "create", "--project", "My_Shop"], "its UUID or its slug"),
        (&["key", "create", "--user", "a b"], "a user has 1 to 128"),
        (&["key", "create", "--name", " "], "must have at least 1 character"),
        (&["key", "create", "--expires", "tomorrow"], "or a date, such as 2026-11-21"),
    ];
    for (arguments, message) in cases {
        let run = stack.run(arguments).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(stack.json(&["project", "list"]).await, json!([]));
    assert_eq!(stack.json(&["key", "list"]).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_are_shown_once_and_work() {
    let stack = Stack::start();
    let created = stack.run(&["key", "create", "--scopes", "all"]).await;
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    // Standard output has only the key: `KEY=$(waymark key create)` must work.
    let key = ApiKey::parse(created.stdout.strip_suffix('\n').unwrap()).unwrap();
    let secret = key.reveal();
    assert!(created.stderr.contains("shown only once"), "{}", created.stderr);
    assert!(!created.stderr.contains(&secret));

    let records = stack.store().list_api_keys().await.unwrap();
    let [record] = records.as_slice() else { unreachable!("{records:?}") };
    assert!(record.admits(&key, record.created_at));
    assert_eq!(record.scopes, Scope::of_keys());
    assert_eq!(record.projects, None);
    assert_eq!((record.organization.as_str(), record.user.as_str()), ("default", "owner"));

    let hash = record.secret_hash.as_bytes().iter().map(|byte| format!("{byte:02x}"));
    let hash = hash.collect::<Vec<_>>().concat();
    for arguments in [&["key", "list"][..], &["key", "list", "--json"]] {
        let listed = stack.run(arguments).await;
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
        assert!(listed.stdout.contains(key.key_id().as_str()));
        assert!(!listed.stdout.contains(&secret[20..]), "{}", listed.stdout);
        assert!(!listed.stdout.to_lowercase().contains("hash"), "{}", listed.stdout);
        assert!(!listed.stdout.contains(&hash), "{}", listed.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_keys_have_the_requested_limits() {
    let stack = Stack::start();
    let shop = stack.create_project("my-shop", "acme").await;
    let blog = stack.create_project("blog", "acme").await;
    let blog_upper = blog.to_uppercase();
    let created = stack
        .json(&[
            "key",
            "create",
            "--scopes",
            "flags:read, flags:evaluate",
            "--project",
            "my-shop",
            "--project",
            &blog_upper,
            "--project",
            &shop,
            "--org",
            "acme",
            "--user",
            "ada@example.com",
            "--expires",
            "2999-01-01",
            "--name",
            " Nightly build ",
        ])
        .await;
    let mut expected = KEY_FIELDS.to_vec();
    expected.insert(0, "apiKey");
    assert_eq!(field_names(&created), expected);
    let key = ApiKey::parse(created["apiKey"].as_str().unwrap()).unwrap();
    assert_eq!(created["keyId"], key.key_id().as_str());
    assert_eq!(created["scopes"], json!(["flags:read", "flags:evaluate"]));
    assert_eq!(created["projects"], json!([shop, blog]));
    assert_eq!(created["organization"], "acme");
    assert_eq!(created["user"], "ada@example.com");
    assert_eq!(created["name"], "Nightly build");
    assert_eq!(created["expiresAt"], "2999-01-01T00:00:00.000Z");
    assert_eq!(created["revokedAt"], Json::Null);

    let listed = stack.json(&["key", "list"]).await;
    let mut record = created.clone();
    record.as_object_mut().unwrap().remove("apiKey");
    assert_eq!(listed, json!([record]));

    let listed = stack.run(&["key", "list"]).await;
    for part in [
        "Nightly build",
        "flags:evaluate",
        "my-shop",
        "blog",
        "ada@example.com",
        "2999-01-01T00:00Z",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert!(listed.stdout.contains(" active\n"), "{}", listed.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_require_explicit_scopes() {
    let stack = Stack::start();
    let rejected = stack.run(&["key", "create"]).await;
    assert_eq!(rejected.code, Some(1));
    let message = rejected.stderr;
    assert!(message.starts_with("error: the key needs scopes: pass --scopes"), "{message}");
    assert!(message.contains("- flags:evaluate\n"), "{message}");
    assert_eq!(stack.json(&["key", "list"]).await, json!([]));

    // A key without expiry is created, with a note.
    let created = stack.run(&["key", "create", "--scopes", "flags:evaluate"]).await;
    let message = created.stderr;
    assert!(created.code == Some(0) && message.contains("would limit it to a year"), "{message}");
    let listed = stack.json(&["key", "list"]).await;
    assert_eq!(listed[0]["scopes"], json!(["flags:evaluate"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn project_deletion_requires_confirmation() {
    let stack = Stack::start();
    let id = stack.create_project("my-shop", "default").await;
    let unconfirmed = stack.run(&["project", "delete", "my-shop"]).await;
    assert_eq!(unconfirmed.code, Some(1));
    assert!(
        unconfirmed.stderr.contains("add --yes to confirm; nothing was deleted"),
        "{}",
        unconfirmed.stderr
    );
    assert_eq!(stack.json(&["project", "list"]).await[0]["slug"], "my-shop");

    let deleted = stack.json(&["project", "delete", "my-shop", "--yes"]).await;
    assert_eq!(deleted["subject"], format!("project#{id}"));
    assert_eq!(stack.json(&["project", "list"]).await, json!([]));
    let again = stack.run(&["project", "delete", "my-shop", "--yes"]).await;
    assert!(again.stderr.contains("there is no project `my-shop`"), "{}", again.stderr);
    // The slug is available immediately.
    assert_ne!(stack.create_project("my-shop", "default").await, id);

    let listed = stack.json(&["erasure", "list"]).await;
    let shown = (&listed[0]["name"], &listed[0]["stage"], &listed[0]["removed"]);
    assert_eq!(shown, (&json!("my-shop"), &json!("settling"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_user_revokes_the_keys() {
    let stack = Stack::start();
    for user in ["mira", "other"] {
        stack.json(&["key", "create", "--scopes", "all", "--user", user]).await;
    }
    let erased = stack.run(&["user", "erase", "mira", "--yes"]).await;
    assert!(erased.stderr.contains("keys are rejected within 60 seconds"), "{}", erased.stderr);
    let again = stack.run(&["user", "erase", "mira", "--yes"]).await;
    assert!(again.stderr.contains("`mira` is already being erased"), "{}", again.stderr);
    let audit = stack.json(&["audit", "list"]).await;
    assert_eq!(audit[0]["action"], "user_erased");
    assert_eq!(audit[0]["target"], json!({"type": "user", "id": "mira", "name": "mira"}));
    assert_ne!(audit[1]["action"], "user_erased");
    let keys = stack.json(&["key", "list"]).await;
    for key in keys.as_array().unwrap() {
        assert_eq!(key["revokedAt"].is_null(), key["user"] == "other", "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_users_are_not_erased() {
    let stack = Stack::start();
    for (user, organization) in [("mira", "acme"), ("Mara", "default"), ("somebody", "default")] {
        let key = ["key", "create", "--scopes", "all", "--user", user, "--org", organization];
        stack.json(&key).await;
    }
    let rejected = stack.run(&["user", "erase", "mira", "--yes"]).await;
    assert_eq!((rejected.code, rejected.stdout.as_str()), (Some(1), ""));
    let expected = "error: there is no user `mira` in default: no keys, preferences or address are \
                    stored; similar users: `mira` of acme, `Mara` of default; `waymark user list`";
    assert!(rejected.stderr.starts_with(expected), "{}", rejected.stderr);
    assert_eq!(stack.json(&["erasure", "list"]).await, json!([]));
    let far = stack.run(&["user", "erase", "nobody-like-that", "--yes"]).await;
    assert!(far.stderr.contains("are stored; `waymark user list`"), "{}", far.stderr);

    // After a restore, an unknown user can have data to erase.
    let again = stack.run(&["user", "erase", "mira", "--yes", "--even-if-unknown"]).await;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(!again.stderr.contains("keys"), "{}", again.stderr);
    let again = stack.run(&["user", "erase", "mira", "--yes"]).await;
    assert!(again.stderr.contains("the user `mira` is already being erased"), "{}", again.stderr);

    // A user with only an address is known.
    let set = ["user", "set-address", "ada@example.com", "--user", "ada"];
    stack.json(&set).await;
    stack.json(&["user", "erase", "ada", "--yes"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_projects_can_be_erased_by_id() {
    let stack = Stack::start();
    let id = stack.create_project("my-shop", "acme").await;
    let deleted = stack.run(&["project", "delete", "my-shop", "--yes"]).await;
    assert!(deleted.stdout.contains(&id), "{}", deleted.stdout);
    let delete = async |name: &str, more: &[&str]| {
        stack.run(&[&["project", "delete", name, "--yes"], more].concat()).await
    };
    let again = ["--even-if-unknown", "--org", "acme"];
    let in_progress = delete(&id, &again).await;
    assert!(in_progress.stderr.contains("is already being erased"), "{}", in_progress.stderr);
    let by_slug = delete("my-shop", &again).await;
    assert!(by_slug.stderr.contains("pass the id"), "{}", by_slug.stderr);
    let other = "019aa000-0000-7000-8000-00000000000a";
    let rejected = delete(other, &[]).await;
    assert!(rejected.stderr.contains("there is no project"), "{}", rejected.stderr);
    assert_eq!(delete(other, &["--org", "acme"]).await.code, Some(2));
    assert_eq!(delete(other, &again).await.code, Some(0));
    let listed = stack.json(&["erasure", "list"]).await;
    let shown = (&listed[1]["subject"], &listed[1]["organization"]);
    assert_eq!(shown, (&json!(format!("project#{other}")), &json!("acme")));
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_the_address_of_a_user() {
    let stack = Stack::start();
    for (user, org) in [("mira", "default"), ("mira", "acme"), ("ada", "acme")] {
        let arguments = ["key", "create", "--scopes", "all", "--user", user, "--org", org];
        stack.json(&arguments).await;
    }
    let none = json!({"organization": "acme", "user": "ada", "keys": 1, "email": null,
        "pendingEmail": null, "rejectedAt": null});
    let listed = stack.json(&["user", "list"]).await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]), (3, &none));

    let set = ["user", "set-address", "mira@example.com", "--user", "mira", "--org", "acme"];
    let shown = stack.json(&set).await;
    assert_eq!(shown, json!({"email": "mira@example.com", "pendingEmail": null}));
    let listed = stack.json(&["user", "list"]).await;
    let emails: Vec<&Json> = listed.as_array().unwrap().iter().map(|user| &user["email"]).collect();
    let [null, mira] = [Json::Null, json!("mira@example.com")];
    assert_eq!(emails, [&null, &mira, &null], "users of acme come first");
    // A new address replaces the old one.
    let set = ["user", "set-address", "m@example.com", "--user", "mira", "--org", "acme"];
    let set = stack.run(&set).await;
    assert_eq!(
        (set.code, set.stdout.as_str()),
        (Some(0), "User mira of acme now gets email at m@example.com.\n")
    );
    let listed = stack.run(&["user", "list"]).await;
    assert!(listed.stdout.contains("m@example.com"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("mira@example.com"), "{}", listed.stdout);

    let rejected = stack.run(&["user", "set-address", "mira"]).await;
    assert_eq!(rejected.code, Some(2));
    assert!(rejected.stderr.contains("must be an email address"), "{}", rejected.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_cannot_include_projects_of_other_organizations() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    stack.create_project("theirs", "acme").await;
    let unknown = "019aa000-0000-7000-8000-00000000000a";
    let arguments =
        ["key", "create", "--scopes", "all", "--project", "my-shop", "--project", "theirs"];
    let run = stack.run(&[&arguments[..], &["--project", unknown]].concat()).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let expected = format!(
        "error: the organization `default` has no project `theirs`, `{unknown}`; `waymark project \
         list` shows all projects\n"
    );
    assert_eq!(run.stderr, expected);
    assert_eq!(stack.json(&["key", "list"]).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn expiry_must_be_in_the_future() {
    let stack = Stack::start();
    for expiry in ["2020-01-01", "2020-01-01T00:00:00+01:00"] {
        let run = stack.run(&["key", "create", "--scopes", "all", "--expires", expiry]).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains("a date in the future"), "{}", run.stderr);
    }
    let created = stack
        .json(&["key", "create", "--scopes", "all", "--expires", "2999-01-01T00:00:00+01:00"])
        .await;
    assert_eq!(created["expiresAt"], "2998-12-31T23:00:00.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_is_permanent() {
    let stack = Stack::start();
    let created = stack.json(&["key", "create", "--scopes", "all"]).await;
    let key_id = created["keyId"].as_str().unwrap();

    let first = stack.json(&["key", "revoke", key_id]).await;
    assert_eq!(field_names(&first), KEY_FIELDS);
    let since = first["revokedAt"].as_str().unwrap();
    assert!(Timestamp::parse_rfc3339(since).is_ok());
    let again = stack.run(&["key", "revoke", key_id]).await;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.stdout, format!("Key {key_id} was revoked at {since}.\n"));

    let listed = stack.run(&["key", "list"]).await;
    assert!(listed.stdout.contains(" revoked\n"), "{}", listed.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn revoke_accepts_only_key_ids() {
    let stack = Stack::start();
    let unknown = stack.run(&["key", "revoke", "AAAABBBBCCCC0001"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    let expected = "error: there is no key AAAABBBBCCCC0001; `waymark key list` shows all keys\n";
    assert_eq!(unknown.stderr, expected);

    let created = stack.json(&["key", "create", "--scopes", "all"]).await;
    let api_key = created["apiKey"].as_str().unwrap();
    let whole = stack.run(&["key", "revoke", api_key]).await;
    assert_eq!((whole.code, whole.stdout.as_str()), (Some(1), ""));
    assert!(whole.stderr.contains("pass only its key id"), "{}", whole.stderr);
    assert!(!whole.stderr.contains(&api_key[20..]), "{}", whole.stderr);
    let mistyped = stack.run(&["key", "revoke", &api_key[..api_key.len() - 1]]).await;
    assert_eq!((mistyped.code, mistyped.stdout.as_str()), (Some(1), ""));
    assert!(!mistyped.stderr.contains(&api_key[20..60]), "{}", mistyped.stderr);
    assert_eq!(stack.json(&["key", "list"]).await[0]["revokedAt"], Json::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_expired_keys() {
    let stack = Stack::start();
    let past = Timestamp::from_millis(1_000);
    let expire = |record| ApiKeyRecord { expires_at: Some(past), ..record };
    demo::create_key(&stack.store(), expire).await.unwrap();
    let listed = stack.run(&["key", "list"]).await;
    assert!(listed.stdout.contains(" 1970-01-01T00:00Z  expired\n"), "{}", listed.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_stack_is_found_from_subfolders() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    let below = stack.folder.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let listed = run_local(&below, &["project", "list"]).await;
    assert!(listed.stdout.contains("my-shop"), "{}", listed.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_stack_overrides_other_configuration() {
    let stack = Stack::start();
    let mut command = command(stack.folder.path());
    command.env("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1");
    command.env("WAYMARK_TABLE_PREFIX", "other-");
    let listed = run(command.args(["project", "list", "--local", "--json"])).await;
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), "[]\n"), "{}", listed.stderr);

    let listed = stack.run(&["project", "list", "--table-prefix", "other-"]).await;
    assert_eq!(listed.code, Some(1));
    assert!(listed.stderr.contains("`other-` is the prefix of its tables"), "{}", listed.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_local_stack_error_names_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_local(folder.path(), &["project", "list"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let expected = "error: the local stack has not been started here; run `make run`";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}

/// Returns the command with the environment of an AWS user.
fn command_for_aws(folder: &Path, endpoint: &str) -> Command {
    let mut command = command(folder);
    command
        .env("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
        .env("AWS_REGION", "eu-central-1")
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_variables_select_the_tables() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    let elsewhere = tempfile::tempdir().unwrap();
    let endpoint = stack.engine.endpoint();
    let aws = || {
        let mut command = command_for_aws(elsewhere.path(), &endpoint);
        command.args(["project", "list"]);
        command
    };
    // The option's prefix takes precedence over the variable's, and that over the default.
    for (variable, option, found) in [
        (None, None, true),
        (Some(""), None, true),
        (Some("waymark-"), None, true),
        (Some("other-"), None, false),
        (Some("other-"), Some("waymark-"), true),
        (Some("waymark-"), Some("other-"), false),
    ] {
        let mut command = aws();
        variable.map(|prefix| command.env("WAYMARK_TABLE_PREFIX", prefix));
        option.map(|prefix| command.args(["--table-prefix", prefix]));
        let run = run(&mut command).await;
        assert_eq!(run.code == Some(0), found, "{variable:?} {option:?}: {}", run.stderr);
        if !found {
            for part in ["credentials", "permission", "the table prefix `other-`"] {
                assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_tables_require_an_explicit_choice() {
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
    let tables = template::read_tables(&template).unwrap();
    let mut restored = ["-errors", "-api-keys"]
        .map(|name| tables.iter().find(|table| table.name.ends_with(name)).unwrap().clone());
    for table in &mut restored {
        table.name = format!("{}-restored-20261121T041600Z", table.name);
        table.create["TableName"] = json!(table.name);
    }
    let folder = tempfile::tempdir().unwrap();
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // The command does not use the table errors.
    for (count, is_rejected) in [(1, false), (2, true)] {
        let more = restored.iter().take(count).cloned();
        let all: Vec<_> = tables.iter().cloned().chain(more).collect();
        let engine = Engine::start(anywhere, None, &all).unwrap();
        let endpoint = engine.endpoint();
        let listed = run(command_for_aws(folder.path(), &endpoint).args(["key", "list"])).await;
        assert_eq!(listed.code == Some(1), is_rejected, "{}", listed.stderr);
        let message = "there is a restored table waymark-api-keys-restored-20261121T041600Z, so";
        assert_eq!(listed.stderr.contains(message), is_rejected, "{}", listed.stderr);
        for value in ["", "api-keys:restored-20261121T041600Z"] {
            let mut command = command_for_aws(folder.path(), &endpoint);
            command.env("WAYMARK_RESTORED_TABLES", value);
            let listed = run(command.args(["key", "list"])).await;
            let succeeds = value.is_empty() || is_rejected;
            assert_eq!(listed.code == Some(0), succeeds, "{value}: {}", listed.stderr);
        }
        engine.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_region_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(command(folder.path()).args(["project", "list"])).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("set AWS_REGION, or use --local"), "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    command.env("AWS_REGION", "eu-central-1").env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let run = run(command.args(["project", "list"])).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("check the region, the credentials"), "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_dynamodb_is_reported_within_five_seconds() {
    let stack = Stack::start();
    let down = stack.engine.endpoint();
    stack.engine.stop().await;
    // A server that accepts connections and never responds.
    let silent = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let unresponsive = format!("http://{}", silent.local_addr().unwrap());

    for endpoint in [&down, &unresponsive] {
        let started = Instant::now();
        let folder = folder_of_stack(endpoint);
        let local = run_local(folder.path(), &["project", "list"]).await;
        assert_eq!((local.code, local.stdout.as_str()), (Some(1), ""));
        assert!(local.stderr.contains("`make run` must be running"), "{}", local.stderr);
        assert!(local.stderr.contains(endpoint.as_str()), "{}", local.stderr);
        assert!(started.elapsed() < Duration::from_secs(5));

        let started = Instant::now();
        let mut aws = command_for_aws(folder.path(), endpoint);
        let aws = run(aws.args(["key", "create", "--scopes", "all", "--json"])).await;
        assert_eq!((aws.code, aws.stdout.as_str()), (Some(1), ""));
        assert!(aws.stderr.starts_with("error: DynamoDB cannot be reached"), "{}", aws.stderr);
        for part in ["region", "credentials", "network"] {
            assert!(aws.stderr.contains(part), "{part}: {}", aws.stderr);
        }
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pipes_fail_only_if_secrets_are_lost() {
    let stack = Stack::start();
    stack.create_project("my-shop", "default").await;
    let listed = run_into_closed_pipe(&stack, &["project", "list"]).await;
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));

    let created = run_into_closed_pipe(&stack, &["key", "create", "--scopes", "all"]).await;
    assert_eq!(created.code, Some(1));
    let keys = stack.json(&["key", "list"]).await;
    let revoke = format!("`waymark key revoke {}`", keys[0]["keyId"].as_str().unwrap());
    assert!(created.stderr.contains(&revoke), "{}", created.stderr);
}

async fn run_into_closed_pipe(stack: &Stack, arguments: &[&str]) -> Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(stack.folder.path());
    command.arg("--local").args(arguments).stdout(writer).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Run { code: output.status.code(), stdout: String::new(), stderr }
}
