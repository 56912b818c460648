//! What time does to questions: reminders, escalations and ends. Armed at the earliest time of any question;
//! safe on all servers at once, because each question is changed by whoever has its run first.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::debug;

use super::{Sweep, When};
use crate::Engine;

/// Questions that one turn looks at.
const QUESTIONS_MAX: usize = 100;
/// What another server asked is not told here: nobody is reminded later than this.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// When another server is at work on what is due, look again after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub struct Questions;

impl Sweep for Questions {
    fn name(&self) -> &'static str {
        "questions"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let kind = SweepKind::Questions { questions_max: QUESTIONS_MAX };
        let next_at = loop {
            let swept = engine.store().sweep(kind).await?;
            if swept.count > 0 {
                debug!(questions = swept.count, "reminded, escalated or closed questions");
            }
            if !swept.more {
                break swept.next_at;
            }
        };
        let now = engine.clock().now();
        let look_at = now + LOOK_EVERY;
        Ok(When::At(next_at.map_or(look_at, |at| at.max(now + LOOK_AGAIN).min(look_at))))
    }

    fn failed(&mut self, engine: &Engine, _: &StoreError) -> When {
        When::At(engine.clock().now() + LOOK_AGAIN)
    }

    async fn sooner(&self, engine: &Engine, than: When) -> When {
        match than {
            When::At(at) => When::At(engine.hub().question_before(at).await),
            When::In(_) | When::Pause(_) | When::Called => std::future::pending().await,
        }
    }
}
