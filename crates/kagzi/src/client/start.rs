//! `client.workflow(..)`: a run that is being described, and started by `.await`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1;
use serde::Serialize;
use tracing::Instrument;
use uuid::Uuid;

use crate::client::handle::RunHandle;
use crate::client::{Client, Repeat};
use crate::codec::CodecError;
use crate::error::{Code, Error};
use crate::payload::{self, Payload};
use crate::retry_policy::{RetryPolicy, millis};
use crate::trace;
use crate::workflow::typed::{Answers, AnyInput, Workflow};

/// Limits on time. What is not set is inherited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// One attempt of a step.
    pub step: Option<Duration>,
    /// How long a worker may be silent.
    pub heartbeat: Option<Duration>,
    /// The whole run; zero = none.
    pub execution: Option<Duration>,
}

impl Timeouts {
    pub(crate) fn from_proto(timeouts: v1::TimeoutConfig) -> Timeouts {
        Timeouts {
            step: timeouts.start_to_close_timeout_seconds.map(Duration::from_secs),
            heartbeat: timeouts.heartbeat_timeout_seconds.map(Duration::from_secs),
            execution: timeouts.execution_timeout_seconds.map(Duration::from_secs),
        }
    }

    pub(crate) fn to_proto(self) -> Option<v1::TimeoutConfig> {
        (self != Timeouts::default()).then(|| v1::TimeoutConfig {
            start_to_close_timeout_seconds: self.step.map(seconds),
            heartbeat_timeout_seconds: self.heartbeat.map(seconds),
            execution_timeout_seconds: self.execution.map(seconds),
        })
    }
}

/// What a start does when another run has its id already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdReuse {
    /// Answers with that run. One of another type, queue or input is refused.
    #[default]
    Attach,
    /// Is refused, whatever that run is.
    Reject,
    /// Starts a new run under the id when that one failed, timed out or was cancelled; otherwise attaches.
    AfterFailure,
    /// Starts a new run under the id when that one has ended at all; otherwise attaches.
    AfterEnd,
}

impl IdReuse {
    fn to_proto(self) -> v1::IdReuse {
        match self {
            IdReuse::Attach => v1::IdReuse::Attach,
            IdReuse::Reject => v1::IdReuse::Reject,
            IdReuse::AfterFailure => v1::IdReuse::AfterFailure,
            IdReuse::AfterEnd => v1::IdReuse::AfterEnd,
        }
    }
}

/// A run that is being described. Options may come in any order: each sets what it names and keeps the
/// rest. The server knows timeouts in whole seconds; fractions are rounded up.
///
/// ```no_run
/// # async fn start(client: kagzi::Client) -> anyhow::Result<()> {
/// use std::time::{Duration, SystemTime};
/// use kagzi::RetryPolicy;
/// use kagzi::client::{IdReuse, Timeouts};
///
/// let hour = Duration::from_secs(3600);
/// let start = client.start("order").queue("orders").input(42).id("order-42").reuse(IdReuse::AfterFailure);
/// let start = start.user_id("ann").label("tenant", "acme").request_id("checkout-7");
/// let start = start.retry_policy(RetryPolicy::STANDARD).attempts(5).run_retry_policy(RetryPolicy::QUICK);
/// let start = start.timeouts(Timeouts { execution: Some(24 * hour), ..Timeouts::default() });
/// let start = start.step_timeout(hour).heartbeat_timeout(hour).execution_timeout(48 * hour);
/// let start = start.on_failure("tidy-up").on_failure_queue("cleaning").delay(hour);
/// let run = start.await?;
/// let later = client.start("order").queue("orders").retries(1).start_at(SystemTime::now() + hour);
/// let run = later.deadline(SystemTime::now() + 2 * hour).await?;
/// # drop(run);
/// # Ok(()) }
/// ```
#[must_use = "a run is started by .await"]
pub struct StartBuilder<W = AnyInput> {
    client: Client,
    request: Result<Box<v1::StartWorkflowRequest>, Error>,
    /// Boxed, like the next: most runs have neither, and a builder is handed on with every option.
    retry_policy: Option<Box<RetryPolicy>>,
    /// None = the run does not ask for retries of the whole run. An empty policy does.
    run_retry_policy: Option<Box<RetryPolicy>>,
    timeouts: Timeouts,
    types: PhantomData<fn() -> W>,
}

