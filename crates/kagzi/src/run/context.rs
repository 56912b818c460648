//! What a workflow function is given: the way to record steps, sleep, and learn about its run.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::child::ChildBuilder;
use crate::run::children::ChildrenBuilder;
use crate::run::event::EventWait;
use crate::run::label::run_label;
use crate::run::path::{Scope, escaped};
use crate::run::promise::NewPromise;
use crate::run::request::Requests;
use crate::run::signal::{SignalWait, Signals};
use crate::run::sleep::run_sleep;
use crate::run::state::RunState;
use crate::run::step::{StepOptions, run_step};
use crate::run::step_builder::StepBuilder;
use kagzi_proto::idempotency_key;

const SLEEP: &str = "sleep";
const LABEL: &str = "label";

/// Records the steps of one run. Cheap to clone; every method takes `&self`, so steps may run in parallel
/// (`tokio::join!`, `kagzi::select!`, `FuturesUnordered`).
///
/// The function is executed again from the top whenever the run continues. So everything that may differ
/// between two executions (time, randomness, the network) belongs into a step. Which of two parallel steps
/// was first is recorded, and every replay tells the function in the same order. Only the order of *calls* is
/// the function's own: use [`kagzi::select!`](crate::select) where branches call steps of the same name,
/// because `tokio::select!` begins with a random branch.
#[derive(Clone)]
pub struct WorkflowContext {
    pub(super) run: Arc<RunState>,
    pub(super) scope: Arc<Scope>,
}

impl WorkflowContext {
    pub(crate) fn new(run: Arc<RunState>) -> WorkflowContext {
        let scope = Scope::of_generation(run.generation);
        WorkflowContext { run, scope }
    }

    /// Records a step: the future runs unless a result is already recorded. Whatever the run does next,
    /// another step, a sleep or its end, happens only once the value is durable, or becomes durable together
    /// with it. Fails only when the step has failed for good, with a
    /// [`StepError`](crate::workflow::StepError) in the chain; until then it is retried out of sight.
    ///
    /// A future cannot be begun twice, so its retry begins with the next execution of the whole function: at
    /// once where nothing else of the run executes, and after the others where steps run side by side. There
    /// [`step`](Self::step) is the better choice: its closure is called again when the retry is due.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     ctx.run("charge", async move { Ok(format!("charged {cents}")) }).await
    /// }
    /// ```
    pub fn run<T, Fut>(
        &self,
        name: &str,
        code: Fut,
    ) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        Fut: Future<Output = anyhow::Result<T>> + Send,
    {
        let called = self.call(name);
        async move {
            let called = called?;
            let mut code = Some(code);
            let start = move |_| code.take().expect("a step that is not repeatable starts once");
            run_step(called, StepOptions::default(), start).await
        }
    }

    /// Describes a step with options: timeout, retries, and code that can be started again.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     let charge = ctx.step("charge").timeout(Duration::from_secs(30)).attempts(5);
    ///     charge.run(move |step| async move { Ok(format!("{cents} {}", step.idempotency_key())) }).await
    /// }
    /// ```
    pub fn step<'a>(&'a self, name: &'a str) -> StepBuilder<'a> {
        StepBuilder::new(self, name)
    }

