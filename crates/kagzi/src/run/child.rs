//! Runs that a run starts: `ctx.child` and `ctx.children`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, ChildMode, StepStatus, WaitOutcome, report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::retry_policy::{RetryPolicy, from_millis, millis};
use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::signal::{Asked, Awaited, SignalWait, rejected, taken, value, word};
use crate::run::slot::{Gathering, Slot};
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::turns::{Open, settled};
use crate::run::uplink::Verdict;
use crate::{codes, failure, payload};

/// What becomes of a child when its parent ends, however that ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosePolicy {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It is terminated: it counts as failed, and its failure handler runs.
    Terminate,
    /// It goes on.
    Abandon,
}

impl ClosePolicy {
    fn to_proto(self) -> v1::ClosePolicy {
        match self {
            ClosePolicy::Cancel => v1::ClosePolicy::Cancel,
            ClosePolicy::Terminate => v1::ClosePolicy::Terminate,
            ClosePolicy::Abandon => v1::ClosePolicy::Abandon,
        }
    }
}

/// A run that is being described and that this run starts. Made by [`WorkflowContext::child`]; await it to
/// start it and wait for its output.
///
/// ```
/// # use kagzi::WorkflowContext;
/// # use kagzi::workflow::ClosePolicy;
/// # use std::time::Duration;
/// async fn order(ctx: WorkflowContext, order: u64) -> anyhow::Result<String> {
///     // Started and awaited: one step.
///     let label: String = ctx.child("label", &order).queue("printers").await?;
///     // Started now, awaited later.
///     let ship = ctx.child::<String>("ship", &label).id("ship-42").start().await?;
///     ctx.run("tell", async { Ok(()) }).await?;
///     let day = Duration::from_secs(86_400);
///     let shipped = ship.result().timeout(day).await?;
///     // Started, and left to itself.
///     ctx.child::<()>("audit", &order).on_close(ClosePolicy::Abandon).detach().await?;
///     Ok(shipped.unwrap_or_else(|| format!("{} is on its way", ship.run_id())))
/// }
/// ```
#[must_use = "a child is started by .await, .start().await or .detach().await"]
pub struct ChildBuilder<T> {
    context: WorkflowContext,
    called: anyhow::Result<Called>,
    request: Box<v1::StartWorkflowRequest>,
    input: anyhow::Result<v1::Payload>,
    close: ClosePolicy,
    gathering: Option<Gathering>,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> ChildBuilder<T> {
    pub(crate) fn new(context: &WorkflowContext, workflow_type: &str, input: &impl Serialize) -> Self {
        let request =
            v1::StartWorkflowRequest { workflow_type: workflow_type.to_owned(), ..Default::default() };
        ChildBuilder {
            context: context.clone(),
            called: context.call(workflow_type),
            request: Box::new(request),
            input: payload::encode(input).map_err(Into::into),
            close: ClosePolicy::default(),
            gathering: None,
            reads: PhantomData,
        }
    }

    /// The queue whose workers execute it; this run's own unless told otherwise.
    pub fn queue(mut self, queue: &str) -> Self {
        queue.clone_into(&mut self.request.task_queue);
        self
    }

    /// Its business id. One that another run has is an error with the code `CHILD_NOT_STARTED`, unless that
    /// run has failed: then the child takes its place, so that a parent that is retried gets another child.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.request.business_id);
        self
    }