impl StartBuilder {
    /// What the run's function is given. Without it: `null`, which fits `()` and `Option`.
    pub fn input(self, input: impl Serialize) -> Self {
        self.encode_input(&input)
    }
}

impl<I: Serialize, O> StartBuilder<Workflow<I, O>> {
    /// What the run's function is given.
    pub fn input(self, input: I) -> Self {
        self.encode_input(&input)
    }
}

impl<W> StartBuilder<W> {
    pub(crate) fn new(client: Client, workflow_type: String, task_queue: String) -> StartBuilder<W> {
        let request = v1::StartWorkflowRequest {
            task_queue,
            workflow_type,
            namespace_id: client.namespace_id().to_owned(),
            ..Default::default()
        };
        StartBuilder {
            client,
            request: Ok(Box::new(request)),
            retry_policy: None,
            run_retry_policy: None,
            timeouts: Timeouts::default(),
            types: PhantomData,
        }
    }

    fn encode_input(mut self, input: &impl Serialize) -> Self {
        match (payload::encode(input), &mut self.request) {
            (Ok(input), Ok(request)) => request.input = Some(input),
            (Err(error), request) => {
                *request = Err(Error::Encode { what: "the run's input", message: error.to_string() });
            }
            (Ok(_), Err(_)) => {}
        }
        self
    }

    /// The queue whose workers execute the run.
    pub fn queue(self, task_queue: impl Into<String>) -> Self {
        self.change(|request| request.task_queue = task_queue.into())
    }

    /// Your name for the run. At most one run has it: starting again answers with the run that is there.
    /// With an id a start can be repeated safely when its answer was lost.
    pub fn id(self, business_id: impl Into<String>) -> Self {
        self.change(|request| request.business_id = business_id.into())
    }

    /// What to do when another run has the id already. Default: answer with that run.
    pub fn reuse(self, reuse: IdReuse) -> Self {
        self.change(|request| request.id_reuse = reuse.to_proto().into())
    }

    /// Your own name for this request: sent twice, it is carried out once. A run without an [`id`](Self::id)
    /// gets the id `request:NAME`.
    pub fn request_id(self, name: impl Into<String>) -> Self {
        self.change(|request| request.request_id = name.into())
    }

    /// For whom the run is; lists are filtered by it.
    pub fn user_id(self, user: impl Into<String>) -> Self {
        self.change(|request| request.user_id = user.into())
    }

    /// No worker is given the run before this time.
    pub fn start_at(self, at: SystemTime) -> Self {
        self.change(|request| {
            request.start_at = Some(at.into());
            request.start_delay_ms = 0;
        })
    }

    /// No worker is given the run before this much time has passed on the server.
    pub fn delay(self, delay: Duration) -> Self {
        self.change(|request| {
            request.start_delay_ms = millis(delay);
            request.start_at = None;
        })
    }

