//! Tests every bound of requests in `openapi.yaml`: at its edge, where the request succeeds, and
//! one step beyond, where it is rejected with the right pointer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod patterns;
mod requests;
mod schemas;
mod trial;
mod values;

use std::sync::Mutex;
use std::time::Instant;
use std::{slice, thread};

use tests::app::TestApp;
use tests::operation_specs::{OPERATION_SPECS, OperationSpec};
use tokio::runtime;

use requests::bodies;
use trial::{Outcome, Side, Trial};
use values::Values;

/// Operations that are tested concurrently.
const WORKERS: usize = 2;

/// Bounds with a side that cannot be tested, or not in this way: the operation, or `""` for all,
/// the side, the reason, and the bounds, those of bodies below `/components/schemas/`.
const EXCEPTIONS: [(&str, Side, &str, &[&str]); 24] = [
    ("", Side::Edge, "cursors are signed, and none is that short", &["query:cursor/minLength"]),
    (
        "query-errors",
        Side::Edge,
        "cursors are signed",
        &[
            "ErrorsQuery/properties/cursor/minLength",
            "ErrorsQuery/properties/cursor/pattern",
            "ErrorsQuery/properties/cursor/type",
        ],
    ),
    (
        "query-error-events",
        Side::Edge,
        "cursors are signed",
        &[
            "ErrorEventsQuery/properties/cursor/minLength",
            "ErrorEventsQuery/properties/cursor/pattern",
            "ErrorEventsQuery/properties/cursor/type",
            "ErrorEventsQuery/additionalProperties",
        ],
    ),
    (
        "query-error-events",
        Side::Edge,
        "the error has no event with an arbitrary ID",
        &["ErrorEventsQuery/properties/event/type"],
    ),
    (
        "summarize-error",
        Side::Edge,
        "the range would be empty",
        &["ErrorSummaryQuery/additionalProperties"],
    ),
    (
        "summarize-error",
        Side::Edge,
        "each category can be listed once",
        &["ErrorSummaryQuery/properties/by/maxItems"],
    ),
    (
        "get-project-activity",
        Side::Edge,
        "the range would be empty",
        &["query:from/format", "query:to/format"],
    ),
    (
        "update-error",
        Side::Edge,
        "a resolution in the next release needs a status",
        &[
            "ErrorPatch/properties/resolvedIn/enum",
            "ErrorPatch/properties/status/enum",
            "ErrorPatch/properties/status/type",
        ],
    ),
    (
        "",
        Side::Beyond,
        "if it does not fit the body, the first bytes decide",
        &["header:content-encoding/enum"],
    ),
    (
        "",
        Side::Edge,
        "there are fewer types, and each can be listed once",
        &["EmailPreferencesUpdate/properties/preferences/maxItems"],
    ),
    (
        "",
        Side::Edge,
        "a repeated letter is not an address",
        &["EmailAddressUpdate/properties/email/maxLength", "MemberEmailInput/maxLength"],
    ),
    (
        "",
        Side::Beyond,
        "an entry makes it a valid rollout",
        &["NewServe/oneOf/2/properties/rollout/maxItems"],
    ),
    (
        "update-feature-flag",
        Side::Beyond,
        "an entry makes it a valid rollout",
        &["FeatureFlagPatch/properties/fallthrough/oneOf/1/properties/rollout/maxItems"],
    ),
    (
        "update-feature-flag",
        Side::Beyond,
        "without a version, it is a patch without changes",
        &["FlagRestoration/required"],
    ),
    (
        "update-feature-flag",
        Side::Beyond,
        "the rest of the fallthrough is a valid empty patch",
        &[
            "NewServe/oneOf/0/required",
            "NewServe/oneOf/1/required",
            "NewServe/oneOf/1/properties/rollout/minItems",
            "NewServe/oneOf/2/required",
        ],
    ),
    (
        "exchange-console-code",
        Side::Edge,
        "only codes of links return a key",
        &["ConsoleCode/additionalProperties", "ConsoleCode/required", "ConsoleCode/type"],
    ),
    (
        "complete-sign-in",
        Side::Edge,
        "only codes of links return a key",
        &[
            "SignInCompletion/additionalProperties",
            "SignInCompletion/properties/code/pattern",
            "SignInCompletion/properties/code/type",
            "SignInCompletion/properties/token/maxLength",
            "SignInCompletion/properties/token/minLength",
            "SignInCompletion/properties/token/type",
            "SignInCompletion/required",
            "SignInCompletion/type",
        ],
    ),
    (
        "create-api-key",
        Side::Edge,
        "there is no project with an arbitrary name",
        &[
            "NewApiKey/properties/projects/items/pattern",
            "NewApiKey/properties/projects/items/type",
        ],
    ),
    (
        "create-api-key",
        Side::Edge,
        "the time must be in the future",
        &["NewApiKey/properties/expiresAt/format"],
    ),
    (
        "",
        Side::Edge,
        "there is no project with an arbitrary name",
        &["MemberProjectsInput/items/pattern", "MemberProjectsInput/items/type"],
    ),
    (
        "create-project",
        Side::Edge,
        "the tests' project has the slug",
        &["NewProject/properties/slug/type"],
    ),
    (
        "delete-project",
        Side::Edge,
        "it must be the slug",
        &["ProjectDeletion/properties/confirm/type"],
    ),
    (
        "update-session",
        Side::Edge,
        "the user is in one organization",
        &[
            "SessionUpdate/additionalProperties",
            "SessionUpdate/properties/organization/type",
            "SessionUpdate/required",
            "SessionUpdate/type",
        ],
    ),
    (
        "complete-sign-in",
        Side::Beyond,
        "every malformed token is an invalid one",
        &[
            "SignInCompletion/properties/token/maxLength",
            "SignInCompletion/properties/token/minLength",
        ],
    ),
];

