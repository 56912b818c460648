//! The rules of Kagzi, as pure functions over plain data.
//!
//! A [`Command`] asks for a change of one run. [`decide`] looks at what is known of that run
//! ([`Aggregate`]) and answers with a [`Change`] or a [`Rejection`]. Stores only load rows, apply changes and
//! find what is due, so a rule has one home and can be tested without a database.

pub mod act;
mod alternative;
mod backoff;
mod change;
pub mod codes;
mod command;
mod decide;
mod entity;
pub mod event;
mod failure;
mod failure_handler;
mod family;
mod gate;
pub mod history;
mod id;
pub mod intervention;
mod label;
pub mod ladder;
pub mod limits;
mod mail;
mod name;
mod namespace;
mod noun;
mod payload;
mod preset;
mod promise;
mod rejection;
mod reply;
mod reserved;
mod retry;
mod rule;
mod ruling;
mod run;
pub mod schedule;
mod shared_key;
mod step;
mod time;
mod topic;
mod trigger;
mod wait;
mod worker;

pub use alternative::{Alternative, AlternativeError, Selection, check_alternatives};
pub use backoff::{Backoff, seed as backoff_seed};
pub use change::Change;
pub use command::{
    Act, Author, Command, Duty, Ends, LeaseRef, Order, Report, RunKey, StartRun, StepRef, StepResult,
};
pub use decide::{child_ended::tell_not_started, decide};
pub use entity::Entity;
pub use event::{
    Event, EventKind, Kind, KindInfo, RecordFrame,
    wire::{Field, Proto},
};
pub use failure::Failure;
pub use failure_handler::{FAILURE_HANDLER, handler_business_ids, handler_ids, namespace_handler};
pub use family::{ClosePolicy, Family, LivingChild, Parent, child_channel, child_of, is_child_channel};
pub use gate::{Gate, GateCommand, GateKey, GateScope};
pub use history::{
    Aggregate, AttemptState, Audit, AuditedChild, Journal, JournalEntry, JournalState, Projection,
    StepAttempt, attempts, journal,
};
pub use id::{RunId, WorkerId};
pub use kagzi_catalogue::handling::http::find as http_line;
pub use kagzi_catalogue::{Class, Reason, Rung, Severity, Status, StepStatus};
pub use label::{LabelError, Labels, USER_LABEL, check_label_name, check_label_value};
pub use mail::{HeardTopic, Mail, REPLY, TakenSignal, Unread, UnreadSignal};
pub use name::{Name, NameError, check_name, check_step_path};
pub use namespace::{
    ControlRejection, DEFAULT_NAMESPACE, Defaults, Mark, Namespace, NamespaceChange, NamespaceCommand,
    NamespaceField,
};
pub use noun::{Noun, NounChange, NounKey, NounRejection, NounRow, NounRule};
pub use payload::Payload;
pub use promise::{PROMISE_CHANNEL, Promise, promise_channel};
pub use rejection::Rejection;
pub use reply::{
    Answer, Asleep, Attempted, Begin, Blocked, ChildBegan, Claimed, Done, Ordered, Reclaimed, Reply,
    RunFailed, Signalled, Started, Waited,
};
pub use reserved::{REQUESTED, reserved};
pub use retry::{FailedAttempt, Finality, PolicyError, RetryPolicy, Verdict};
pub use rule::Rule;
pub use ruling::{
    Rules, Ruling, Said, Source,
    handling_rule::{HandlingRule, HandlingRuleError, check_rules},
    rule as rule_on,
};
pub use run::{IdReuse, Lease, OnFailure, Run, RunOptions, State, Timeouts};
pub use shared_key::{ClaimKey, FinishKey, ForgetKey, KeyHolder, KeyOutcome, KeyState, ReadKey, SharedKey};
pub use step::{Step, StepEnd, StepState};
pub use time::{Millis, Timestamp, ago, in_time, moment, rfc3339};
pub use topic::{
    Delivery, ENGINE_TOPIC, EVENT_CHANNEL, PublishEvent, PublishRejection, PublishReply, PublishedEvent,
    Topic, TopicError, TopicKey, WORKFLOW_FAILED, check_event_key, check_published_topic, check_topic,
    failed_event, failed_topic, is_event_channel,
};
pub use trigger::{CreateTrigger, DeleteTrigger, TOPIC_LABEL, TRIGGER_LABEL, Trigger};
pub use wait::{Parked, Wait, Wake};
pub use worker::{Registration, RegistryError, Worker, WorkerCommand, WorkerStatus, renewed_until};