    /// A label, for people who search runs. At most 64; the last of a name counts. The workflow can set more.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|request| drop(request.labels.insert(name.into(), value.into())))
    }

    /// Tells the run something with its start, in the same commit: the new run, or the one that has the
    /// [`id`](Self::id) already, whose input is then not compared. So whoever has something for an entity
    /// need not know whether its run is there. One that has ended refuses, unless
    /// [`reuse`](Self::reuse) lets a new one take its id over.
    ///
    /// ```no_run
    /// # async fn example(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// let cart = client.start("cart").queue("shop").id("cart-of-ann");
    /// cart.signal("item", &"tea").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal<T: Serialize + ?Sized>(self, channel: impl Into<String>, value: &T) -> Self {
        self.signal_once(channel, Uuid::now_v7().to_string(), value)
    }

    /// The same with your own name for the signal: told twice, by you or by somebody else, it counts once.
    ///
    /// ```no_run
    /// # async fn example(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// let cart = client.start("cart").queue("shop").id("cart-of-ann");
    /// cart.signal_once("item", "order-line-7", &"tea").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal_once<T: Serialize + ?Sized>(
        mut self,
        channel: impl Into<String>,
        id: impl Into<String>,
        value: &T,
    ) -> Self {
        match (payload::encode(value), &mut self.request) {
            (Ok(value), Ok(request)) => request.signals.push(v1::StartSignal {
                channel: channel.into(),
                signal_id: id.into(),
                payload: Some(value),
                failure: None,
            }),
            (Err(error), request) => {
                *request = Err(Error::Encode { what: "the signal", message: error.to_string() });
            }
            (Ok(_), Err(_)) => {}
        }
        self
    }

    /// Executions of each step in total, the first included: `attempts(1)` retries nothing.
    pub fn attempts(self, executions: u32) -> Self {
        self.retries(i32::try_from(executions).unwrap_or(i32::MAX))
    }

    /// The same; -1 = no limit. It counts executions, not retries: the name is older than
    /// [`attempts`](Self::attempts).
    pub fn retries(mut self, maximum_attempts: i32) -> Self {
        self.retry_policy.get_or_insert_default().maximum_attempts = Some(maximum_attempts);
        self
    }

    /// How steps that do not say otherwise are retried. Sets what the policy sets and keeps the rest.
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy.get_or_insert_default().merge(policy);
        self
    }

    /// Asks for retries of the whole run: when the function returns an error it is executed again by this
    /// policy; completed steps keep their results, failed ones begin anew. Sets what the policy sets and
    /// keeps the rest. Without it the first error of the function is the run's end.
    pub fn run_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.run_retry_policy.get_or_insert_default().merge(policy);
        self
    }

    /// Sets what is set there and keeps the rest.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts.step = timeouts.step.or(self.timeouts.step);
        self.timeouts.heartbeat = timeouts.heartbeat.or(self.timeouts.heartbeat);
        self.timeouts.execution = timeouts.execution.or(self.timeouts.execution);
        self
    }

    /// Ends the whole run as TIMED_OUT when it takes longer.
    pub fn execution_timeout(self, timeout: Duration) -> Self {
        self.timeouts(Timeouts { execution: Some(timeout), ..Default::default() })
    }

    /// Ends an attempt of a step that takes longer, where the step does not say otherwise.
    pub fn step_timeout(self, timeout: Duration) -> Self {
        self.timeouts(Timeouts { step: Some(timeout), ..Default::default() })
    }

    /// How long a worker may be silent before the run is taken from it.
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        self.timeouts(Timeouts { heartbeat: Some(timeout), ..Default::default() })
    }

    /// Ends the run as TIMED_OUT at this time. With an execution timeout too, the earlier counts.
    pub fn deadline(self, at: SystemTime) -> Self {
        self.change(|request| request.deadline_at = Some(at.into()))
    }

    /// The workflow type that is started when this run fails or times out, with a
    /// [`WorkflowFailedEvent`](crate::workflow::WorkflowFailedEvent) as its input.
    pub fn on_failure(self, workflow_type: impl Into<String>) -> Self {
        self.change(|request| request.on_failure_workflow = workflow_type.into())
    }

    /// The queue of that handler. Default: the queue of this run.
    pub fn on_failure_queue(self, task_queue: impl Into<String>) -> Self {
        self.change(|request| request.on_failure_task_queue = task_queue.into())
    }

    fn change(mut self, set: impl FnOnce(&mut v1::StartWorkflowRequest)) -> Self {
        if let Ok(request) = &mut self.request {
            set(request);
        }
        self
    }

    pub(crate) fn into_request(self) -> Result<Box<v1::StartWorkflowRequest>, Error> {
        let mut request = self.request?;
        request.retry_policy = self.retry_policy.and_then(|policy| policy.to_proto());
        request.run_retry_policy = self.run_retry_policy.map(|policy| policy.to_proto().unwrap_or_default());
        request.timeouts = self.timeouts.to_proto();
        Ok(request)
    }
}

