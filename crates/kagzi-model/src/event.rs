//! The event catalogue: every line that a run's history can have, declared once. `docs/events.md` is written
//! from it.

mod catalogue;
mod messages;
mod record;
pub mod wire;

use serde::{Deserialize, Serialize, de::IgnoredAny};

use self::{
    catalogue::events,
    wire::{Field, Value, Wire, put_bytes, take_field},
};
use crate::{
    ClosePolicy, Failure, Finality, HeardTopic, LivingChild, Millis, Name, Payload, RetryPolicy, RunId,
    Status, TakenSignal, Timestamp, UnreadSignal, Wake, WorkerId,
};

pub use catalogue::KindInfo;
pub use record::{RecordFrame, pretend_not_to_know};

/// One immutable line of a run's history.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// 1, 2, 3, … without a gap.
    pub seq: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    /// Input, step result or output; never inside `kind`, so that it is stored as the bytes it came as.
    pub payload: Option<Payload>,
}

/// Kinds that tell people something and change nothing in any view of a history: one pattern for all who
/// match every kind. A new kind that means nothing to steps, replay or pictures is declared below and listed
/// here.
#[macro_export]
macro_rules! only_told {
    () => {
        $crate::EventKind::HandlerEnded { .. }
            | $crate::EventKind::QuestionAsked { .. }
            | $crate::EventKind::QuestionAnswered { .. }
    };
}

