//! Waiting for somebody's word: `ctx.signal` and `ctx.signals`.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, StepStatus, WaitOutcome, report};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::slot::{Phase, Slot};
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::turns::{Open, settled};
use crate::run::uplink::Verdict;
use crate::step_error::{Finality, StepError};
use crate::{failure, limits, payload, retry_policy};

/// A wait for one signal, made by [`WorkflowContext::signal`]. Await it.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct SignalWait<T> {
    called: anyhow::Result<Called>,
    channel: String,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> SignalWait<T> {
    pub(crate) fn new(context: &WorkflowContext, channel: &str) -> SignalWait<T> {
        SignalWait::named(context, channel, channel)
    }

    /// The same, where the step is not called as the channel is.
    pub(crate) fn named(context: &WorkflowContext, name: &str, channel: &str) -> SignalWait<T> {
        SignalWait { called: context.call(name), channel: channel.to_owned(), reads: PhantomData }
    }

    /// Waits for at most so long, from the first time that the code comes by: `None` = nobody said anything.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn approve(ctx: WorkflowContext, _: ()) -> anyhow::Result<bool> {
    ///     let day = Duration::from_secs(86_400);
    ///     let answer: Option<bool> = ctx.signal("approved").timeout(day).await?;
    ///     Ok(answer.unwrap_or(false))
    /// }
    /// ```
    pub fn timeout(self, timeout: Duration) -> TimedSignalWait<T> {
        TimedSignalWait { wait: self, timeout }
    }

    fn begin(
        self,
        timeout: Option<Duration>,
        last_call: bool,
    ) -> BoxFuture<'static, anyhow::Result<Option<T>>> {
        let SignalWait { called, channel, .. } = self;
        Box::pin(async move {
            let called = called?;
            let path = called.slot.step.path.clone();
            listen(called, channel, timeout, last_call).await?.read(&path)
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for SignalWait<T> {
    type Output = anyhow::Result<T>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        let channel = self.channel.clone();
        let waiting = self.begin(None, false);
        Box::pin(async move {
            let closed = || anyhow::anyhow!("channel '{channel}' is closed: nothing more comes on it");
            waiting.await?.ok_or_else(closed)
        })
    }
}

/// A wait that ends by itself, made by [`SignalWait::timeout`]. Await it.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct TimedSignalWait<T> {
    wait: SignalWait<T>,
    timeout: Duration,
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for TimedSignalWait<T> {
    type Output = anyhow::Result<Option<T>>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<Option<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.wait.begin(Some(self.timeout), false)
    }
}

/// The signals of one channel, one after the other. Made by [`WorkflowContext::signals`].
///
/// ```
/// # use kagzi::WorkflowContext;
/// async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
///     let items = ctx.signals::<String>("item");
///     let mut cart = Vec::new();
///     while cart.len() < 10 {
///         cart.extend(items.next().await?);
///     }
///     // Takes what is left, then closes the channel: whoever sends later is refused, and nothing is lost.
///     while let Some(item) = items.last_call().await? {
///         cart.push(item);
///     }
///     Ok(cart)
/// }
/// ```
pub struct Signals<T> {
    context: WorkflowContext,
    channel: String,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> Signals<T> {
    pub(crate) fn new(context: WorkflowContext, channel: &str) -> Signals<T> {
        Signals { context, channel: channel.to_owned(), reads: PhantomData }
    }

    /// The next signal, in the order in which they came; `None` once the channel is closed.
    pub fn next(&self) -> impl Future<Output = anyhow::Result<Option<T>>> + Send + use<T> {
        SignalWait::new(&self.context, &self.channel).begin(None, false)
    }

    /// The next signal that is already there. If there is none, the channel is closed and `None` comes back:
    /// from here on senders are refused instead of being told that their signal was delivered.
    pub fn last_call(&self) -> impl Future<Output = anyhow::Result<Option<T>>> + Send + use<T> {
        SignalWait::new(&self.context, &self.channel).begin(None, true)
    }
}

/// What a wait came to.
pub(crate) enum Heard {
    /// It took the signal with this id.
    Taken {
        id: String,
        signal: Option<v1::Payload>,
    },
    /// The signal says that what is waited for has failed, or nobody here can decode it.
    Failed {
        id: String,
        failure: Option<v1::Failure>,
    },
    Elapsed,
    Closed,
    /// The signs of life that a promise demands have stopped.
    Silent,
}

impl Heard {
    /// What somebody said, if anybody did.
    pub(crate) fn read<T: DeserializeOwned>(self, path: &str) -> anyhow::Result<Option<T>> {
        match self {
            Heard::Taken { signal, .. } => value(signal.as_ref()),
            Heard::Failed { failure, .. } => Err(rejected(path, failure)),
            Heard::Elapsed | Heard::Closed | Heard::Silent => Ok(None),
        }
    }
}

/// Waits on a channel.
pub(crate) async fn listen(
    called: Called,
    channel: String,
    timeout: Option<Duration>,
    last_call: bool,
) -> anyhow::Result<Heard> {
    let slot = called.slot.clone();
    slot.track(wait(called, Awaited { channel, timeout, last_call, ask: None })).await
}

/// What is waited for.
pub(crate) struct Awaited {
    pub(crate) channel: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last_call: bool,
    /// A person is asked, and the answer is waited for.
    pub(crate) ask: Option<Box<v1::Question>>,
}

/// Asks in its turn, and again whenever something may have come or the time is over: the server decides.
async fn wait(called: Called, awaited: Awaited) -> anyhow::Result<Heard> {
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    let Awaited { channel, timeout, last_call, ask } = awaited;
    let (mut until, mut asks) = (None, true);
    if let Some(recorded) = recorded {
        let entry = recorded.entry;
        match entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                return Ok(Heard::Taken { id: entry.signal_id, signal: entry.result });
            }
            StepStatus::Sleeping if recorded.place > 0 => {
                slot.released().await;
                return Ok(if entry.silent { Heard::Silent } else { Heard::Elapsed });
            }
            StepStatus::Failed => {
                slot.released().await;
                return Ok(Heard::Failed {
                    id: entry.signal_id,
                    failure: entry.failure.map(|failure| *failure),
                });
            }
            StepStatus::Waiting => {
                until = (entry.remaining_ms >= 0).then(|| run.left_of(entry.remaining_ms));
                asks = entry.signalled;
            }
            // A failure that was forgiven: it is waited for anew.
            StepStatus::Pending => {}
            status @ (StepStatus::Sleeping | StepStatus::Running | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message =
                    format!("recorded {path} at position {position} as {status}, got a wait for a signal");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        }
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let asked = Asked { asks, until };
    Ok(word(&slot, &Awaited { channel, timeout, last_call, ask }, asked).await)
}

/// How far the server was asked before.
pub(crate) struct Asked {
    /// There is a reason to ask at once.
    pub(crate) asks: bool,
    pub(crate) until: Option<Instant>,
}

/// Waits for the next word on a channel: asks in its turn, and again whenever something may have come.
pub(crate) async fn word(slot: &Arc<Slot>, awaited: &Awaited, asked: Asked) -> Heard {
    let (run, step) = (&slot.run, &slot.step);
    let Awaited { channel, timeout, last_call, ask } = awaited;
    let Asked { mut asks, mut until } = asked;
    let mut seen = run.hints(channel);
    loop {
        if asks {
            seen = run.hints(channel);
            let timeout_ms = timeout.map(retry_policy::millis);
            // What is waited for is named by the question itself.
            let channel = if ask.is_some() { String::new() } else { channel.clone() };
            let (step, ask) = (Some(step.clone()), ask.clone());
            run.ask(
                slot,
                report::Body::SignalAwaited(v1::SignalAwaited {
                    step,
                    channel,
                    timeout_ms,
                    last_call: *last_call,
                    ask,
                    park: None,
                }),
            );
            let waited = match slot.heard().await {
                Verdict::Waited(waited) => waited,
                verdict @ (Verdict::Committed
                | Verdict::Sleeping { .. }
                | Verdict::Retry { .. }
                | Verdict::Final { .. }
                | Verdict::ChildBegan(_)
                | Verdict::Refused { .. }) => never(run.refuse("a wait", verdict).await),
            };
            match waited.outcome() {
                WaitOutcome::Taken => return taken(*waited),
                WaitOutcome::Elapsed => return Heard::Elapsed,
                WaitOutcome::Silent => return Heard::Silent,
                WaitOutcome::Closed => return Heard::Closed,
                WaitOutcome::Waiting | WaitOutcome::Unspecified => {
                    let left = waited.remaining_ms.map(retry_policy::from_millis);
                    until = left.and_then(|left| Instant::now().checked_add(left));
                }
            }
        }
        slot.set_phase(Phase::Blocked);
        // Hints can be lost where another server took the signal, so a run that is kept busy by other steps
        // looks again from time to time. One that is parked needs none of this.
        let look_again = Instant::now() + limits::WAIT_LOOKED_AT;
        let sleep = tokio::time::sleep_until(until.map_or(look_again, |until| until.min(look_again)));
        tokio::select! {
            biased;
            // What is gathered is told all at once, when the run is parked; one by one would be a commit
            // each.
            () = run.hinted(channel, seen), if slot.gathering().is_none() => {}
            () = sleep => {}
        }
        slot.set_phase(Phase::Waits);
        asks = true;
    }
}

pub(crate) fn taken(waited: v1::Waited) -> Heard {
    let v1::Waited { signal, failure, signal_id: id, .. } = waited;
    match failure {
        Some(failure) => Heard::Failed { id, failure: Some(failure) },
        None => Heard::Taken { id, signal },
    }
}

/// What somebody else sent: if it is of another type, that is an error which the code can catch.
pub(crate) fn value<T: DeserializeOwned>(signal: Option<&v1::Payload>) -> anyhow::Result<Option<T>> {
    // Whoever has nothing to say need not say it in JSON.
    let nothing = v1::Payload { data: "null".into(), content_type: String::new() };
    let signal = signal.filter(|signal| !signal.data.is_empty()).unwrap_or(&nothing);
    // Somebody else's code.
    match catch_unwind(AssertUnwindSafe(|| payload::decode(Some(signal)))) {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(error)) => Err(anyhow::anyhow!("the signal is of another type: {error}")),
        Err(panic) => {
            Err(anyhow::anyhow!("the signal cannot be read: {}", failure::of_panic(&*panic).message))
        }
    }
}

/// Somebody said that what is waited for has failed.
pub(crate) fn rejected(path: &str, failure: Option<v1::Failure>) -> anyhow::Error {
    StepError::new(path.to_owned(), failure.unwrap_or_default(), 1, Finality::Rejected).into()
}
