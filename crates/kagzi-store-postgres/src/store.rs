//! Opening the store.

use std::sync::Arc;

use kagzi_store::{Clock, Lane, LaneOptions, Observer, Store, StoreError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    at_open,
    backend::PostgresBackend,
    listener::{self, Listener},
    migrate::migrate,
    notifier::{self, Notifier, NotifyingObserver, Outbox},
    options::{self, PostgresOptions},
    peers::Peers,
    pool::ReadPool,
    session::{Purpose, Session},
};

pub use crate::reads::PostgresReads;

/// Opens PostgreSQL stores.
pub struct PostgresStore;

impl PostgresStore {
    /// Connects, brings the schema up to date and starts the lane. Any number of servers may do so at once on
    /// one database. A read replica is refused, and so is a schema written by a newer Kagzi.
    ///
    /// The clock should be a [`crate::PostgresClock`], so that all servers agree on what is due.
    pub async fn open(
        url: &str,
        options: PostgresOptions,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
    ) -> Result<Store, StoreError> {
        let (config, options) = options::parse(url, &options)?;
        let session = Session::connect(&config, &options, Purpose::Write).await?;
        at_open::check_encoding(&session).await?;
        migrate(&session).await?;
        let kinds_level = at_open::kinds_level(&session).await?;
        if let Some(newest) = at_open::newest(&session).await? {
            clock.not_before(newest);
        }
        drop(session);

        let server = Uuid::new_v4();
        let stop = CancellationToken::new();
        let backend =
            PostgresBackend::connect(config.clone(), options.clone(), server, stop.clone().drop_guard())
                .await?;
        let lane_options = LaneOptions {
            shared_poll_ms: Some(jittered(options.poll_ms(), server)),
            // A batch is a fixed number of round trips, however long it is.
            batch_len_max: 1024,
            crowd_len_max: 1024,
            claim_len_max: 512,
            kinds_level,
            ..LaneOptions::default()
        };
        // Without notifications nobody is heard, so company is assumed.
        let peers = Arc::new(Peers::default());
        let reads = PostgresReads::new(ReadPool::new(config.clone(), options.clone()), peers.clone());
        let description = options::describe(&config);
        if !options.notify {
            let (lane, handle) = Lane::new(backend, clock, observer, lane_options);
            tokio::spawn(lane.run());
            return Ok(Store::new(handle, reads, description));
        }
        let server = server.simple().to_string();
        let outbox = Arc::new(Outbox::default());
        let notifying =
            NotifyingObserver { inner: observer.clone(), outbox: outbox.clone(), server: server.clone() };
        let (lane, handle) = Lane::new(backend, clock, Arc::new(notifying), lane_options);
        let listener =
            Listener { lane: handle.clone(), observer, peers: peers.clone(), server: server.clone() };
        let ring = notifier::ring(config.clone(), options.clone(), Notifier { outbox, peers, server });
        let listen = listener::listen(config, options, Arc::new(listener));
        tokio::spawn(stop.clone().run_until_cancelled_owned(ring));
        tokio::spawn(stop.run_until_cancelled_owned(listen));
        tokio::spawn(lane.run());
        Ok(Store::new(handle, reads, description))
    }
}

/// Up to a tenth more or less, fixed per server, so that servers do not poll in step.
fn jittered(poll_ms: i64, server: Uuid) -> i64 {
    let tenth = (poll_ms / 10).max(1);
    poll_ms - tenth + i64::from(server.as_bytes()[0]) * 2 * tenth / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_do_not_poll_in_step() {
        assert_eq!(jittered(1000, Uuid::nil()), 900);
        assert_eq!(jittered(1000, Uuid::max()), 1100);
    }
}
