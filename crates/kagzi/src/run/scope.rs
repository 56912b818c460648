//! `ctx.run_scope`: a part of a workflow that is recorded as one once it has ended.
//!
//! Its end has a step's identity, with a path that ends with a slash, and is recorded like a result: in its
//! turn, behind everything that its code was told. From then on the server leaves out of journals what lies
//! below that path, and a replay is told of the end alone. What a replay needs to know beside the value,
//! since it does not execute the code, is in the result too: see [`Inside`].

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use kagzi_proto::v1::{self, JournalEntry, StepStatus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::inside;
use crate::run::journal::Recorded;
use crate::run::promise::remember_promises;
use crate::run::slot::Slot;
use crate::run::state::{RunEnd, RunState};
use crate::run::step::{never, recordable};
use crate::run::turns::{Heard, Open};
use crate::{failure, payload};

impl WorkflowContext {
    /// Executes a part of the workflow in a [`scope`](Self::scope) of its own and records its end as one:
    /// once it has returned a value, a replay is given that and executes nothing of it, and its steps, sleeps
    /// and waits are left out of the journal. So a loop over a thousand orders of ten steps each is replayed
    /// like one of a thousand steps.
    ///
    /// The code uses the context that it is given and no other, and nothing of it but its value is used
    /// outside: a replay has nothing else (`OTHER_SCOPE` is the error of who tries). An error is not
    /// recorded: it names its scope, and a run that is retried goes on inside.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn ship_all(ctx: WorkflowContext, orders: Vec<String>) -> anyhow::Result<Vec<String>> {
    ///     let mut shipped = Vec::new();
    ///     for order in orders {
    ///         let parcel = ctx.run_scope(&format!("order-{order}"), |ctx| async move {
    ///             let packed = ctx.run("pack", async move { Ok(format!("{order}, packed")) }).await?;
    ///             ctx.run("ship", async move { Ok(format!("{packed} and shipped")) }).await
    ///         });
    ///         shipped.push(parcel.await?);
    ///     }
    ///     Ok(shipped)
    /// }
    /// ```
    pub fn run_scope<T, F, Fut>(
        &self,
        name: &str,
        code: F,
    ) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, F, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        F: FnOnce(WorkflowContext) -> Fut + Send,
        Fut: Future<Output = anyhow::Result<T>> + Send,
    {
        let called = self.call_scope(name);
        async move {
            let (Called { slot, recorded }, context) = called?;
            if let Some(recorded) = recorded {
                return slot.track(replay(&slot, recorded)).await;
            }
            // Polled as the function itself polls it: the scope is nobody who keeps a list of whom to poll.
            let (value, inside) = execute(&slot, context, code).await?;
            slot.track(record(&slot, value, inside)).await
        }
    }
}

/// Whether the step of this path stands for everything below it.
pub(crate) fn is_scope(path: &str) -> bool {
    path.ends_with('/')
}

/// The result of a scope, as it is recorded.
#[derive(Serialize, Deserialize)]
struct Whole<T> {
    value: T,
    #[serde(default, skip_serializing_if = "Inside::is_nothing")]
    inside: Inside,
}

/// What happened inside a scope that is recorded as one, as far as it concerns what comes after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Inside {
    /// What its code was told of, and what that weighed: `should_continue` counts it.
    ends: u64,
    bytes: u64,
    /// The highest number of a published value by then.
    values: u64,
    /// What it called by a path that does not lie in the scope: promises, and answers to requests.
    pub(crate) own: Vec<String>,
}

impl Inside {
    fn is_nothing(&self) -> bool {
        *self == Inside::default()
    }

    /// What the entry of a scope says. One that says nothing is told of when its scope is called.
    pub(crate) fn of(entry: &JournalEntry) -> Inside {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Only {
            inside: Inside,
        }
        payload::decode::<Only>(entry.result.as_ref()).unwrap_or_default().inside
    }

    pub(crate) fn heard(&self) -> Heard {
        Heard { ends: self.ends, bytes: self.bytes }
    }

