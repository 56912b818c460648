//! `kagzi bench`: the crate `kagzi-bench` measures, and this gives it its place in the command line.

use crate::logs;
use crate::session::Session;
pub use kagzi_bench::Args;
use kagzi_bench::worker;
pub use kagzi_bench::worker::Args as WorkerArgs;

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    kagzi_bench::perform(args, session.format).await
}

/// The worker that `bench` starts. Only its troubles are logged: what else it would say is not what is
/// measured.
pub async fn perform_worker(args: WorkerArgs, session: &Session) -> anyhow::Result<()> {
    logs::install_quiet();
    worker::perform(args, &session.address).await
}
