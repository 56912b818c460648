//! `client.admin()`: what operators set and look at.

use std::time::Duration;

use kagzi_proto::v1::{self, Gate, Namespace, Queue, Worker as RegisteredWorker};

use crate::client::queue_handle::QueueHandle;
use crate::client::start::Timeouts;
use crate::client::workers::Workers;
use crate::client::{Client, Repeat};
use crate::error::Error;
use crate::retry_policy::{RetryPolicy, millis};

/// Namespaces, queues and workers, for operators. Cheap to clone.
///
/// Queues and workers are those of the client's namespace; namespaces are named in each call.
///
/// ```no_run
/// # async fn operate(client: kagzi::Client) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::{NamespaceField, NamespaceSettings, RetryPolicy};
///
/// let admin = client.admin().by("ada");
/// let settings = NamespaceSettings::default().retry_policy(RetryPolicy::QUICK).max_concurrent(50);
/// admin.create_namespace("shop", settings).await?;
/// let settings = NamespaceSettings::default().description("orders").clear(NamespaceField::RetryPolicy);
/// admin.update_namespace("shop", settings).await?;
/// admin.disable_namespace("shop", "unpaid").await?;
///
/// let orders = admin.queue("orders");
/// orders.pause("deploy").await?;
/// orders.workflow_type("refund").limit(3).await?;
/// if let Some(depth) = orders.depth().await? {
///     println!("{} ready, {} running", depth.ready, depth.leased);
/// }
/// for worker in admin.workers().task_queue("orders").all().await? {
///     admin.drain_worker(worker.worker_id).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Admin {
    client: Client,
    by: String,
}

/// What can be set on a namespace. What is not named stays as it is, or is left to the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamespaceSettings {
    values: v1::NamespaceValues,
    clear: Vec<NamespaceField>,
}

/// A field that can be left to the server again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceField {
    /// How steps are retried.
    RetryPolicy,
    /// All three of them.
    Timeouts,
    /// How long finished runs are kept.
    Retention,
    /// How many runs execute at once.
    MaxConcurrent,
    /// Where the failure handler starts when no worker has registered it.
    FailureHandlerQueue,
}

/// One page of namespaces, by name.
#[derive(Debug, Clone, Default)]
pub struct NamespacePage {
    /// In the order of their names.
    pub namespaces: Vec<Namespace>,
    /// For the next page; empty when this is the last.
    pub next_page_token: String,
}

/// All queues of a namespace that have a living run, a worker or a gate.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    /// In the order of their names.
    pub queues: Vec<Queue>,
    /// What is set before all of them together.
    pub namespace_gate: Option<Gate>,
}

/// A worker that was taken out of the registry.
#[derive(Debug, Clone)]
pub struct TakenOffline {
    /// As it is now.
    pub worker: RegisteredWorker,
    /// Runs that others may take now.
    pub released: u32,
}

/// Awaits one call on a service, repeated on another server only if that can do no harm.
macro_rules! call {
    ($client:expr, $on:ident, $repeat:ident, $attempted:literal, $method:ident, $request:expr) => {{
        let request = $request;
        let rpc = |mut rpc: $crate::client::$on<tonic::transport::Channel>| {
            let request = request.clone();
            async move { rpc.$method(request).await }
        };
        $client.call_rpc($attempted, Repeat::$repeat, rpc).await
    }};
}
pub(crate) use call;

impl Admin {
    pub(crate) fn new(client: Client) -> Admin {
        Admin { client, by: String::new() }
    }

    /// Who asks, for the notes that others read. Default: `operator`.
    pub fn by(mut self, who: impl Into<String>) -> Admin {
        self.by = who.into();
        self
    }

