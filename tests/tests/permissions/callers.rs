//! Callers, and the projects that they may see.

use shared::projects::api_key::ApiKeyRecord;
use tests::app::TestApp;
use tests::call::Call;

use super::{answered, assert_uses_all};

pub(super) const FUNCTIONS: [&str; 2] = [get_caller::OPERATION.name, list_projects::OPERATION.name];

#[tokio::test]
async fn functions_of_callers_may_do_what_they_do_and_no_more() {
    let test = TestApp::start().await;
    let projects = Some([test.project_id].into());
    let bound = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let scenario = Box::pin(async {
        for key in [&test.key, &bound] {
            answered(&test, Call::of(&get_caller::OPERATION).key(key), 200).await;
            answered(&test, Call::of(&list_projects::OPERATION).key(key), 200).await;
        }
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