/// The request as it is sent.
pub(crate) async fn encoded(
    client: &Client,
    mut request: Box<v1::StartWorkflowRequest>,
) -> Result<Box<v1::StartWorkflowRequest>, Error> {
    if let Some(input) = request.input.take() {
        let encoded = client.codecs.encode(input).await;
        let failed =
            |error: CodecError| Error::Encode { what: "the run's input", message: error.to_string() };
        request.input = Some(encoded.map_err(failed)?);
    }
    for signal in &mut request.signals {
        let encoded = client.codecs.encode(signal.payload.take().unwrap_or_default()).await;
        let failed = |error: CodecError| Error::Encode { what: "the signal", message: error.to_string() };
        signal.payload = Some(encoded.map_err(failed)?);
    }
    Ok(request)
}

/// An encoded input never looks the same twice, so the server cannot know that a start is a repeat: it sees
/// another input under the same id. The client can tell, because it reads what was started.
pub(crate) async fn repeated(
    client: &Client,
    request: &v1::StartWorkflowRequest,
    refused: Error,
) -> Result<RunHandle, Error> {
    if refused.code() != Some(Code::AlreadyExists) || request.business_id.is_empty() {
        return Err(refused);
    }
    let there = client.get_by_id(request.business_id.clone()).await?;
    let same = there.workflow_type == request.workflow_type
        && there.task_queue == request.task_queue
        && there.input.unwrap_or_default() == Payload::from_proto(request.input.clone().unwrap_or_default());
    if same { Ok(RunHandle::new(client.clone(), there.run_id, true)) } else { Err(refused) }
}

impl<W: Answers> IntoFuture for StartBuilder<W> {
    type Output = Result<W::Handle, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.client.clone();
        let request = self.into_request();
        async move { Ok(W::Handle::from(start(client, request).await?)) }.boxed()
    }
}

async fn start(
    client: Client,
    request: Result<Box<v1::StartWorkflowRequest>, Error>,
) -> Result<RunHandle, Error> {
    let request = request?;
    let plain = (!client.codecs.is_empty()).then(|| request.clone());
    let request = encoded(&client, request).await?;
    // Without an id a repeated start would be a second run.
    let named = !request.business_id.is_empty() || !request.request_id.is_empty();
    let repeat = if named { Repeat::Safe } else { Repeat::Unsafe };
    let span = tracing::info_span!(
        "start_run",
        otel.kind = "client",
        namespace = %request.namespace_id,
        workflow_type = %request.workflow_type,
        task_queue = %request.task_queue,
    );
    let started = client
        .ask("start a run", repeat, |server| {
            let mut request = tonic::Request::new(request.clone());
            trace::send_with(&mut request);
            // In a box of its own, or it would be copied with every future around it.
            Box::pin(server.start(request))
        })
        .instrument(span)
        .await;
    match (started, plain) {
        (Ok(started), _) => Ok(RunHandle::new(client, started.run_id, started.already_exists)),
        // Boxed, because it is large and rare.
        (Err(refused), Some(plain)) => Box::pin(repeated(&client, &plain, refused)).await,
        (Err(refused), None) => Err(refused),
    }
}

