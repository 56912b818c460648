//! `kagzi demo`: a run survives the death of its worker, before your eyes.

mod account;
mod narrator;
pub mod order;
mod stage;
mod step_log;
mod tour;
pub mod worker;

use crate::stop;
use stage::Stage;

pub async fn perform() -> anyhow::Result<()> {
    let mut stage = Stage::open()?;
    let toured = tokio::select! {
        toured = tour::conduct(&mut stage) => toured,
        heard = stop::requested() => heard.and_then(|()| anyhow::bail!("stopped; nothing was left behind")),
    };
    // On every way out: no process and no file remains.
    let closed = stage.close().await;
    toured.and(closed)
}