    /// Labels it. It has its parent's `user_id` anyway.
    ///
    /// ```
    /// # use kagzi::{RetryPolicy, WorkflowContext};
    /// # use std::time::Duration;
    /// async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     let charge = ctx.child("charge", &cents).label("stage", "paying");
    ///     charge
    ///         .retry_policy(RetryPolicy::default().maximum_attempts(3))
    ///         .run_retry_policy(RetryPolicy::default().maximum_attempts(2))
    ///         .execution_timeout(Duration::from_secs(3600))
    ///         .await
    /// }
    /// ```
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.request.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    /// How its steps are retried.
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.request.retry_policy = policy.to_proto();
        self
    }

    /// Asks for retries of the whole child when its function fails.
    pub fn run_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.request.run_retry_policy = Some(policy.to_proto().unwrap_or_default());
        self
    }

    /// The child is ended as TIMED_OUT after this time.
    pub fn execution_timeout(mut self, timeout: Duration) -> Self {
        let timeouts = self.request.timeouts.get_or_insert_default();
        timeouts.execution_timeout_seconds = Some(timeout.as_millis().div_ceil(1000) as u64);
        self
    }

    /// What becomes of it when this run ends first: it is cancelled unless told otherwise.
    pub fn on_close(mut self, policy: ClosePolicy) -> Self {
        self.close = policy;
        self
    }

    /// Waits for at most so long for its end: `None` = it has not ended by then, and goes on.
    pub fn timeout(self, timeout: Duration) -> TimedChild<T> {
        TimedChild { child: self, timeout }
    }

    /// Starts it, and returns as soon as that is recorded.
    pub fn start(self) -> impl Future<Output = anyhow::Result<ChildHandle<T>>> + Send + use<T> {
        let (context, workflow_type) = (self.context.clone(), self.request.workflow_type.clone());
        let starting = self.only_start(ChildMode::Start);
        async move {
            let run_id = starting.await?;
            Ok(ChildHandle { context, workflow_type, run_id, reads: PhantomData })
        }
    }

    /// Starts it and leaves it to itself: it goes on when this run ends, and nobody is told of its end.
    /// Returns its run id.
    pub fn detach(mut self) -> impl Future<Output = anyhow::Result<String>> + Send + use<T> {
        self.close = ClosePolicy::Abandon;
        self.only_start(ChildMode::Detach)
    }

    /// It is waited for together with others.
    pub(crate) fn gathered(mut self, gathering: Gathering) -> Self {
        self.gathering = Some(gathering);
        self
    }

    fn only_start(self, mode: ChildMode) -> BoxFuture<'static, anyhow::Result<String>> {
        Box::pin(async move {
            let (called, wanted) = self.ready(mode, None)?;
            let slot = called.slot.clone();
            slot.track(start(called, wanted)).await
        })
    }

    fn begin(self, timeout: Option<Duration>) -> BoxFuture<'static, anyhow::Result<Option<T>>> {
        Box::pin(async move {
            let (called, wanted) = self.ready(ChildMode::Await, timeout)?;
            let slot = called.slot.clone();
            slot.track(start_and_wait(called, wanted, timeout)).await
        })
    }

    /// What is sent, but for the input.
    fn ready(self, mode: ChildMode, timeout: Option<Duration>) -> anyhow::Result<(Called, Wanted)> {
        let called = self.called?;
        if let Some(gathering) = self.gathering {
            called.slot.gather(gathering);
        }
        let request = v1::StartChild {
            step: Some(called.slot.step.clone()),
            start: Some(*self.request),
            close_policy: self.close.to_proto().into(),
            mode: mode.into(),
            timeout_ms: timeout.map(millis),
        };
        Ok((called, Wanted { request: Box::new(request), input: self.input }))
    }
}

/// A child that is to be started. Its input is encoded when it is sent: a replay finds the child in the
/// record and sends nothing.
struct Wanted {
    request: Box<v1::StartChild>,
    input: anyhow::Result<v1::Payload>,
}

