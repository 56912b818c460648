//! The connection itself: plain, or TLS where the build has it.

use std::task::{Context, Poll};

use kagzi_store::StoreError;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls, Socket, tls::NoTlsStream};

use crate::{
    error::from_postgres,
    options::{self, PostgresOptions, Tls},
    session::too_slow,
};

/// The side that moves bytes; the other one is the client.
pub enum Wire {
    Plain(Box<Connection<Socket, NoTlsStream>>),
    #[cfg(feature = "tls")]
    Tls(Box<Connection<Socket, TlsStream>>),
}

#[cfg(feature = "tls")]
type TlsStream =
    <tokio_postgres_rustls::MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream;

impl Wire {
    /// Moves bytes, and yields what the server says unasked. None when the connection has ended.
    pub fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        match self {
            Wire::Plain(connection) => connection.poll_message(context),
            #[cfg(feature = "tls")]
            Wire::Tls(connection) => connection.poll_message(context),
        }
    }

    /// Moves bytes until the connection ends.
    pub async fn drive(mut self) -> Result<(), Error> {
        while let Some(message) = std::future::poll_fn(|context| self.poll_message(context)).await {
            message?;
        }
        Ok(())
    }
}

/// Connects as the options say: to the first host of the URL that answers in time and takes what is asked of
/// it. Each host has its own time: one that is frozen, or gone without a word, must not use up that of the
/// next.
pub async fn connect(config: &Config, options: &PostgresOptions) -> Result<(Client, Wire), StoreError> {
    let mut refused = Vec::new();
    for host in options::each_host(config) {
        let connecting = tokio::time::timeout(options.connect_timeout, connect_to(&host, options)).await;
        match connecting.unwrap_or_else(|_| Err(too_slow("connecting"))) {
            Ok(connected) => return Ok(connected),
            Err(error) => refused.push((options::describe(&host), error)),
        }
    }
    if refused.len() > 1 {
        let each = refused.iter().map(|(host, error)| format!("{host}: {error}"));
        let all = each.collect::<Vec<_>>().join("; ");
        return Err(StoreError::Unavailable(format!("no host of the URL can be used: {all}")));
    }
    Err(refused.pop().expect("there is at least one host").1)
}

async fn connect_to(host: &Config, options: &PostgresOptions) -> Result<(Client, Wire), StoreError> {
    match &options.tls {
        Tls::Off => {
            let (client, connection) = host.connect(NoTls).await.map_err(from_postgres)?;
            Ok((client, Wire::Plain(Box::new(connection))))
        }
        #[cfg(feature = "tls")]
        tls @ (Tls::Encrypt | Tls::Verify { .. }) => {
            let connector = crate::tls::connector(tls)?;
            let (client, connection) = host.connect(connector).await.map_err(from_postgres)?;
            Ok((client, Wire::Tls(Box::new(connection))))
        }
        #[cfg(not(feature = "tls"))]
        Tls::Encrypt | Tls::Verify { .. } => Err(StoreError::Unavailable(
            "the database URL asks for TLS, which this build cannot do; build it with the feature \
             `postgres-tls`"
                .into(),
        )),
    }
}
