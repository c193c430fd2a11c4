//! Splits of insights, small and large.

use std::time::Duration;

use axum::body::Bytes;

use local::environment;

use crate::Result;
use crate::counter::{Counter, Sent};
use crate::measure::Bench;
use crate::process::Process;
use crate::program::Program;
use crate::report::{grouped, progress};
use crate::statistics::Sorted;

/// How many splits of either size are timed.
const SPLITS: usize = 10;
/// How many splits of either size are not measured.
const WARM_UPS: usize = 3;
/// How many splits of either size have their calls and processor time counted.
const COUNTED: usize = 5;

/// How many pain points an insight has, and how many of them a split moves.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) members: usize,
    pub(crate) moved: usize,
}

pub(crate) const SMALL: Size = Size { members: 10, moved: 5 };
pub(crate) const LARGE: Size = Size { members: 10_000, moved: 500 };

/// Splits of insights.
pub(crate) struct Insights {
    pub(crate) small: Splits,
    pub(crate) large: Splits,
    /// The most memory of split-insight.
    pub(crate) memory: u64,
}

/// Splits of one size, each of an insight that was not split before.
pub(crate) struct Splits {
    /// How long they took, in milliseconds.
    pub(crate) latency: Sorted,
    /// What they cost besides.
    pub(crate) cost: Cost,
}

/// What splits cost besides time, by a warm process.
pub(crate) struct Cost {
    /// The function's processor time of a split, in milliseconds.
    pub(crate) cpu: Sorted,
    /// The time that DynamoDB took for the calls of a split, in milliseconds.
    pub(crate) dynamodb: Sorted,
    /// The most that a split sent.
    pub(crate) sent: Sent,
}

impl Insights {
    /// How much longer a large split takes than a small one.
    pub(crate) fn ratio(&self) -> f64 {
        self.large.latency.median() / self.small.latency.median()
    }

    /// The most that a split of any size sent.
    pub(crate) fn sent(&self) -> Sent {
        self.small.cost.sent.most(self.large.cost.sent)
    }
}

impl Bench<'_> {
    /// Splits small and large insights in turns.
    pub(crate) async fn insights(&self) -> Result<Insights> {
        let each = COUNTED + WARM_UPS + SPLITS;
        let members = grouped(LARGE.members);
        progress(&format!("splits: making {each} insights of {members} pain points"));
        let project = self.stack.project("split").await?;
        let mut small = self.stack.splits(project, 1 + each, SMALL).await?.into_iter();
        let mut large = self.stack.splits(project, each, LARGE).await?.into_iter();

        progress(&format!("splits: counting the calls of {COUNTED} of either size"));
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut process = self.start(Program::SplitInsight, &variables).await?;
        // The first is not warm.
        for request in small.by_ref().take(1) {
            split(&mut process, request).await?;
        }
        let cost_of_small = cost(&counter, &mut process, small.by_ref().take(COUNTED)).await?;
        let cost_of_large = cost(&counter, &mut process, large.by_ref().take(COUNTED)).await?;
        process.stop().await?;

        progress(&format!("splits: {SPLITS} each of a small and a large insight"));
        let variables = environment::variables(&self.stack.endpoint());
        let mut timed = self.start(Program::SplitInsight, &variables).await?;
        let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
        for (turn, (small, large)) in small.zip(large).enumerate() {
            // Neither size always comes second.
            if turn % 2 == 0 {
                of_small.push(split(&mut timed, small).await?);
                of_large.push(split(&mut timed, large).await?);
            } else {
                of_large.push(split(&mut timed, large).await?);
                of_small.push(split(&mut timed, small).await?);
            }
        }
        let memory = timed.peak_memory()?;
        timed.stop().await?;
        let splits = |latencies: Vec<Duration>, cost| Splits {
            latency: Sorted::millis(latencies.into_iter().skip(WARM_UPS)),
            cost,
        };
        Ok(Insights {
            small: splits(of_small, cost_of_small),
            large: splits(of_large, cost_of_large),
            memory,
        })
    }
}

async fn split(process: &mut Process, request: Bytes) -> Result<Duration> {
    Ok(process.expect(201, request).await?.latency)
}

/// Has a process whose calls are counted answer requests for splits.
async fn cost(
    counter: &Counter,
    process: &mut Process,
    requests: impl Iterator<Item = Bytes>,
) -> Result<Cost> {
    let (mut cpu, mut dynamodb) = (Vec::new(), Vec::new());
    let mut sent = Sent::default();
    counter.take();
    for request in requests {
        let before = process.cpu().await?;
        split(process, request).await?;
        cpu.push(process.cpu().await?.saturating_sub(before));
        let calls = counter.take();
        dynamodb.push(calls.iter().map(|call| call.time).sum());
        sent = sent.most(Sent::by(&calls)?);
    }
    Ok(Cost { cpu: Sorted::millis(cpu), dynamodb: Sorted::millis(dynamodb), sent })
}
