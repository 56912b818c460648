//! One queue, one type on it, or all queues of a namespace: to be paused, limited and looked at.

use kagzi_proto::v1;

use crate::admin::{Admin, Gate, Queue};
use crate::client::wire::rpc;
use crate::error::Error;

/// A queue, from [`Admin::queue`]; narrowed to one type by [`QueueHandle::workflow_type`]. Cheap to clone.
///
/// ```no_run
/// # async fn operate(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// let refunds = admin.queue("orders").workflow_type("refund");
/// refunds.limit(3).await?;
/// refunds.pause("the bank is away").await?;
/// refunds.resume().await?;
/// assert!(refunds.unlimited().await?.is_open());
/// println!("{:?}", admin.queue("orders").describe().await?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct QueueHandle {
    admin: Admin,
    /// Empty = every queue.
    task_queue: String,
    /// Empty = every type.
    workflow_type: String,
}

impl QueueHandle {
    pub(crate) fn new(admin: Admin, task_queue: String) -> QueueHandle {
        QueueHandle { admin, task_queue, workflow_type: String::new() }
    }

    /// Only runs of this type on the queue.
    pub fn workflow_type(&self, name: impl Into<String>) -> QueueHandle {
        QueueHandle { workflow_type: name.into(), ..self.clone() }
    }

    /// Claims nothing more from now on, on any server; what runs goes on. The note is for whoever wonders.
    pub async fn pause(&self, note: impl Into<String>) -> Result<Gate, Error> {
        let request = v1::PauseQueueRequest {
            namespace_id: self.admin.namespace_id(),
            task_queue: self.task_queue.clone(),
            workflow_type: self.workflow_type.clone(),
            note: note.into(),
            by: self.admin.who(),
        };
        let answer = rpc!(self.admin.client(), Admins.pause_queue, Safe, "pause a queue", request)?;
        Ok(Gate::from_proto(answer.gate))
    }

    /// Lets it go on.
    pub async fn resume(&self) -> Result<Gate, Error> {
        let request = v1::ResumeQueueRequest {
            namespace_id: self.admin.namespace_id(),
            task_queue: self.task_queue.clone(),
            workflow_type: self.workflow_type.clone(),
        };
        let answer = rpc!(self.admin.client(), Admins.resume_queue, Safe, "resume a queue", request)?;
        Ok(Gate::from_proto(answer.gate))
    }

    /// So many runs at once, over all workers and servers. A lowered limit takes no run away.
    pub async fn limit(&self, runs: u32) -> Result<Gate, Error> {
        self.set_limit(Some(runs)).await
    }

    /// No limit any more.
    pub async fn unlimited(&self) -> Result<Gate, Error> {
        self.set_limit(None).await
    }

    /// What waits and runs on the queue, type by type; none when it has no living run, no worker and no gate.
    pub async fn describe(&self) -> Result<Option<Queue>, Error> {
        let found = self.admin.queues().named(&self.task_queue).page("").await?;
        Ok(found.rows.into_iter().find(|queue| queue.task_queue == self.task_queue))
    }

    async fn set_limit(&self, max_concurrent: Option<u32>) -> Result<Gate, Error> {
        let request = v1::LimitQueueRequest {
            namespace_id: self.admin.namespace_id(),
            task_queue: self.task_queue.clone(),
            workflow_type: self.workflow_type.clone(),
            max_concurrent,
        };
        let answer = rpc!(self.admin.client(), Admins.limit_queue, Safe, "limit a queue", request)?;
        Ok(Gate::from_proto(answer.gate))
    }
}
