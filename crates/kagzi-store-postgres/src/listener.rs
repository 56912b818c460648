//! Hears the other servers.

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use kagzi_model::Timestamp;
use kagzi_store::{LaneHandle, LostLease, Observer, StoreError};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Config};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use crate::{
    error::from_postgres,
    options::PostgresOptions,
    peers::Peers,
    session::{Backoff, too_slow},
    wake::{CHANNEL, Hint},
    wire::{self, Wire},
};

/// How often to ask whether the connection is still there: one that is cut silently hears nothing, for ever.
const PROBE_EVERY: Duration = Duration::from_secs(20);

/// Whom to tell.
pub struct Listener {
    pub lane: LaneHandle,
    pub observer: Arc<dyn Observer>,
    pub peers: Arc<Peers>,
    pub server: String,
}

impl Listener {
    fn hear(&self, text: &str) {
        match Hint::decode(text) {
            (server, _) if server == self.server => return,
            (_, Hint::Here) => {}
            (_, Hint::Ended(runs)) => self.observer.ended_elsewhere(&runs),
            (_, Hint::Waiting(key)) => self.lane.wake(Some(key)),
            (_, Hint::Opened(gate)) => self.lane.opened(gate),
            // Long ago is always due: it makes the scheduler look.
            (_, Hint::Schedules) => self.observer.schedule_due(Timestamp(0), false),
            (_, Hint::Everything) => {
                self.lane.wake(None);
                self.observer.schedule_due(Timestamp(0), false);
            }
            (_, Hint::Signalled(notice)) => self.observer.signalled(notice),
            (_, Hint::Lost { worker, run, epoch, cancelled, why }) => {
                self.observer.lease_lost(LostLease { worker, run, epoch, why, cancelled });
            }
        }
        self.peers.heard(Instant::now());
    }
}

/// Listens until it is stopped, and again after every lost connection.
pub async fn listen(config: Config, options: PostgresOptions, listener: Arc<Listener>) {
    let mut backoff = Backoff::default();
    loop {
        let error = match listen_once(&config, &options, &listener, &mut backoff).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        listener.peers.lost();
        info!(%error, "cannot hear the other servers, polling meanwhile");
        tokio::time::sleep(backoff.next()).await;
    }
}

async fn listen_once(
    config: &Config,
    options: &PostgresOptions,
    listener: &Arc<Listener>,
    backoff: &mut Backoff,
) -> Result<Infallible, StoreError> {
    let (client, wire) = wire::connect(config, options).await?;
    let mut driving = AbortOnDropHandle::new(tokio::spawn(drive(wire, listener.clone())));
    let ask = async |sql: &str| {
        let answer = timeout(options.statement_timeout, client.batch_execute(sql)).await;
        answer.map_err(|_| too_slow("an answer on the listening connection"))?.map_err(from_postgres)
    };
    ask(&format!("LISTEN {CHANNEL}")).await?;
    backoff.reset();
    listener.peers.heard(Instant::now());
    // Whatever was said while nobody listened is not said again: look everywhere.
    listener.lane.wake(None);
    loop {
        tokio::select! {
            _ = &mut driving => {
                return Err(StoreError::Unavailable("the listening connection was lost".into()));
            }
            () = tokio::time::sleep(PROBE_EVERY) => ask("SELECT 1").await?,
        }
    }
}

/// Moves the bytes of the connection, and hears what comes in between.
async fn drive(mut wire: Wire, listener: Arc<Listener>) {
    let mut messages = stream::poll_fn(move |context| wire.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(notification) = message
            && notification.channel() == CHANNEL
        {
            listener.hear(notification.payload());
        }
    }
}
