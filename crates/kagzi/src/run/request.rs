//! Requests to a running workflow: `ctx.requests`, and the answers of its code.

use std::future::Future;
use std::marker::PhantomData;

use kagzi_proto::v1::{self, StepStatus};
use kagzi_proto::{REJECTED, reply_path};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::payload;
use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::signal::{Heard, listen, value};
use crate::run::state::RunEnd;
use crate::run::step::never;
use crate::run::turns::{Open, settled};

/// The requests on one channel, one after the other. Made by [`WorkflowContext::requests`].
///
/// ```
/// # use kagzi::WorkflowContext;
/// async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
///     let requests = ctx.requests::<String, usize>("add-item");
///     let mut items = Vec::new();
///     while items.len() < 3 {
///         let Some(request) = requests.next().await? else { break };
///         if request.input.is_empty() {
///             request.reject("an item has a name").await?;
///             continue;
///         }
///         items.push(request.input.clone());
///         request.reply(&items.len()).await?;
///     }
///     // What is left is answered, and whoever asks later is refused.
///     while let Some(request) = requests.last_call().await? {
///         let why = format!("request {} came too late", request.id());
///         request.reject_as("CLOSED", &why).await?;
///     }
///     Ok(items)
/// }
/// ```
pub struct Requests<T, R> {
    context: WorkflowContext,
    channel: String,
    types: PhantomData<fn() -> (T, R)>,
}

/// A request that waits for its answer. Whoever asked with
/// [`RunHandle::ask`](crate::client::RunHandle::ask) waits until it is answered or the run ends.
pub struct Request<T, R> {
    /// What was asked.
    pub input: T,
    context: WorkflowContext,
    channel: String,
    id: String,
    answers: PhantomData<fn() -> R>,
}

impl<T, R> Requests<T, R>
where
    T: DeserializeOwned + Send + 'static,
    R: Serialize + 'static,
{
    pub(crate) fn new(context: WorkflowContext, channel: &str) -> Requests<T, R> {
        Requests { context, channel: channel.to_owned(), types: PhantomData }
    }

    /// The next request, in the order in which they came; `None` once the channel is closed. One that is of
    /// another type is rejected, and the next is waited for: strangers cannot fail the run.
    pub fn next(&self) -> impl Future<Output = anyhow::Result<Option<Request<T, R>>>> + Send + use<T, R> {
        self.take(false)
    }

    /// The next request that is already there. If there is none, the channel is closed and `None` comes back:
    /// whoever asks later is refused.
    pub fn last_call(
        &self,
    ) -> impl Future<Output = anyhow::Result<Option<Request<T, R>>>> + Send + use<T, R> {
        self.take(true)
    }

    fn take(
        &self,
        last_call: bool,
    ) -> impl Future<Output = anyhow::Result<Option<Request<T, R>>>> + Send + use<T, R> {
        let (context, channel) = (self.context.clone(), self.channel.clone());
        let mut called = Some(context.call(&channel));
        async move {
            loop {
                let called = called.take().unwrap_or_else(|| context.call(&channel))?;
                let (id, read) = match listen(called, channel.clone(), None, last_call).await? {
                    Heard::Taken { id, signal } => (id, value(signal.as_ref())),
                    Heard::Failed { id, failure } => {
                        (id, Err(anyhow::anyhow!(failure.unwrap_or_default().message)))
                    }
                    Heard::Elapsed | Heard::Closed | Heard::Silent => return Ok(None),
                };
                match read {
                    Ok(Some(input)) => {
                        let answers = PhantomData;
                        return Ok(Some(Request { input, context, channel, id, answers }));
                    }
                    Ok(None) => return Ok(None),
                    Err(error) => {
                        let why = context.run_state().sayable(&error);
                        answer(&context, &channel, &id, rejection("INVALID_REQUEST", &why)).await?;
                    }
                }
            }
        }
    }
}

impl<T, R: Serialize> Request<T, R> {
    /// The asker's name for the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Answers. The answer is recorded like the result of a step: it is given once, and whoever asks again
    /// with the same id is told the same.
    pub fn reply(self, value: &R) -> impl Future<Output = anyhow::Result<()>> + Send + use<T, R> {
        let encoded = payload::encode(value);
        let Request { context, channel, id, .. } = self;
        let answered = encoded.map(|reply| answer(&context, &channel, &id, reply));
        async move { answered?.await }
    }

    /// Says no, with words for whoever asked.
    pub fn reject(self, why: &str) -> impl Future<Output = anyhow::Result<()>> + Send + use<T, R> {
        self.reject_as("REJECTED", why)
    }

    /// Says no, with a code for programs.
    pub fn reject_as(
        self,
        code: &str,
        why: &str,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<T, R> {
        answer(&self.context, &self.channel, &self.id, rejection(code, why))
    }
}

fn rejection(code: &str, message: &str) -> v1::Payload {
    let said = serde_json::json!({ "code": code, "message": message });
    v1::Payload { data: said.to_string().into(), content_type: REJECTED.to_owned() }
}

fn answer(
    context: &WorkflowContext,
    channel: &str,
    id: &str,
    reply: v1::Payload,
) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
    let called = context.call_own(reply_path(channel, id));
    async move {
        let called = called?;
        let slot = called.slot.clone();
        slot.track(record(called, reply)).await
    }
}

/// Records an answer, as the result of a step that has no code.
async fn record(called: Called, reply: v1::Payload) -> anyhow::Result<()> {
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    if let Some(recorded) = recorded {
        return match recorded.entry.status() {
            StepStatus::Completed => {
                slot.released().await;
                Ok(())
            }
            status @ (StepStatus::Pending
            | StepStatus::Running
            | StepStatus::Sleeping
            | StepStatus::Waiting
            | StepStatus::Failed
            | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got an answer");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        };
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let result =
        run.encode("the answer", reply).await.map_err(|failure| anyhow::anyhow!("{}", failure.message))?;
    let (step, result) = (Some(step.clone()), Some(result));
    run.ended(&slot, v1::StepRecorded { step, result, attempt: 1, elapsed_ms: 0 });
    slot.released().await;
    Ok(())
}
