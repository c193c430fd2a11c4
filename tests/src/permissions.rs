//! What functions do with tables, held against what `template.yaml` allows their roles.
//!
//! A client of [`crate::app`] notes what is sent to DynamoDB while a function works. Every test that
//! calls an operation so proves that its function may do what it does; the scenarios of
//! `tests/tests/permissions` prove that it may do nothing more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemInput;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemInput;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemInput;
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::put_item::PutItemInput;
use aws_sdk_dynamodb::operation::query::QueryInput;
use aws_sdk_dynamodb::operation::scan::ScanInput;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsInput;
use aws_sdk_dynamodb::operation::update_item::UpdateItemInput;
use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, PutRequest, TransactWriteItem, WriteRequest,
};
use aws_smithy_runtime_api::client::interceptors::context::Input;
use local::environment::table_prefix;
use local::template::{STACK_NAME, function_of_code};
use yaml_serde::Value as Yaml;

/// An action on a table, or on one of its indexes; or [`WRITE`] on a kind of a table's partition keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// As policies name it, without the service: `GetItem`.
    pub action: String,
    /// The table's name without its prefix, perhaps with `/index/` and the index's name. For [`WRITE`], the
    /// table and the pattern of its partition keys: `errors/log#*`.
    pub resource: String,
}

/// Action of a permission: writes of items with one kind of partition key.
const WRITE: &str = "Write";

/// The partition keys that begin with the kind of the item.
const KEYS_WITH_KINDS: [&str; 3] = ["pk", "window", "scope"];

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.action, self.resource)
    }
}

/// Permissions by the function that has or uses them.
pub type ByFunction = BTreeMap<String, BTreeSet<Permission>>;

tokio::task_local! {
    /// What the function that is at work has asked DynamoDB for.
    static ASKED: Arc<Mutex<BTreeSet<Permission>>>;
    /// What functions have used since somebody began to collect it.
    static USED: Arc<Mutex<ByFunction>>;
}

/// What `template.yaml` allows each function.
pub static ALLOWED: LazyLock<ByFunction> = LazyLock::new(|| {
    let path = crate::workspace().join("template.yaml");
    let text = std::fs::read_to_string(path).expect("template.yaml is there");
    allowed(&yaml_serde::from_str(&text).expect("template.yaml is YAML"))
});

/// Lets a function work. Panics if it does anything that `template.yaml` does not allow it.
pub async fn checked<W: Future>(function: &str, work: W) -> W::Output {
    let asked = Arc::default();
    let output = ASKED.scope(Arc::clone(&asked), work).await;
    let asked = std::mem::take(&mut *lock(&asked));
    let allowed = ALLOWED.get(function).unwrap_or_else(|| panic!("no function {function}"));
    let refused: Vec<String> = asked.difference(allowed).map(Permission::to_string).collect();
    assert!(refused.is_empty(), "template.yaml does not allow {function}: {}", refused.join(", "));
    // Nobody may be collecting.
    let _ = USED.try_with(|used| {
        lock(used).entry(function.to_owned()).or_default().extend(asked);
    });
    output
}

/// What functions use while something goes on.
pub async fn used_during(scenario: impl Future<Output = ()>) -> ByFunction {
    let used = Arc::default();
    USED.scope(Arc::clone(&used), scenario).await;
    std::mem::take(&mut *lock(&used))
}

