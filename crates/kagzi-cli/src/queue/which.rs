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
    /// Queue and type as the server is told; empty = every one.
    pub fn names(self) -> (String, String) {
        (self.queue.unwrap_or_default(), self.workflow_type.unwrap_or_default())
    }
}

/// What stands behind the gate, for people.
pub fn described(queue: &str, workflow_type: &str) -> String {
    match (queue, workflow_type) {
        ("", _) => "every queue".into(),
        (queue, "") => format!("queue {queue}"),
        (queue, kind) => format!("type {kind} on queue {queue}"),
    }
}
