//! Commands: requests to change one run, as plain data. Each is safe to send twice.
//!
//! A command is a target, a sender and an act. The acts of a worker are [`Report`]s and name the lease; those
//! of a person are [`Order`]s and say who and why; those of the engine itself are [`Duty`]s. Each act is a
//! struct in the file of the same name under `decide/`, beside its rule.

use crate::{
    Aggregate, Change, Labels, Lease, Millis, Name, Payload, Rejection, Reply, Rule, RunId, RunOptions,
    Timestamp, act,
};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub run: RunKey,
    pub act: Act,
}

/// Names a run: a database that is spread over machines finds it by its namespace, and nothing ever crosses
/// one. Ordered by id, which is the order in which rows are locked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    pub id: RunId,
    pub namespace: Name,
}

/// Who sends it, and what is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Anybody creates a run, unless the business id is taken.
    Start(Box<StartRun>),
    /// A worker writes, under the lease with this epoch.
    Report { epoch: u64, report: Report },
    /// A person, or a program in a person's place.
    Order { by: Author, order: Order },
    /// The engine itself.
    Duty(Duty),
}

/// Who gave an order, and why. Both go into the order's event, where they stay as long as the run is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub by: Name,
    /// Empty when nothing was said.
    pub reason: String,
}

/// Declares the acts of one kind of sender: the enum, its names, and which rule decides each.
macro_rules! acts {
    ($(#[$doc:meta])* $kind:ident from $sender:ty { $($(#[$act_doc:meta])* $act:ident($held:ty),)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $kind {
            $($(#[$act_doc])* $act($held),)*
        }

        impl $kind {
            /// The names of all acts of this kind.
            pub const NAMES: &[&str] = &[$(stringify!($act)),*];

            /// The act's name.
            pub fn name(&self) -> &'static str {
                match self { $($kind::$act(_) => stringify!($act),)* }
            }

            /// Bytes of the payloads that it carries, for whoever bounds what may wait.
            pub fn payload_bytes(&self) -> usize {
                match self { $($kind::$act(act) => act.payload_bytes(),)* }
            }

            /// What it ends, if it is accepted.
            pub fn ends(&self) -> Ends<'_> {
                match self { $($kind::$act(act) => act.ends(),)* }
            }

            /// Why a worker that is not the sender loses its lease by it.
            pub fn takes_lease(&self) -> Option<&'static str> {
                match self { $($kind::$act(act) => act.takes_lease(),)* }
            }

            /// The answer, if it was carried out before.
            pub(crate) fn repeat(&self, now: Timestamp, seen: &Aggregate) -> Option<Reply> {
                match self { $($kind::$act(act) => act.repeat(now, seen).map(Into::into),)* }
            }

            /// Applies the act's rule.
            pub(crate) fn decide(
                &self,
                now: Timestamp,
                seen: &Aggregate,
                sender: &$sender,
            ) -> Result<Change, Rejection> {
                match self {
                    $($kind::$act(act) => act.decide(now, seen, sender).map(Change::answered),)*
                }
            }
        }

        $(impl From<act::$act> for $kind {
            fn from(act: act::$act) -> Self {
                $kind::$act(act.into())
            }
        })*
    };
}

acts! {
    /// What a worker says about a run that it holds. The lease is checked once, for all of them.
    Report from Lease {
        /// Asks whether a step must run, and notes that it begins.
        BeginStep(Box<act::BeginStep>),
        /// Notes how far a long step is.
        Progress(act::Progress),
        /// Records a step's result.
        RecordStep(act::RecordStep),
        /// Records several results together.
        RecordSteps(act::RecordSteps),
        /// Says that the code dropped a running step.
        CloseStep(act::CloseStep),
        /// Records a failed attempt and decides on the next.
        FailStep(Box<act::FailStep>),
        /// Begins a sleep.
        Sleep(act::Sleep),
        /// Ends a sleep.
        SleepOver(act::SleepOver),
        /// Waits for a signal, or asks again whether one has come.
        AwaitSignal(Box<act::AwaitSignal>),
        /// The same, and ends the lease if none has.
        AwaitOrPark(Box<act::AwaitOrPark>),
        /// Asks a person, and waits for the answer.
        Ask(Box<act::Ask>),
        /// Makes a promise that somebody outside completes.
        MakePromise(Box<act::MakePromise>),
        /// Publishes a value of the run.
        SetValue(Box<act::SetValue>),
        /// Starts another run.
        StartChild(Box<act::StartChild>),
        /// Sets a label of the run.
        SetLabel(act::SetLabel),
        /// Ends the run with its output.
        Complete(act::Complete),
        /// Begins the run anew with another input.
        Continue(Box<act::Continue>),
        /// Ends the run with an error.
        Fail(Box<act::Fail>),
        /// Ends the lease until something that the run waits for is due.
        Park(act::Park),
        /// Gives the run back.
        Release(act::Release),
        /// Pauses the run because code and record disagree.
        Block(act::Block),
        /// Keeps the lease.
        Renew(act::Renew),
    }
}

impl Report {
    /// The wait that it asks about, alone or with a park.
    pub fn awaits(&self) -> Option<&act::AwaitSignal> {
        if let Report::AwaitOrPark(both) = self {
            return Some(&both.wait);
        }
        if let Report::AwaitSignal(wait) = self { Some(wait) } else { None }
    }
}

