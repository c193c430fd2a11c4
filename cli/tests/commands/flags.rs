//! Tests of the export and import of flags.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use uuid::Uuid;

use flags::draft::FlagDraft;
use flags::flagd::Layout;
use flags::history::ChangeKind;
use flags::store::{FlagCreation, FlagDeletion, FlagReplacement, FlagStore, ListedFlags};
use flags::{FeatureFlag, FlagKey, flagd};
use shared::app::Ids;
use shared::audit::{AuditAction, AuditEntry};
use shared::dynamodb::StoreError;
use shared::idempotency::StoredResponse;
use shared::json::Json as Document;
use shared::page::PageRequest;
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;

use crate::{Run, Stack, command, run};

fn entry(action: AuditAction, flag: &FeatureFlag) -> AuditEntry {
    let organization = Organization::parse("default").unwrap();
    let id = Ids::Random.new_uuid(flag.updated_at);
    AuditEntry::of_command(id, organization, action, flag.audit_target(), flag.updated_at)
}

/// A stack with the empty project `shop`.
struct Shop {
    stack: Stack,
    id: ProjectId,
}

impl Shop {
    async fn open() -> Self {
        let stack = Stack::start();
        let id = ProjectId::parse(&stack.create_project("shop", "default").await).unwrap();
        Self { stack, id }
    }

    /// Stores a flag like create-feature-flag.
    async fn create(&self, body: &Json) -> FeatureFlag {
        let text = body.to_string();
        let draft = FlagDraft::read(&Document::parse(&text, 32).unwrap()).unwrap();
        let now = Timestamp::from_millis(1_795_234_560_007);
        let flag = draft.into_flag(self.id, now, Uuid::max).unwrap();
        let respond = |_: &FeatureFlag| Ok::<_, StoreError>(StoredResponse::default());
        let created = FlagStore::new(&self.stack.store())
            .create_flag(flag.clone(), &entry(AuditAction::FlagCreated, &flag), None, respond)
            .await
            .unwrap();
        let FlagCreation::Created(flag) = created else { unreachable!("{created:?}") };
        *flag
    }

    async fn archive(&self, flag: &FeatureFlag) -> FeatureFlag {
        let archived_at = Some(flag.updated_at);
        let archived = FeatureFlag { archived_at, version: flag.version + 1, ..flag.clone() };
        let replaced = {
            let store = self.stack.store();
            FlagStore::new(&store)
                .replace_flag(
                    flag,
                    &archived,
                    ChangeKind::Archived,
                    &entry(AuditAction::FlagArchived, flag),
                )
                .await
                .unwrap()
        };
        assert_eq!(replaced, FlagReplacement::Done);
        archived
    }

    /// Creates flags of each type, and archived and deleted ones.
    async fn fill(&self) {
        let gone = self.create(&flag("gone", &json!({}))).await;
        let needs_gone = json!({"prerequisites": [{"flagKey": "gone", "variant": "on"}]});
        let orphan = self.create(&flag("orphan", &needs_gone)).await;
        self.archive(&orphan).await;
        let gone = self.archive(&gone).await;
        assert_eq!(
            FlagStore::new(&self.stack.store())
                .delete_flag(&gone, &entry(AuditAction::FlagDeleted, &gone), gone.updated_at)
                .await
                .unwrap(),
            FlagDeletion::Done
        );
        for body in rich_flags() {
            self.create(&body).await;
        }
    }

    async fn flags(&self) -> Vec<FeatureFlag> {
        let all = PageRequest { limit: 100, after: None };
        let store = self.stack.store();
        FlagStore::new(&store).list_flags(self.id, ListedFlags::All, &all).await.unwrap().items
    }

    async fn flag(&self, key: &str) -> Option<FeatureFlag> {
        FlagStore::new(&self.stack.store())
            .find_flag(self.id, &FlagKey::parse(key).unwrap())
            .await
            .unwrap()
    }

