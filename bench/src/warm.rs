//! Warm requests of create-feature-flag and update-email-preferences, compared with a minimal
//! function (`hello`), and with one that only writes to DynamoDB (`hello-dynamodb`).

use axum::body::Bytes;
use serde_json::{Value as Json, json};

use notifications::notification_type::NotificationType;
use shared::dynamodb::client::TRUST_STORE_VARIABLE;
use shared::projects::project::ProjectId;

use crate::Result;
use crate::counter::{Call, calls, most_of_warm};
use crate::flags::{invalid_flag, largest_flag, typical_flag};
use crate::process::{Process, Requests};
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::request::{CREATE_FLAG, UPDATE_PREFERENCES};
use crate::stack::Stack;
use crate::statistics::{Sorted, count};
use crate::tls::Terminator;

/// The number of consecutive requests to a program before the next program's turn.
const BLOCK: usize = 100;
/// The number of unmeasured requests before each block. They refill the processor's caches after a
/// sleep, and look up the project, which happens at its first flag.
const BLOCK_WARM_UPS: usize = 5;
/// The number of unmeasured blocks.
const WARM_UP_BLOCKS: usize = 2;
/// The number of measured requests of the rarer kinds, and their block length. A project can hold
/// the largest flags of one block.
const RARE: (usize, usize) = (200, 20);
/// The number of requests to a function whose round trips are counted.
const COUNTED: usize = 51;
/// The number of processes that make their first call over TLS.
const TLS_STARTS: usize = 15;
/// The maximum difference in size between hello-dynamodb's call and create-feature-flag's, in
/// percent.
const MAX_SIZE_DIFFERENCE: usize = 2;

