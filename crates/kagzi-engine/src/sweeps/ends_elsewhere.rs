//! Runs that ended on other servers, looked for on behalf of all who wait on this one: one statement a
//! second, whatever their number, and none while this server is alone.

use std::{collections::HashSet, time::Duration};

use kagzi_model::RunId;
use kagzi_store::{Observer, StoreError};

use super::{Sweep, When};
use crate::Engine;

/// How often to look: another server's hint may be lost.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Runs that are looked for in one statement.
const LOOK_LEN_MAX: usize = 10_000;

pub struct EndsElsewhere;

impl Sweep for EndsElsewhere {
    fn name(&self) -> &'static str {
        "ends_elsewhere"
    }

    fn first(&self, _: &Engine) -> When {
        When::In(LOOK_EVERY)
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        if engine.store().has_peers() {
            for some in engine.hub().waited_for().chunks(LOOK_LEN_MAX) {
                let living: HashSet<RunId> = engine.store().living(some).await?.into_iter().collect();
                let runs = some.iter().map(|(_, run)| *run);
                let over: Vec<RunId> = runs.filter(|run| !living.contains(run)).collect();
                if !over.is_empty() {
                    engine.hub().ended_elsewhere(&over);
                }
            }
        }
        Ok(When::In(LOOK_EVERY))
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::In(LOOK_EVERY)
    }
}