    async fn export(&self) -> String {
        let exported = self.stack.run(&["flags", "export", "--project", "shop"]).await;
        assert_eq!((exported.code, exported.stderr.as_str()), (Some(0), ""));
        exported.stdout
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.stack.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Imports a document.
    async fn import(&self, document: &str, options: &[&str]) -> Run {
        let path = self.write("flags.json", document);
        let arguments = ["flags", "import", path.to_str().unwrap(), "--project", "shop"];
        self.stack.run(&[&arguments[..], options].concat()).await
    }
}

fn flag(key: &str, fields: &Json) -> Json {
    let mut flag = json!({"key": key, "name": key, "type": "boolean"});
    for (name, value) in fields.as_object().unwrap() {
        flag[name] = value.clone();
    }
    flag
}

fn document(flags: &[Json]) -> String {
    json!({"format": "waymark-flags", "version": 2, "project": "shop", "flags": flags}).to_string()
}

fn on(key: &str) -> Json {
    json!({"prerequisites": [{"flagKey": key, "variant": "on"}]})
}

fn rich_flags() -> Vec<Json> {
    let conditions = json!([
        {"attribute": "email", "operator": "ends_with", "values": ["@example.com", "\"é\n"]},
        {"attribute": "$now", "operator": "after", "values": ["2026-12-01T00:00:00Z"]},
    ]);
    let matches = json!([{"attribute": "plan", "operator": "matches", "values": ["^pro"]}]);
    vec![
        flag("base", &json!({"enabled": true, "description": "two\nlines"})),
        flag("dependent", &on("base")),
        flag("chain", &on("dependent")),
        flag(
            "rules",
            &json!({
                "enabled": true,
                "rules": [
                    {"id": "staff", "name": "Staff", "conditions": conditions, "serve": {"rollout": [
                        {"variant": "on", "weight": 33.333}, {"variant": "off", "weight": 66.667},
                    ]}},
                    {"conditions": matches, "serve": {"variant": null, "rollout": []}},
                ],
                "targets": [{"kind": "identifier", "value": "user-1", "variant": "off"}],
                "offVariant": null,
            }),
        ),
        flag(
            "text",
            &json!({"type": "string", "variants": [{"key": "b", "value": ""}, {"key": "a", "value": "x"}]}),
        ),
        flag(
            "size",
            &json!({"type": "number", "variants": [{"key": "one", "name": "One", "value": "1e2"}]}),
        ),
        flag(
            "theme",
            &json!({"type": "json", "variants": [{"key": "t", "value": "{\"b\": 1, \"a\": []}"}]}),
        ),
        flag("draft", &json!({"type": "string"})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_imported_unchanged() {
    let shop = Shop::open().await;
    shop.fill().await;
    let exported = shop.export().await;
    let parsed: Json = serde_json::from_str(&exported).unwrap();
    assert_eq!(parsed["format"], "waymark-flags");
    assert_eq!((&parsed["version"], &parsed["project"]), (&json!(2), &json!("shop")));
    let keys: Vec<_> = parsed["flags"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    let expected =
        ["base", "chain", "dependent", "draft", "orphan", "rules", "size", "text", "theme"];
    assert_eq!(keys, expected);
    for server_side in ["id", "projectId", "archivedAt", "createdAt", "updatedAt"] {
        assert!(!exported.contains(&format!("\n      \"{server_side}\":")), "{server_side}");
    }
    assert_eq!(parsed["flags"][4]["archived"], true);

    let empty = Shop::open().await;
    let imported = empty.import(&exported, &["--apply"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(imported.stdout.ends_with("All 9 changes were applied.\n"), "{}", imported.stdout);
    assert_eq!(empty.export().await, exported);
    // Prerequisites are created before their dependents.
    let progress: Vec<&str> =
        imported.stderr.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!(progress[..3], ["base", "dependent", "chain"]);
    assert_eq!(progress[8], "orphan");

    let again = empty.import(&exported, &["--apply"]).await;
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
    assert!(again.stdout.contains("\n= base: unchanged\n") || again.stdout.starts_with("= base: "));
    let summary =
        "\nFlags: 0 created, 0 changed, 9 unchanged, 0 left alone. No changes are needed.\n";
    assert!(again.stdout.ends_with(summary), "{}", again.stdout);
    assert!(empty.flags().await.iter().all(|flag| flag.version <= 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_show_changes_and_write_nothing() {
    let shop = Shop::open().await;
    shop.create(&flag("changed", &json!({"description": "old"}))).await;
    shop.create(&flag("extra", &json!({}))).await;
    let before = shop.flags().await;
    let text = document(&[
        flag("new", &json!({"enabled": true})),
        flag(
            "changed",
            &json!({"enabled": true, "targets": [
                {"kind": "identifier", "value": "user-1", "variant": "on"},
            ]}),
        ),
    ]);
    let dry = shop.import(&text, &[]).await;
    assert_eq!((dry.code, dry.stderr.as_str()), (Some(0), ""));
    let expected = "\
~ changed: changed
    description: \"old\" → \"\"
    enabled: false → true
    targets:
      + {\"kind\":\"identifier\",\"value\":\"user-1\",\"variant\":\"on\"}
? extra: not in the file, left alone
+ new: created, boolean, enabled, variants: 2

Flags: 1 created, 1 changed, 0 unchanged, 1 left alone. Nothing was written; run the command with \
--apply to apply the changes.
";
    assert_eq!(dry.stdout, expected);
    assert_eq!(shop.flags().await, before);

    let shown = shop.import(&text, &["--json"]).await;
    let shown: Json = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["applied"], false);
    let actions: Vec<_> =
        shown["flags"].as_array().unwrap().iter().map(|it| &it["action"]).collect();
    assert_eq!(actions, ["change", "not_in_document", "create"]);
    let change = json!({"field": "enabled", "before": false, "after": true});
    assert_eq!(shown["flags"][0]["changes"][1], change);
    assert_eq!(shop.flags().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_change_only_flags_that_differ() {
    let shop = Shop::open().await;
    for key in ["changed", "same", "extra"] {
        shop.create(&flag(key, &json!({}))).await;
    }
    let before = shop.flags().await;
    let flags = [flag("changed", &json!({"enabled": true})), flag("same", &json!({}))];
    let imported = shop.import(&document(&flags), &["--apply", "--json"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let shown: Json = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!(shown["applied"], true);
    let changed = shop.flag("changed").await.unwrap();
    assert_eq!((changed.enabled, changed.version), (true, 2));
    assert_eq!((changed.id, changed.created_at), (before[0].id, before[0].created_at));
    assert!(changed.updated_at > before[0].updated_at);
    assert_eq!(shop.flags().await[1..], before[1..]);

    let imported = shop.import(&document(&flags), &["--apply", "--archive-missing"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(imported.stdout.contains("~ extra: changed\n    archived: false → true\n"));
    assert!(shop.flag("extra").await.unwrap().archived_at.is_some());
    let back = [flag("extra", &json!({"archived": false, "enabled": true}))];
    assert_eq!(shop.import(&document(&back), &["--apply"]).await.code, Some(0));
    let extra = shop.flag("extra").await.unwrap();
    assert_eq!((extra.archived_at, extra.enabled, extra.version), (None, true, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_files_are_rejected_whole() {
    let shop = Shop::open().await;
    let flags = [
        flag("good", &json!({})),
        flag("bad", &json!({"offVariant": "no", "ruls": []})),
        flag("a b", &json!({})),
    ];
    let invalid = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!((invalid.code, invalid.stdout.as_str()), (Some(1), ""));
    for part in [
        "flags.json: nothing was written, because the document is invalid:\n",
        "\n  /flags/1/offVariant (flag bad): the flag has no variant with this key\n",
        "\n  /flags/1/ruls (flag bad): ",
        "\n  /flags/2/key (flag a b): a flag key starts with",
    ] {
        assert!(invalid.stderr.contains(part), "{part}: {}", invalid.stderr);
    }
    let flags = [flag("good", &json!({})), flag("lost", &on("x"))];
    let lost = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!((lost.code, lost.stdout.as_str()), (Some(1), ""));
    assert!(lost.stderr.contains("\n  lost: depends on x, which"), "{}", lost.stderr);
    assert_eq!(shop.flags().await, []);

    for (text, part) in [("{\"flags\": {}}", "the flagd format"), ("[", "this is not JSON")] {
        let rejected = shop.import(text, &[]).await;
        assert_eq!(rejected.code, Some(1));
        assert!(rejected.stderr.contains(part), "{}", rejected.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_imports_resume_on_the_next_run() {
    let shop = Shop::open().await;
    let flags: Vec<Json> = (0..80)
        .map(|index| {
            let archived = json!({"archived": index % 3 == 0, "enabled": true});
            flag(&format!("flag-{index:02}"), &archived)
        })
        .collect();
    let path = shop.write("many.json", &document(&flags));
    let arguments = ["--local", "flags", "import", "--project", "shop", "--apply"];
    let mut killed = command(shop.stack.folder.path());
    let mut killed = killed
        .args(arguments)
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(killed.stderr.take().unwrap()).lines();
    while let Some(line) = progress.next_line().await.unwrap() {
        if line.starts_with("60 of 80: ") {
            killed.kill().await.unwrap();
            break;
        }
    }
    let created = shop.flags().await.len();
    assert!((60..80).contains(&created), "{created}");

    let mut finished = command(shop.stack.folder.path());
    let finished = run(finished.args(arguments).arg(&path)).await;
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(shop.flags().await.len(), 80);
    let exported: Json = serde_json::from_str(&shop.export().await).unwrap();
    for (index, exported) in exported["flags"].as_array().unwrap().iter().enumerate() {
        assert_eq!(exported["archived"], index % 3 == 0, "{exported}");
        assert_eq!(exported["enabled"], true, "{exported}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_imports_apply_each_change_once() {
    let shop = Shop::open().await;
    let arguments = ["flags", "import", "flags.json", "--project", "shop", "--apply"];
    for (enabled, version) in [(false, 1), (true, 2)] {
        let flags = (0..20).map(|index| flag(&format!("f{index}"), &json!({"enabled": enabled})));
        shop.write("flags.json", &document(&flags.collect::<Vec<_>>()));
        let (one, other) = tokio::join!(shop.stack.run(&arguments), shop.stack.run(&arguments));
        assert_eq!((one.code, other.code), (Some(0), Some(0)), "{} {}", one.stderr, other.stderr);
        let flags = shop.flags().await;
        assert_eq!(flags.len(), 20);
        assert!(flags.iter().all(|flag| (flag.enabled, flag.version) == (enabled, version)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_do_not_overwrite_concurrent_imports() {
    let shop = Shop::open().await;
    let arguments = |file| ["flags", "import", file, "--project", "shop", "--apply"];
    for (file, description) in [("one.json", "one"), ("other.json", "other")] {
        let described = json!({"description": description});
        let flags = (0..20).map(|index| flag(&format!("f{index}"), &described));
        shop.write(file, &document(&flags.collect::<Vec<_>>()));
    }
    let (one, other) = (arguments("one.json"), arguments("other.json"));
    let (one, other) = tokio::join!(shop.stack.run(&one), shop.stack.run(&other));
    // An import that read before the other wrote must not write. One that read later shows the
    // difference.
    let reported = |text: &str| one.stderr.contains(text) || other.stderr.contains(text);
    let shown = |text: &str| one.stdout.contains(text) || other.stdout.contains(text);
    let flags = shop.flags().await;
    assert_eq!(flags.len(), 20);
    for FeatureFlag { key, version, .. } in &flags {
        let overtaken = format!("\n  {key}: was changed by another request in the meantime; ");
        assert_eq!(*version == 1, reported(&overtaken), "{key}");
        assert_eq!(*version == 2, shown(&format!("~ {key}: changed\n")), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_changes_are_reported_and_others_applied() {
    let shop = Shop::open().await;
    shop.create(&flag("base", &json!({}))).await;
    shop.create(&flag("dependent", &on("base"))).await;
    // No change can be first: `base` loses the variant that `dependent` still needs.
    let variants = json!([{"key": "new", "value": "true"}]);
    let needs_new = json!({"prerequisites": [{"flagKey": "base", "variant": "new"}]});
    let flags = [
        flag("base", &json!({"variants": variants})),
        flag("dependent", &needs_new),
        flag("other", &json!({})),
    ];
    let imported = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!(imported.code, Some(1));
    for part in [
        "error: 1 of 3 changes were applied; these failed:\n",
        "\n  base: the change would break prerequisites of dependent; ",
        "\n  dependent: /prerequisites/0/variant the flag has no variant with this key; ",
    ] {
        assert!(imported.stderr.contains(part), "{part}: {}", imported.stderr);
    }
    assert!(shop.flag("other").await.is_some());
    // The remedy: remove the prerequisite first.
    let free = [flag("dependent", &json!({}))];
    assert_eq!(shop.import(&document(&free), &["--apply"]).await.code, Some(0));
    let imported = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_changes_are_retried_after_others() {
    let shop = Shop::open().await;
    shop.create(&flag("a", &json!({}))).await;
    shop.create(&flag("b", &on("a"))).await;
    // The dependency is reversed, and a prerequisite is archived.
    shop.create(&flag("c", &json!({}))).await;
    shop.create(&flag("d", &on("c"))).await;
    let flags = [
        flag("a", &on("b")),
        flag("b", &json!({})),
        flag("c", &json!({"archived": true})),
        flag("d", &on("a")),
    ];
    let imported = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert_eq!(shop.flag("a").await.unwrap().prerequisites[0].flag_key.as_str(), "b");
    assert!(shop.flag("c").await.unwrap().archived_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_can_be_too_long_between_changes() {
    let shop = Shop::open().await;
    let name = |prefix: &str, index: u32| format!("{prefix}{index}");
    shop.create(&flag("m", &json!({}))).await;
    shop.create(&flag("u1", &on("m"))).await;
    for index in 2..=6 {
        shop.create(&flag(&name("u", index), &on(&name("u", index - 1)))).await;
    }
    // Seven flags lead to `m`, and five follow it, but the document detaches those that lead to it.
    let mut flags = vec![flag("m", &on("n1")), flag("n5", &json!({})), flag("u1", &json!({}))];
    flags.extend((1..5).map(|index| flag(&name("n", index), &on(&name("n", index + 1)))));
    let imported = shop.import(&document(&flags), &["--apply"]).await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    let last = imported.stderr.lines().last();
    assert_eq!(last, Some("7 of 7: m"), "{}", imported.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_can_be_imported_into_another_project() {
    let shop = Shop::open().await;
    shop.fill().await;
    let exported = shop.export().await;
    shop.stack.create_project("blog", "default").await;
    let mut command = command(shop.stack.folder.path());
    command.args(["--local", "flags", "import", "-", "--project", "blog", "--apply"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(exported.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let remark = "The flags were exported from project shop; importing into blog.\n";
    assert!(stderr.starts_with(remark), "{stderr}");
    let blog = shop.stack.run(&["flags", "export", "--project", "blog"]).await;
    let renamed = exported.replacen("\"project\": \"shop\"", "\"project\": \"blog\"", 1);
    assert_eq!(blog.stdout, renamed);
}

#[tokio::test(flavor = "multi_thread")]
async fn flagd_exports_report_omitted_flags() {
    let shop = Shop::open().await;
    shop.fill().await;
    let arguments = ["flags", "export", "--project", "shop", "--format", "flagd"];
    let exported = shop.stack.run(&arguments).await;
    assert_eq!(exported.code, Some(0));
    let help = shop.stack.run(&["flags", "export", "--help"]).await;
    assert!(help.stdout.contains("flagd accepts versions with a leading v."), "{}", help.stdout);
    let document: Json = serde_json::from_str(&exported.stdout).unwrap();
    let keys: Vec<_> = document["flags"].as_object().unwrap().keys().collect();
    // Disabled flags are exported as disabled, with any prerequisites.
    assert_eq!(keys, ["base", "chain", "dependent", "size", "text", "theme"]);
    for part in [
        "rules: left out, /rules/1/conditions/0: flagd has no regular expressions\n",
        "draft: left out, /variants: flagd requires at least one variant\n",
        "chain: differs, /enabled: ",
        "\n2 of 8 flags are left out.\n",
    ] {
        assert!(exported.stderr.contains(part), "{part}: {}", exported.stderr);
    }
    let live: Vec<_> =
        shop.flags().await.into_iter().filter(|flag| flag.archived_at.is_none()).collect();
    let expected = flagd::export(shop.id, &live, &[], Layout::Indented).document;
    assert_eq!(exported.stdout, expected + "\n");

    let path = shop.stack.folder.path().join("flagd.json");
    let to_file = [&arguments[..], &["--output", path.to_str().unwrap()]].concat();
    for _ in 0..2 {
        let written = shop.stack.run(&to_file).await;
        assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), exported.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_projects_and_files_are_named() {
    let shop = Shop::open().await;
    let unknown = shop.stack.run(&["flags", "export", "--project", "nothing"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    assert!(unknown.stderr.contains("there is no project `nothing`; `waymark project list`"));
    let missing = shop.stack.run(&["flags", "import", "no.json", "--project", "shop"]).await;
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.starts_with("error: no.json cannot be read: "), "{}", missing.stderr);
    let folder = ["flags", "export", "--project", "shop", "--output", "no/flags.json"];
    let unwritable = shop.stack.run(&folder).await;
    assert_eq!(unwritable.code, Some(1));
    assert!(
        unwritable.stderr.contains("no/flags.json cannot be written: "),
        "{}",
        unwritable.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_are_imported_with_flags_that_use_them() {
    let shop = Shop::open().await;
    let segment = json!({
        "key": "staff", "name": "Staff",
        "conditions": [{"attribute": "email", "operator": "ends_with", "values": ["@example.com"]}],
    });
    let in_segment = json!([{"operator": "in_segment", "values": ["staff"]}]);
    let rules = json!([{"id": "r", "conditions": in_segment, "serve": {"variant": "on"}}]);
    let document = |segments: &Json, flags: &Json| {
        let (format, version) = ("waymark-flags", 2);
        json!({"format": format, "version": version, "project": "shop", "segments": segments, "flags": flags})
            .to_string()
    };
    let flags = json!([flag("new", &json!({"rules": rules, "enabled": true}))]);

    let missing = shop.import(&document(&json!([]), &flags), &["--apply"]).await;
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("new: uses the segment staff, which"), "{}", missing.stderr);
    let both = document(&json!([segment]), &flags);
    let planned = shop.import(&both, &[]).await;
    assert!(planned.stdout.starts_with("+ segment staff: created"), "{}", planned.stdout);
    assert!(planned.stdout.contains("\nSegments: 1 created, 0 changed"), "{}", planned.stdout);
    let applied = shop.import(&both, &["--apply"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert!(applied.stdout.ends_with("All 2 changes were applied.\n"), "{}", applied.stdout);
    let again = shop.import(&shop.export().await, &["--apply"]).await;
    assert!(again.stdout.contains("= segment staff: unchanged"), "{}", again.stdout);

    // A segment that differs in the file is changed; one that is not in the file stays.
    let mut renamed = segment.clone();
    renamed["name"] = json!("Team");
    let changed = shop.import(&document(&json!([renamed]), &flags), &["--apply", "--json"]).await;
    let shown: Json = serde_json::from_str(&changed.stdout).unwrap();
    let change = json!({"field": "name", "before": "Staff", "after": "Team"});
    let expected = json!([{"key": "staff", "action": "change", "changes": [change]}]);
    assert_eq!(shown["segments"], expected);
    let left = shop.import(&document(&json!([]), &flags), &[]).await;
    assert!(
        left.stdout.contains("? segment staff: not in the file, left alone"),
        "{}",
        left.stdout
    );

    let arguments = ["flags", "export", "--project", "shop", "--format", "flagd"];
    let exported = shop.stack.run(&arguments).await;
    let exported: Json = serde_json::from_str(&exported.stdout).unwrap();
    let staff = json!({"ends_with": [{"var": "email"}, "@example.com"]});
    assert_eq!(exported["$evaluators"], json!({"staff": staff}));
}