    /// Creates a namespace. One that is there already is refused with ALREADY_EXISTS.
    pub async fn create_namespace(
        &self,
        name: impl Into<String>,
        settings: NamespaceSettings,
    ) -> Result<Namespace, Error> {
        let request = v1::CreateNamespaceRequest { namespace_id: name.into(), values: Some(settings.values) };
        let answer = call!(self.client, AdminRpc, Unsafe, "create a namespace", create_namespace, request)?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Reads one namespace.
    pub async fn namespace(&self, name: impl Into<String>) -> Result<Namespace, Error> {
        let request = v1::GetNamespaceRequest { namespace_id: name.into() };
        let answer = call!(self.client, AdminRpc, Safe, "read a namespace", get_namespace, request)?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// All namespaces, by name.
    pub async fn namespaces(&self) -> Result<Vec<Namespace>, Error> {
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let page = self.namespace_page(0, token).await?;
            all.extend(page.namespaces);
            token = page.next_page_token;
            if token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// One page of namespaces: the first for an empty token; 0 = the server's page size, at most 1000.
    pub async fn namespace_page(&self, size: u16, token: impl Into<String>) -> Result<NamespacePage, Error> {
        let request = v1::ListNamespacesRequest { page_size: size.into(), page_token: token.into() };
        let answer = call!(self.client, AdminRpc, Safe, "list namespaces", list_namespaces, request)?;
        Ok(NamespacePage { namespaces: answer.namespaces, next_page_token: answer.next_page_token })
    }

    /// Changes a namespace; what the settings do not name stays. Holds for runs that are created later.
    pub async fn update_namespace(
        &self,
        name: impl Into<String>,
        settings: NamespaceSettings,
    ) -> Result<Namespace, Error> {
        let request = v1::UpdateNamespaceRequest {
            namespace_id: name.into(),
            values: Some(settings.values),
            clear: settings.clear.into_iter().map(|field| field.name().to_owned()).collect(),
        };
        let answer = call!(self.client, AdminRpc, Safe, "change a namespace", update_namespace, request)?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Refuses new runs from now on, with a note for whoever is refused; those that live go on.
    pub async fn disable_namespace(
        &self,
        name: impl Into<String>,
        note: impl Into<String>,
    ) -> Result<Namespace, Error> {
        let request =
            v1::DisableNamespaceRequest { namespace_id: name.into(), note: note.into(), by: self.by.clone() };
        let answer = call!(self.client, AdminRpc, Safe, "disable a namespace", disable_namespace, request)?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Takes new runs again.
    pub async fn enable_namespace(&self, name: impl Into<String>) -> Result<Namespace, Error> {
        let request = v1::EnableNamespaceRequest { namespace_id: name.into() };
        let answer = call!(self.client, AdminRpc, Safe, "enable a namespace", enable_namespace, request)?;
        Ok(answer.namespace.unwrap_or_default())
    }

    /// Every queue with its depth and its gates.
    pub async fn queues(&self) -> Result<Queues, Error> {
        self.list_queues(String::new()).await
    }

    /// One queue. Nothing is asked yet.
    pub fn queue(&self, name: impl Into<String>) -> QueueHandle {
        QueueHandle::new(self.clone(), name.into())
    }

    /// All queues of the namespace together. Nothing is asked yet.
    pub fn every_queue(&self) -> QueueHandle {
        QueueHandle::new(self.clone(), String::new())
    }

    /// The workers of the registry, to be filtered and read. Nothing is asked yet.
    pub fn workers(&self) -> Workers {
        Workers::new(self.client.clone())
    }

    /// Reads one worker. A unique prefix of its id is enough.
    pub async fn worker(&self, id: impl Into<String>) -> Result<RegisteredWorker, Error> {
        let request = v1::GetWorkerRequest { worker_id: id.into(), namespace_id: self.namespace_id() };
        let answer = call!(self.client, WorkersRpc, Safe, "read a worker", get_worker, request)?;
        Ok(answer.worker.unwrap_or_default())
    }

    /// Asks a worker to finish what it has and take nothing new.
    pub async fn drain_worker(&self, id: impl Into<String>) -> Result<RegisteredWorker, Error> {
        let request = v1::DrainWorkerRequest { worker_id: id.into(), namespace_id: self.namespace_id() };
        let answer = call!(self.client, WorkersRpc, Safe, "drain a worker", drain_worker, request)?;
        Ok(answer.worker.unwrap_or_default())
    }

    /// Takes a worker out of the registry although it may live: its runs go to others at once, and what it still writes
    /// is refused.
    pub async fn take_worker_offline(&self, id: impl Into<String>) -> Result<TakenOffline, Error> {
        let request =
            v1::TakeWorkerOfflineRequest { worker_id: id.into(), namespace_id: self.namespace_id() };
        let answer =
            call!(self.client, WorkersRpc, Safe, "take a worker offline", take_worker_offline, request)?;
        Ok(TakenOffline { worker: answer.worker.unwrap_or_default(), released: answer.released })
    }

    pub(crate) async fn list_queues(&self, only: String) -> Result<Queues, Error> {
        let mut list = Queues::default();
        let mut page_token = String::new();
        loop {
            let request = v1::ListQueuesRequest {
                namespace_id: self.namespace_id(),
                task_queue: only.clone(),
                page_size: 0,
                page_token,
            };
            let page = call!(self.client, AdminRpc, Safe, "list queues", list_queues, request)?;
            list.queues.extend(page.queues);
            list.namespace_gate = page.namespace_gate;
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(list);
            }
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn who(&self) -> String {
        self.by.clone()
    }

    pub(crate) fn namespace_id(&self) -> String {
        self.client.namespace_id().to_owned()
    }
}

impl NamespaceSettings {
    /// What the namespace is for.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.values.description = Some(text.into());
        self
    }

    /// Fills the fields that a run's own policy leaves open.
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.values.retry_policy = policy.to_proto();
        self
    }

    /// Fill those that a run leaves open.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.values.timeouts = timeouts.to_proto();
        self
    }

    /// How long finished runs are kept.
    pub fn retention(mut self, time: Duration) -> Self {
        self.values.retention_ms = Some(millis(time));
        self
    }

    /// How many runs execute at once, over all queues, workers and servers.
    pub fn max_concurrent(mut self, runs: u32) -> Self {
        self.values.max_concurrent = Some(runs);
        self
    }

    /// Where the namespace's failure handler starts when no worker has registered it.
    pub fn failure_handler_queue(mut self, task_queue: impl Into<String>) -> Self {
        self.values.failure_handler_queue = Some(task_queue.into());
        self
    }

    /// Leaves a field to the server again, before the other settings are put in. Only for an update.
    pub fn clear(mut self, field: NamespaceField) -> Self {
        self.clear.push(field);
        self
    }
}

/// From the message of the contract, for programs that have one.
impl From<v1::NamespaceValues> for NamespaceSettings {
    fn from(values: v1::NamespaceValues) -> Self {
        NamespaceSettings { values, clear: Vec::new() }
    }
}

impl NamespaceField {
    fn name(self) -> &'static str {
        match self {
            NamespaceField::RetryPolicy => "retry_policy",
            NamespaceField::Timeouts => "timeouts",
            NamespaceField::Retention => "retention",
            NamespaceField::MaxConcurrent => "max_concurrent",
            NamespaceField::FailureHandlerQueue => "failure_handler_queue",
        }
    }
}
