//! The file format of exported flags and segments: all configured fields, without fields that the
//! server adds.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use flags::condition::Condition;
use flags::draft::FlagDraft;
use flags::segment::{MAX_SEGMENTS, SegmentDraft};
use flags::{
    FeatureFlag, FlagKey, FlagType, Prerequisite, Rule, RuleId, Segment, SegmentKey, Serve, Target,
    Variant, VariantKey,
};
use shared::json::{
    FieldError, Fields, Json, JsonPath, MAX_BODY_DEPTH, ViolationCode, Violations, array, boolean,
    number, text,
};
use shared::projects::project::{ProjectId, Slug};
use shared::timestamp::Timestamp;

/// Value of `format` in a document.
const FORMAT: &str = "waymark-flags";
/// Format version that is written, and the latest that is read.
const VERSION: u32 = 2;
/// Format version without segments, which can still be read.
const WITHOUT_SEGMENTS: u32 = 1;
/// Maximum flags in a document. Projects can have any number of archived flags.
const MAX_FLAGS: usize = 100_000;

#[derive(Serialize)]
struct Document<'f> {
    format: &'static str,
    version: u32,
    project: &'f Slug,
    segments: Vec<DescribedSegment<'f>>,
    flags: Vec<FlagSpec<'f>>,
}

/// A segment without fields that the server adds.
#[derive(Serialize)]
struct DescribedSegment<'f> {
    key: &'f SegmentKey,
    name: &'f str,
    conditions: &'f [Condition],
}

/// A flag without fields that the server adds.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FlagSpec<'f> {
    key: &'f FlagKey,
    name: &'f str,
    description: &'f str,
    #[serde(rename = "type")]
    flag_type: FlagType,
    enabled: bool,
    archived: bool,
    variants: &'f [Variant],
    off_variant: Option<&'f VariantKey>,
    fallthrough: &'f Serve,
    rules: &'f [Rule],
    targets: &'f [Target],
    prerequisites: &'f [Prerequisite],
}

impl<'f> DescribedSegment<'f> {
    fn of(Segment { key, name, conditions, .. }: &'f Segment) -> Self {
        Self { key, name, conditions }
    }
}

impl<'f> FlagSpec<'f> {
    pub(super) fn of(flag: &'f FeatureFlag) -> Self {
        Self {
            key: &flag.key,
            name: &flag.name,
            description: &flag.description,
            flag_type: flag.flag_type,
            enabled: flag.enabled,
            archived: flag.archived_at.is_some(),
            variants: &flag.variants,
            off_variant: flag.off_variant.as_ref(),
            fallthrough: &flag.fallthrough,
            rules: &flag.rules,
            targets: &flag.targets,
            prerequisites: &flag.prerequisites,
        }
    }
}

/// Returns the document of a project's flags and segments. Equal input yields equal bytes.
pub(super) fn write(
    project: &Slug,
    segments: &[Segment],
    flags: &[FeatureFlag],
) -> serde_json::Result<String> {
    let mut segments: Vec<_> = segments.iter().map(DescribedSegment::of).collect();
    segments.sort_by_key(|segment| segment.key);
    let mut flags: Vec<_> = flags.iter().map(FlagSpec::of).collect();
    flags.sort_by_key(|flag| flag.key);
    let document = Document { format: FORMAT, version: VERSION, project, segments, flags };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A parsed document.
#[derive(Debug)]
pub(super) struct ReadDocument {
    /// The slug of the exported project.
    pub(super) project: String,
    /// The segments as they would be created, with unique keys.
    pub(super) segments: Vec<Segment>,
    /// The flags, with unique keys.
    pub(super) flags: Vec<DescribedFlag>,
}

/// A flag of a document.
#[derive(Debug, Clone)]
pub(super) struct DescribedFlag {
    /// The flag as it would be created.
    pub(super) flag: FeatureFlag,
    /// `true` if the flag is archived.
    pub(super) archived: bool,
    /// Generated ids of rules that have no id in the document.
    pub(super) new_rule_ids: HashSet<RuleId>,
}

/// The reason why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("this is not JSON: {0}")]
    Malformed(#[from] shared::json::Malformed),
    #[error(
        "this file is not a `waymark flags export` document: its `format` is not \"{FORMAT}\" (the \
         flagd format can be exported, not imported)"
    )]
    OtherFormat,
    #[error(
        "the document has version {0}, which this command does not support; use the `waymark` \
         version that wrote it"
    )]
    OtherVersion(String),
    #[error("{0}")]
    Invalid(FieldErrors),
}

