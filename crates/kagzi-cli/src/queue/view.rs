use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use kagzi::admin::{Gate, Queue, QueueType};
use serde::Serialize;

/// What an operator set, as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct GateView {
    pub paused: bool,
    pub paused_by: Option<String>,
    pub paused_note: Option<String>,
    pub paused_at: Option<Timestamp>,
    pub max_concurrent: Option<u32>,
}

/// A queue as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct QueueView {
    pub task_queue: String,
    pub ready: u64,
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
    pub workers: u32,
    pub gate: Option<GateView>,
    pub types: Vec<TypeView>,
}

/// One type on a queue as `-o json` prints it.
#[derive(Debug, Serialize)]
pub struct TypeView {
    pub workflow_type: String,
    pub ready: u64,
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
    pub workers: u32,
    pub gate: Option<GateView>,
}

impl From<Gate> for GateView {
    fn from(gate: Gate) -> Self {
        GateView {
            paused: gate.paused,
            paused_by: gate.paused_by,
            paused_note: Some(gate.paused_note).filter(|note| !note.is_empty()),
            paused_at: time_text::of(gate.paused_at),
            max_concurrent: gate.max_concurrent,
        }
    }
}

impl GateView {
    /// A gate that holds nothing back is none.
    pub fn unless_open(gate: Gate) -> Option<GateView> {
        (!gate.is_open()).then(|| GateView::from(gate))
    }

    /// What it does, in a few words.
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if self.paused {
            let by = self.paused_by.as_deref().unwrap_or("somebody");
            let note = self.paused_note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            parts.push(format!("paused by {by}{note}"));
        }
        if let Some(most) = self.max_concurrent {
            parts.push(format!("limited to {most} at once"));
        }
        parts.join(", ")
    }
}

impl From<Queue> for QueueView {
    fn from(queue: Queue) -> Self {
        QueueView {
            task_queue: queue.task_queue,
            ready: queue.depth.ready,
            waiting: queue.depth.waiting,
            leased: queue.depth.leased,
            oldest_ready_at: time_text::of(queue.depth.oldest_ready_at),
            workers: queue.workers,
            gate: GateView::unless_open(queue.gate),
            types: queue.types.into_iter().map(TypeView::from).collect(),
        }
    }
}

impl From<QueueType> for TypeView {
    fn from(kind: QueueType) -> Self {
        TypeView {
            workflow_type: kind.workflow_type,
            ready: kind.depth.ready,
            waiting: kind.depth.waiting,
            leased: kind.depth.leased,
            oldest_ready_at: time_text::of(kind.depth.oldest_ready_at),
            workers: kind.workers,
            gate: GateView::unless_open(kind.gate),
        }
    }
}

/// One line of a table: a queue, or a type on it.
struct Line<'a> {
    name: &'a str,
    counts: [u64; 3],
    oldest: Option<Timestamp>,
    workers: u32,
    gate: Option<&'a GateView>,
}

pub fn queues_table(queues: &[QueueView], now: Timestamp) -> String {
    let lines = queues.iter().map(|queue| Line {
        name: &queue.task_queue,
        counts: [queue.ready, queue.waiting, queue.leased],
        oldest: queue.oldest_ready_at,
        workers: queue.workers,
        gate: queue.gate.as_ref(),
    });
    as_table("QUEUE", lines, now)
}

pub fn types_table(queue: &QueueView, now: Timestamp) -> String {
    let lines = queue.types.iter().map(|kind| Line {
        name: &kind.workflow_type,
        counts: [kind.ready, kind.waiting, kind.leased],
        oldest: kind.oldest_ready_at,
        workers: kind.workers,
        gate: kind.gate.as_ref(),
    });
    as_table("TYPE", lines, now)
}

fn as_table<'a>(what: &str, lines: impl Iterator<Item = Line<'a>>, now: Timestamp) -> String {
    let mut table = table::with_columns(&[what, "READY", "OLDEST", "WAITING", "RUNNING", "WORKERS", "GATE"]);
    for line in lines {
        let [ready, waiting, leased] = line.counts;
        let stuck = ready > 0 && line.workers == 0;
        let mood = if stuck { Mood::Bad } else { Mood::Good };
        table.add_row([
            line.name.into(),
            ready.to_string().into(),
            line.oldest.map_or("-".into(), |at| time_text::relative(at, now)).into(),
            waiting.to_string().into(),
            leased.to_string().into(),
            table::mood_cell(&line.workers.to_string(), mood),
            line.gate.map_or("-".to_owned(), GateView::sentence).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;
    use crate::run::sample_now;

    fn sample() -> Queue {
        let at = Some(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_794_744_000));
        let mut refund = QueueType::default();
        refund.workflow_type = "refund".into();
        (refund.depth.ready, refund.depth.leased, refund.depth.oldest_ready_at) = (2, 1, at);
        refund.gate.max_concurrent = Some(3);
        let mut order = QueueType::default();
        order.workflow_type = "order".into();
        (order.depth.waiting, order.workers) = (4, 1);
        let mut queue = Queue::default();
        queue.task_queue = "orders".into();
        (queue.depth.ready, queue.depth.waiting, queue.depth.leased) = (2, 4, 1);
        (queue.depth.oldest_ready_at, queue.workers) = (at, 1);
        (queue.gate.paused, queue.gate.paused_by) = (true, Some("ada".into()));
        (queue.gate.paused_note, queue.gate.paused_at) = ("deploy".into(), at);
        queue.types = vec![order, refund];
        queue
    }

    #[test]
    fn queues_as_a_table() {
        insta::assert_snapshot!(queues_table(&[sample().into()], sample_now()));
    }

    #[test]
    fn types_as_a_table() {
        insta::assert_snapshot!(types_table(&sample().into(), sample_now()));
    }

    #[test]
    fn a_queue_as_json() {
        insta::assert_snapshot!(output::json(&QueueView::from(sample())));
    }
}
