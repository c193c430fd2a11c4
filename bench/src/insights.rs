//! Splits of small and large insights.

use std::time::Duration;

use axum::body::Bytes;

use local::environment;

use crate::Result;
use crate::counter::{Counter, Sent};
use crate::measure::Bench;
use crate::process::Process;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;
use crate::statistics::grouped;

/// The number of timed splits of each size.
const SPLITS: usize = 10;
/// The number of unmeasured splits of each size.
const WARM_UPS: usize = 3;
/// The number of splits of each size whose calls and processor time are measured.
const COUNTED: usize = 5;

/// The size of a split.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// The number of pain points of the insight.
    pub(crate) members: usize,
    /// The number of pain points that the split moves.
    pub(crate) moved: usize,
}

pub(crate) const SMALL: Size = Size { members: 10, moved: 5 };
pub(crate) const LARGE: Size = Size { members: 10_000, moved: 500 };

/// The figures of splits.
pub(crate) struct Insights {
    pub(crate) small: Splits,
    pub(crate) large: Splits,
    /// The peak memory of split-insight, in bytes.
    pub(crate) memory: u64,
}

/// Splits of one size, each of another insight.
pub(crate) struct Splits {
    /// The latency, in milliseconds.
    pub(crate) latency: Sorted,
    pub(crate) cost: Cost,
}

/// The cost of splits in a warm process.
pub(crate) struct Cost {
    /// The processor time of a split, in milliseconds.
    pub(crate) cpu: Sorted,
    /// The total duration of a split's DynamoDB calls, in milliseconds.
    pub(crate) dynamodb: Sorted,
    /// The maximum volume that a split sends.
    pub(crate) sent: Sent,
}

impl Insights {
    /// Returns the median latency of a large split as a multiple of that of a small split.
    pub(crate) fn ratio(&self) -> f64 {
        self.large.latency.median() / self.small.latency.median()
    }

    /// Returns the maximum volume that a split of any size sends.
    pub(crate) fn sent(&self) -> Sent {
        self.small.cost.sent.max(self.large.cost.sent)
    }
}

impl Bench<'_> {
    /// Splits small and large insights alternately.
    pub(crate) async fn insights(&self) -> Result<Insights> {
        let each = COUNTED + WARM_UPS + SPLITS;
        let members = grouped(LARGE.members);
        progress(&format!("splits: creating {each} insights of {members} pain points"));
        let project = self.stack.project("split").await?;
        let mut small = self.stack.splits(project, 1 + each, SMALL).await?.into_iter();
        let mut large = self.stack.splits(project, each, LARGE).await?.into_iter();

        progress(&format!("splits: counting the calls of {COUNTED} of each size"));
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut process = self.start(Program::SplitInsight, &variables).await?;
        // The first split is not warm, so it is not measured.
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
            // The order alternates, so that neither size has an advantage.
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

/// Sends split requests to a process whose calls are counted. Returns their cost.
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
        sent = sent.max(Sent::by(&calls)?);
    }
    Ok(Cost { cpu: Sorted::millis(cpu), dynamodb: Sorted::millis(dynamodb), sent })
}
