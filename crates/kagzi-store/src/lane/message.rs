//! What can be asked of a lane.

use kagzi_model::{
    Command, ControlRejection, GateKey,
    schedule::{ScheduleRejection, ScheduleRequest},
};
use tokio::sync::oneshot;

use crate::{
    ControlCommand, ControlReply, Demand, Outcome, QueueKey, RegistryError, ScheduleReply, StoreError,
    SweepKind, Swept, WorkerCommand, WorkerReply,
};

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What can be asked of a lane.
pub enum Message {
    Apply {
        commands: Vec<Command>,
        reply: Reply<Vec<Outcome>>,
    },
    StandBy {
        demand: Demand,
        reply: Reply<Result<(), RegistryError>>,
    },
    Withdraw {
        demand: u64,
        reply: Reply<()>,
    },
    Worker {
        command: WorkerCommand,
        reply: Reply<Result<WorkerReply, RegistryError>>,
    },
    Schedule {
        request: Box<ScheduleRequest>,
        reply: Reply<Result<ScheduleReply, ScheduleRejection>>,
    },
    Controls {
        command: ControlCommand,
        reply: Reply<Result<ControlReply, ControlRejection>>,
    },
    Sweep {
        kind: SweepKind,
        reply: Reply<Swept>,
    },
    /// Another server says that something became due; none = look everywhere.
    Wake {
        key: Option<QueueKey>,
    },
    /// Another server says that a gate may let something through.
    Opened {
        gate: GateKey,
    },
    Close {
        reply: Reply<()>,
    },
}

impl Message {
    pub(super) fn len(&self) -> usize {
        match self {
            Message::Apply { commands, .. } => commands.len(),
            Message::Worker { command: WorkerCommand::Beat(beat), .. } => beat.runs.len().max(1),
            Message::StandBy { .. }
            | Message::Withdraw { .. }
            | Message::Worker { .. }
            | Message::Schedule { .. }
            | Message::Controls { .. }
            | Message::Sweep { .. }
            | Message::Wake { .. }
            | Message::Opened { .. }
            | Message::Close { .. } => 1,
        }
    }

    /// Bytes of the payloads that it carries.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Message::Apply { commands, .. } => commands.iter().map(Command::payload_bytes).sum(),
            Message::Schedule { request, .. } => request.payload_bytes(),
            Message::StandBy { .. }
            | Message::Withdraw { .. }
            | Message::Worker { .. }
            | Message::Controls { .. }
            | Message::Sweep { .. }
            | Message::Wake { .. }
            | Message::Opened { .. }
            | Message::Close { .. } => 0,
        }
    }

    pub(super) fn refuse(self, error: &StoreError) {
        // A caller that is gone needs no answer.
        match self {
            Message::Apply { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::StandBy { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Withdraw { reply, .. } | Message::Close { reply } => {
                drop(reply.send(Err(error.clone())))
            }
            Message::Worker { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Schedule { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Controls { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Sweep { reply, .. } => drop(reply.send(Err(error.clone()))),
            // The board is marked as a whole when a batch fails.
            Message::Wake { .. } | Message::Opened { .. } => {}
        }
    }
}
