//! What a message is answered, once the turn is committed.

use kagzi_model::{ControlRejection, schedule::ScheduleRejection};

use crate::{ControlReply, Outcome, RegistryError, ScheduleReply, Swept, WorkerReply, lane::Message};

/// An answer, held back until the commit.
pub enum Answer {
    Applied(Vec<Outcome>),
    StoodBy(Result<(), RegistryError>),
    Withdrawn,
    Worker(Result<WorkerReply, RegistryError>),
    Schedule(Box<Result<ScheduleReply, ScheduleRejection>>),
    Controls(Result<ControlReply, ControlRejection>),
    Swept(Swept),
    Woken,
}

impl Answer {
    /// Sends the answer to its asker, if it still listens.
    pub fn send(self, message: Message) {
        match (self, message) {
            (Answer::Applied(outcomes), Message::Apply { reply, .. }) => drop(reply.send(Ok(outcomes))),
            (Answer::StoodBy(answer), Message::StandBy { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Withdrawn, Message::Withdraw { reply, .. }) => drop(reply.send(Ok(()))),
            (Answer::Worker(answer), Message::Worker { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Schedule(answer), Message::Schedule { reply, .. }) => drop(reply.send(Ok(*answer))),
            (Answer::Controls(answer), Message::Controls { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Swept(swept), Message::Sweep { reply, .. }) => drop(reply.send(Ok(swept))),
            (Answer::Woken, Message::Wake { .. } | Message::Opened { .. }) => {}
            (_, _) => unreachable!("answers are made in the order of their messages"),
        }
    }
}
