//! What operators set and look at: [`Client::admin`].

pub(crate) mod events;
pub(crate) mod namespace;
pub(crate) mod namespaces;
pub(crate) mod queue;
pub(crate) mod queue_handle;
pub(crate) mod queues;
pub(crate) mod registered_worker;
pub(crate) mod server;
pub(crate) mod triggers;
pub(crate) mod workers;

use kagzi_proto::v1;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
pub use crate::page::Page;
pub use events::{KeptEvent, KeptEvents};
pub use namespace::{Namespace, NamespaceField, NamespaceSettings};
pub use namespaces::Namespaces;
pub use queue::{Depth, Gate, Queue, QueueType};
pub use queue_handle::QueueHandle;
pub use queues::Queues;
pub use registered_worker::{RegisteredWorker, WorkerStatus};
pub use server::{Health, ServerInfo, SetAside};
pub use triggers::{Trigger, Triggers};
pub use workers::Workers;

/// Namespaces, queues and workers, for operators. Cheap to clone.
///
/// Queues and workers are those of the client's namespace; namespaces are named in each call.
///
/// ```no_run
/// # async fn operate(client: kagzi::Client) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::RetryPolicy;
/// use kagzi::admin::{NamespaceField, NamespaceSettings};
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
/// if let Some(queue) = orders.describe().await? {
///     let depth = queue.depth;
///     println!("{} ready, {} running", depth.ready, depth.leased);
/// }
/// for worker in admin.workers().task_queue("orders").all().await? {
///     admin.drain_worker(worker.worker_id).await?;
/// }
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # async fn look(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// assert!(admin.health().await?.ready);
/// println!("version {}", admin.server_info().await?.version);
/// for namespace in admin.namespaces().all().await? {
///     let read = admin.namespace(&namespace.namespace_id).await?;
///     println!("{}: {}", read.namespace_id, read.description);
/// }
/// admin.enable_namespace("shop").await?;
/// admin.every_queue().pause("the database moves").await?;
/// assert!(admin.namespace_gate().await?.paused);
/// println!("{} queues", admin.queues().all().await?.len());
/// let worker = admin.worker("0199f3c2").await?;
/// println!("{} runs go elsewhere", admin.take_worker_offline(worker.worker_id).await?.released);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Admin {
    client: Client,
    by: String,
}

/// A worker that was taken out of the registry.
#[derive(Debug, Clone)]
pub struct TakenOffline {
    /// As it is now.
    pub worker: RegisteredWorker,
    /// Runs that others may take now.
    pub released: u32,
}

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
        let answer = rpc!(self.client, Admins.create_namespace, Unsafe, "create a namespace", request)?;
        Ok(Namespace::from_proto(answer.namespace.unwrap_or_default()))
    }

    /// Reads one namespace.
    pub async fn namespace(&self, name: impl Into<String>) -> Result<Namespace, Error> {
        let request = v1::GetNamespaceRequest { namespace_id: name.into() };
        let answer = rpc!(self.client, Admins.get_namespace, Safe, "read a namespace", request)?;
        Ok(Namespace::from_proto(answer.namespace.unwrap_or_default()))
    }

    /// The namespaces, by name. Nothing is asked yet.
    pub fn namespaces(&self) -> Namespaces {
        Namespaces::new(self.client.clone())
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
            clear: settings.clear.into_iter().map(|field| field.to_proto().into()).collect(),
        };
        let answer = rpc!(self.client, Admins.update_namespace, Safe, "change a namespace", request)?;
        Ok(Namespace::from_proto(answer.namespace.unwrap_or_default()))
    }

    /// Refuses new runs from now on, with a note for whoever is refused; those that live go on.
    pub async fn disable_namespace(
        &self,
        name: impl Into<String>,
        note: impl Into<String>,
    ) -> Result<Namespace, Error> {
        let request =
            v1::DisableNamespaceRequest { namespace_id: name.into(), note: note.into(), by: self.by.clone() };
        let answer = rpc!(self.client, Admins.disable_namespace, Safe, "disable a namespace", request)?;
        Ok(Namespace::from_proto(answer.namespace.unwrap_or_default()))
    }

    /// Takes new runs again.
    pub async fn enable_namespace(&self, name: impl Into<String>) -> Result<Namespace, Error> {
        let request = v1::EnableNamespaceRequest { namespace_id: name.into() };
        let answer = rpc!(self.client, Admins.enable_namespace, Safe, "enable a namespace", request)?;
        Ok(Namespace::from_proto(answer.namespace.unwrap_or_default()))
    }

    /// Every queue that has a living run, a worker or a gate, with its depth and its gates. Nothing is asked
    /// yet.
    pub fn queues(&self) -> Queues {
        Queues::new(self.client.clone())
    }

    /// What stands before all queues of the namespace together.
    pub async fn namespace_gate(&self) -> Result<Gate, Error> {
        let request =
            v1::ListQueuesRequest { namespace_id: self.namespace_id(), page_size: 1, ..Default::default() };
        let page = rpc!(self.client, Admins.list_queues, Safe, "read the namespace's gate", request)?;
        Ok(Gate::from_proto(page.namespace_gate))
    }

    /// Whether the server takes calls, and if not, why.
    pub async fn health(&self) -> Result<Health, Error> {
        let answer =
            rpc!(self.client, Admins.health_check, Safe, "ask for health", v1::HealthCheckRequest {})?;
        Ok(Health::from_proto(answer))
    }

    /// What the server says about itself.
    pub async fn server_info(&self) -> Result<ServerInfo, Error> {
        let request = v1::GetServerInfoRequest {};
        let answer = rpc!(self.client, Admins.get_server_info, Safe, "ask what the server is", request)?;
        Ok(ServerInfo::from_proto(answer))
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
        let answer = rpc!(self.client, Workers.get_worker, Safe, "read a worker", request)?;
        Ok(RegisteredWorker::from_proto(answer.worker.unwrap_or_default()))
    }

    /// Asks a worker to finish what it has and take nothing new.
    pub async fn drain_worker(&self, id: impl Into<String>) -> Result<RegisteredWorker, Error> {
        let request = v1::DrainWorkerRequest { worker_id: id.into(), namespace_id: self.namespace_id() };
        let answer = rpc!(self.client, Workers.drain_worker, Safe, "drain a worker", request)?;
        Ok(RegisteredWorker::from_proto(answer.worker.unwrap_or_default()))
    }

    /// Takes a worker out of the registry although it may live: its runs go to others at once, and what it
    /// still writes is refused.
    pub async fn take_worker_offline(&self, id: impl Into<String>) -> Result<TakenOffline, Error> {
        let request =
            v1::TakeWorkerOfflineRequest { worker_id: id.into(), namespace_id: self.namespace_id() };
        let answer = rpc!(self.client, Workers.take_worker_offline, Safe, "take a worker offline", request)?;
        let worker = RegisteredWorker::from_proto(answer.worker.unwrap_or_default());
        Ok(TakenOffline { worker, released: answer.released })
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