fn seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::transport::Endpoint;

    use super::*;

    fn start(input: impl Serialize) -> StartBuilder {
        let channel = Endpoint::from_static("http://unused:1").connect_lazy();
        Client::on_channel(channel).namespace("shop").workflow("order", "orders", input)
    }

    #[tokio::test]
    async fn options_merge_in_any_order() {
        let policy = RetryPolicy { initial_interval: Some(Duration::from_millis(50)), ..Default::default() };
        let timeouts = Timeouts { heartbeat: Some(Duration::from_secs(9)), ..Default::default() };

        let one_way = start(1).retries(10).retry_policy(policy.clone());
        let one_way = one_way.step_timeout(Duration::from_millis(1500)).timeouts(timeouts);
        let other_way = start(1).retry_policy(policy).retries(10);
        let other_way = other_way.timeouts(timeouts).step_timeout(Duration::from_millis(1500));

        let request = one_way.into_request().unwrap();
        assert_eq!(request, other_way.into_request().unwrap());
        assert_eq!(request.namespace_id, "shop");
        let policy = request.retry_policy.unwrap();
        assert_eq!((policy.maximum_attempts, policy.initial_interval_ms), (Some(10), Some(50)));
        let timeouts = request.timeouts.unwrap();
        assert_eq!(timeouts.start_to_close_timeout_seconds, Some(2));
        assert_eq!(timeouts.heartbeat_timeout_seconds, Some(9));
        assert_eq!(timeouts.execution_timeout_seconds, None);
    }

    #[tokio::test]
    async fn a_run_is_retried_as_a_whole_only_where_it_asks_for_it() {
        let asked = |start: StartBuilder| start.into_request().unwrap().run_retry_policy;

        assert_eq!(asked(start(1).retries(3)), None);
        assert_eq!(asked(start(1).run_retry_policy(RetryPolicy::default())), Some(Default::default()));
        let policy = RetryPolicy::default().initial_interval(Duration::from_millis(50));
        let both = start(1).run_retry_policy(policy).run_retry_policy(RetryPolicy::NONE);
        let sent = asked(both).unwrap();
        assert_eq!((sent.maximum_attempts, sent.initial_interval_ms), (Some(1), Some(50)));
    }

    #[tokio::test]
    async fn the_failure_handler_and_its_queue_are_sent() {
        let request = start(1).on_failure_queue("alerts").on_failure("alert").into_request().unwrap();

        assert_eq!(request.on_failure_workflow, "alert");
        assert_eq!(request.on_failure_task_queue, "alerts");
    }

    #[tokio::test]
    async fn when_for_whom_and_under_which_id_a_run_is_started_is_sent() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        let later = start(1).delay(Duration::from_millis(5)).start_at(at).user_id("ada").request_id("r-1");
        let request = later.reuse(IdReuse::AfterEnd).into_request().unwrap();

        assert_eq!((request.start_at.unwrap().seconds, request.start_delay_ms), (7, 0), "the last counts");
        assert_eq!((request.user_id.as_str(), request.request_id.as_str()), ("ada", "r-1"));
        assert_eq!(request.id_reuse(), v1::IdReuse::AfterEnd);
        let delayed = start(1).start_at(at).delay(Duration::from_millis(5)).into_request().unwrap();
        assert_eq!((delayed.start_at, delayed.start_delay_ms), (None, 5));
    }

    /// They are moved with all that awaits them. What is large and rare is boxed.
    #[tokio::test]
    async fn what_starts_a_run_and_what_waits_for_it_is_small() {
        let channel = Endpoint::from_static("http://unused:1").connect_lazy();
        let client = Client::on_channel(channel);
        let handle = client.handle("r");
        let request = start(1).into_request();

        let sizes = [
            size_of::<Client>(),
            size_of::<StartBuilder>(),
            size_of_val(&super::start(client, request)),
            size_of_val(&handle.result::<u64>()),
        ];

        assert!(sizes.iter().zip([64, 256, 1_024, 1_024]).all(|(size, max)| *size <= max), "{sizes:?}");
    }

    #[tokio::test]
    async fn nothing_set_is_nothing_sent() {
        let request = start("x").id("order-42").into_request().unwrap();

        assert_eq!((request.retry_policy, request.timeouts), (None, None));
        assert_eq!(request.business_id, "order-42");
        assert_eq!(request.input.unwrap().data, r#""x""#);
    }

    #[tokio::test]
    async fn an_input_that_is_no_json_is_told_when_the_run_is_started() {
        let input = HashMap::from([((1, 2), 3)]);

        let error = start(input).id("x").await.err().unwrap();

        assert!(matches!(error, Error::Encode { .. }), "{error}");
    }
}