    /// Sleeps durably: for a minute or a year, over restarts, without holding a worker.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn remind(ctx: WorkflowContext, user: String) -> anyhow::Result<String> {
    ///     ctx.sleep(Duration::from_secs(30 * 24 * 3600)).await?;
    ///     ctx.run("mail", async move { Ok(format!("mailed {user}")) }).await
    /// }
    /// ```
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let called = self.call(SLEEP);
        async move { run_sleep(called?, duration).await }
    }

    /// A sleep with a name of its own, which `kagzi run show` and `kagzi run why` tell people. It is part of
    /// the sleep's identity, like the name of a step: a run that sleeps must find it again.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn subscribe(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ///     ctx.named_sleep("trial-period", Duration::from_secs(14 * 86_400)).await
    /// }
    /// ```
    pub fn named_sleep(
        &self,
        name: &str,
        duration: Duration,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let called = self.call(name);
        async move { run_sleep(called?, duration).await }
    }

    /// Waits for somebody's word on this channel: a person, a program or another run sends it with
    /// [`RunHandle::signal`](crate::client::RunHandle::signal) or `kagzi run signal`. One that came before is
    /// taken at once; each is taken by one wait. No worker is held meanwhile, for an hour or a year.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let by: String = ctx.signal("approved").await?;
    ///     ctx.run("ship", async move { Ok(format!("shipped, approved by {by}")) }).await
    /// }
    /// ```
    pub fn signal<T: DeserializeOwned + Send + 'static>(&self, channel: &str) -> SignalWait<T> {
        SignalWait::new(self, channel)
    }

    /// Waits for an event that somebody publishes on this topic, with
    /// [`Client::publish`](crate::client::Client::publish) or `kagzi event publish`: every run that waits for
    /// it hears of it. One that was published since this run was created, is still kept and was not heard of
    /// before is taken at once. Topics under `kagzi/` are the engine's: `kagzi/workflow.failed`, with a
    /// workflow type as the key, is told of runs that fail.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, id: String) -> anyhow::Result<String> {
    ///     let cents: u64 = ctx.event("order.paid").key(&id).await?;
    ///     ctx.run("ship", async move { Ok(format!("shipped for {cents}")) }).await
    /// }
    /// ```
    pub fn event<T: DeserializeOwned + Send + 'static>(&self, topic: &str) -> EventWait<T> {
        EventWait::new(self, topic)
    }

    /// Makes a promise: something that somebody outside completes or fails, once. Awaited, it is durable and
    /// has a token, which is the right to complete it; awaited again, it waits. Its name is unique in the
    /// run.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let day = Duration::from_secs(86_400);
    ///     let payment = ctx.promise::<String>("payment").timeout(day).await?;
    ///     let token = payment.token().to_owned();
    ///     ctx.run("charge", async move { Ok(format!("asked the bank to tell {token}")) }).await?;
    ///     payment.await
    /// }
    /// ```
    pub fn promise<T: DeserializeOwned + Send + 'static>(&self, name: &str) -> NewPromise<T> {
        NewPromise::new(self, name)
    }

    /// The requests on a channel, to be answered one after the other: see [`Requests`].
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn greeter(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ///     while let Some(request) = ctx.requests::<String, String>("greet").next().await? {
    ///         let answer = format!("hello {}", request.input);
    ///         request.reply(&answer).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn requests<T, R>(&self, channel: &str) -> Requests<T, R>
    where
        T: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
    {
        Requests::new(self.clone(), channel)
    }

    /// The signals of a channel, one after the other: see [`Signals`].
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn first_two(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
    ///     let words = ctx.signals::<String>("word");
    ///     Ok([words.next().await?, words.next().await?].into_iter().flatten().collect())
    /// }
    /// ```
    pub fn signals<T: DeserializeOwned + Send + 'static>(&self, channel: &str) -> Signals<T> {
        Signals::new(self.clone(), channel)
    }

    /// Starts another run and, when awaited, waits for its output: see [`ChildBuilder`]. The child is in the
    /// database together with the record of its start, or not at all. On another queue it may be executed by
    /// a worker in another language. It fails with the child's own code.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, order: u64) -> anyhow::Result<String> {
    ///     ctx.child("ship", &order).await
    /// }
    /// ```
    pub fn child<T: DeserializeOwned + Send + 'static>(
        &self,
        workflow_type: &str,
        input: &(impl Serialize + ?Sized),
    ) -> ChildBuilder<T> {
        ChildBuilder::new(self, workflow_type, &input)
    }

    /// Starts one run for every input and, when awaited, waits for all of them: see [`ChildrenBuilder`]. The
    /// last of them wakes this run, not each.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn totals(ctx: WorkflowContext, shops: Vec<String>) -> anyhow::Result<usize> {
    ///     let totals: Vec<anyhow::Result<u64>> = ctx.children("total", shops).await;
    ///     Ok(totals.iter().flatten().count())
    /// }
    /// ```
    pub fn children<T: DeserializeOwned + Send + 'static>(
        &self,
        workflow_type: &str,
        inputs: impl IntoIterator<Item = impl Serialize>,
    ) -> ChildrenBuilder<T> {
        let child = |input| ChildBuilder::new(self, workflow_type, &input);
        ChildrenBuilder::new(inputs.into_iter().map(child).collect())
    }

    /// Labels the run, for people who search: `kagzi run list --label stage=shipped`. At most 64 labels; the
    /// last write of a name counts. Recorded like a step, so that a replay neither repeats nor reorders it.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ///     ctx.run("ship", async { Ok(()) }).await?;
    ///     ctx.set_label("stage", "shipped").await
    /// }
    /// ```
    pub fn set_label(
        &self,
        name: &str,
        value: &str,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let called = self.call(LABEL);
        let (name, value) = (name.to_owned(), value.to_owned());
        async move { run_label(called?, name, value).await }
    }

    /// A context whose steps have paths below `name`, e.g. `item-7/charge`. Give every branch of a
    /// parallel loop its own: then the branches cannot disturb each other's order.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn ship_all(ctx: WorkflowContext, items: Vec<String>) -> anyhow::Result<Vec<String>> {
    ///     let shipping = items.into_iter().enumerate().map(|(n, item)| {
    ///         let ctx = ctx.scope(&format!("item-{n}"));
    ///         async move { ctx.run("ship", async move { Ok(format!("shipped {item}")) }).await }
    ///     });
    ///     futures_util::future::try_join_all(shipping).await
    /// }
    /// ```
    pub fn scope(&self, name: &str) -> WorkflowContext {
        WorkflowContext { run: self.run.clone(), scope: self.scope.child(name) }
    }

    /// The idempotency key of the first step of that name in this scope.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     // A plain future does not learn of its step, so it is told the key.
    ///     let key = ctx.idempotency_key("charge");
    ///     ctx.run("charge", async move { Ok(format!("charged with key {key}")) }).await
    /// }
    /// ```
    pub fn idempotency_key(&self, name: &str) -> String {
        idempotency_key(self.run_id(), &self.scope.path(&escaped(name), 1))
    }

    /// What the worker was given with [`WorkerBuilder::state`](crate::worker::WorkerBuilder::state): a pool
    /// of connections, a client of another service. Panics where it was given none of this type.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// struct Shop { currency: String }
    ///
    /// async fn price(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     Ok(format!("{cents} {}", ctx.state::<Shop>().currency))
    /// }
    /// ```
    pub fn state<T: Send + Sync + 'static>(&self) -> Arc<T> {
        self.run.uplink.equipment.state()
    }

    /// The id of this run.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn who(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let (run, id, space) = (ctx.run_id(), ctx.business_id(), ctx.namespace());
    ///     Ok(format!("run {run}, started as {id} in {space}, execution {}", ctx.attempt()))
    /// }
    /// ```
    pub fn run_id(&self) -> &str {
        &self.run.lease.run_id
    }

    /// The id that the run was started with.
    pub fn business_id(&self) -> &str {
        &self.run.business_id
    }

    /// The schedule that started this run, if one did.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn report(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     match (ctx.schedule_id(), ctx.scheduled_at()) {
    ///         (Some(schedule), Some(day)) => Ok(format!("{schedule} for {day:?}")),
    ///         _ => Ok("started by hand".into()),
    ///     }
    /// }
    /// ```
    pub fn schedule_id(&self) -> Option<&str> {
        self.run.scheduled.as_ref().map(|(id, _)| id.as_str())
    }

    /// The nominal time of a scheduled run: what the timetable says, whenever the run really starts. A report
    /// for the day belongs to this time, also when it is made up for a week later.
    pub fn scheduled_at(&self) -> Option<SystemTime> {
        self.run.scheduled.as_ref().map(|(_, at)| *at)
    }

    /// The namespace of this run.
    pub fn namespace(&self) -> &str {
        &self.run.namespace
    }

    /// Which execution of the run this is, from 1. Sleeping and retrying a step do not raise it.
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }
}
