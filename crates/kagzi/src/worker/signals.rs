//! The signals that ask a process to end.

use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C. The second one is an impatient person.
    Interrupt,
    Terminate,
}

/// Listens for SIGINT and SIGTERM, or for nothing.
pub(crate) enum Signals {
    None,
    #[cfg(unix)]
    Unix {
        interrupt: tokio::signal::unix::Signal,
        terminate: tokio::signal::unix::Signal,
    },
    #[cfg(not(unix))]
    CtrlC,
}

impl Signals {
    pub(crate) fn none() -> Signals {
        Signals::None
    }

    #[cfg(unix)]
    pub(crate) fn listen() -> Result<Signals, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Error::InvalidWorker(format!("could not listen to signals: {error}")))
        };
        Ok(Signals::Unix {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Result<Signals, Error> {
        Ok(Signals::CtrlC)
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self {
            Signals::None => std::future::pending().await,
            #[cfg(unix)]
            Signals::Unix { interrupt, terminate } => tokio::select! {
                Some(()) = interrupt.recv() => Signal::Interrupt,
                Some(()) = terminate.recv() => Signal::Terminate,
                else => std::future::pending().await,
            },
            #[cfg(not(unix))]
            Signals::CtrlC => match tokio::signal::ctrl_c().await {
                Ok(()) => Signal::Interrupt,
                Err(_) => std::future::pending().await,
            },
        }
    }
}
