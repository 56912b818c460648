//! Journals that nobody has asked for in a long time are forgotten before others need their room.

use std::time::Duration;

use kagzi_store::StoreError;

use super::{Sweep, When};
use crate::Engine;

/// How often to look, and how long a journal may lie unused at least.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// Remembers how often journals had been used when it looked last.
#[derive(Default)]
pub struct IdleJournals {
    uses: u64,
}

impl Sweep for IdleJournals {
    const NAME: &'static str = "idle_journals";

    fn first(&self, _: &Engine) -> When {
        When::In(LOOK_EVERY)
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        self.uses = engine.hub().journals.forget_unused_since(self.uses);
        Ok(When::In(LOOK_EVERY))
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::In(LOOK_EVERY)
    }
}
