//! `Client::builder(..)`: where the servers are, and how they are called.

use std::time::Duration;

use crate::addresses::Addresses;
use crate::client::wire::{Interceptors, OutgoingCall};
use crate::client::{Calls, Client};
use crate::codec::{AsyncPayloadCodec, Codecs, PayloadCodec};
use crate::connection::Connection;
use crate::error::Error;

/// A client that is being described.
///
/// ```no_run
/// # async fn connect() -> Result<(), kagzi::Error> {
/// use std::time::Duration;
///
/// let client = kagzi::Client::builder("127.0.0.1:50051")
///     .namespace("shop")
///     .header("authorization", "Bearer 42")
///     .call_timeout(Duration::from_secs(5))
///     .connect()
///     .await?;
/// # drop(client); Ok(()) }
/// ```
///
/// ```no_run
/// # async fn connect(key: impl kagzi::codec::PayloadCodec) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::Client;
///
/// let builder = Client::builder("10.0.0.1:50051,10.0.0.2:50051")
///     .namespace("shop")
///     .codec(key)
///     .header("x-team", "orders")
///     .call_timeout(Duration::from_secs(5))
///     .retry_for(Duration::from_secs(60));
/// let client = builder.connect().await?;
/// // Without waiting for a server; the first call connects.
/// let later = Client::builder("127.0.0.1:50051").lazy()?;
/// # drop((client, later));
/// # Ok(()) }
/// ```
#[must_use = "a client is made by .connect() or .lazy()"]
pub struct ClientBuilder {
    addresses: Addresses,
    namespace: String,
    codecs: Codecs,
    interceptors: Interceptors,
    calls: Calls,
}

impl ClientBuilder {
    pub(crate) fn new(addresses: Addresses) -> ClientBuilder {
        ClientBuilder {
            addresses,
            namespace: "default".to_owned(),
            codecs: Codecs::default(),
            interceptors: Interceptors::default(),
            calls: Calls::default(),
        }
    }

    /// Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Adds a codec: see [`PayloadCodec`]. Workers need the same ones.
    pub fn codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// The same for a codec that has to ask somebody, such as a key service: see [`AsyncPayloadCodec`].
    ///
    /// ```no_run
    /// # use kagzi::codec::AsyncPayloadCodec;
    /// # async fn connect(vault: impl AsyncPayloadCodec) -> Result<kagzi::Client, kagzi::Error> {
    /// kagzi::Client::builder("127.0.0.1:50051").async_codec(vault).connect().await
    /// # }
    /// ```
    pub fn async_codec(mut self, codec: impl AsyncPayloadCodec) -> Self {
        self.codecs = self.codecs.and_async(codec);
        self
    }

    /// Sends a header with every call, e.g. a token.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.interceptor(move |call| call.header(name.clone(), value.clone()))
    }

    /// Is shown every call before it is sent, and may add headers to it. Several are asked in their order; of
    /// two headers of the same name the last counts.
    ///
    /// ```no_run
    /// # fn token() -> String { String::new() }
    /// # async fn connect() -> Result<(), kagzi::Error> {
    /// let client = kagzi::Client::builder("127.0.0.1:50051")
    ///     .interceptor(|call| call.header("authorization", format!("Bearer {}", token())))
    ///     .connect()
    ///     .await?;
    /// # drop(client); Ok(()) }
    /// ```
    pub fn interceptor(mut self, intercept: impl Fn(&mut OutgoingCall) + Send + Sync + 'static) -> Self {
        self.interceptors = self.interceptors.and(intercept);
        self
    }

    /// How long one call waits for its answer. Default: 30 s. Waiting for a run's result is not one call.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.calls.timeout = timeout;
        self
    }

    /// For how long a call is repeated while no server answers, or while a server asks to come back later.
    /// Only calls that do no harm when they are sent twice, and those that were refused before anything was
    /// done. Default: 10 s; zero = never.
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.calls.retry_for = time;
        self
    }

    /// Connects to the first server that answers.
    pub async fn connect(self) -> Result<Client, Error> {
        let client = self.lazy()?;
        client.server().await?;
        Ok(client)
    }

    /// Connects with the first call, so that the server may start later than its client.
    pub fn lazy(self) -> Result<Client, Error> {
        let connection = Connection::to(&self.addresses)?;
        Ok(Client::new(connection, self.interceptors, self.calls)
            .namespace(self.namespace)
            .with_codecs(self.codecs))
    }
}
