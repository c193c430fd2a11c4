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

/// Arbitrary text is not a valid cursor.
const SEALED: &str = "cursors are signed";

/// Bounds with a side that cannot be tested, or not in this way: by operation, or `""` for all.
const EXCEPTIONS: [(&str, &str, Side, &str); 51] = [
    ("", "query:cursor/minLength", Side::Edge, "cursors are signed, and none is that short"),
    (
        "query-errors",
        "/components/schemas/ErrorsQuery/properties/cursor/minLength",
        Side::Edge,
        SEALED,
    ),
    (
        "query-errors",
        "/components/schemas/ErrorsQuery/properties/cursor/pattern",
        Side::Edge,
        SEALED,
    ),
    ("query-errors", "/components/schemas/ErrorsQuery/properties/cursor/type", Side::Edge, SEALED),
    (
        EVENTS,
        "/components/schemas/ErrorEventsQuery/properties/cursor/minLength",
        Side::Edge,
        SEALED,
    ),
    (EVENTS, "/components/schemas/ErrorEventsQuery/properties/cursor/pattern", Side::Edge, SEALED),
    (EVENTS, "/components/schemas/ErrorEventsQuery/properties/cursor/type", Side::Edge, SEALED),
    (EVENTS, "/components/schemas/ErrorEventsQuery/additionalProperties", Side::Edge, SEALED),
    (EVENTS, "/components/schemas/ErrorEventsQuery/properties/event/type", Side::Edge, NO_EVENT),
    (
        SUMMARY,
        "/components/schemas/ErrorSummaryQuery/additionalProperties",
        Side::Edge,
        EMPTY_RANGE,
    ),
    (SUMMARY, "/components/schemas/ErrorSummaryQuery/properties/by/maxItems", Side::Edge, ONCE),
    ("get-project-activity", "query:from/format", Side::Edge, EMPTY_RANGE),
    ("get-project-activity", "query:to/format", Side::Edge, EMPTY_RANGE),
    (UPDATE_ERROR, "/components/schemas/ErrorPatch/properties/resolvedIn/enum", Side::Edge, BOTH),
    (UPDATE_ERROR, "/components/schemas/ErrorPatch/properties/status/enum", Side::Edge, BOTH),
    (UPDATE_ERROR, "/components/schemas/ErrorPatch/properties/status/type", Side::Edge, BOTH),
    (
        "",
        "header:content-encoding/enum",
        Side::Beyond,
        "if it does not fit the body, the first bytes decide",
    ),
    (
        "",
        "/components/schemas/EmailPreferencesUpdate/properties/preferences/maxItems",
        Side::Edge,
        "there are fewer types, and each can be listed once",
    ),
    (
        "",
        "/components/schemas/EmailAddressUpdate/properties/email/maxLength",
        Side::Edge,
        "a repeated letter is not an address",
    ),
    (
        "",
        "/components/schemas/NewServe/oneOf/2/properties/rollout/maxItems",
        Side::Beyond,
        "an entry makes it a valid rollout",
    ),
    (
        UPDATE_FLAG,
        "/components/schemas/FeatureFlagPatch/properties/fallthrough/oneOf/1/properties/rollout/maxItems",
        Side::Beyond,
        "an entry makes it a valid rollout",
    ),
    (
        UPDATE_FLAG,
        "/components/schemas/FlagRestoration/required",
        Side::Beyond,
        "without a version, it is a patch without changes",
    ),
    (UPDATE_FLAG, "/components/schemas/NewServe/oneOf/0/required", Side::Beyond, SETS_NOTHING),
    (UPDATE_FLAG, "/components/schemas/NewServe/oneOf/1/required", Side::Beyond, SETS_NOTHING),
    (
        UPDATE_FLAG,
        "/components/schemas/NewServe/oneOf/1/properties/rollout/minItems",
        Side::Beyond,
        SETS_NOTHING,
    ),
    (UPDATE_FLAG, "/components/schemas/NewServe/oneOf/2/required", Side::Beyond, SETS_NOTHING),
    (
        EXCHANGE_CODE,
        "/components/schemas/ConsoleCode/additionalProperties",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (EXCHANGE_CODE, "/components/schemas/ConsoleCode/required", Side::Edge, OPENS_NOTHING),
    (EXCHANGE_CODE, "/components/schemas/ConsoleCode/type", Side::Edge, OPENS_NOTHING),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/additionalProperties",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/code/pattern",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/code/type",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/token/maxLength",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/token/minLength",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/token/type",
        Side::Edge,
        OPENS_NOTHING,
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/required",
        Side::Edge,
        OPENS_NOTHING,
    ),
    ("complete-sign-in", "/components/schemas/SignInCompletion/type", Side::Edge, OPENS_NOTHING),
    (
        "create-api-key",
        "/components/schemas/NewApiKey/properties/projects/items/pattern",
        Side::Edge,
        NO_PROJECT,
    ),
    (
        "create-api-key",
        "/components/schemas/NewApiKey/properties/projects/items/type",
        Side::Edge,
        NO_PROJECT,
    ),
    (
        "create-api-key",
        "/components/schemas/NewApiKey/properties/expiresAt/format",
        Side::Edge,
        PAST,
    ),
    (
        "",
        "/components/schemas/MemberEmailInput/maxLength",
        Side::Edge,
        "a repeated letter is not an address",
    ),
    ("", "/components/schemas/MemberProjectsInput/items/pattern", Side::Edge, NO_PROJECT),
    ("", "/components/schemas/MemberProjectsInput/items/type", Side::Edge, NO_PROJECT),
    (
        "create-project",
        "/components/schemas/NewProject/properties/slug/type",
        Side::Edge,
        "the tests' project has the slug",
    ),
    (
        "delete-project",
        "/components/schemas/ProjectDeletion/properties/confirm/type",
        Side::Edge,
        "it must be the slug",
    ),
    (
        "update-session",
        "/components/schemas/SessionUpdate/additionalProperties",
        Side::Edge,
        NO_ORGANIZATION,
    ),
    (
        "update-session",
        "/components/schemas/SessionUpdate/properties/organization/type",
        Side::Edge,
        NO_ORGANIZATION,
    ),
    ("update-session", "/components/schemas/SessionUpdate/required", Side::Edge, NO_ORGANIZATION),
    ("update-session", "/components/schemas/SessionUpdate/type", Side::Edge, NO_ORGANIZATION),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/token/maxLength",
        Side::Beyond,
        "every malformed token is an invalid one",
    ),
    (
        "complete-sign-in",
        "/components/schemas/SignInCompletion/properties/token/minLength",
        Side::Beyond,
        "every malformed token is an invalid one",
    ),
];
const NO_PROJECT: &str = "there is no project with an arbitrary name";
const NO_ORGANIZATION: &str = "the user is in one organization";
const PAST: &str = "the time must be in the future";
const EVENTS: &str = "query-error-events";
const SUMMARY: &str = "summarize-error";
const UPDATE_ERROR: &str = "update-error";
const NO_EVENT: &str = "the error has no event with an arbitrary ID";
const EMPTY_RANGE: &str = "the range would be empty";
const ONCE: &str = "each category can be listed once";
const BOTH: &str = "a resolution in the next release needs a status";
const EXCHANGE_CODE: &str = "exchange-console-code";
const OPENS_NOTHING: &str = "only codes of links return a key";
const UPDATE_FLAG: &str = "update-feature-flag";
const SETS_NOTHING: &str = "the rest of the fallthrough is a valid empty patch";

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
    for (operation, source, side, why) in EXCEPTIONS {
        let before = outcome.failures.len();
        outcome.failures.retain(|(id, bound, at), _| {
            !((operation.is_empty() || operation == *id) && source == bound && side == *at)
        });
        assert!(outcome.failures.len() < before, "{source} holds, and is no exception: {why}");
    }
    let failures = outcome.failures.iter().map(|((_, source, side), messages)| {
        let first = &messages[..messages.len().min(3)];
        format!("{source}, {side:?}, {} times:\n    {}", messages.len(), first.join("\n    "))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{} bounds do not hold:\n{}", failures.len(), failures.join("\n"));
}