impl Wanted {
    async fn encoded(self, slot: &Slot) -> anyhow::Result<report::Body> {
        let Wanted { mut request, input } = self;
        let invalid = |failure: v1::Failure| rejected(&slot.step.path, Some(failure));
        let input = input.map_err(|error| {
            let message = format!("the child's input cannot be encoded: {error}");
            invalid(failure::new(codes::INVALID_OUTPUT, message, true))
        })?;
        let encoded =
            slot.run.encode("the child's input", input).await.map_err(|failure| invalid(*failure))?;
        if let Some(start) = &mut request.start {
            start.input = Some(encoded);
        }
        Ok(report::Body::StartChild(request))
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for ChildBuilder<T> {
    type Output = anyhow::Result<T>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        let ending = self.begin(None);
        Box::pin(async move { ending.await?.ok_or_else(|| anyhow::anyhow!("the child has no end")) })
    }
}

/// A child that is waited for no longer than some time. Made by [`ChildBuilder::timeout`]; await it.
#[must_use = "a child is started by .await"]
pub struct TimedChild<T> {
    child: ChildBuilder<T>,
    timeout: Duration,
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for TimedChild<T> {
    type Output = anyhow::Result<Option<T>>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<Option<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.child.begin(Some(self.timeout))
    }
}

/// A child that was started. Made by [`ChildBuilder::start`].
pub struct ChildHandle<T> {
    context: WorkflowContext,
    workflow_type: String,
    run_id: String,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> ChildHandle<T> {
    /// The child's run id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Its output, once it has ended. Fails with the child's own code where it failed.
    pub fn result(&self) -> SignalWait<T> {
        let name = format!("{}.result", self.workflow_type);
        SignalWait::named(&self.context, &name, &channel(&self.run_id))
    }
}

impl WorkflowContext {
    /// A child that an earlier generation of this run has started, by its run id: where the run continues in
    /// place, the id goes along in the input, and the child's end is told to the generation that asks.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn ordered(ctx: WorkflowContext, shipping: Option<String>) -> anyhow::Result<u32> {
    ///     let Some(shipping) = shipping else {
    ///         let child = ctx.child::<u32>("ship", "tea").start().await?;
    ///         return ctx.continue_as_new(&Some(child.run_id()));
    ///     };
    ///     ctx.child_handle::<u32>(&shipping).result().await
    /// }
    /// ```
    pub fn child_handle<T: DeserializeOwned + Send + 'static>(&self, run_id: &str) -> ChildHandle<T> {
        let (context, workflow_type) = (self.clone(), "child".to_owned());
        ChildHandle { context, workflow_type, run_id: run_id.to_owned(), reads: PhantomData }
    }
}

/// The channel on which the end of a child is told.
fn channel(run_id: &str) -> String {
    format!("~child/{run_id}")
}

/// Starts a child; its start has a place in the order of all that the function is told of.
async fn start(called: Called, wanted: Wanted) -> anyhow::Result<String> {
    let Called { slot, recorded } = called;
    if let Some(recorded) = recorded {
        match recorded.entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                return Ok(recorded.entry.child_run_id);
            }
            StepStatus::Failed => {
                slot.released().await;
                return Err(rejected(&slot.step.path, recorded.entry.failure.map(|failure| *failure)));
            }
            StepStatus::Pending => {}
            status => never(mismatch(&slot, status).await),
        }
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let body = wanted.encoded(&slot).await?;
    slot.run.ask(&slot, body);
    match slot.heard().await {
        Verdict::ChildBegan(began) => Ok(began.run_id),
        verdict => never(slot.run.refuse("the start of a child", verdict).await),
    }
}

/// Starts a child and waits for its end. Only the end has a place in the order, so many start at once.
async fn start_and_wait<T: DeserializeOwned>(
    called: Called,
    wanted: Wanted,
    timeout: Option<Duration>,
) -> anyhow::Result<Option<T>> {
    let Called { slot, recorded } = called;
    let run = &slot.run;
    let mut known = None;
    if let Some(recorded) = recorded {
        let entry = recorded.entry;
        match entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                return value(entry.result.as_ref());
            }
            StepStatus::Sleeping if recorded.place > 0 => {
                slot.released().await;
                return Ok(None);
            }
            StepStatus::Failed => {
                slot.released().await;
                return Err(rejected(&slot.step.path, entry.failure.map(|failure| *failure)));
            }
            StepStatus::Waiting => {
                let until = (entry.remaining_ms >= 0).then(|| run.left_of(entry.remaining_ms));
                known = Some((entry.child_run_id, Asked { asks: entry.signalled, until }));
            }
            // A failure that was forgiven: another child is started.
            StepStatus::Pending => {}
            status => never(mismatch(&slot, status).await),
        }
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let (run_id, asked) = match known {
        Some(known) => known,
        None => {
            let verdict = run.submit(wanted.encoded(&slot).await?).await;
            let Verdict::ChildBegan(began) = verdict else {
                never(run.refuse("the start of a child", verdict).await)
            };
            let waited = began.waited.unwrap_or_default();
            match waited.outcome() {
                WaitOutcome::Taken => return taken(waited).read(&slot.step.path),
                WaitOutcome::Elapsed | WaitOutcome::Closed | WaitOutcome::Silent => return Ok(None),
                WaitOutcome::Waiting | WaitOutcome::Unspecified => {}
            }
            let left = waited.remaining_ms.map(from_millis);
            let until = left.and_then(|left| Instant::now().checked_add(left));
            (began.run_id, Asked { asks: false, until })
        }
    };
    let awaited = Awaited { channel: channel(&run_id), timeout, last_call: false, ask: None };
    word(&slot, &awaited, asked).await.read(&slot.step.path)
}

async fn mismatch(slot: &Slot, status: StepStatus) -> std::convert::Infallible {
    let (path, position, status) = (&slot.step.path, slot.step.position, status.as_str_name());
    let message = format!("recorded {path} at position {position} as {status}, got a child");
    slot.run.halt_here(RunEnd::Blocked(message)).await
}