    /// The function hears of the scope's end: what its code has left behind holds from here on.
    fn hold(&self, run: &RunState) {
        run.published.lock().were_given(self.values);
        remember_promises(run, &self.own);
    }
}

/// The scopes of a run that are recorded as one and whose code is executed, by their numbers.
#[derive(Default)]
pub(crate) struct OpenScopes {
    last: usize,
    open: BTreeMap<usize, OpenScope>,
}

#[derive(Default)]
struct OpenScope {
    heard: Heard,
    own: Vec<String>,
}

impl OpenScopes {
    fn begin(&mut self) -> usize {
        self.last += 1;
        self.open.insert(self.last, OpenScope::default());
        self.last
    }

    pub(crate) fn is_open(&self, number: usize) -> bool {
        self.open.contains_key(&number)
    }

    pub(crate) fn heard(&self, number: usize) -> Heard {
        self.open.get(&number).map_or(Heard::default(), |scope| scope.heard)
    }

    pub(crate) fn hear(&mut self, number: usize, more: Heard) {
        if let Some(scope) = self.open.get_mut(&number) {
            scope.heard.hear(more);
        }
    }

    /// Its code calls something by a path that does not lie in it.
    pub(crate) fn call_own(&mut self, number: usize, path: &str) {
        if let Some(scope) = self.open.get_mut(&number) {
            scope.own.push(path.to_owned());
        }
    }

    /// The code has ended or was dropped. What it called by other paths was called in the scope around it
    /// too.
    fn end(&mut self, number: usize, around: usize) -> Option<OpenScope> {
        let ended = self.open.remove(&number)?;
        if let Some(around) = self.open.get_mut(&around) {
            around.own.extend(ended.own.iter().cloned());
        }
        Some(ended)
    }
}

/// A scope between the beginning of its code and its end.
struct Begun {
    run: Arc<RunState>,
    number: usize,
    around: usize,
}

impl Begun {
    fn new(slot: &Slot) -> Begun {
        let number = slot.run.turns.lock().scopes.begin();
        Begun { run: slot.run.clone(), number, around: slot.scope }
    }

    /// Its code has returned a value.
    fn end(self) -> Inside {
        let ended = self.run.turns.lock().scopes.end(self.number, self.around).unwrap_or_default();
        let Heard { ends, bytes } = ended.heard;
        Inside { ends, bytes, values: self.run.published.lock().highest(), own: ended.own }
    }
}

impl Drop for Begun {
    /// Of a scope that is not recorded every replay hears again what it heard: it counts for what is around
    /// it.
    fn drop(&mut self) {
        let mut turns = self.run.turns.lock();
        if let Some(ended) = turns.scopes.end(self.number, self.around) {
            turns.hear_in(self.around, ended.heard);
        }
    }
}

async fn execute<T, F, Fut>(
    slot: &Arc<Slot>,
    context: WorkflowContext,
    code: F,
) -> anyhow::Result<(T, Inside)>
where
    F: FnOnce(WorkflowContext) -> Fut + Send,
    Fut: Future<Output = anyhow::Result<T>> + Send,
{
    let begun = Begun::new(slot);
    let (number, context) = (begun.number, context.begun(begun.number));
    let mut code = pin!(async move { code(context).await });
    let ended = poll_fn(|cx| {
        let _mark = inside::enter_scope(Some(number));
        code.as_mut().poll(cx)
    });
    match ended.await {
        Ok(value) => Ok((value, begun.end())),
        Err(error) => Err(named(error, &slot.step.path)),
    }
}

