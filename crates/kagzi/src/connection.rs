//! The way to a server: the one place that knows whether it is a network or the same process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::transport::{Channel, Endpoint};

use crate::addresses::Addresses;
use crate::error::Error;
use crate::limits;

/// Yields channels to a server.
#[derive(Clone)]
pub(crate) enum Connection {
    /// Over the network, to the first address that answers.
    Network(Arc<Network>),
    /// Already made, e.g. in memory. It reconnects by itself if it can.
    Channel(Channel),
}

pub(crate) struct Network {
    endpoints: Vec<Endpoint>,
    /// Where the next connection is tried first: the last address that worked.
    preferred: AtomicUsize,
}

impl Connection {
    pub(crate) fn to(addresses: &Addresses) -> Result<Connection, Error> {
        let endpoints = addresses.urls()?.into_iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
        Ok(Connection::Network(Arc::new(Network { endpoints, preferred: AtomicUsize::new(0) })))
    }

    /// Tries every address once.
    pub(crate) async fn connect(&self) -> Result<Channel, Error> {
        match self {
            Connection::Network(network) => network.connect().await,
            Connection::Channel(channel) => Ok(channel.clone()),
        }
    }

    /// The preferred server accepts connections but not our calls: begin with the next one.
    pub(crate) fn prefer_next(&self) {
        match self {
            Connection::Network(network) => {
                network.preferred.fetch_add(1, Ordering::Relaxed);
            }
            Connection::Channel(_) => {}
        }
    }

    /// How many servers there are to try.
    pub(crate) fn server_count(&self) -> usize {
        match self {
            Connection::Network(network) => network.endpoints.len(),
            Connection::Channel(_) => 1,
        }
    }
}

impl Network {
    async fn connect(&self) -> Result<Channel, Error> {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut message = String::new();
        for offset in 0..self.endpoints.len() {
            let index = (first.wrapping_add(offset)) % self.endpoints.len();
            match self.endpoints[index].connect().await {
                Ok(channel) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(channel);
                }
                Err(error) => message = format!("{:#}", anyhow::Error::new(error)),
            }
        }
        let addresses: Vec<String> = self.endpoints.iter().map(|to| to.uri().to_string()).collect();
        Err(Error::Unreachable { addresses: addresses.join(", "), message })
    }
}

fn endpoint(url: String) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(url.clone())
        .map_err(|_| Error::InvalidAddress { address: url, rule: "must be host:port" })?;
    Ok(endpoint
        .connect_timeout(limits::CONNECT_TIMEOUT)
        // A server that died without a word (power, network) would otherwise be waited for until the
        // kernel gives up, which takes a quarter of an hour.
        .http2_keep_alive_interval(limits::KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .tcp_nodelay(true))
}