type Variables = [(&'static str, String); 2];

/// A program under measurement.
struct Subject<'s> {
    process: Process,
    status: u64,
    /// Returns the request with a number to a project.
    request: &'s dyn Fn(ProjectId, usize) -> Bytes,
}

impl<'s> Subject<'s> {
    async fn start(
        programs: &Programs,
        (program, status): (Program, u64),
        stack: &Stack,
        variables: &[(&str, String)],
        request: &'s dyn Fn(ProjectId, usize) -> Bytes,
    ) -> Result<Self> {
        let process = Process::start(programs, program, &stack.endpoint(), variables).await?;
        Ok(Self { process, status, request })
    }
}

/// Counts round trips, then measures warm requests and first calls over TLS.
pub(crate) async fn warm(programs: &Programs, requests: usize, report: &mut Report) -> Result<()> {
    let stack = &Stack::start().await?;
    let request =
        |project: ProjectId, flag: Json| stack.request(CREATE_FLAG, &[&project]).json(&flag);
    let typical = |project, number| request(project, typical_flag(number)).event();
    let invalid = |project, number| request(project, invalid_flag(number)).event();
    let largest = |project, number| request(project, largest_flag(number)).event();
    let update = |_, number| update_preferences(stack, number);

    progress("warm requests: counting round trips");
    let project = stack.project("counted").await?;
    let idempotent = (0..COUNTED).map(|number| {
        let key = format!("benchmark-{number}");
        request(project, typical_flag(COUNTED + number)).header("idempotency-key", key).event()
    });
    let created = (0..COUNTED).map(|number| typical(project, number)).chain(idempotent);
    let calls_of = async |program, status, events: Vec<Bytes>| {
        calls(programs, (program, &[]), stack, status, events).await
    };
    let created = calls_of(Program::CreateFeatureFlag, 201, created.collect()).await?;
    let trips = |calls: &[Call]| count(calls.len());
    let of_cold = created.first().map_or(f64::NAN, |calls| trips(calls));
    report.add(Program::CreateFeatureFlag, "cold start, round trips", of_cold, "", None);
    let updates = (0..COUNTED).map(|number| update_preferences(stack, number)).collect();
    let updated = calls_of(Program::UpdateEmailPreferences, 200, updates).await?;
    // Preferences are written in a transaction, which a late retry cannot repeat, and then read:
    // transactions return no items.
    for (program, calls, allowed) in [
        (Program::CreateFeatureFlag, &created, 1.0),
        (Program::UpdateEmailPreferences, &updated, 2.0),
    ] {
        let most = most_of_warm(calls, trips);
        report.add(program, "warm request, round trips, most", most, "", at_most(allowed));
    }
    let of_largest = vec![typical(project, 2 * COUNTED), largest(project, 2 * COUNTED + 1)];
    let of_largest = calls_of(Program::CreateFeatureFlag, 201, of_largest).await?;
    let like_typical = like(programs, stack, created.get(1)).await?;
    let like_largest = like(programs, stack, of_largest.get(1)).await?;

    progress(&format!("warm requests: {requests} of each program"));
    let mut subjects = [
        Subject::start(programs, (Program::Hello, 200), stack, &[], &typical).await?,
        Subject::start(programs, (Program::HelloDynamodb, 200), stack, &like_typical, &typical)
            .await?,
        Subject::start(programs, (Program::CreateFeatureFlag, 201), stack, &[], &typical).await?,
        Subject::start(programs, (Program::UpdateEmailPreferences, 200), stack, &[], &update)
            .await?,
    ];
    let [hello, sdk, create, update] =
        alternate(stack, "typical", &mut subjects, (requests, BLOCK)).await?;
    let [hello_process, sdk_process, create_process, update_process] = subjects;
    for (program, requests, subject, memory) in [
        (Program::Hello, &hello, &hello_process, None),
        (Program::HelloDynamodb, &sdk, &sdk_process, None),
        (Program::CreateFeatureFlag, &create, &create_process, under(20.0)),
        (Program::UpdateEmailPreferences, &update, &update_process, under(20.0)),
    ] {
        report.add_requests(program, "warm request", requests, None);
        report.add_memory(program, subject.process.peak_memory()?, memory);
    }
    let group = Program::CreateFeatureFlag;
    report.add(group, "own CPU time of a warm request", create.cpu_beyond(&sdk), "ms", under(0.3));

    progress(&format!("warm requests: {} each of an invalid and the largest flag", RARE.0));
    let mut invalid = [Subject { status: 400, request: &invalid, ..create_process }];
    let [ten_errors] = alternate(stack, "invalid", &mut invalid, RARE).await?;
    report.add_requests(group, "ten errors in the body: 400", &ten_errors, None);
    let [create_process] = invalid;
    let mut subjects = [
        Subject::start(programs, (Program::HelloDynamodb, 200), stack, &like_largest, &largest)
            .await?,
        Subject { status: 201, request: &largest, ..create_process },
    ];
    let [sdk, create] = alternate(stack, "largest", &mut subjects, RARE).await?;
    report.add_requests(group, "a flag of almost 200 kB", &create, None);
    let own = create.cpu_beyond(&sdk);
    report.add(group, "a flag of almost 200 kB, own CPU time", own, "ms", None);

    progress(&format!("first calls over TLS: {TLS_STARTS} processes"));
    let first = first_calls(programs, stack, like_typical).await?;
    report.add_times(group, "first DynamoDB call over TLS, with client", &first, under(10.0));
    Ok(())
}

/// Returns a request to change all preferences, as a settings page saves them. `number` varies
/// them.
pub(crate) fn update_preferences(stack: &Stack, number: usize) -> Bytes {
    let types = NotificationType::ALL.iter().enumerate();
    let preferences = types.map(|(index, notification_type)| {
        json!({"type": notification_type, "emailEnabled": (number + index).is_multiple_of(2)})
    });
    let body = json!({"preferences": preferences.collect::<Vec<_>>()});
    stack.request(UPDATE_PREFERENCES, &[]).json(&body).event()
}

/// Returns the variables for which hello-dynamodb writes like a warm create-feature-flag.
///
/// # Errors
///
/// If its calls differ in number, actions or size.
async fn like(programs: &Programs, stack: &Stack, ours: Option<&Vec<Call>>) -> Result<Variables> {
    let figures = |calls: &[Call]| match calls {
        [call] => Ok((call.actions().len(), call.body.len())),
        calls => Err(format!("a warm request makes {} calls, not one", calls.len())),
    };
    let (actions, bytes) = figures(ours.ok_or("no warm request was counted")?)?;
    let variables = [("BENCH_ACTIONS", actions.to_string()), ("BENCH_BYTES", bytes.to_string())];
    let request = stack.request(CREATE_FLAG, &[&"hello"]).event();
    let program = (Program::HelloDynamodb, &variables[..]);
    let calls = calls(programs, program, stack, 200, [request]).await?;
    let (their_actions, their_bytes) = figures(calls.first().ok_or("no call was counted")?)?;
    if their_actions == actions && bytes.abs_diff(their_bytes) * 100 <= bytes * MAX_SIZE_DIFFERENCE
    {
        return Ok(variables);
    }
    Err(format!(
        "hello-dynamodb writes {their_bytes} bytes in {their_actions} actions, \
         create-feature-flag {bytes} in {actions}"
    )
    .into())
}

/// Returns the times of first calls over TLS, with the creation of the client.
async fn first_calls(programs: &Programs, stack: &Stack, like: Variables) -> Result<Sorted> {
    let folder = tempfile::tempdir()?;
    let authority = folder.path().join("authority.pem");
    let terminator = Terminator::start(&stack.endpoint(), &authority).await?;
    let mut variables = vec![
        (TRUST_STORE_VARIABLE, "system".to_owned()),
        ("SSL_CERT_FILE", authority.display().to_string()),
    ];
    variables.extend(like);
    let request = stack.request(CREATE_FLAG, &[&"hello"]).event();
    let mut times = Vec::new();
    for _ in 0..TLS_STARTS {
        let endpoint = terminator.endpoint();
        let mut process =
            Process::start(programs, Program::HelloDynamodb, &endpoint, &variables).await?;
        times.push(process.expect(200, request.clone()).await?.body.parse()?);
    }
    Ok(Sorted::new(times))
}

/// Sends blocks of requests to several programs alternately, so that other load on the machine
/// affects all of them.
async fn alternate<const N: usize>(
    stack: &Stack,
    name: &str,
    subjects: &mut [Subject<'_>; N],
    (requests, block): (usize, usize),
) -> Result<[Requests; N]> {
    let mut figures = std::array::from_fn(|_| Requests::default());
    for turn in 0..WARM_UP_BLOCKS + requests.div_ceil(block).max(1) {
        for (index, (subject, figures)) in subjects.iter_mut().zip(&mut figures).enumerate() {
            let project = stack.project(&format!("{name}-{turn}-{index}")).await?;
            let events =
                (0..BLOCK_WARM_UPS + block).map(|number| (subject.request)(project, number));
            let mut events = events.collect::<Vec<_>>().into_iter();
            for event in events.by_ref().take(BLOCK_WARM_UPS) {
                subject.process.expect(subject.status, event).await?;
            }
            let mut unmeasured = Requests::default();
            let figures = if turn < WARM_UP_BLOCKS { &mut unmeasured } else { figures };
            subject.process.send(subject.status, events, figures).await?;
        }
    }
    Ok(figures)
}