/// Notes a request to DynamoDB, if it comes from a function at work.
pub(crate) fn note(request: &Input) {
    let _ = ASKED.try_with(|asked| lock(asked).extend(needed(request)));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The permissions that a request needs (Service Authorization Reference, "Actions, resources, and
/// condition keys for Amazon DynamoDB").
fn needed(request: &Input) -> BTreeSet<Permission> {
    if let Some(get) = request.downcast_ref::<GetItemInput>() {
        return [permission("GetItem", get.table_name().expect("it names a table"))].into();
    }
    macro_rules! writes_of_one_item {
        ($($action:literal $request:ty, $item:ident);+) => {
            $(if let Some(request) = request.downcast_ref::<$request>() {
                let table = request.table_name().expect("it names a table");
                let item = request.$item().expect("it names an item");
                return write($action, table, [item]).collect();
            })+
        };
    }
    writes_of_one_item!(
        "PutItem" PutItemInput, item; "UpdateItem" UpdateItemInput, key; "DeleteItem" DeleteItemInput, key
    );
    if let Some(query) = request.downcast_ref::<QueryInput>() {
        let table = query.table_name().expect("it names a table");
        let index = query.index_name().map(|index| format!("/index/{index}")).unwrap_or_default();
        return [permission("Query", &format!("{table}{index}"))].into();
    }
    if let Some(scan) = request.downcast_ref::<ScanInput>() {
        let table = scan.table_name().expect("it names a table");
        let index = scan.index_name().map(|index| format!("/index/{index}")).unwrap_or_default();
        return [permission("Scan", &format!("{table}{index}"))].into();
    }
    if let Some(batch) = request.downcast_ref::<BatchGetItemInput>() {
        let tables = batch.request_items().into_iter().flatten();
        return tables.map(|(table, _)| permission("BatchGetItem", table)).collect();
    }
    if let Some(batch) = request.downcast_ref::<BatchWriteItemInput>() {
        let tables = batch.request_items().into_iter().flatten();
        return tables.flat_map(|(table, writes)| of_batch(table, writes)).collect();
    }
    if let Some(transaction) = request.downcast_ref::<TransactWriteItemsInput>() {
        return transaction.transact_items().iter().flat_map(of_action).collect();
    }
    panic!("nobody has told which permissions this needs: {request:?}");
}

/// The permissions that a batch of writes to one table needs.
fn of_batch(table: &str, writes: &[WriteRequest]) -> Vec<Permission> {
    let items = writes.iter().filter_map(|request| {
        let put = request.put_request().map(PutRequest::item);
        put.or_else(|| request.delete_request().map(DeleteRequest::key))
    });
    write("BatchWriteItem", table, items).collect()
}

/// A transaction needs the permissions of its actions.
fn of_action(action: &TransactWriteItem) -> Vec<Permission> {
    match action {
        TransactWriteItem { put: Some(put), .. } => {
            write("PutItem", &put.table_name, [&put.item]).collect()
        }
        TransactWriteItem { update: Some(it), .. } => {
            write("UpdateItem", &it.table_name, [&it.key]).collect()
        }
        TransactWriteItem { delete: Some(it), .. } => {
            write("DeleteItem", &it.table_name, [&it.key]).collect()
        }
        TransactWriteItem { condition_check: Some(it), .. } => {
            vec![permission("ConditionCheckItem", &it.table_name)]
        }
        _ => panic!("an action of a transaction is one of four"),
    }
}

/// The permissions for an action that writes items of a table: the action, and the kinds of the items.
fn write<'i>(
    action: &str,
    table: &str,
    items: impl IntoIterator<Item = &'i HashMap<String, AttributeValue>>,
) -> impl Iterator<Item = Permission> {
    let key = |item: &HashMap<String, AttributeValue>| {
        KEYS_WITH_KINDS.iter().find_map(|key| item.get(*key)?.as_s().ok().cloned())
    };
    let kind = |key: String| match key.split_once('#') {
        // The scope of a stored response has no kind: it begins with the id of an API key and `/`.
        _ if key.split('#').next().is_some_and(|kind| kind.contains('/')) => None,
        Some((kind, _)) => Some(format!("{table}/{kind}#*")),
        None => Some(format!("{table}/{key}")),
    };
    let kinds = items.into_iter().filter_map(key).filter_map(kind);
    let kinds = kinds.map(|kind| permission(WRITE, &kind)).collect::<Vec<_>>();
    [permission(action, table)].into_iter().chain(kinds)
}

fn permission(action: &str, resource: &str) -> Permission {
    let prefix = table_prefix();
    let resource = resource.strip_prefix(&prefix).unwrap_or_else(|| panic!("no table {resource}"));
    Permission { action: action.to_owned(), resource: resource.to_owned() }
}

fn allowed(template: &Yaml) -> ByFunction {
    let resources = template["Resources"].as_mapping().expect("a template has resources");
    let functions = resources.values().filter(|it| is_a(it, "AWS::Serverless::Function"));
    functions
        .map(|function| {
            let properties = &function["Properties"];
            let code = properties["CodeUri"].as_str().expect("a function has code");
            let name = function_of_code(code).to_owned();
            // What a role has under a condition is about other services, not about tables;
            // tests/contract/check_template.py sees to that.
            let policies = properties.get("Policies").into_iter().flat_map(list);
            let policies = policies.filter(|it| !is_conditional(it));
            (name, policies.flat_map(|it| of_policy(template, it)).collect())
        })
        .collect()
}

fn is_a(resource: &Yaml, kind: &str) -> bool {
    resource["Type"].as_str() == Some(kind)
}

fn is_conditional(policy: &Yaml) -> bool {
    matches!(policy, Yaml::Tagged(tagged) if tagged.tag == "!If")
}

/// A list, or the only item in its place.
fn list(value: &Yaml) -> impl Iterator<Item = &Yaml> {
    value.as_sequence().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

fn of_policy(template: &Yaml, policy: &Yaml) -> BTreeSet<Permission> {
    let (mut permissions, mut on_restored) = (BTreeSet::new(), BTreeSet::new());
    for statement in list(&policy["Statement"]) {
        assert_eq!(statement["Effect"].as_str(), Some("Allow"));
        let keys = leading_keys(&statement["Condition"]);
        for resource in list(&statement["Resource"]) {
            let resource = table_or_index(template, resource);
            let (of, resource) = match resource.replacen(RESTORED, "", 1) {
                own if own == resource => (&mut permissions, own),
                source => (&mut on_restored, source),
            };
            for action in list(&statement["Action"]) {
                let action = action.as_str().and_then(|action| action.strip_prefix("dynamodb:"));
                let action = action.expect("functions use nothing but DynamoDB").to_owned();
                of.insert(Permission { action, resource: resource.clone() });
            }
            of.extend(keys.iter().map(|key| Permission {
                action: WRITE.to_owned(),
                resource: format!("{resource}/{key}"),
            }));
        }
    }
    assert_eq!(permissions, on_restored, "tables that were restored stand in for the others");
    permissions
}

/// The partition keys that a condition limits a statement to.
fn leading_keys(condition: &Yaml) -> Vec<&str> {
    const KEY: &str = "dynamodb:LeadingKeys";
    if condition.is_null() {
        return Vec::new();
    }
    assert_eq!(condition["Null"][KEY].as_str(), Some("false"), "no key must not satisfy it");
    let keys = list(&condition["ForAllValues:StringLike"][KEY]).map(Yaml::as_str);
    keys.map(|key| key.expect("a pattern is text")).collect()
}

/// What follows the names of tables that were restored.
const RESTORED: &str = "-restored-*";

/// The table or index that an expression names: `!GetAtt Table.Arn`, `!Sub "${Table.Arn}/index/I"`, or of
/// those that were restored from it.
fn table_or_index(template: &Yaml, resource: &Yaml) -> String {
    let Yaml::Tagged(tagged) = resource else { panic!("{resource:?} is no table") };
    let text = tagged.value.as_str().expect("an expression is text");
    let (table, index) = match tagged.tag.to_string().as_str() {
        "!GetAtt" => (text.strip_suffix(".Arn"), ""),
        "!Sub" => {
            let parts = text.strip_prefix("${").and_then(|text| text.split_once(".Arn}"));
            parts.map_or((None, ""), |(table, index)| (Some(table), index))
        }
        _ => (None, ""),
    };
    let table = &template["Resources"][table.unwrap_or_else(|| panic!("{text} is no table"))];
    let Yaml::Tagged(name) = &table["Properties"]["TableName"] else {
        panic!("{text} has no name")
    };
    let name = name.value.as_str().expect("a name is text");
    let name = name.replace("${AWS::StackName}", STACK_NAME);
    format!("{}{index}", name.strip_prefix(&table_prefix()).expect("tables have a prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::{ConditionCheck, Delete, KeysAndAttributes, Put};

    fn needed_by(request: &Input) -> Vec<String> {
        needed(request).iter().map(Permission::to_string).collect()
    }

    #[test]
    fn a_request_needs_its_action_on_each_of_its_tables() {
        let query = QueryInput::builder().table_name("waymark-errors").index_name("byStatus");
        let query = Input::erase(query.build().unwrap());
        assert_eq!(needed_by(&query), ["Query on errors/index/byStatus"]);

        let keys = || KeysAndAttributes::builder().set_keys(Some(Vec::new())).build().unwrap();
        let batch = BatchGetItemInput::builder()
            .request_items("waymark-projects", keys())
            .request_items("waymark-api-keys", keys());
        assert_eq!(
            needed_by(&Input::erase(batch.build().unwrap())),
            ["BatchGetItem on api-keys", "BatchGetItem on projects"]
        );
    }

    #[test]
    fn a_transaction_needs_the_permissions_of_its_actions() {
        let (errors, answers) = ("waymark-errors", "waymark-idempotency");
        let item = || Some(HashMap::new());
        let put = Put::builder().table_name(errors).set_item(item()).build().unwrap();
        let check = ConditionCheck::builder().table_name(errors).condition_expression("x");
        let check = check.set_key(item()).build().unwrap();
        let delete = Delete::builder().table_name(answers).set_key(item()).build().unwrap();
        let transaction = TransactWriteItemsInput::builder()
            .transact_items(TransactWriteItem::builder().put(put).build())
            .transact_items(TransactWriteItem::builder().condition_check(check).build())
            .transact_items(TransactWriteItem::builder().delete(delete).build());
        assert_eq!(
            needed_by(&Input::erase(transaction.build().unwrap())),
            ["ConditionCheckItem on errors", "DeleteItem on idempotency", "PutItem on errors"]
        );
    }

    #[test]
    fn a_policy_allows_its_actions_on_its_resources() {
        let template = r#"
Resources:
  Things:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-things"}
  ListThings:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/package/list-things.zip
      Policies:
        - Statement:
            - Effect: Allow
              Action: [dynamodb:Query, dynamodb:GetItem]
              Resource:
                - !GetAtt Things.Arn
                - !Sub "${Things.Arn}-restored-*"
                - !Sub "${Things.Arn}/index/byAge"
                - !Sub "${Things.Arn}-restored-*/index/byAge"
"#;
        let allowed = allowed(&yaml_serde::from_str(template).unwrap());
        let listed: Vec<String> =
            allowed["list-things"].iter().map(Permission::to_string).collect();
        assert_eq!(
            listed,
            [
                "GetItem on things",
                "GetItem on things/index/byAge",
                "Query on things",
                "Query on things/index/byAge",
            ]
        );
    }
}