acts! {
    /// What a person asks for. Who and why go into the event.
    Order from Author {
        /// Ends the run.
        Cancel(act::Cancel),
        /// Ends the run as FAILED.
        Terminate(act::Terminate),
        /// Lets a paused or retrying run go on now.
        Resume(act::Resume),
        /// Lets a run go on that ended badly, or does what a resume does.
        Retry(act::Retry),
        /// Tells the run something.
        Signal(Box<act::Signal>),
        /// Completes a promise, or says that it has failed.
        CompletePromise(Box<act::CompletePromise>),
        /// Says that whoever works on a promise lives.
        BeatPromise(act::BeatPromise),
    }
}

acts! {
    /// What the engine does by itself.
    Duty from () {
        /// Gives a due run to a worker.
        Claim(act::Claim),
        /// Takes the lease of a lost worker away.
        Orphan(act::Orphan),
        /// Acts on what time alone ends.
        Expire(act::Expire),
        /// Tells a run that its child has ended.
        ChildEnded(Box<act::ChildEnded>),
        /// Tells a run of a published event.
        HearEvent(Box<act::HearEvent>),
        /// Tells a run the answer of a person.
        TellAnswer(Box<act::TellAnswer>),
        /// Notes on a failed run that its handler ended.
        NoteHandler(act::NoteHandler),
    }
}

/// What an accepted act ends of what its worker executes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ends<'a> {
    Nothing,
    Step(&'a Name),
    Steps(&'a [StepResult]),
    /// The lease, and with it every step.
    Lease,
}

impl Command {
    /// Creates a run.
    pub fn start(start: impl Into<Box<StartRun>>) -> Self {
        let start = start.into();
        let run = RunKey { id: start.id, namespace: start.namespace.clone() };
        Command { run, act: Act::Start(start) }
    }

    /// Bytes of the payloads that it carries, for whoever bounds what may wait.
    pub fn payload_bytes(&self) -> usize {
        match &self.act {
            Act::Start(start) => start.payload_bytes(),
            Act::Report { report, .. } => report.payload_bytes(),
            Act::Order { order, .. } => order.payload_bytes(),
            Act::Duty(duty) => duty.payload_bytes(),
        }
    }
}

impl Act {
    /// Why a worker loses its lease by it, if it is not the worker's own act.
    pub fn takes_lease(&self) -> Option<&'static str> {
        match self {
            Act::Start(_) => None,
            Act::Report { report, .. } => report.takes_lease(),
            Act::Order { order, .. } => order.takes_lease(),
            Act::Duty(duty) => duty.takes_lease(),
        }
    }

    /// A worker sends it, under a lease: when that is refused because the lease is lost, it is a stale write.
    pub fn is_report(&self) -> bool {
        match self {
            Act::Report { .. } => true,
            Act::Start(_) | Act::Order { .. } | Act::Duty(_) => false,
        }
    }
}

impl RunKey {
    pub fn new(namespace: impl Into<Name>, id: RunId) -> Self {
        RunKey { id, namespace: namespace.into() }
    }

    /// A person's order about this run.
    pub fn order(self, by: Author, order: impl Into<Order>) -> Command {
        Command { run: self, act: Act::Order { by, order: order.into() } }
    }

    /// Something that the engine does to this run.
    pub fn duty(self, duty: impl Into<Duty>) -> Command {
        Command { run: self, act: Act::Duty(duty.into()) }
    }
}

impl Author {
    pub fn new(by: impl Into<Name>, reason: impl Into<String>) -> Self {
        Author { by: by.into(), reason: reason.into() }
    }
}

/// Names a run and the lease under which a worker writes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRef {
    pub namespace: Name,
    pub run: RunId,
    pub epoch: u64,
}

impl LeaseRef {
    /// The run that is leased.
    pub fn key(&self) -> RunKey {
        RunKey { id: self.run, namespace: self.namespace.clone() }
    }

    /// What the holder of this lease says.
    pub fn report(&self, report: impl Into<Report>) -> Command {
        Command { run: self.key(), act: Act::Report { epoch: self.epoch, report: report.into() } }
    }
}

impl StartRun {
    /// Bytes of the input and of the signals.
    pub fn payload_bytes(&self) -> usize {
        self.input.data.len() + self.signals.iter().map(Rule::payload_bytes).sum::<usize>()
    }
}

/// Names a step: its path is its identity, its position detects changed code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRef {
    pub path: Name,
    pub position: u32,
}

/// A step's result, recorded together with others or with the end of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepResult {
    pub step: StepRef,
    pub attempt: u32,
    pub result: Payload,
    pub elapsed_ms: Millis,
}

/// Bytes of several results.
pub(crate) fn result_bytes(steps: &[StepResult]) -> usize {
    steps.iter().map(|step| step.result.data.len()).sum()
}

/// A new run.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRun {
    pub namespace: Name,
    pub id: RunId,
    /// The caller's own name for the run, if it chose one.
    pub business_id: Option<Name>,
    pub workflow_type: Name,
    pub task_queue: Name,
    pub input: Payload,
    /// The moment that the caller asked for; a limit on the execution time is in the options.
    pub deadline_at: Option<Timestamp>,
    pub options: RunOptions,
    pub labels: Labels,
    /// What the run is told with its start: the new one, or the one that has the business id already.
    pub signals: Vec<act::Signal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thousands of commands wait in the lane's queue, and each is moved several times on its way.
    #[test]
    fn a_command_stays_small() {
        assert!(size_of::<Command>() <= 160, "{} bytes", size_of::<Command>());
    }
}
