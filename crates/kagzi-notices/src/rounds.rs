//! The courier's rounds: take what is due, carry it, write down how it went.
//!
//! A message is sent outside of any transaction, so a server that dies in between leaves it taken: its lease
//! runs out and it is tried again, by the same id. So each message arrives at least once, in ordinary
//! operation exactly once, and a receiver that wants to be sure compares ids.
//!
//! Each channel has its own rounds: a mail server that hangs does not delay a webhook.

mod stats;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use kagzi_model::{Millis, Timestamp};
use tracing::{debug, warn};

use crate::{
    Audience, Channel, Contact, Courier, Facts, Occasion, Outcome, Parcel, Settled, Texts, Values,
    delivery::{Tried, first_try, settle},
};

pub use stats::NoticeStats;

/// Messages of one round.
pub const TAKEN_MAX: usize = 50;
/// So long nobody else takes a message that was taken.
pub const LEASE_MS: Millis = 60_000;
/// Longest try, whatever the courier thinks. Half the lease: all tries of a round begin at once, so that
/// each is written down before somebody else may take its message.
pub const TRY_MAX: Duration = Duration::from_secs(30);

/// A message that was taken from the outbox.
#[derive(Debug, Clone)]
pub struct Due {
    /// Unique in its namespace: question, occasion, recipient and channel.
    pub id: String,
    pub occasion: Occasion,
    pub facts: Facts,
    pub contact: Contact,
    /// Tries before this one.
    pub tries: u32,
    pub created_at: Timestamp,
    /// The namespace's own texts, or the built-in ones.
    pub texts: Arc<Texts>,
    /// Whether messages of the namespace may hold payloads.
    pub payloads_allowed: bool,
}

/// Where messages wait: rows that were written in the commit of what they tell of.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// Takes up to `max` messages of this channel that are due, the oldest first. Each is due again for
    /// others only after the lease. What became superfluous is not given out.
    async fn take(
        &self,
        channel: Channel,
        now: Timestamp,
        max: usize,
        lease_ms: Millis,
    ) -> Result<Vec<Due>, OutboxError>;

    /// Writes down what follows, unless that was done by somebody else or the message is superfluous by now.
    async fn settle(&self, due: &Due, settled: &Settled, now: Timestamp) -> Result<(), OutboxError>;
}

/// The outbox cannot be asked at the moment.
#[derive(Debug, thiserror::Error)]
#[error("the outbox does not answer: {0}")]
pub struct OutboxError(pub String);

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    pub taken: usize,
    pub sent: usize,
    /// Whether there is likely to be more.
    pub full: bool,
}

/// Everything that rounds need.
#[derive(Clone)]
pub struct Rounds {
    pub outbox: Arc<dyn Outbox>,
    /// Channels without a courier are left to other servers.
    pub couriers: HashMap<Channel, Arc<dyn Courier>>,
    /// Where people open a question.
    pub console_url: Option<String>,
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub stats: Arc<NoticeStats>,
}

impl Rounds {
    /// One round of a channel. Every message that was taken is tried, whatever happens to the others.
    pub async fn round(&self, channel: Channel) -> Result<Round, OutboxError> {
        let Some(courier) = self.couriers.get(&channel) else { return Ok(Round::default()) };
        let taken = self.outbox.take(channel, (self.clock)(), TAKEN_MAX, LEASE_MS).await?;
        let mut round = Round { taken: taken.len(), sent: 0, full: taken.len() >= TAKEN_MAX };
        let tries: Vec<_> = taken
            .into_iter()
            .map(|due| {
                let (rounds, courier) = (self.clone(), courier.clone());
                // A task each: a courier that panics over one message must not take the others with it.
                tokio::spawn(async move { rounds.deliver(channel, &*courier, &due).await })
            })
            .collect();
        let mut failed = None;
        for one in tries {
            match one.await {
                Ok(Ok(sent)) => round.sent += usize::from(sent),
                Ok(Err(error)) => failed = Some(error),
                // It stays taken until its lease runs out, and is tried again.
                Err(error) => warn!(channel = channel.name(), %error, "a courier did not end cleanly"),
            }
        }
        failed.map_or(Ok(round), Err)
    }

    /// Rounds until nothing is due any more.
    pub async fn drain(&self, channel: Channel) -> Result<(), OutboxError> {
        while self.round(channel).await?.full {}
        Ok(())
    }

    /// One message: held back, or tried once. Answers whether the receiver has it.
    async fn deliver(&self, channel: Channel, courier: &dyn Courier, due: &Due) -> Result<bool, OutboxError> {
        let now = (self.clock)();
        // Quiet hours are asked at every try: a contact may have changed them, and a retry must not ring
        // at night either.
        let settled = match due.contact.held_until(due.facts.severity, now) {
            Some(until) => Settled::Held { until },
            None => {
                let parcel = self.parcel(due);
                let outcome = tokio::time::timeout(TRY_MAX, courier.carry(&parcel)).await;
                let outcome = outcome.unwrap_or_else(|_| {
                    Outcome::temporary(format!("no answer within {} s", TRY_MAX.as_secs()))
                });
                let begun_at = first_try(&due.contact, due.facts.severity, due.created_at);
                let tries = due.tries.saturating_add(1);
                settle(&outcome, &Tried { id: due.id.as_bytes(), tries, begun_at, now: (self.clock)() })
            }
        };
        self.stats.count(channel, settled.outcome());
        match &settled {
            Settled::GivenUp { error } => {
                warn!(notice = %due.id, channel = channel.name(), error, "a notice was given up");
            }
            Settled::Sent | Settled::Retrying { .. } | Settled::Held { .. } => {
                debug!(notice = %due.id, channel = channel.name(), outcome = settled.outcome(), "notice");
            }
        }
        self.outbox.settle(due, &settled, (self.clock)()).await?;
        Ok(settled == Settled::Sent)
    }

    fn parcel(&self, due: &Due) -> Parcel {
        let zone = due.contact.zone();
        let audience = Audience {
            recipient: &due.contact.name,
            time_zone: &zone,
            payloads_allowed: due.payloads_allowed,
            console_url: self.console_url.as_deref(),
        };
        let values = Values::of(due.occasion, &due.facts, &audience);
        Parcel {
            id: due.id.clone(),
            occasion: due.occasion,
            contact: due.contact.clone(),
            facts: due.facts.clone(),
            message: due.texts.message(due.occasion, &values),
            created_at: due.created_at,
        }
    }
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("couriers", &self.couriers.keys()).finish_non_exhaustive()
    }
}
