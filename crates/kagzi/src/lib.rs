//! Kagzi: durable workflows as plain async Rust.
//!
//! A workflow is an async function. What it does to the world happens in *steps*; each result is recorded,
//! so after a crash, a deployment or a month of sleep the function is executed again from the top, recorded
//! steps return at once, and it goes on where it was.
//!
//! ```no_run
//! use std::time::Duration;
//! use kagzi::{Client, Worker, WorkflowContext};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order { item: String, cents: u64 }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Receipt { charge: String }
//!
//! async fn order(ctx: WorkflowContext, order: Order) -> anyhow::Result<Receipt> {
//!     let charge: String = ctx
//!         .step("charge")
//!         .timeout(Duration::from_secs(30))
//!         .retries(5)
//!         .run(|step| async move { Ok(format!("charged with key {}", step.idempotency_key())) })
//!         .await?;
//!     ctx.sleep(Duration::from_secs(60)).await?;
//!     let item = order.item;
//!     ctx.run("ship", async move { Ok(format!("shipped {item}")) }).await?;
//!     Ok(Receipt { charge })
//! }
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let mut worker = Worker::builder("127.0.0.1:50051", "orders").build().await?;
//!     worker.register("order", order);
//!     let mut working = tokio::spawn(worker.run());
//!
//!     let client = Client::connect("127.0.0.1:50051").await?;
//!     let input = Order { item: "tea".into(), cents: 450 };
//!     let run = client.workflow("order", "orders", input).id("order-42").await?;
//!     tokio::select! {
//!         receipt = run.result::<Receipt>() => println!("{}", receipt?.charge),
//!         // Ctrl-C: the worker gave back what it had and ended.
//!         ended = &mut working => ended??,
//!     }
//!     Ok(())
//! }
//! ```
//!
//! | to | see |
//! |---|---|
//! | start a run | [`Client::workflow`], [`Client::start`] |
//! | wait for its result | [`RunHandle::result`](client::RunHandle::result) |
//! | record a step | [`WorkflowContext::run`], [`WorkflowContext::step`] |
//! | retry it | [`RetryPolicy`], [`StepBuilder::attempts`](workflow::StepBuilder::attempts) |
//! | wait for somebody's word | [`WorkflowContext::signal`], [`RunHandle::signal`](client::RunHandle::signal) |
//! | ask a person | [`WorkflowContext::approval`], [`inbox`] |
//! | sleep | [`WorkflowContext::sleep`] |
//! | start runs by a timetable | [`Client::schedule`], [`schedule`] |
//! | execute runs | [`Worker::builder`], [`Worker::register`] |
//! | test workflows | [`testing`] |
//! | name a workflow and its types once | [`Workflow`] |
//! | share a pool with all steps | [`WorkerBuilder::state`](worker::WorkerBuilder::state) |
//! | match what went wrong | [`Error`], [`error::Code`] |
//! | look at runs, histories, queues | [`Client::runs`], [`history`], [`admin`] |
//! | follow them while they happen | [`RunHandle::watch`](client::RunHandle::watch), [`Runs::watch`](client::Runs::watch), [`Queues::watch`](admin::Queues::watch) |
//! | name what must happen once | [`keys`] |
//! | encrypt or compress payloads | [`codec`] |
//! | believe a webhook of the server | `kagzi::webhook` (feature `webhook`) |
//! | do without a server | `kagzi::Embedded` (feature `embedded`) |
//!
//! `use kagzi::prelude::*;` names what most programs need; everything else lives in the modules below.
//!
//! What is promised about side effects: *a step's code runs at least once; its result is recorded exactly
//! once; with the key we hand you and a receiver that deduplicates, its effect happens once.*
//!
//! A step that fails is retried by its policy, out of sight of the function; see
//! [`NonRetryableError`](workflow::NonRetryableError), [`RetryAfterError`](workflow::RetryAfterError) and
//! [`StepFailure`](workflow::StepFailure) for failures that say more, and [`StepError`](workflow::StepError)
//! for the last word. A run that fails can start a handler, which is a workflow too: see
//! [`WorkflowFailedEvent`](workflow::WorkflowFailedEvent).
//!
//! Payloads leave the process as JSON; a [`PayloadCodec`](codec::PayloadCodec) compresses or encrypts them,
//! so that the server never sees what they say. Log lines and spans of a worker carry `namespace`, `run`,
//! `worker`, `step` and `attempt`. With the feature `otel` and a layer of `tracing-opentelemetry`, the span
//! in which a run is started is the parent of its executions and steps.
//!
//! Workflows are tested with `kagzi::testing` (feature `testing`): a month of sleep passes at once, and the
//! worker is killed wherever it could hurt.

#![warn(missing_docs)]

mod absent;
mod addresses;
pub mod admin;
mod cancellation;
pub mod client;
mod code;
pub mod codec;
mod codes;
mod connection;
pub mod effects;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod error;
mod failure;
pub mod history;
mod http_failure;
pub mod inbox;
pub mod keys;
mod known_errors;
mod limits;
mod page;
mod payload;
pub mod prelude;
mod reconnect_delay;
mod retry_after;
mod retry_policy;
mod run;
pub mod schedule;
mod status;
mod step_error;
#[cfg(feature = "testing")]
pub mod testing;
/// Workflows are tested here, once the feature `testing` is on: a month of sleep passes at once, and the
/// worker is killed wherever it could hurt.
///
/// ```toml
/// [dev-dependencies]
/// kagzi = { version = "0.1", features = ["testing"] }
/// ```
///
/// `cargo doc -p kagzi --features testing` shows what is in it.
#[cfg(all(doc, not(feature = "testing")))]
pub mod testing {}
mod trace;
#[cfg(feature = "webhook")]
pub mod webhook;
pub mod worker;
pub mod workflow;
mod workflow_failed;

pub use client::Client;
#[cfg(feature = "embedded")]
pub use embedded::Embedded;
pub use error::Error;
pub use retry_policy::RetryPolicy;
pub use worker::Worker;
pub use workflow::{StepContext, Workflow, WorkflowContext};

/// Its snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/workflow-functions.md")]
struct WorkflowFunctions;

/// What the macros of this crate are made of. Not for use by others.
#[doc(hidden)]
pub mod __private {
    pub use tokio;

    /// A client on a channel that is already made. For our own tests and benchmarks: its type is another
    /// crate's.
    pub fn client_on(channel: tonic::transport::Channel) -> crate::Client {
        crate::Client::on_channel(channel)
    }

    /// A worker on a channel that is already made.
    pub fn worker_on(channel: tonic::transport::Channel, task_queue: &str) -> crate::worker::WorkerBuilder {
        crate::worker::WorkerBuilder::on_channel(channel, task_queue)
    }
}
