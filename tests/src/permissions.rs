//! Checks the table access of functions against the roles in `template.yaml`.
//!
//! A client of [`crate::app`] records the requests to DynamoDB while a function runs. So every test
//! that calls an operation proves that its function has the required permissions. The scenarios of
//! `tests/tests/permissions` prove that it has no others.

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

/// An action on a table or index, or [`WRITE`] on a kind of partition key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The action in policies, without the service: `GetItem`.
    pub action: String,
    /// The table's name without prefix, optionally with `/index/` and the index's name. For
    /// [`WRITE`], the table and the pattern of its partition keys: `errors/log#*`.
    pub resource: String,
}

/// Action of a permission to write items with one kind of partition key.
const WRITE: &str = "Write";

/// Partition key attributes that begin with the item's kind.
const KEYS_WITH_KINDS: [&str; 3] = ["pk", "window", "scope"];

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} on {}", self.action, self.resource)
    }
}

/// Permissions by function.
pub type ByFunction = BTreeMap<String, BTreeSet<Permission>>;

tokio::task_local! {
    /// Permissions that the running function needed.
    static REQUESTED: Arc<Mutex<BTreeSet<Permission>>>;
    /// Permissions that functions needed since collection began.
    static USED: Arc<Mutex<ByFunction>>;
}

/// Permissions of each function in `template.yaml`.
pub static ALLOWED: LazyLock<ByFunction> = LazyLock::new(|| {
    let path = crate::workspace().join("template.yaml");
    let text = std::fs::read_to_string(path).expect("template.yaml is readable");
    allowed(&yaml_serde::from_str(&text).expect("template.yaml is YAML"))
});

/// Runs a function. Panics if it needs a permission that `template.yaml` does not grant.
pub async fn checked<W: Future>(function: &str, work: W) -> W::Output {
    let requested = Arc::default();
    let output = REQUESTED.scope(Arc::clone(&requested), work).await;
    let requested = std::mem::take(&mut *lock(&requested));
    let allowed = ALLOWED.get(function).unwrap_or_else(|| panic!("no function {function}"));
    let missing: Vec<String> = requested.difference(allowed).map(Permission::to_string).collect();
    assert!(missing.is_empty(), "template.yaml does not allow {function}: {}", missing.join(", "));
    // The error means that permissions are not being collected.
    let _ = USED.try_with(|used| {
        lock(used).entry(function.to_owned()).or_default().extend(requested);
    });
    output
}

/// Returns the permissions that functions need during a scenario.
pub async fn used_during(scenario: impl Future<Output = ()>) -> ByFunction {
    let used = Arc::default();
    USED.scope(Arc::clone(&used), scenario).await;
    std::mem::take(&mut *lock(&used))
}

