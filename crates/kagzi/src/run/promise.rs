//! Something that somebody outside completes: `ctx.promise`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::PromiseToken;
use kagzi_proto::v1::{self, StepStatus, report};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::signal::{Heard, listen};
use crate::run::state::{RunEnd, RunState};
use crate::run::step::never;
use crate::run::turns::{Open, settled};
use crate::run::uplink::Verdict;
use crate::step_error::{Finality, StepError};
use crate::{codes, failure, retry_policy};

/// How the channels of promises begin; the name follows.
const CHANNEL: &str = "~promise/";
/// Longest name of a promise, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// A promise that is being described, by [`WorkflowContext::promise`]. Awaited, it is made and durable.
///
/// ```
/// # use kagzi::WorkflowContext;
/// # use std::time::Duration;
/// async fn pay(ctx: WorkflowContext, _: ()) -> anyhow::Result<u32> {
///     let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
///     let payment = ctx.promise::<u32>("payment").timeout(day).heartbeat(minute).await?;
///     let told = format!("{} is completed with {}", payment.name(), payment.token());
///     ctx.run("tell the bank", async move { Ok(told) }).await?;
///     payment.await
/// }
/// ```
#[must_use = "a promise is made by .await"]
pub struct NewPromise<T> {
    context: WorkflowContext,
    name: String,
    called: anyhow::Result<Called>,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
    reads: PhantomData<fn() -> T>,
}

/// A promise that is made. Give its token to whoever is to complete it, then await it.
#[must_use = "a promise is waited for by .await"]
pub struct Promise<T> {
    context: WorkflowContext,
    name: String,
    token: String,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> NewPromise<T> {
    pub(crate) fn new(context: &WorkflowContext, name: &str) -> NewPromise<T> {
        let called = check(context, name).and_then(|()| context.call_own(format!("{CHANNEL}{name}")));
        NewPromise {
            context: context.clone(),
            name: name.to_owned(),
            called,
            timeout: None,
            heartbeat: None,
            reads: PhantomData,
        }
    }

    /// Ends the wait for it with the code `PROMISE_TIMED_OUT`. It counts from now, when the promise is made,
    /// and not from when the code waits for it.
    pub fn timeout(mut self, timeout: Duration) -> NewPromise<T> {
        self.timeout = Some(timeout);
        self
    }

    /// Whoever works on it must say at least so often that he lives, with
    /// [`PromiseHandle::beat`](crate::client::PromiseHandle::beat). When the signs stop, the wait ends with
    /// the code `PROMISE_SILENT`: at the earliest this long after the last one, and at the latest half as
    /// long again. At least a second.
    pub fn heartbeat(mut self, every: Duration) -> NewPromise<T> {
        self.heartbeat = Some(every);
        self
    }
}

/// Names are unique in a run, whatever the scope: they are what others call the promise by.
fn check(context: &WorkflowContext, name: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!name.is_empty(), "a promise needs a name");
    anyhow::ensure!(
        name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control),
        "the name of a promise is {name:?}: at most {NAME_BYTES_MAX} bytes, without control characters"
    );
    let is_new = context.run_state().promises.lock().insert(name.to_owned());
    anyhow::ensure!(is_new, "this run has a promise '{name}' already: names of promises are unique in a run");
    Ok(())
}

/// The names of promises that were made where this execution does not come by.
pub(crate) fn remember_promises(run: &RunState, paths: &[String]) {
    let names = paths.iter().filter_map(|path| path.strip_prefix(CHANNEL));
    run.promises.lock().extend(names.map(str::to_owned));
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for NewPromise<T> {
    type Output = anyhow::Result<Promise<T>>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<Promise<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        let NewPromise { context, name, called, timeout, heartbeat, reads } = self;
        Box::pin(async move {
            let called = called?;
            let slot = called.slot.clone();
            let run = Uuid::try_parse(context.run_id())?;
            let secret = slot.track(make(called, name.clone(), run, timeout, heartbeat)).await?;
            let token = PromiseToken { run, name: name.clone(), secret }.text();
            Ok(Promise { context, name, token, reads })
        })
    }
}

/// Makes the promise, or finds the secret of the one that was made.
async fn make(
    called: Called,
    name: String,
    run_id: Uuid,
    timeout: Option<Duration>,
    heartbeat: Option<Duration>,
) -> anyhow::Result<[u8; 16]> {
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    if let Some(recorded) = recorded {
        let entry = recorded.entry;
        let secret = entry.result.as_ref().and_then(|secret| std::str::from_utf8(&secret.data).ok());
        return match (entry.status(), secret.and_then(PromiseToken::read_secret)) {
            (StepStatus::Completed, Some(secret)) => {
                slot.released().await;
                Ok(secret)
            }
            (status, _) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got a promise");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        };
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let token = PromiseToken { run: run_id, name, secret: PromiseToken::new_secret() };
    let secret = v1::Payload { data: token.secret_text().into(), content_type: "text/plain".to_owned() };
    let secret =
        run.encode("the promise", secret).await.map_err(|failure| anyhow::anyhow!("{}", failure.message))?;
    let made = v1::PromiseMade {
        step: Some(step.clone()),
        name: token.name.clone(),
        token_hash: token.hash(),
        secret: Some(secret),
        timeout_ms: timeout.map(retry_policy::millis),
        heartbeat_ms: heartbeat.map(retry_policy::millis),
    };
    run.ask(&slot, report::Body::PromiseMade(made));
    match slot.heard().await {
        Verdict::Committed => Ok(token.secret),
        verdict @ (Verdict::Sleeping { .. }
        | Verdict::Retry { .. }
        | Verdict::Waited(_)
        | Verdict::Final { .. }
        | Verdict::ChildBegan(_)
        | Verdict::Refused { .. }) => never(run.refuse("a promise", verdict).await),
    }
}

impl<T> Promise<T> {
    /// The right to complete or fail this one promise, once:
    /// [`Client::promise`](crate::client::Client::promise), `kagzi promise complete TOKEN`. A secret; the
    /// same in every replay.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Its name in the run.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Promise<T> {
    type Output = anyhow::Result<T>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<T>>;

    /// Waits until somebody completes it. What cannot be decoded, a failure that was said, and a time that is
    /// over are errors which the code can catch.
    fn into_future(self) -> Self::IntoFuture {
        let called = self.context.call(&self.name);
        let name = self.name;
        Box::pin(async move {
            let called = called?;
            let path = called.slot.step.path.clone();
            let silent = || format!("whoever works on promise '{name}' has stopped to give signs of life");
            let late = || format!("nobody completed promise '{name}' in its time");
            let heard = listen(called, format!("{CHANNEL}{name}"), None, false).await?;
            let failure = match heard {
                Heard::Silent => failure::new(codes::PROMISE_SILENT, silent(), true),
                Heard::Elapsed | Heard::Closed => failure::new(codes::PROMISE_TIMED_OUT, late(), true),
                said @ (Heard::Taken { .. } | Heard::Failed { .. }) => {
                    return said.read(&path)?.ok_or_else(|| anyhow::anyhow!("nothing was said"));
                }
            };
            Err(StepError::new(path, failure, 1, Finality::Rejected).into())
        })
    }
}
