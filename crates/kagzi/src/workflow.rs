//! What workflow functions are made of.
//!
//! | to | see |
//! |---|---|
//! | record a step | [`WorkflowContext::run`], [`WorkflowContext::step`] |
//! | say how it is retried | [`RetryPolicy`], [`StepBuilder::attempts`] |
//! | fail in a way that says more | [`StepFailure`], [`Failure`], [`NonRetryableError`], [`RetryAfterError`], [`HttpFailure`] |
//! | look until something is there | [`WorkflowContext::poll`] |
//! | sleep | [`WorkflowContext::sleep`], [`WorkflowContext::named_sleep`] |
//! | wait for somebody's word | [`WorkflowContext::signal`], [`WorkflowContext::signals`] |
//! | do several things at once | [`WorkflowContext::gather`], [`WorkflowContext::race`], [`WorkflowContext::spawn`], [`WorkflowContext::scope`] |
//! | go on for ever | [`WorkflowContext::continue_as_new`], [`WorkflowContext::should_continue`] |
//! | wait for somebody | [`WorkflowContext::signal`], [`WorkflowContext::promise`] |
//! | answer requests | [`WorkflowContext::requests`] |
//! | publish how far it is | [`WorkflowContext::set_value`] |
//! | handle the failure of another run | [`WorkflowFailedEvent`] |

pub(crate) mod typed;

pub use crate::cancellation::CancellationToken;
pub use crate::http_failure::HttpFailure;
pub use crate::retry_policy::{Backoff, RetryPolicy};
pub use crate::run::answer::{Approval, Decision, Input, Takeover};
pub use crate::run::before_retry::BeforeRetry;
pub use crate::run::child::{ChildBuilder, ChildHandle, ClosePolicy, TimedChild};
pub use crate::run::children::ChildrenBuilder;
pub use crate::run::context::WorkflowContext;
pub use crate::run::continue_as_new::ContinueAsNew;
pub use crate::run::event::{EventWait, TimedEventWait};
pub use crate::run::gather::{Gather, GatherEnd, Gathered, Gathering};
pub use crate::run::poll::PollBuilder;
pub use crate::run::promise::{NewPromise, Promise};
pub use crate::run::question::Question;
pub use crate::run::race::Raced;
pub use crate::run::request::{Request, Requests};
pub use crate::run::signal::{SignalWait, Signals, TimedSignalWait};
pub use crate::run::spawn::Spawned;
pub use crate::run::step::StepContext;
pub use crate::run::step_builder::StepBuilder;
pub use crate::step_error::{Finality, NonRetryableError, RetryAfterError, StepError, StepFailure};
pub use crate::worker::equipment::{Failure, Middleware, Next};
pub use crate::worker::observer::{Observer, RunOutcome};
pub use crate::workflow_failed::WorkflowFailedEvent;
pub use typed::{Answers, AnyInput, Registers, Starts, TypedRun, Workflow};