/// Records a request to DynamoDB, if a function sends it.
pub(crate) fn note(request: &Input) {
    let _ = REQUESTED.try_with(|requested| lock(requested).extend(needed(request)));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the permissions that a request needs (Service Authorization Reference, "Actions,
/// resources, and condition keys for Amazon DynamoDB").
fn needed(request: &Input) -> BTreeSet<Permission> {
    if let Some(get) = request.downcast_ref::<GetItemInput>() {
        return [permission("GetItem", get.table_name().expect("the request names a table"))]
            .into();
    }
    macro_rules! writes_of_one_item {
        ($($action:literal $request:ty, $item:ident);+) => {
            $(if let Some(request) = request.downcast_ref::<$request>() {
                let table = request.table_name().expect("the request names a table");
                let item = request.$item().expect("the request names an item");
                return write($action, table, [item]).collect();
            })+
        };
    }
    writes_of_one_item!(
        "PutItem" PutItemInput, item; "UpdateItem" UpdateItemInput, key; "DeleteItem" DeleteItemInput, key
    );
    if let Some(query) = request.downcast_ref::<QueryInput>() {
        let table = query.table_name().expect("the request names a table");
        let index = query.index_name().map(|index| format!("/index/{index}")).unwrap_or_default();
        return [permission("Query", &format!("{table}{index}"))].into();
    }
    if let Some(scan) = request.downcast_ref::<ScanInput>() {
        let table = scan.table_name().expect("the request names a table");
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
    panic!("unknown permissions of this request: {request:?}");
}

/// Returns the permissions for a batch of writes to one table.
fn of_batch(table: &str, writes: &[WriteRequest]) -> Vec<Permission> {
    let items = writes.iter().filter_map(|request| {
        let put = request.put_request().map(PutRequest::item);
        put.or_else(|| request.delete_request().map(DeleteRequest::key))
    });
    write("BatchWriteItem", table, items).collect()
}

/// Returns the permissions for an action of a transaction.
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
        _ => panic!("unknown transaction action"),
    }
}

/// Returns the permissions for an action that writes items of a table: the action, and the items'
/// kinds.
fn write<'i>(
    action: &str,
    table: &str,
    items: impl IntoIterator<Item = &'i HashMap<String, AttributeValue>>,
) -> impl Iterator<Item = Permission> {
    let key = |item: &HashMap<String, AttributeValue>| {
        KEYS_WITH_KINDS.iter().find_map(|key| item.get(*key)?.as_s().ok().cloned())
    };
    let kind = |key: String| match key.split_once('#') {
        // The scope of a stored response has no kind: it begins with an API key id and `/`.
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
    let resources = template["Resources"].as_mapping().expect("the template has resources");
    let functions = resources.values().filter(|it| is_a(it, "AWS::Serverless::Function"));
    functions
        .map(|function| {
            let properties = &function["Properties"];
            let code = properties["CodeUri"].as_str().expect("the function has code");
            let name = function_of_code(code).to_owned();
            // Conditional policies concern other services, not tables.
            // tests/contract/check_template.py checks that.
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

/// Returns the items of a list, or a single item.
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
                let action = action.expect("the policy is for DynamoDB").to_owned();
                of.insert(Permission { action, resource: resource.clone() });
            }
            of.extend(keys.iter().map(|key| Permission {
                action: WRITE.to_owned(),
                resource: format!("{resource}/{key}"),
            }));
        }
    }
    assert_eq!(permissions, on_restored, "restored tables have the same permissions");
    permissions
}

/// Returns the partition keys to which a condition limits a statement.
fn leading_keys(condition: &Yaml) -> Vec<&str> {
    const KEY: &str = "dynamodb:LeadingKeys";
    if condition.is_null() {
        return Vec::new();
    }
    assert_eq!(
        condition["Null"][KEY].as_str(),
        Some("false"),
        "requests without a key must not satisfy the condition"
    );
    let keys = list(&condition["ForAllValues:StringLike"][KEY]).map(Yaml::as_str);
    keys.map(|key| key.expect("the pattern is text")).collect()
}

/// Suffix of restored tables.
const RESTORED: &str = "-restored-*";

/// Returns the table or index of an expression: `!GetAtt Table.Arn`, `!Sub "${Table.Arn}/index/I"`,
/// or one for restored tables.
fn table_or_index(template: &Yaml, resource: &Yaml) -> String {
    let Yaml::Tagged(tagged) = resource else { panic!("{resource:?} is not a table") };
    let text = tagged.value.as_str().expect("the expression is text");
    let (table, index) = match tagged.tag.to_string().as_str() {
        "!GetAtt" => (text.strip_suffix(".Arn"), ""),
        "!Sub" => {
            let parts = text.strip_prefix("${").and_then(|text| text.split_once(".Arn}"));
            parts.map_or((None, ""), |(table, index)| (Some(table), index))
        }
        _ => (None, ""),
    };
    let table = &template["Resources"][table.unwrap_or_else(|| panic!("{text} is not a table"))];
    let Yaml::Tagged(name) = &table["Properties"]["TableName"] else {
        panic!("{text} has no name")
    };
    let name = name.value.as_str().expect("the name is text");
    let name = name.replace("${AWS::StackName}", STACK_NAME);
    format!("{}{index}", name.strip_prefix(&table_prefix()).expect("the table has the prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_dynamodb::types::{ConditionCheck, Delete, KeysAndAttributes, Put};

    fn needed_by(request: &Input) -> Vec<String> {
        needed(request).iter().map(Permission::to_string).collect()
    }

    #[test]
    fn requests_need_their_action_on_each_table() {
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
    fn transactions_need_the_permissions_of_their_actions() {
        let (errors, responses) = ("waymark-errors", "waymark-idempotency");
        let item = || Some(HashMap::new());
        let put = Put::builder().table_name(errors).set_item(item()).build().unwrap();
        let check = ConditionCheck::builder().table_name(errors).condition_expression("x");
        let check = check.set_key(item()).build().unwrap();
        let delete = Delete::builder().table_name(responses).set_key(item()).build().unwrap();
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
    fn policies_allow_their_actions_on_their_resources() {
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
