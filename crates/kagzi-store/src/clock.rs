//! Time, injected. Nothing below the server asks the machine what time it is.

mod carried;
mod manual;
mod system;

use std::time::Duration;

use async_trait::async_trait;
use kagzi_model::Timestamp;

pub use carried::{Carried, Correction, LEAP_MIN};
pub use manual::ManualClock;
pub use system::{SystemClock, TimeSource};

/// The one clock of a server.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time that everybody is told. It never goes back and never stands still.
    fn now(&self) -> Timestamp;

    /// Returns at `at` or later, never earlier.
    async fn sleep_until(&self, at: Timestamp);

    /// What a calendar shows. It is [`now`](Clock::now), except after the authority's clock was set back:
    /// `now` only slows down then, and schedules wait for the calendar. Never ahead of `now`.
    fn calendar(&self) -> Timestamp {
        self.now()
    }

    /// Time that this process has seen pass, from an arbitrary beginning: it is untouched by any correction
    /// of a clock. For waits that concern nobody else, such as the pause after a failed commit.
    fn steady(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.now().0).unwrap_or(0))
    }

    /// Returns when so much [`steady`](Clock::steady) time has passed.
    async fn sleep(&self, wait: Duration) {
        self.sleep_until(self.now() + wait).await;
    }

    /// How often [`now`](Clock::now) leapt forward because the machine was suspended or its clock was set.
    /// Time that passed in a leap was nobody's silence: whoever judges silence begins anew.
    fn leaps(&self) -> u64 {
        0
    }

    /// How much time all leaps together passed over.
    fn leapt(&self) -> Duration {
        Duration::ZERO
    }

    /// Everything in the database happened at `newest` or before: time goes on from there, even if this
    /// machine's clock is behind.
    fn not_before(&self, _newest: Timestamp) {}

    /// How far it is ahead of this machine's clock.
    fn skew_ms(&self) -> i64 {
        0
    }
}
