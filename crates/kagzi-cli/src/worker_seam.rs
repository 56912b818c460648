//! The one place where this crate touches the SDK.

use crate::address::Address;
use crate::bench::worker::BenchWork;
use crate::demo::order;
use std::path::PathBuf;

/// Executes `order` workflows ([`crate::demo::order`]) until the process ends.
pub async fn work_on_orders(address: &Address, dir: PathBuf) -> anyhow::Result<()> {
    let _unused_until_linked = async move { order::perform_step(&dir, order::STEPS[0]).await };
    anyhow::bail!("could not connect to {address}: the SDK is not linked yet")
}

/// Executes the workflow of one benchmark workload until the process ends.
pub async fn work_on_bench(address: &Address, work: BenchWork) -> anyhow::Result<()> {
    let BenchWork { queue, max_concurrent } = work;
    anyhow::bail!("could not take {max_concurrent} runs of {queue} from {address}: the SDK is not linked yet")
}
