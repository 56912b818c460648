//! A namespace: as it is, and what can be set on it.

use std::time::{Duration, SystemTime};

use kagzi_proto::v1;

use crate::absent::{always, at, text};
use crate::client::start::Timeouts;
use crate::retry_policy::{RetryPolicy, from_millis, millis};

/// A namespace as it was when it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Namespace {
    /// Its name.
    pub namespace_id: String,
    /// What it is for.
    pub description: String,
    /// It takes no new runs.
    pub disabled: bool,
    /// Who disabled it.
    pub disabled_by: Option<String>,
    /// Why.
    pub disabled_note: String,
    /// Since when.
    pub disabled_at: Option<SystemTime>,
    /// Fills what a run leaves open.
    pub retry_policy: RetryPolicy,
    /// Fill what a run leaves open.
    pub timeouts: Timeouts,
    /// How long finished runs are kept; none = as the server says.
    pub retention: Option<Duration>,
    /// Runs that execute at once; none = no limit. It is kept as a gate before all queues of the namespace.
    pub max_concurrent: Option<u32>,
    /// Where the failure handler starts when no worker has registered it.
    pub failure_handler_queue: Option<String>,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it was changed last.
    pub updated_at: Option<SystemTime>,
    /// Rises with every change of the namespace and of its gates.
    pub version: u64,
}

/// What can be set on a namespace. What is not named stays as it is, or is left to the server.
///
/// ```no_run
/// use std::time::Duration;
/// use kagzi::RetryPolicy;
/// use kagzi::admin::{NamespaceField, NamespaceSettings};
/// use kagzi::client::Timeouts;
///
/// # fn settings() -> NamespaceSettings {
/// let timeouts = Timeouts { step: Some(Duration::from_secs(60)), ..Timeouts::default() };
/// NamespaceSettings::default()
///     .description("orders of the shop")
///     .retry_policy(RetryPolicy::STANDARD)
///     .timeouts(timeouts)
///     .retention(Duration::from_secs(30 * 24 * 3600))
///     .max_concurrent(50)
///     .failure_handler_queue("cleaning")
///     .clear(NamespaceField::Retention)
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamespaceSettings {
    pub(super) values: v1::NamespaceValues,
    pub(super) clear: Vec<NamespaceField>,
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
    /// How many runs execute at once: the limit of the gate before all queues of the namespace.
    MaxConcurrent,
    /// Where the failure handler starts when no worker has registered it.
    FailureHandlerQueue,
}

impl Namespace {
    pub(crate) fn from_proto(namespace: v1::Namespace) -> Namespace {
        Namespace {
            namespace_id: namespace.namespace_id,
            description: namespace.description,
            disabled: namespace.disabled,
            disabled_by: text(namespace.disabled_by),
            disabled_note: namespace.disabled_note,
            disabled_at: at(namespace.disabled_at),
            retry_policy: namespace.retry_policy.map(RetryPolicy::from_proto).unwrap_or_default(),
            timeouts: namespace.timeouts.map(Timeouts::from_proto).unwrap_or_default(),
            retention: namespace.retention_ms.map(from_millis),
            max_concurrent: namespace.max_concurrent,
            failure_handler_queue: text(namespace.failure_handler_queue),
            created_at: always(namespace.created_at),
            updated_at: at(namespace.updated_at),
            version: namespace.version,
        }
    }
}

/// An empty namespace, for tests of programs that show namespaces.
impl Default for Namespace {
    fn default() -> Namespace {
        Namespace::from_proto(v1::Namespace::default())
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

impl NamespaceField {
    pub(super) fn to_proto(self) -> v1::NamespaceField {
        match self {
            NamespaceField::RetryPolicy => v1::NamespaceField::RetryPolicy,
            NamespaceField::Timeouts => v1::NamespaceField::Timeouts,
            NamespaceField::Retention => v1::NamespaceField::Retention,
            NamespaceField::MaxConcurrent => v1::NamespaceField::MaxConcurrent,
            NamespaceField::FailureHandlerQueue => v1::NamespaceField::FailureHandlerQueue,
        }
    }
}
