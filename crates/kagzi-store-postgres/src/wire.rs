//! The connection itself: plain, or TLS where the build has it.

use std::task::{Context, Poll};

use kagzi_store::StoreError;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls, Socket, tls::NoTlsStream};

use crate::{
    error::from_postgres,
    options::{PostgresOptions, Tls},
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

/// Connects as the options say.
pub async fn connect(config: &Config, options: &PostgresOptions) -> Result<(Client, Wire), StoreError> {
    let connecting = async {
        match &options.tls {
            Tls::Off => {
                let (client, connection) = config.connect(NoTls).await.map_err(from_postgres)?;
                Ok((client, Wire::Plain(Box::new(connection))))
            }
            #[cfg(feature = "tls")]
            tls @ (Tls::Encrypt | Tls::Verify { .. }) => {
                let connector = crate::tls::connector(tls)?;
                let (client, connection) = config.connect(connector).await.map_err(from_postgres)?;
                Ok((client, Wire::Tls(Box::new(connection))))
            }
            #[cfg(not(feature = "tls"))]
            Tls::Encrypt | Tls::Verify { .. } => Err(StoreError::Unavailable(
                "the database URL asks for TLS, which this build cannot do; build it with the feature `postgres-tls`"
                    .into(),
            )),
        }
    };
    let connected = tokio::time::timeout(options.connect_timeout, connecting).await;
    connected.map_err(|_| too_slow("connecting"))?
}
