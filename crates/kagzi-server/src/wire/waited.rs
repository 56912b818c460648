//! How a wait stands, for workers.

use kagzi_engine::Told;
use kagzi_proto::v1::{self, WaitOutcome};

use super::{failure::failure, payload::payload};

pub fn waited(told: Told) -> v1::Waited {
    let mut wire = v1::Waited::default();
    match told {
        Told::Waiting { remaining_ms } => {
            wire.set_outcome(WaitOutcome::Waiting);
            wire.remaining_ms = remaining_ms;
        }
        Told::Taken { id, signal, failure: why } => {
            wire.set_outcome(WaitOutcome::Taken);
            wire.signal_id = id.to_string();
            wire.signal = Some(payload(signal));
            wire.failure = why.as_ref().map(failure);
        }
        Told::Elapsed => wire.set_outcome(WaitOutcome::Elapsed),
        Told::Silent => wire.set_outcome(WaitOutcome::Silent),
        Told::Closed => wire.set_outcome(WaitOutcome::Closed),
    }
    wire
}