events! {
    "The run" {
        /// A client started it.
        1 RunStarted "run_started" payload "the input";

        /// A worker was given it, under a new epoch.
        2 RunClaimed "run_claimed" {
            1 worker: WorkerId,
            2 epoch: u64,
            /// the sleeps that were over at that moment, so that replay sees the same order
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 slept: Vec<Name>,
        };

        /// Nothing can go on before `due_at` or somebody's word: the run waits for retries, sleeps and
        /// signals; the lease ended, the slot is free.
        8 RunParked "run_parked" {
            /// absent when only somebody's word lets it go on
            1 due_at: Option<Timestamp>,
            /// unfinished steps that the code has dropped and that wake nobody
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            2 closes: Vec<Name>,
            /// closed ones that are waited for after all
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 opens: Vec<Name>,
            /// what the function waits for, where its worker could say so
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 waits: Vec<Name>,
            /// it goes on with the last of them, not with the first
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            5 wake: Option<Wake>,
        };

        /// Given back without counting as an attempt: drain, no handler, a delivery that was lost, a task
        /// that died. Without progress it waits longer each time.
        9 RunReleased "run_released" {
            1 why: String,
        };

        /// The worker was declared lost or its lease ran out.
        10 LeaseLost "lease_lost" {
            1 worker: WorkerId,
            2 epoch: u64,
            /// absent when the run is paused instead
            3 retry_at: Option<Timestamp>,
        };

        /// It waits for a person.
        11 RunPaused "run_paused" {
            /// `replay` (the code no longer matches the record) or `quarantine` (it took its workers down, or
            /// was given back again and again)
            1 by: Name,
            2 why: String,
        };

        /// A person let it go on; waiting retries begin at once.
        12 RunResumed "run_resumed" {
            /// the caller's own name for the request, so that a repeat is recognised
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            1 request: Option<Name>,
            /// who said so
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            2 by: Name,
            /// why, if it was said
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 reason: String,
        };

        /// The function failed and the run asked for retries of the whole run; what the function has gone
        /// past stays.
        18 RunRetried "run_retried" {
            1 attempt: u32,
            2 failure: Failure,
            /// when it is executed again
            3 at: Timestamp,
            /// the failed steps that begin anew
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 forgives: Vec<Name>,
        };

        /// An operator let an ended run go on; what the function has gone past stays.
        19 RunReopened "run_reopened" {
            /// the failed steps that begin anew
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            1 forgives: Vec<Name>,
            /// the caller's own name for the request, so that a repeat is recognised
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            2 request: Option<Name>,
            /// who said so
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 by: Name,
            /// why, if it was said
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 reason: String,
        };
    }

    "Its generations" {
        /// The function ended and begins anew with another input, as the same run: nothing before this line
        /// counts for it any more, and most of it is deleted. What the run takes along stands here.
        29 RunContinued "run_continued" payload "the input of the generation that begins" {
            /// which one begins, from 2
            1 generation: u32,
            /// of the lease that ended with it
            2 epoch: u64,
            /// the latest signals that were taken, so that a late repeat is recognised
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 taken: Vec<TakenSignal>,
            /// the signals that no wait has taken, in the order of their channels
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 unread: Vec<UnreadSignal>,
            /// the channels that stay closed
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            5 closed: Vec<Name>,
            /// the latest requests of operators, so that a repeat is recognised
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            6 requests: Vec<Name>,
            /// the failure handlers that were started for the run
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            7 handlers: Vec<RunId>,
            /// the children that have not ended
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            8 children: Vec<LivingChild>,
            /// up to which event the run has heard, on the topics that it heard of last
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            9 heard: Vec<HeardTopic>,
            /// the same for all other topics
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            10 heard_others: Option<Timestamp>,
            /// how many generations in a row have ended without anything recorded in them
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            11 idle: u32,
        };
    }

    "Its end" {
        /// The function returned.
        13 RunCompleted "run_completed" ends Completed payload "the output";

        /// The function returned an error, panicked, could not read its input, or an operator ended it.
        14 RunFailed "run_failed" ends Failed {
            1 failure: Failure,
            /// the step whose error the function returned, if it was one
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            2 step: Option<Name>,
            /// who ended it, if an operator did; the failure's message says why
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 by: Option<Name>,
        };

        /// Somebody asked.
        15 RunCancelled "run_cancelled" ends Cancelled {
            1 reason: String,
            /// who asked
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            2 by: Name,
        };

        /// The deadline passed, whatever the run was doing.
        16 RunTimedOut "run_timed_out" ends TimedOut {
            1 failure: Failure,
        };

        /// The run has ended, and these children of it were told to end.
        33 ChildrenClosed "children_closed" {
            1 children: Vec<RunId>,
        };

        /// A failure handler was started for it.
        20 HandlerStarted "handler_started" {
            1 handler: RunId,
            2 workflow_type: Name,
            3 task_queue: Name,
        };

        /// That handler ended.
        21 HandlerEnded "handler_ended" {
            1 handler: RunId,
            2 outcome: String,
        };
    }

    "What others say" {
        /// Somebody told the run something that no open wait could take at that moment.
        24 SignalReceived "signal_received" payload "the signal" {
            1 channel: Name,
            /// counts once on its channel
            2 id: Name,
            /// what is waited for has failed
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 failure: Option<Failure>,
            /// it was published on a topic at this time, which is its place there
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 published: Option<Timestamp>,
        };
    }

    "Promises and values" {
        /// Whoever works on a promise said that he lives. Not every sign is written down.
        31 PromiseBeat "promise_beat" {
            1 name: Name,
            /// the promise is over then, unless there is another sign
            2 until: Timestamp,
        };

        /// The code published a value that others read without a worker; the last one of a name counts.
        32 ValueSet "value_set" payload "the value" {
            1 name: Name,
            /// how often the code had set this name
            2 number: u64,
        };
    }

    "Steps, sleeps and waits" {
        /// An attempt began. Written for steps that other languages begin by RPC, and for steps that run
        /// long; the SDK's ordinary steps have none.
        3 StepStarted "step_started" step(step, attempt) {
            1 step: Name,
            2 position: u32,
            3 attempt: u32,
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 timeout_at: Option<Timestamp>,
            /// the step's own policy, for the case that the server must time it out
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            5 policy: RetryPolicy,
        };

        /// A long step said how far it is.
        17 StepProgressed "step_progressed" step(step, attempt) payload "what the next attempt may read" {
            1 step: Name,
            2 position: u32,
            3 attempt: u32,
        };

        /// The result was recorded. At most one per step.
        4 StepCompleted "step_completed" step(step, attempt) payload "the result" {
            1 step: Name,
            2 position: u32,
            3 attempt: u32,
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            4 elapsed_ms: Millis,
        };

        /// An attempt failed.
        5 StepFailed "step_failed" step(step, attempt) {
            1 step: Name,
            2 position: u32,
            3 attempt: u32,
            4 failure: Failure,
            /// absent when this was the last
            5 retry_at: Option<Timestamp>,
            /// why there is no retry
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            6 finality: Option<Finality>,
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            7 elapsed_ms: Millis,
        };

        /// A sleep began.
        6 SleepScheduled "sleep_scheduled" step(step) {
            1 step: Name,
            2 position: u32,
            3 until: Timestamp,
        };

        /// A sleep ended while other steps kept the run on its worker. A parked run's sleeps end in
        /// `run_claimed`.
        7 SleepOver "sleep_over" step(step) {
            1 step: Name,
        };

        /// The workflow set a label of its run; the last value of a name counts. The call has a step's
        /// identity, so that replay does not repeat it.
        22 LabelSet "label_set" step(step) {
            1 step: Name,
            2 position: u32,
            3 name: Name,
            4 value: Name,
        };

        /// The code made a promise that somebody outside completes. The call has a step's identity.
        30 PromiseMade "promise_made" step(step) payload "the secret of its token" {
            1 step: Name,
            2 position: u32,
            3 name: Name,
            /// of the secret; whoever shows the secret may complete this promise
            4 token_hash: Name,
            /// absent when it has no time
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            5 until: Option<Timestamp>,
            /// how often whoever works on it says that he lives
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            6 heartbeat_ms: Option<u64>,
        };

        /// The code waits for a signal; its wait has a step's identity.
        25 WaitBegan "wait_began" step(step) {
            1 step: Name,
            2 position: u32,
            3 channel: Name,
            /// absent when it waits for as long as it takes
            4 until: Option<Timestamp>,
        };

        /// The wait that began with the line before it is for the answer of a person; the question is in the
        /// inbox.
        34 QuestionAsked "question_asked" step(step) {
            1 step: Name,
            /// its id in the inbox
            2 question: Name,
            /// decision, input, approval, browser_takeover or error_resolution
            3 type_name: Name,
            4 title: Name,
        };

        /// Somebody answered the question, or its time was over, or somebody took it back. The line before it
        /// has the answer.
        35 QuestionAnswered "question_answered" step(step) {
            1 step: Name,
            2 question: Name,
            /// absent when nobody did
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            3 by: Option<Name>,
            /// user, timeout_default, escalation or operator
            4 source: Name,
            /// the answer in a word or two
            5 answer: Name,
        };

        /// A wait took a signal. One that is over without any ends like a sleep.
        26 WaitEnded "wait_ended" step(step) payload "the signal, unless an earlier event holds it" {
            1 step: Name,
            2 position: u32,
            3 channel: Name,
            /// of the signal
            4 id: Name,
            /// the event that holds the signal, where it came before its wait
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            5 received: Option<u64>,
            /// the signal says that what was waited for has failed
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            6 failure: Option<Failure>,
            /// it was published on a topic at this time, which is its place there; not repeated where an
            /// earlier event says it
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            7 published: Option<Timestamp>,
        };

        /// The code takes nothing more on this channel; senders are refused from here on.
        27 ChannelClosed "channel_closed" step(step) {
            1 step: Name,
            2 position: u32,
            3 channel: Name,
        };

        /// The code started another run, in the same commit. Where it waits for the child's end, the step
        /// goes on until that is told on the child's channel.
        28 ChildStarted "child_started" step(step) {
            1 step: Name,
            2 position: u32,
            3 child: RunId,
            4 workflow_type: Name,
            5 task_queue: Name,
            /// what becomes of it when the run ends
            6 close: ClosePolicy,
            /// the step ends with the child
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            7 awaited: bool,
            /// how long the step waits for it
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            8 until: Option<Timestamp>,
            /// the run is told of the child's end
            #[serde(default, skip_serializing_if = "Wire::is_absent")]
            9 told: bool,
        };

        /// The code dropped a step while an attempt ran, and nobody knows how far it came; or while it ended,
        /// and the end does not count because the code never heard of it.
        23 StepClosed "step_closed" step(step, attempt) {
            1 step: Name,
            2 position: u32,
            3 attempt: u32,
        };
    }
}

