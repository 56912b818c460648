//! What the sender of an accepted command is told: one type per question, and one enum for those who carry
//! them.

use crate::{Failure, Finality, Millis, Name, Rejection, RunId, Status, Timestamp};

/// Declares the enum of all replies, and how each type gets in and out of it.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The answer to an accepted command.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Reply {
            $($(#[$doc])* $name($name),)*
        }

        $(impl From<$name> for Reply {
            fn from(reply: $name) -> Self {
                Reply::$name(reply)
            }
        }

        impl Answer for $name {
            fn of(reply: Reply) -> Option<Self> {
                if let Reply::$name(reply) = reply { Some(reply) } else { None }
            }
        })*
    };
}

/// A reply of one type, taken out of the enum again by whoever sent the command.
pub trait Answer: Into<Reply> {
    /// None for the answer to another question.
    fn of(reply: Reply) -> Option<Self>;
}

replies! {
    /// To a start.
    Started,
    /// To a claim.
    Claimed,
    /// To the question whether a step must run.
    Begin,
    /// To what is done or was done.
    Done,
    /// To a failed attempt.
    Attempted,
    /// To a sleep.
    Asleep,
    /// To a wait.
    Waited,
    /// To the start of a child.
    ChildBegan,
    /// To a signal.
    Signalled,
    /// To an order.
    Ordered,
    /// To the end of a function with an error.
    RunFailed,
    /// To what time or a lost worker ends.
    Reclaimed,
    /// To a report of a worker whose code no longer matches the record.
    Blocked,
}

/// The run exists; `existed` when it did before.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    pub run: RunId,
    pub existed: bool,
}

/// The run is leased under this epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub epoch: u64,
}

/// Whether a step must run.
#[derive(Debug, Clone, PartialEq)]
pub enum Begin {
    /// Run it; this is the number of the attempt, and how long it may take.
    Execute { attempt: u32, timeout_ms: Option<Millis> },
    /// It has a result: read it from the journal.
    Recorded,
    /// It failed for good.
    Failed { failure: Failure, attempts: u32, finality: Finality },
    /// Its next attempt may begin at `at`.
    NotReady { at: Timestamp },
}

/// Done; `already` when it had been done before and nothing was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    pub already: bool,
}

impl Done {
    pub const NOW: Done = Done { already: false };
    pub const BEFORE: Done = Done { already: true };
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Attempted {
    /// It is retried at `at`.
    Retry { at: Timestamp, attempt: u32 },
    /// The step failed for good after this many attempts.
    Final { attempts: u32, finality: Finality },
}

/// How a sleep stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asleep {
    Until(Timestamp),
    /// `already` when it was over before and nothing was written.
    Over {
        already: bool,
    },
}

/// How a wait stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// Nothing has come; by itself it is over then.
    Until(Option<Timestamp>),
    /// It took the signal with this id, which the event with this number holds; with a failure where what was
    /// waited for has failed.
    Taken { seq: u64, id: Name, failure: Option<Failure> },
    /// Its time is over.
    Elapsed,
    /// The signs of life that it demands have stopped.
    Silent,
    /// Nothing more comes on its channel.
    Closed,
}

/// The child exists; how its step stands, where it waits for the child's end.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildBegan {
    pub child: RunId,
    pub waited: Option<Waited>,
}

/// The run was told; `already` when it was before and nothing was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signalled {
    pub already: bool,
}

/// The run stands at this status; `already` when it did before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ordered {
    pub status: Status,
    pub already: bool,
}

/// The function failed; the run is executed again at `retry_at`, or has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunFailed {
    pub retry_at: Option<Timestamp>,
}

/// What was to be done about a run whose time or worker is gone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reclaimed {
    /// Nothing.
    Nothing,
    /// The run ended, or steps that ran too long have failed.
    Ended,
    /// The lease was taken back: the run goes on at `at`, or is paused.
    TakenBack { at: Option<Timestamp> },
}

/// The report is refused, and the run is paused by it: a person must look before code and record drift
/// further apart. Whoever applies the change answers with the refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    pub refusal: Rejection,
}
