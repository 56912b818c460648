//! What can be asked of a lane, each with the type of its answer: said once, in the list below.

use kagzi_model::{
    Command, ControlRejection, Gate, GateKey, Namespace, NounRejection, NounRow, PublishEvent,
    PublishRejection, PublishReply, Worker,
    intervention::{InterventionRejection, InterventionRequest, Notice},
    schedule::{ScheduleRejection, ScheduleRequest},
};
use tokio::sync::oneshot;

use crate::{
    Beat, BeatAnswer, ChangeGate, ChangeNamespace, ChangeNoun, CutOff, Demand, Deregister, Drain,
    InterventionReply, Offline, Outcome, QueueKey, Register, RegistryError, ScheduleReply, SettleNotice,
    StoreError, SweepKind, Swept, TakeNotices,
};

/// Where an answer goes.
type Reply<A> = oneshot::Sender<Result<A, StoreError>>;

/// Something that a store can be asked, with the type of its answer.
pub trait Request: Sized {
    type Answer: Send;
    /// The message that asks it.
    fn message(ask: Ask<Self>) -> Message;
}

/// A request in a lane, and its answer until the commit: nobody is told of anything before it.
pub struct Ask<R: Request> {
    pub request: R,
    answer: Option<R::Answer>,
    reply: Reply<R::Answer>,
}

impl<R: Request> Ask<R> {
    pub fn new(request: R) -> (Self, oneshot::Receiver<Result<R::Answer, StoreError>>) {
        let (reply, answered) = oneshot::channel();
        (Ask { request, answer: None, reply }, answered)
    }

    /// Holds the answer back. A turn that is repeated answers again.
    pub fn answer(&mut self, answer: R::Answer) {
        self.answer = Some(answer);
    }

    /// Sends what was answered. A caller that is gone needs no answer.
    fn send(self) {
        if let Some(answer) = self.answer {
            drop(self.reply.send(Ok(answer)));
        }
    }

    fn refuse(self, error: &StoreError) {
        drop(self.reply.send(Err(error.clone())));
    }
}

macro_rules! requests {
    ($($variant:ident($request:ty) => $answer:ty;)*) => {
        /// What waits in front of a lane. A request travels in a box: it is moved several times on its way.
        pub enum Message {
            $($variant(Box<Ask<$request>>),)*
            /// Another server says that something became due; none = look everywhere.
            Wake { key: Option<QueueKey> },
            /// Another server says that a gate may let something through.
            Opened { gate: GateKey },
        }

        $(impl Request for $request {
            type Answer = $answer;

            fn message(ask: Ask<Self>) -> Message {
                Message::$variant(Box::new(ask))
            }
        })*

        impl Message {
            /// Tells whoever asked, after the commit.
            pub(super) fn send(self) {
                match self {
                    $(Message::$variant(ask) => ask.send(),)*
                    Message::Wake { .. } | Message::Opened { .. } => {}
                }
            }

            pub(super) fn refuse(self, error: &StoreError) {
                match self {
                    $(Message::$variant(ask) => ask.refuse(error),)*
                    // The board is marked as a whole when a batch fails.
                    Message::Wake { .. } | Message::Opened { .. } => {}
                }
            }
        }
    };
}

requests! {
    Apply(Vec<Command>) => Vec<Outcome>;
    StandBy(Demand) => Result<(), RegistryError>;
    Withdraw(Withdraw) => ();
    Register(Register) => Result<Worker, RegistryError>;
    Beat(Beat) => Result<BeatAnswer, RegistryError>;
    Drain(Drain) => Result<Worker, RegistryError>;
    CutOff(CutOff) => Result<u32, RegistryError>;
    Deregister(Deregister) => Result<u32, RegistryError>;
    Offline(Offline) => Result<u32, RegistryError>;
    Schedule(ScheduleRequest) => Result<ScheduleReply, ScheduleRejection>;
    Namespace(ChangeNamespace) => Result<Namespace, ControlRejection>;
    Gate(ChangeGate) => Result<Gate, ControlRejection>;
    Noun(ChangeNoun) => Result<NounRow, NounRejection>;
    Publish(PublishEvent) => Result<PublishReply, PublishRejection>;
    Intervention(InterventionRequest) => Result<InterventionReply, InterventionRejection>;
    TakeNotices(TakeNotices) => Vec<Notice>;
    SettleNotice(SettleNotice) => ();
    Sweep(SweepKind) => Swept;
    Close(Close) => ();
}

/// Ends a demand.
pub struct Withdraw(pub u64);

/// Stops the lane.
pub struct Close;

impl Message {
    pub(super) fn len(&self) -> usize {
        match self {
            Message::Apply(ask) => ask.request.len(),
            Message::Beat(ask) => ask.request.runs.len().max(1),
            Message::StandBy(_)
            | Message::Withdraw(_)
            | Message::Register(_)
            | Message::Drain(_)
            | Message::CutOff(_)
            | Message::Deregister(_)
            | Message::Offline(_)
            | Message::Schedule(_)
            | Message::Namespace(_)
            | Message::Gate(_)
            | Message::Noun(_)
            | Message::Publish(_)
            | Message::Intervention(_)
            | Message::TakeNotices(_)
            | Message::SettleNotice(_)
            | Message::Sweep(_)
            | Message::Close(_)
            | Message::Wake { .. }
            | Message::Opened { .. } => 1,
        }
    }

    /// Bytes of the payloads that it carries.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Message::Schedule(ask) => ask.request.payload_bytes(),
            Message::Publish(ask) => ask.request.payload.data.len(),
            other => other.commands().iter().map(Command::payload_bytes).sum(),
        }
    }

    /// The commands that it carries.
    pub fn commands(&self) -> &[Command] {
        if let Message::Apply(ask) = self { &ask.request } else { &[] }
    }

    /// The heartbeat that it is.
    pub fn beat(&self) -> Option<&Beat> {
        if let Message::Beat(ask) = self { Some(&ask.request) } else { None }
    }
}