/// The one field that every line in JSON has.
#[derive(Deserialize)]
struct Tag {
    event: Name,
}

/// The field of a record without a kind that holds a line in JSON.
const LINE: u32 = 1;

fn line(mut record: &[u8]) -> Option<&str> {
    match take_field(&mut record) {
        Some((LINE, Value::Bytes(line))) => std::str::from_utf8(line).ok(),
        Some(_) | None => None,
    }
}

impl EventKind {
    /// What people read.
    pub fn to_json(&self) -> String {
        match self {
            EventKind::Unknown { number, name, record } => {
                let line = line(record).filter(|_| *number == 0);
                if let Some(line) = line.filter(|line| serde_json::from_str::<IgnoredAny>(line).is_ok()) {
                    return line.to_owned();
                }
                let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
                serde_json::json!({ "event": name, "number": number, "record": hex }).to_string()
            }
            known => serde_json::to_string(known).expect("our own types are always valid JSON"),
        }
    }

    /// Reads what [`EventKind::to_json`] wrote. A line that is not understood is kept as it is, under the
    /// number 0, which no kind has; only what is no line at all is an error.
    pub fn from_json(detail: &str) -> Result<EventKind, serde_json::Error> {
        serde_json::from_str(detail).or_else(|_| {
            let Tag { event } = serde_json::from_str(detail)?;
            Ok(EventKind::kept(event, detail))
        })
    }