/// The errors in a document, with their JSON pointers.
#[derive(Debug, Default)]
pub(crate) struct FieldErrors {
    lines: Vec<String>,
    not_listed: usize,
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "nothing was written, because the document is invalid:")?;
        for line in &self.lines {
            write!(formatter, "\n  {line}")?;
        }
        match self.not_listed {
            0 => Ok(()),
            more => write!(formatter, "\n  and {more} more"),
        }
    }
}

impl FieldErrors {
    /// Adds violations of the value at a path, with the key of the flag or segment if known.
    fn add(&mut self, path: &JsonPath<'_>, key: Option<(&str, &str)>, violations: &Violations) {
        for violation in violations.listed() {
            let name = key.map(|(what, key)| format!(" ({what} {key})")).unwrap_or_default();
            let line = format!("{path}{}{name}: {}", violation.pointer, violation.message);
            // A key with a line break must not look like a second error.
            self.lines.push(line.replace('\n', "\\n"));
        }
        self.not_listed += violations.count() - violations.listed().len();
    }
}

/// Reads a document. Each flag must be a valid body of create-feature-flag. References to other
/// flags are not checked.
pub(super) fn read(
    text: &str,
    project: ProjectId,
    now: Timestamp,
    mut new_id: impl FnMut() -> Uuid,
) -> Result<ReadDocument, DocumentError> {
    let json = Json::parse(text, MAX_BODY_DEPTH)?;
    if json.member_text("format") != Some(FORMAT) {
        return Err(DocumentError::OtherFormat);
    }
    if let Some(Json::Number(version)) = json.member("version")
        && ![VERSION, WITHOUT_SEGMENTS]
            .map(|known| known.to_string())
            .contains(&(*version).to_owned())
    {
        return Err(DocumentError::OtherVersion((*version).to_owned()));
    }
    let mut errors = FieldErrors::default();
    let mut violations = Violations::default();
    let document = read_fields(&json, &mut violations);
    errors.add(&JsonPath::Root, None, &violations);
    let Some(DocumentFields { project: project_slug, segments, flags }) = document else {
        return Err(DocumentError::Invalid(errors));
    };
    let mut list = List { of: "segment", name: "segments", errors: &mut errors };
    let read = |item: &Json<'_>| SegmentDraft::read(item)?.into_segment(project, now, new_id());
    let segments = list.read(&segments, read, |segment| segment.key.as_str().to_owned());
    let mut list = List { of: "flag", name: "flags", errors: &mut errors };
    let read = |item: &Json<'_>| read_flag(item, project, now, &mut new_id);
    let flags = list.read(&flags, read, |flag| flag.flag.key.as_str().to_owned());
    if errors.lines.is_empty() {
        Ok(ReadDocument { project: project_slug, segments, flags })
    } else {
        Err(DocumentError::Invalid(errors))
    }
}

/// A list of a document, with the errors in its items.
struct List<'l> {
    of: &'static str,
    name: &'static str,
    errors: &'l mut FieldErrors,
}

impl List<'_> {
    /// Returns the valid items. Each key must be unique.
    fn read<T>(
        &mut self,
        items: &[&Json<'_>],
        mut read: impl FnMut(&Json<'_>) -> Result<T, Violations>,
        key_of: impl Fn(&T) -> String,
    ) -> Vec<T> {
        let list = JsonPath::Root.member(self.name);
        let mut seen = HashSet::new();
        let mut found = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = list.item(index);
            match read(item) {
                Ok(item) if seen.insert(key_of(&item)) => found.push(item),
                Ok(item) => {
                    let mut twice = Violations::default();
                    let message =
                        format!("the document has another {} with this key; keep one", self.of);
                    twice.note(&JsonPath::Root.member("key"), ViolationCode::Duplicate, message);
                    self.errors.add(&path, Some((self.of, &key_of(&item))), &twice);
                }
                Err(violations) => {
                    let key = item.member_text("key").map(|key| (self.of, key));
                    self.errors.add(&path, key, &violations);
                }
            }
        }
        found
    }
}