/// Records the end, which takes its turn like the result of a step.
async fn record<T: Serialize + DeserializeOwned>(
    slot: &Arc<Slot>,
    value: T,
    inside: Inside,
) -> anyhow::Result<T> {
    let run = &slot.run;
    let _open = Open::new(slot);
    let heard = inside.heard();
    let (whole, result) = match recordable(run, "the scope's result", Whole { value, inside }).await {
        Ok(recordable) => recordable,
        // Nothing is recorded of a scope that fails, so its code must not see an error that a replay may not
        // see.
        Err(failure) => never(run.halt_here(RunEnd::failed(*failure)).await),
    };
    let (step, result) = (Some(slot.step.clone()), Some(result));
    run.scope_ended(slot, v1::StepRecorded { step, result, attempt: 1, elapsed_ms: 0 }, heard);
    slot.released().await;
    whole.inside.hold(run);
    Ok(whole.value)
}

async fn replay<T: DeserializeOwned>(slot: &Arc<Slot>, recorded: Recorded) -> anyhow::Result<T> {
    let (run, step) = (&slot.run, &slot.step);
    let status = recorded.entry.status();
    let message = match status {
        StepStatus::Completed => {
            slot.released().await;
            let result = recorded.entry.result.as_ref();
            // Somebody else's code: a panic in it is no reason to take another path either.
            let decoded = catch_unwind(AssertUnwindSafe(|| payload::decode::<Whole<T>>(result)));
            let error = match decoded {
                Ok(Ok(whole)) => {
                    whole.inside.hold(run);
                    return Ok(whole.value);
                }
                Ok(Err(error)) => run.sayable(&error),
                Err(panic) => failure::of_panic(&*panic).message,
            };
            format!("but its result cannot be decoded: {error}")
        }
        StepStatus::Pending
        | StepStatus::Running
        | StepStatus::Sleeping
        | StepStatus::Waiting
        | StepStatus::Failed
        | StepStatus::Unspecified => format!("as {}, got a scope", status.as_str_name()),
    };
    let message = format!("recorded {} at position {}, {message}", step.path, step.position);
    never(run.halt_here(RunEnd::Blocked(message)).await)
}

/// Says where an error came from that does not say so itself.
#[derive(Debug, thiserror::Error)]
#[error("in scope '{0}'")]
struct InScope(String);

/// The error of a scope's code, with the scope's name unless it names one inside already.
fn named(error: anyhow::Error, path: &str) -> anyhow::Error {
    let names_a_place = failure::find::<InScope>(&error).is_some_and(|inner| inner.0.starts_with(path))
        || failure::step_of(&error).starts_with(path);
    if names_a_place || failure::next_input(&error).is_some() {
        return error;
    }
    error.context(InScope(path.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::step_error::{Finality, StepError};

    use super::*;

    #[test]
    fn an_error_names_its_innermost_scope_once() {
        let plain = named(anyhow::anyhow!("no stock"), "item-7/");
        assert_eq!(format!("{plain:#}"), "in scope 'item-7': no stock");

        let nested = named(named(anyhow::anyhow!("no stock"), "order/item-7/"), "order/");
        assert_eq!(format!("{nested:#}"), "in scope 'order/item-7': no stock");

        let failure = failure::new("CARD_DECLINED", "the bank said no".to_owned(), true);
        let step = StepError::new("item-7/charge".to_owned(), failure, 1, Finality::NonRetryable);
        let said = format!("{:#}", anyhow::Error::from(step.clone()));
        let named_step = named(step.into(), "item-7/");
        assert_eq!(format!("{named_step:#}"), said);
        assert!(said.contains("item-7/charge"), "{said}");
    }

    #[test]
    fn a_scope_in_which_nothing_happened_is_recorded_as_its_value_alone() {
        let empty = payload::encode(&Whole { value: 7, inside: Inside::default() }).unwrap();
        assert_eq!(&empty.data[..], br#"{"value":7}"#);

        let inside = Inside { ends: 2, bytes: 30, values: 0, own: vec!["~promise/paid".to_owned()] };
        let result = payload::encode(&Whole { value: (), inside: inside.clone() }).ok();
        let entry = JournalEntry { result, ..JournalEntry::default() };
        assert_eq!(Inside::of(&entry), inside);
        assert_eq!(Inside::of(&JournalEntry::default()), Inside::default());
    }
}
