//! `const ORDER: Workflow<Order, Receipt>`: a workflow's name together with its types, said once.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::DeserializeOwned;

use crate::client::handle::RunHandle;
use crate::error::Error;

/// The name of a workflow together with the types of its input and its output. Said once, as a constant, it
/// is used where the function is registered and where runs are started, and the compiler sees to it that they
/// fit.
///
/// ```no_run
/// use kagzi::{Client, Worker, Workflow, WorkflowContext};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Order { cents: u64 }
/// # #[derive(Serialize, Deserialize)] struct Receipt { charge: String }
///
/// const ORDER: Workflow<Order, Receipt> = Workflow::new("order").queue("orders");
///
/// async fn order(ctx: WorkflowContext, order: Order) -> anyhow::Result<Receipt> {
///     let charge = ctx.run("charge", async move { Ok(format!("{} cents", order.cents)) }).await?;
///     Ok(Receipt { charge })
/// }
///
/// # async fn example() -> anyhow::Result<()> {
/// let mut worker = Worker::builder("127.0.0.1:50051", "orders").build().await?;
/// worker.register(ORDER, order);
///
/// let client = Client::connect("127.0.0.1:50051").await?;
/// let run = client.start(ORDER).input(Order { cents: 450 }).id("order-42").await?;
/// let receipt = run.result().await?;
/// println!("{}", receipt.charge);
/// # Ok(()) }
/// ```
pub struct Workflow<I, O> {
    name: &'static str,
    queue: &'static str,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O> Workflow<I, O> {
    /// The workflow of this name.
    pub const fn new(name: &'static str) -> Workflow<I, O> {
        Workflow { name, queue: "", types: PhantomData }
    }

    /// The queue on which its runs are started, unless the start names another.
    pub const fn queue(mut self, task_queue: &'static str) -> Workflow<I, O> {
        self.queue = task_queue;
        self
    }

    /// Its name.
    ///
    /// ```
    /// const ORDER: kagzi::Workflow<u64, String> = kagzi::Workflow::new("order");
    /// assert_eq!(ORDER.name(), "order");
    /// ```
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<I, O> Clone for Workflow<I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I, O> Copy for Workflow<I, O> {}

impl<I, O> fmt::Debug for Workflow<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workflow({} on '{}')", self.name, self.queue)
    }
}

/// What a function can be registered under: a name, which fits every function, or a [`Workflow`], which fits
/// functions of its types.
pub trait Registers<I, O> {
    /// The name.
    fn workflow_type(&self) -> &str;
}

impl<I, O> Registers<I, O> for Workflow<I, O> {
    fn workflow_type(&self) -> &str {
        self.name
    }
}

impl<I, O> Registers<I, O> for &str {
    fn workflow_type(&self) -> &str {
        self
    }
}

impl<I, O> Registers<I, O> for String {
    fn workflow_type(&self) -> &str {
        self
    }
}

impl<I, O> Registers<I, O> for &String {
    fn workflow_type(&self) -> &str {
        self
    }
}

/// What [`Client::start`](crate::Client::start) takes: a name, or a [`Workflow`].
pub trait Starts {
    /// [`AnyInput`], or the workflow whose types the start has.
    type Types: Answers;
    /// Its name, and its queue where it has one.
    fn into_parts(self) -> (String, String);
}

/// What a start answers with.
pub trait Answers {
    /// The handle of the run.
    type Handle: From<RunHandle>;
}

/// A start whose input may be anything and whose output is named when it is waited for.
#[derive(Debug, Clone, Copy)]
pub struct AnyInput;

impl Answers for AnyInput {
    type Handle = RunHandle;
}

impl<I, O> Answers for Workflow<I, O> {
    type Handle = TypedRun<O>;
}

impl<I, O> Starts for Workflow<I, O> {
    type Types = Workflow<I, O>;
    fn into_parts(self) -> (String, String) {
        (self.name.to_owned(), self.queue.to_owned())
    }
}

impl Starts for &str {
    type Types = AnyInput;
    fn into_parts(self) -> (String, String) {
        (self.to_owned(), String::new())
    }
}

impl Starts for String {
    type Types = AnyInput;
    fn into_parts(self) -> (String, String) {
        (self, String::new())
    }
}

/// A run that was started as a [`Workflow`]: a [`RunHandle`] that knows its output.
pub struct TypedRun<O> {
    handle: RunHandle,
    output: PhantomData<fn() -> O>,
}

impl<O: DeserializeOwned> TypedRun<O> {
    /// Waits for the run to end and decodes its output: see [`RunHandle::result`].
    pub async fn result(&self) -> Result<O, Error> {
        self.handle.result().await
    }
}

impl<O> TypedRun<O> {
    /// The same run without the type.
    ///
    /// ```no_run
    /// # async fn start(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// const ORDER: kagzi::Workflow<u64, String> = kagzi::Workflow::new("order").queue("orders");
    /// client.start(ORDER).input(450).await?.untyped().cancel("no longer wanted").await?;
    /// # Ok(()) }
    /// ```
    pub fn untyped(self) -> RunHandle {
        self.handle
    }
}

impl<O> Clone for TypedRun<O> {
    fn clone(&self) -> Self {
        TypedRun { handle: self.handle.clone(), output: PhantomData }
    }
}

impl<O> From<RunHandle> for TypedRun<O> {
    fn from(handle: RunHandle) -> Self {
        TypedRun { handle, output: PhantomData }
    }
}

impl<O> Deref for TypedRun<O> {
    type Target = RunHandle;

    fn deref(&self) -> &RunHandle {
        &self.handle
    }
}