/// The fields of a document.
struct DocumentFields<'j, 'a> {
    project: String,
    segments: Vec<&'j Json<'a>>,
    flags: Vec<&'j Json<'a>>,
}

/// Reads the project's slug, the segments and the flags.
fn read_fields<'j, 'a>(
    json: &'j Json<'a>,
    violations: &mut Violations,
) -> Option<DocumentFields<'j, 'a>> {
    Fields::read(json, &JsonPath::Root, violations, |fields, violations| {
        // The caller has checked the value.
        fields.get("format");
        fields.required("version", violations, number(|_| Ok(())));
        let unchecked = |slug: &str| Ok::<_, FieldError>(slug.to_owned());
        let project = fields.required("project", violations, text(unchecked));
        let most = usize::try_from(MAX_SEGMENTS).unwrap_or(usize::MAX);
        let segments = array(most, |json, _: &JsonPath<'_>, _: &mut Violations| Some(json));
        let segments = fields.optional("segments", violations, segments).or_default();
        let flags = array(MAX_FLAGS, |json, _: &JsonPath<'_>, _: &mut Violations| Some(json));
        let flags = fields.required("flags", violations, flags);
        Some(DocumentFields { project: project?, segments: segments?, flags: flags? })
    })
}

fn read_flag(
    json: &Json<'_>,
    project: ProjectId,
    now: Timestamp,
    mut new_id: impl FnMut() -> Uuid,
) -> Result<DescribedFlag, Violations> {
    let (archived, described) = split_archived(json)?;
    let draft = FlagDraft::read(&described)?;
    let mut new_ids = HashSet::new();
    let flag = draft.into_flag(project, now, || {
        let id = new_id();
        new_ids.insert(id.to_string());
        id
    })?;
    let ids = flag.rules.iter().map(|rule| &rule.id);
    let new_rule_ids = ids.filter(|id| new_ids.contains(id.as_str())).cloned().collect();
    Ok(DescribedFlag { flag, archived, new_rule_ids })
}

/// Returns `archived`, and the remaining flag as a create-feature-flag body.
fn split_archived<'a>(json: &Json<'a>) -> Result<(bool, Json<'a>), Violations> {
    const ARCHIVED: &str = "archived";
    let Json::Object(members) = json else { return Ok((false, json.clone())) };
    let (archived, rest): (Vec<_>, Vec<_>) =
        members.iter().cloned().partition(|(name, _)| name == ARCHIVED);
    let archived = Json::Object(archived);
    let mut violations = Violations::default();
    let archived =
        Fields::read(&archived, &JsonPath::Root, &mut violations, |fields, violations| {
            fields.optional(ARCHIVED, violations, boolean).or_default()
        });
    Ok((violations.into_result(archived)?, Json::Object(rest)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(document: &Value) -> Result<ReadDocument, DocumentError> {
        let project = ProjectId::new(Uuid::from_u128(1));
        let mut ids = 0;
        let new_id = || {
            ids += 1;
            Uuid::from_u128(ids)
        };
        read(&document.to_string(), project, Timestamp::from_millis(0), new_id)
    }

    fn document(flags: &Value) -> Value {
        json!({"format": "waymark-flags", "version": 2, "project": "shop", "flags": flags})
    }

    fn message(document: &Value) -> String {
        parse(document).unwrap_err().to_string()
    }

    #[test]
    fn written_documents_are_read_unchanged() {
        let rule = json!({
            "id": "staff", "conditions": [{"attribute": "a", "operator": "exists"}],
            "serve": {"rollout": [{"variant": "on", "weight": 0.5}, {"variant": "off", "weight": 1}]},
        });
        let flags = json!([
            {"key": "b", "name": "B", "type": "boolean", "rules": [rule], "archived": true},
            {"key": "a", "name": "A", "type": "string", "description": "x\ny"},
        ]);
        let conditions = json!([{"attribute": "a", "operator": "exists"}]);
        let segment = |key| json!({"key": key, "name": "S", "conditions": conditions});
        let mut whole = document(&flags);
        whole["segments"] = json!([segment("z"), segment("a")]);
        let read = parse(&whole).unwrap();
        assert_eq!(read.project, "shop");
        assert_eq!(read.flags.iter().map(|it| it.archived).collect::<Vec<_>>(), [true, false]);
        let flags: Vec<_> = read.flags.into_iter().map(|it| it.flag).collect();
        let slug = Slug::parse("shop").unwrap();
        let written = write(&slug, &read.segments, &flags).unwrap();
        let keys: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(
            (&keys["flags"][0]["key"], &keys["flags"][1]["key"]),
            (&json!("a"), &json!("b"))
        );
        let ReadDocument { segments, flags, .. } = parse(&keys).unwrap();
        let flags: Vec<_> = flags.into_iter().map(|it| it.flag).collect();
        assert_eq!(write(&slug, &segments, &flags).unwrap(), written);
    }

    #[test]
    fn only_rules_without_an_id_get_a_new_one() {
        let rules =
            json!([{"id": "mine", "serve": {"variant": "on"}}, {"serve": {"variant": "off"}}]);
        let flags = json!([{"key": "a", "name": "A", "type": "boolean", "rules": rules}]);
        let read = parse(&document(&flags)).unwrap();
        let [described] = read.flags.as_slice() else { unreachable!() };
        let is_new = |rule: &Rule| described.new_rule_ids.contains(&rule.id);
        let is_new: Vec<bool> = described.flag.rules.iter().map(is_new).collect();
        assert_eq!(is_new, [false, true]);
    }

    #[test]
    fn all_errors_are_reported_with_pointers() {
        let errors = message(&document(&json!([
            {"key": "a", "name": "A", "type": "boolean", "archived": 1},
            {"key": "b", "name": "", "type": "boolean", "offVariant": "no", "version": 3},
            7,
            {"key": "c", "name": "C", "type": "boolean"},
            {"key": "c", "name": "C", "type": "boolean"},
        ])));
        for start in [
            "/flags/0/archived (flag a): ",
            "/flags/1/name (flag b): ",
            "/flags/1/offVariant (flag b): ",
            "/flags/1/version (flag b): ",
            "/flags/2: ",
            "/flags/4/key (flag c): ",
        ] {
            assert!(errors.contains(&format!("\n  {start}")), "{start}: {errors}");
        }
        assert_eq!(errors.lines().count(), 7, "{errors}");
        let mut segments = document(&json!([]));
        segments["segments"] = json!([{"key": "a"}, {"key": "b", "name": "B", "conditions": []}]);
        let errors = message(&segments);
        for start in ["/segments/0/name (segment a): ", "/segments/1/conditions (segment b): "] {
            assert!(errors.contains(&format!("\n  {start}")), "{start}: {errors}");
        }
        let mut other = document(&json!([]));
        other["more"] = json!(1);
        assert!(message(&other).contains("\n  /more: "), "{}", message(&other));
        assert!(message(&json!({"format": "waymark-flags"})).contains("\n  /flags: "));
    }

    #[test]
    fn unsupported_documents_are_rejected() {
        assert!(message(&json!({"flags": {}})).contains("the flagd format"));
        let mut newer = document(&json!([]));
        newer["version"] = json!(3);
        assert!(message(&newer).contains("has version 3"), "{}", message(&newer));
        newer["version"] = json!(1);
        assert_eq!(parse(&newer).unwrap().segments, []);
        let project = ProjectId::new(Uuid::nil());
        let broken = read("{", project, Timestamp::from_millis(0), Uuid::nil).unwrap_err();
        assert!(broken.to_string().starts_with("this is not JSON: "), "{broken}");
    }
}
