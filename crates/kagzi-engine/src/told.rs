//! How a wait stands, with what it took: the record has the signal in an event of its own.

use kagzi_model::{Failure, Millis, Name, Payload, RunKey, Waited};

use crate::{Engine, EngineError};

/// What the code that waits is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// Nothing has come; by itself the wait is over after this time.
    Waiting {
        remaining_ms: Option<Millis>,
    },
    Taken {
        id: Name,
        signal: Payload,
        failure: Option<Failure>,
    },
    Elapsed,
    Silent,
    Closed,
}

impl Engine {
    /// Completes the answer to a wait. A signal that came before its wait is read back: it may be large, so
    /// nobody keeps it in memory.
    pub async fn told(&self, run: &RunKey, waited: Waited) -> Result<Told, EngineError> {
        Ok(match waited {
            Waited::Until(until) => {
                let now = self.clock().now();
                Told::Waiting { remaining_ms: until.map(|until| until.remaining_ms(now)) }
            }
            Waited::Taken { seq, id, failure } => {
                let found = self.store().payloads(&run.namespace, run.id, &[seq]).await?;
                let signal = found.into_iter().next().map(|(_, payload)| payload);
                Told::Taken { id, signal: signal.unwrap_or_else(|| Payload::new(&b""[..])), failure }
            }
            Waited::Elapsed => Told::Elapsed,
            Waited::Silent => Told::Silent,
            Waited::Closed => Told::Closed,
        })
    }
}
