//! Triggers: every event that is published on a topic starts a run.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::Admin;
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Starts a run for every event on a topic, with what was published as its input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trigger {
    /// Its name in the namespace.
    pub id: String,
    /// Whose events it waits for.
    pub topic: String,
    /// Only events with this key; none = whatever their key is.
    pub key: Option<String>,
    /// What it starts.
    pub workflow_type: String,
    /// On which queue.
    pub task_queue: String,
}

impl Trigger {
    /// A trigger that starts runs of this type on this queue for every event on a topic.
    pub fn new(
        id: impl Into<String>,
        topic: impl Into<String>,
        workflow_type: impl Into<String>,
        task_queue: impl Into<String>,
    ) -> Trigger {
        Trigger {
            id: id.into(),
            topic: topic.into(),
            key: None,
            workflow_type: workflow_type.into(),
            task_queue: task_queue.into(),
        }
    }

    /// Only for events with this key.
    pub fn key(mut self, key: impl Into<String>) -> Trigger {
        self.key = Some(key.into());
        self
    }

    fn from_proto(proto: v1::Trigger) -> Trigger {
        let v1::Trigger { trigger_id, topic, key, workflow_type, task_queue, .. } = proto;
        let key = (!key.is_empty()).then_some(key);
        Trigger { id: trigger_id, topic, key, workflow_type, task_queue }
    }
}

impl Admin {
    /// Makes a trigger: events that are published from now on start runs. Another one of the same id is
    /// refused with ALREADY_EXISTS.
    ///
    /// ```no_run
    /// # async fn make(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
    /// use kagzi::admin::Trigger;
    ///
    /// admin.create_trigger(Trigger::new("ship-paid", "order.paid", "ship", "shipping")).await?;
    /// let failed = Trigger::new("on-failure", "kagzi/workflow.failed", "tell-ops", "ops").key("order");
    /// admin.create_trigger(failed).await?;
    /// admin.delete_trigger("ship-paid").await?;
    /// # Ok(()) }
    /// ```
    pub async fn create_trigger(&self, trigger: Trigger) -> Result<Trigger, Error> {
        let Trigger { id, topic, key, workflow_type, task_queue } = trigger;
        let request = v1::CreateTriggerRequest {
            namespace_id: self.namespace_id(),
            trigger_id: id,
            topic,
            key: key.unwrap_or_default(),
            workflow_type,
            task_queue,
        };
        let answer = rpc!(self.client(), Admins.create_trigger, Safe, "make a trigger", request)?;
        Ok(Trigger::from_proto(answer.trigger.unwrap_or_default()))
    }

    /// The triggers of the namespace, by their ids. Nothing is asked yet.
    pub fn triggers(&self) -> Triggers {
        let request = v1::ListTriggersRequest { namespace_id: self.namespace_id(), ..Default::default() };
        Triggers { client: self.client().clone(), request }
    }

    /// Deletes a trigger. Runs that it started go on.
    pub async fn delete_trigger(&self, id: impl Into<String>) -> Result<(), Error> {
        let request = v1::DeleteTriggerRequest { namespace_id: self.namespace_id(), trigger_id: id.into() };
        rpc!(self.client(), Admins.delete_trigger, Unsafe, "delete a trigger", request).map(drop)
    }
}

/// Triggers that are being asked for, by their ids.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = admin.triggers().page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all, streamed);
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct Triggers {
    client: Client,
    request: v1::ListTriggersRequest,
}

impl Triggers {
    /// Triggers per page, at most 1000. Default: 50.
    pub fn page_size(mut self, triggers: u16) -> Self {
        self.request.page_size = triggers.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Trigger>, Error> {
        let request = v1::ListTriggersRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_triggers, Safe, "list triggers", request)?;
        let triggers = page.triggers.into_iter().map(Trigger::from_proto).collect();
        let list = Page::new(triggers, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All triggers, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Trigger, Error>> + Send {
        page::stream(self, |triggers, token| async move { triggers.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Trigger>, Error> {
        page::all(self.clone().stream()).await
    }
}