/// Tests all bounds of the remaining operations.
fn work(left: &Mutex<slice::Iter<'static, OperationSpec>>) -> Outcome {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let test = TestApp::start().await;
        let mut outcome = Outcome::default();
        loop {
            let next = left.lock().expect("not poisoned").next();
            let Some(described) = next else { return outcome };
            let values = Values::default();
            for parameter in &described.parameters {
                let trial = Trial::of_parameter(described, &values, parameter);
                trial.run(&test, &mut outcome).await;
            }
            for (schema, examples) in &bodies(described) {
                let trial = Trial::of_body(described, &values, schema, examples.clone());
                trial.run(&test, &mut outcome).await;
            }
        }
    })
}

#[test]
fn every_bound_is_enforced_exactly() {
    let started = Instant::now();
    let left = Mutex::new(OPERATION_SPECS.iter());
    let mut outcome = Outcome::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(|| work(&left))).collect();
        for worker in workers {
            outcome.merge(worker.join().expect("the worker ends"));
        }
    });
    let sent = |side: usize| outcome.sent.values().map(|it| it[side]).sum::<usize>();
    let (bounds, edge, beyond) = (outcome.sent.len(), sent(0), sent(1));
    println!("{bounds} bounds, {edge} requests at edges, {beyond} beyond, {:?}", started.elapsed());

    outcome.failures.retain(|_, messages| !messages.is_empty());
    for (operation, side, why, bounds) in EXCEPTIONS {
        for source in bounds {
            let before = outcome.failures.len();
            outcome.failures.retain(|(id, bound, at), _| {
                let bound = bound.strip_prefix("/components/schemas/").unwrap_or(bound);
                !((operation.is_empty() || operation == *id) && *source == bound && side == *at)
            });
            assert!(outcome.failures.len() < before, "{source} holds, and is no exception: {why}");
        }
    }
    let failures = outcome.failures.iter().map(|((_, source, side), messages)| {
        let first = &messages[..messages.len().min(3)];
        format!("{source}, {side:?}, {} times:\n    {}", messages.len(), first.join("\n    "))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{} bounds do not hold:\n{}", failures.len(), failures.join("\n"));
}