    /// Reads a line of a database that kept events in JSON. Nothing is lost: what is no line is kept too.
    pub fn from_old_line(detail: &str) -> EventKind {
        EventKind::from_json(detail).unwrap_or_else(|_| EventKind::kept(Name::from("kind 0"), detail))
    }

    /// What a line in JSON calls itself.
    fn line_name(record: &[u8]) -> Option<Name> {
        let tag: Tag = serde_json::from_str(line(record)?).ok()?;
        Some(tag.event)
    }

    fn kept(name: Name, detail: &str) -> EventKind {
        let mut record = Vec::with_capacity(detail.len() + 4);
        put_bytes(LINE, detail.as_bytes(), &mut record);
        EventKind::Unknown { number: 0, name, record: record.into() }
    }

    /// The level that this version can write.
    pub const LEVEL: u8 = 1;

    /// The kind with this name, if there is one.
    pub fn named(name: &str) -> Option<&'static KindInfo> {
        EventKind::KINDS.iter().find(|kind| kind.name == name)
    }

    /// The run came further than it was, or a person said that it should: what happened in a row before it is
    /// over.
    pub fn is_progress(&self) -> bool {
        match self {
            EventKind::RunClaimed { slept, .. } => !slept.is_empty(),
            EventKind::StepProgressed { .. }
            | EventKind::StepCompleted { .. }
            | EventKind::StepFailed { .. }
            | EventKind::SleepScheduled { .. }
            | EventKind::SleepOver { .. }
            | EventKind::LabelSet { .. }
            | EventKind::PromiseMade { .. }
            | EventKind::WaitBegan { .. }
            | EventKind::WaitEnded { .. }
            | EventKind::ChannelClosed { .. }
            | EventKind::ChildStarted { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::RunContinued { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. } => true,
            EventKind::RunStarted
            | EventKind::SignalReceived { .. }
            | EventKind::PromiseBeat { .. }
            | EventKind::ValueSet { .. }
            | EventKind::StepStarted { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::StepClosed { .. }
            | EventKind::ChildrenClosed { .. }
            | EventKind::Unknown { .. }
            | EventKind::HandlerStarted { .. }
            | only_told!() => false,
        }
    }
}
