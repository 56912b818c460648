//! The couriers at work: a task for each channel, from the start of the server to its end.

use std::{sync::Arc, time::Duration};

use kagzi_engine::Engine;
use kagzi_notices::{Channel, Rounds, message::TextsFile, rounds::NoticeStats};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Couriers, outbox::StoreOutbox};

/// How often the outbox is looked into. A message is late by this much at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The pause after the outbox could not be asked.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long a stopping server waits for what is being sent. A receiver that hangs must not hold it up: what is
/// not written down is tried again, by the same id.
const STOP_MAX: Duration = Duration::from_secs(3);

/// Couriers that were sent off.
pub struct Carrying {
    stop: CancellationToken,
    tasks: Vec<(Channel, JoinHandle<()>)>,
}

impl Carrying {
    /// Sends the couriers off. Without any, messages wait for a server that has some.
    pub fn start(
        engine: &Engine,
        couriers: Couriers,
        texts: TextsFile,
        console_url: Option<String>,
        stats: Arc<NoticeStats>,
    ) -> Carrying {
        let stop = CancellationToken::new();
        let channels: Vec<Channel> = couriers.keys().copied().collect();
        let clock = engine.clone();
        let rounds = Rounds {
            outbox: Arc::new(StoreOutbox::new(engine.clone(), texts)),
            couriers,
            console_url,
            clock: Arc::new(move || clock.clock().now()),
            stats,
        };
        let tasks = channels.into_iter().map(|channel| {
            let task = keep_going(rounds.clone(), channel, stop.clone());
            (channel, tokio::spawn(task))
        });
        Carrying { tasks: tasks.collect(), stop }
    }

    /// Ends them. What is being sent may be sent to its end, so that it is written down.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let deadline = tokio::time::Instant::now() + STOP_MAX;
        for (channel, mut task) in std::mem::take(&mut self.tasks) {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                warn!(channel = channel.name(), "stopping although something is being sent");
                task.abort();
            }
        }
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn keep_going(rounds: Rounds, channel: Channel, stop: CancellationToken) {
    loop {
        let pause = match rounds.round(channel).await {
            Ok(round) if round.full => Duration::ZERO,
            Ok(_) => LOOK_EVERY,
            Err(error) => {
                warn!(channel = channel.name(), %error, "the courier could not be told what to carry");
                LOOK_AGAIN
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
