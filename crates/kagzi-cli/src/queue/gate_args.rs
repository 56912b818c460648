use kagzi::admin::{Admin, QueueHandle};

/// Names a gate: of a queue, of one type on it, or of everything.
#[derive(clap::Args)]
pub struct Which {
    /// The queue.
    #[arg(required_unless_present = "all")]
    queue: Option<String>,
    /// Only runs of this type.
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "all")]
    workflow_type: Option<String>,
    /// Every queue of the namespace.
    #[arg(long, conflicts_with = "queue")]
    all: bool,
}

impl Which {
    /// What stands behind the gate.
    pub fn of(&self, admin: &Admin) -> QueueHandle {
        let queue = match &self.queue {
            Some(queue) => admin.queue(queue),
            None => admin.every_queue(),
        };
        match &self.workflow_type {
            Some(kind) => queue.workflow_type(kind),
            None => queue,
        }
    }

    /// The same, for people.
    pub fn described(&self) -> String {
        match (&self.queue, &self.workflow_type) {
            (None, _) => "every queue".into(),
            (Some(queue), None) => format!("queue {queue}"),
            (Some(queue), Some(kind)) => format!("type {kind} on queue {queue}"),
        }
    }
}
